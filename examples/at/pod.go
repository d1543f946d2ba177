package at

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/examples/at/api/v1alpha1"
)

const (
	// gate keeps a Pod from being scheduled until the At names it (KEP-3521).
	gate = "cnat.example.com/recorded"
	// The controller watches the Pods with this label, and not all Pods of the cluster.
	label, labelValue = "app.kubernetes.io/managed-by", "at"
	// annotation is the annotation of a Pod with the generation of its At.
	annotation = "cnat.example.com/generation"
)

// newPod returns the Pod of an At. It has the name of the At, so that there is no second one, and a
// gate, so that it does not run yet.
func newPod(at *v1alpha1.At) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       at.Namespace,
			Name:            at.Name, // a DNS subdomain, like the name of the At
			Labels:          map[string]string{label: labelValue},
			Annotations:     map[string]string{annotation: strconv.FormatInt(at.Generation, 10)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(at, v1alpha1.GroupVersion.WithKind("At"))},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: gate}},
			RestartPolicy:   corev1.RestartPolicyNever, // once, even if it fails
			Containers: []corev1.Container{{
				Name:  "command",
				Image: at.Spec.Image,
				// The kubelet would expand $(NAME) and $$, which are for the shell.
				Command: []string{"sh", "-c", strings.ReplaceAll(at.Spec.Command, "$", "$$")},
			}},
		},
	}
}

// generationOf returns the generation of the At for which a Pod was created, or 0, which is older
// than all others, if the annotation is missing.
func generationOf(pod *corev1.Pod) int64 {
	generation, err := strconv.ParseInt(pod.Annotations[annotation], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

// gatesWithout returns the gates of a Pod without the controller's own.
func gatesWithout(pod *corev1.Pod) []corev1.PodSchedulingGate {
	others := []corev1.PodSchedulingGate{}
	for _, g := range pod.Spec.SchedulingGates {
		if g.Name != gate {
			others = append(others, g)
		}
	}
	return others
}

// ended reports whether a Pod has finished.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
