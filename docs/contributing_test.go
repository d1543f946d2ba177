package docs_test

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/webhooktest"
)

func TestContributing_CodeIsCompiled(t *testing.T) {
	mdtest.Read(t, "../CONTRIBUTING.md").GoIsIn(t, ".")
}

var handler = admission.NewHandler(scheme.Scheme, admission.Validate(func(context.Context, *corev1.Pod) (field.ErrorList, error) {
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "no Pods today")}, nil
}))

func TestWebhook_RefusesPod(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	url, ca := webhooktest.Serve(t, handler)
	client := kubernetes.NewForConfigOrDie(cp.Config())
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:           "pods.example.com",
			ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"refused": "yes"}}, // others share the API server
			Rules:          rules("", "v1", "pods", create), SideEffects: new(noneOfEffect), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"refused": "yes"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	expect.Eventually(t, func() error {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("got %v, want that it is refused", err)
		}
		return nil
	})
}
