package apiservertest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

func TestServer_Subresources(t *testing.T) {
	t.Parallel()
	config := apiservertest.Start(t).Config()
	t.Run("scale", func(t *testing.T) { scale(t, config) })
	t.Run("binding", func(t *testing.T) { bind(t, config) })
	t.Run("status", func(t *testing.T) { status(t, config) })
	t.Run("others", func(t *testing.T) { others(t, config) })
}

func TestServer_SubresourcesInACluster(t *testing.T) {
	config := controlplane.Shared(t).Config()
	t.Run("scale", func(t *testing.T) { scale(t, config) })
	t.Run("binding", func(t *testing.T) { bind(t, config) })
	t.Run("status", func(t *testing.T) { status(t, config) })
	t.Run("others", func(t *testing.T) { others(t, config) })
}

const template = `template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}`

func scale(t *testing.T, config *rest.Config) {
	name := "scaled-" + rand.String(5) // the cluster has no controllers that would delete it in the end
	mapper := mapperOf(t, config)
	for typed, spec := range map[string]string{
		"apps/v1 Deployment":       `selector: {matchLabels: {a: b}}, ` + template,
		"apps/v1 ReplicaSet":       `selector: {matchLabels: {a: b}}, ` + template,
		"apps/v1 StatefulSet":      `selector: {matchLabels: {a: b}}, serviceName: a, ` + template,
		"v1 ReplicationController": `selector: {a: b}, ` + template,
	} {
		t.Run(typed, func(t *testing.T) {
			version, kind, _ := strings.Cut(typed, " ")
			gvk := schema.FromAPIVersionAndKind(version, kind)
			mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			expect.NoError(t, err)
			client := dynamic.NewForConfigOrDie(config).Resource(mapping.Resource).Namespace("default")
			u := testobj.Parse(t, `{apiVersion: `+version+`, kind: `+kind+`, metadata: {name: `+name+`}, spec: {replicas: 1, `+spec+`}}`)
			_, err = client.Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: "author"})
			expect.NoError(t, err)

			got, err := client.Get(t.Context(), name, metav1.GetOptions{}, "scale")
			expect.NoError(t, err)
			var read autoscalingv1.Scale
			expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(got.Object, &read, true))
			if read.Kind != "Scale" || read.Spec.Replicas != 1 || read.Status.Selector != "a=b" || read.UID == "" || read.ResourceVersion == "" {
				t.Errorf("got %+v", read)
			}
			expect.NoError(t, unstructured.SetNestedField(got.Object, int64(3), "spec", "replicas"))
			_, err = client.Update(t.Context(), got, metav1.UpdateOptions{FieldManager: "scaler"}, "scale")
			expect.NoError(t, err)
			if _, err = client.Update(t.Context(), got, metav1.UpdateOptions{}, "scale"); !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict, because the resourceVersion is old", err)
			}
			if got := replicas(t, client, name); got != "3, generation 2, owned by scaler" {
				t.Errorf("after the update: %s", got)
			}
			_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "patcher"}, "scale")
			expect.NoError(t, err)
			if got := replicas(t, client, name); got != "5, generation 3, owned by patcher" {
				t.Errorf("after the patch: %s", got)
			}
			applied := testobj.Parse(t, `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: `+name+`}, spec: {replicas: 6}}`)
			if _, err = client.Apply(t.Context(), name, applied, metav1.ApplyOptions{FieldManager: "applier"}, "scale"); !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict with patcher", err)
			}
			_, err = client.Apply(t.Context(), name, applied, metav1.ApplyOptions{FieldManager: "applier", Force: true}, "scale")
			expect.NoError(t, err)
			if got := replicas(t, client, name); got != "6, generation 4, owned by applier" {
				t.Errorf("after the apply: %s", got)
			}
			_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), metav1.PatchOptions{}, "scale")
			if want := `Scale.autoscaling "` + name + `" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if _, err = client.Patch(t.Context(), "none", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}, "scale"); !apierrors.IsNotFound(err) {
				t.Errorf("got %v, want not found", err)
			}
		})
	}
}

// replicas returns those of the object, and who owns the field.
func replicas(t *testing.T, client dynamic.ResourceInterface, name string) string {
	u, err := client.Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	var owners []string
	for _, m := range u.GetManagedFields() {
		if strings.Contains(string(m.FieldsV1.GetRawBytes()), `"f:replicas"`) {
			owners = append(owners, m.Manager)
		}
	}
	return fmt.Sprintf("%d, generation %d, owned by %s", n, u.GetGeneration(), strings.Join(owners, ", "))
}

func bind(t *testing.T, config *rest.Config) {
	name := "bound-" + rand.String(5)
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("kube-public")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}, AutomountServiceAccountToken: new(bool)},
	}
	_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	expect.NoError(t, err)
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"a": "b"}}, Target: corev1.ObjectReference{Kind: "Node", Name: "first"}}

	stale := binding.DeepCopy()
	stale.UID = "other"
	if err := pods.Bind(t.Context(), stale, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict, because the UID is another", err)
	}
	expect.NoError(t, pods.Bind(t.Context(), binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	expect.NoError(t, pods.Bind(t.Context(), binding, metav1.CreateOptions{}))
	pod, err = pods.Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	if c := pod.Status.Conditions; pod.Spec.NodeName != "first" || pod.Annotations["a"] != "b" || len(c) != 1 || c[0].Type != corev1.PodScheduled || c[0].Status != corev1.ConditionTrue {
		t.Errorf("the Pod has node %q, annotations %v, conditions %v", pod.Spec.NodeName, pod.Annotations, pod.Status.Conditions)
	}
	if pod.Generation != 1 {
		t.Errorf("the generation is %d, want 1", pod.Generation)
	}
	err = pods.Bind(t.Context(), binding, metav1.CreateOptions{})
	if want := `Operation cannot be fulfilled on pods/binding "` + name + `": pod ` + name + ` is already assigned to node "first"`; !apierrors.IsConflict(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	binding.Target.Name = ""
	expect.ErrorContains(t, pods.Bind(t.Context(), binding, metav1.CreateOptions{}), "target.name: Required value")
	binding.Name, binding.Target.Name = "none", "first"
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

// status changes metadata through the subresource status, which ignores some of it.
func status(t *testing.T, config *rest.Config) {
	name := "status-" + rand.String(5)
	mapper := mapperOf(t, config)
	for typed, test := range map[string]struct{ spec, want string }{
		"v1 Pod":                             {`containers: [{name: a, image: a}]`, "labels annotations 0 1"},
		"v1 Service":                         {`ports: [{port: 80}]`, "labels annotations 1 1"},
		"apps/v1 Deployment":                 {`selector: {matchLabels: {a: b}}, ` + template, "annotations 1 1"},
		"storage.k8s.io/v1 VolumeAttachment": {`attacher: example.com, nodeName: a, source: {persistentVolumeName: a}`, "0 0"},
	} {
		t.Run(typed, func(t *testing.T) {
			version, kind, _ := strings.Cut(typed, " ")
			gvk := schema.FromAPIVersionAndKind(version, kind)
			resource := resourceOf(t, mapper, dynamic.NewForConfigOrDie(config), gvk, "default")
			u := &unstructured.Unstructured{Object: *testobj.As[map[string]any](t, "spec: {"+test.spec+"}")}
			u.SetGroupVersionKind(gvk)
			u.SetName(name)
			_, err := resource.Create(t.Context(), u, metav1.CreateOptions{})
			expect.NoError(t, err)
			u, err = resource.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"labels":"a"},"annotations":{"annotations":"a"},"finalizers":["example.com/a"],`+
				`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"a"}]},"spec":{"a":"b","attacher":"other"}}`), metav1.PatchOptions{}, "status")
			expect.NoError(t, err)
			got := slices.Concat(slices.Collect(maps.Keys(u.GetLabels())), slices.Collect(maps.Keys(u.GetAnnotations())), []string{fmt.Sprint(len(u.GetOwnerReferences())), fmt.Sprint(len(u.GetFinalizers()))})
			if strings.Join(got, " ") != test.want {
				t.Errorf("got the metadata %q, want %q", got, test.want)
			}
			if attacher, _, _ := unstructured.NestedString(u.Object, "spec", "attacher"); attacher == "other" {
				t.Error("the spec has changed")
			}
		})
	}
}

// others checks what else kube-apiserver does to built-in kinds, or serves. A Secret has its data, whatever request
// brings it as text.
func others(t *testing.T, config *rest.Config) {
	core := kubernetes.NewForConfigOrDie(config).CoreV1()
	name := "secret-" + rand.String(5)
	got, err := core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	show := func(s *corev1.Secret) string { return fmt.Sprintf("%s %q %q", s.Type, s.Data, s.StringData) }
	if want := `Opaque map["a":"1"] map[]`; show(got) != want {
		t.Errorf("created: got %s, want %s", show(got), want)
	}
	got.StringData = map[string]string{"b": "2"}
	got, err = core.Secrets("default").Update(t.Context(), got, metav1.UpdateOptions{})
	expect.NoError(t, err)
	if want := `Opaque map["a":"1" "b":"2"] map[]`; show(got) != want {
		t.Errorf("updated: got %s, want %s", show(got), want)
	}
	for kind, patch := range map[types.PatchType]string{types.MergePatchType: "merge", types.StrategicMergePatchType: "strategic"} {
		got, err = core.Secrets("default").Patch(t.Context(), name, kind, []byte(`{"stringData":{"a":"`+patch+`"}}`), metav1.PatchOptions{})
		expect.NoError(t, err)
		if want := `Opaque map["a":"` + patch + `" "b":"2"] map[]`; show(got) != want {
			t.Errorf("%s patch: got %s, want %s", patch, show(got), want)
		}
	}
	got, err = core.Secrets("default").Apply(t.Context(), applycorev1.Secret(name, "default").WithStringData(map[string]string{"c": "3"}), metav1.ApplyOptions{FieldManager: "a"})
	expect.NoError(t, err)
	if len(got.Data) != 3 || string(got.Data["c"]) != "3" {
		t.Errorf("applied: got %s", show(got))
	}
	got, err = core.Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	if len(got.Data) != 3 || got.StringData != nil {
		t.Errorf("read: got %s", show(got))
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.NodeInfo.OSImage = "a"
	node, err = core.Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	expect.NoError(t, err)
	if got := node.Status.NodeInfo.OSImage; got != "a" {
		t.Errorf("the Node has the OS image %q, want the one it was created with", got)
	}
	if got := node.Spec.Taints; len(got) != 1 || got[0].ToString() != "node.kubernetes.io/not-ready:NoSchedule" {
		t.Errorf("the Node has the taints %v, want that it is not ready", got)
	}
	pod, err := core.Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	storage := corev1.ResourceList{corev1.ResourceStorage: quantity.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim, err := core.PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: storage}}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	source := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}
	volume, err := core.PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{AccessModes: modes, Capacity: storage, PersistentVolumeSource: source}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	if got := fmt.Sprint(pod.Status.Phase, claim.Status.Phase, volume.Status.Phase); got != "PendingPendingPending" || volume.Status.LastPhaseTransitionTime == nil {
		t.Errorf("the Pod, the claim and the volume are %s, since %v", got, volume.Status.LastPhaseTransitionTime)
	}
	if err := core.RESTClient().Delete().Resource("namespaces").Param("labelSelector", "a=none").Do(t.Context()).Error(); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("got %v, want that all namespaces cannot be deleted at once", err)
	}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/a"}}}
	_, err = core.ConfigMaps("default").Create(t.Context(), held, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.NoError(t, core.ConfigMaps("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	held.Finalizers = append(held.Finalizers, "example.com/b")
	_, err = core.ConfigMaps("default").Update(t.Context(), held, metav1.UpdateOptions{})
	if status, ok := errors.AsType[*apierrors.StatusError](err); !ok || len(status.ErrStatus.Details.Causes) != 1 {
		t.Errorf("got %#v, want one cause, that there is a new finalizer", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err = core.ServiceAccounts("default").Update(t.Context(), account, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
	rbac := kubernetes.NewForConfigOrDie(config).RbacV1()
	role, err := rbac.Roles("default").Update(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{})
	if err != nil || role.UID == "" {
		t.Errorf("got %v, %v, want a new Role", role, err)
	}
	// As some programs ask whether a cluster is there.
	var index struct{ Paths []string }
	text, err := core.RESTClient().Get().AbsPath("/").Do(t.Context()).Raw()
	expect.NoError(t, err)
	if err := json.Unmarshal(text, &index); err != nil || !slices.Contains(index.Paths, "/apis/apiextensions.k8s.io/v1") {
		t.Errorf("/ is %s (%v)", text, err)
	}
}
