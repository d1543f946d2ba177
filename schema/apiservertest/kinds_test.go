package apiservertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

const (
	podTemplate  = `{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}], restartPolicy: %s}}`
	matching     = `matchConstraints: {resourceRules: [{apiGroups: [nothing.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]}`
	hookForKinds = `webhooks: [{name: a.example.com, clientConfig: {service: {namespace: a, name: a}}, sideEffects: None, admissionReviewVersions: [v1]}]`
)

// builtInKinds has, for each built-in kind that is easily created, an object, a merge patch, and
// metadata.generation after the creation, after the patch, and after a change of a label and of an annotation. A patch
// is empty where the kind cannot be changed.
var builtInKinds = []struct{ kind, object, patch, want string }{
	{"v1 Pod", `spec: {containers: [{name: a, image: a}]}`, `spec: {activeDeadlineSeconds: 5}`, "1 2 2 2"},
	{"v1 PodTemplate", fmt.Sprintf(`template: `+podTemplate, "Always"), `template: {metadata: {labels: {c: d}}}`, "1 2 2 2"},
	{"v1 ReplicationController", fmt.Sprintf(`spec: {selector: {a: b}, template: `+podTemplate+`}`, "Always"), `spec: {replicas: 0}`, "1 2 2 2"},
	{"v1 Service", `spec: {ports: [{port: 80}]}`, `spec: {sessionAffinity: ClientIP}`, "0 0 0 0"},
	{"v1 PersistentVolumeClaim", `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, ``, "0 0 0 0"},
	{"v1 ResourceQuota", `spec: {hard: {pods: 9}}`, `spec: {hard: {pods: 8}}`, "0 0 0 0"},
	{"v1 LimitRange", `spec: {limits: []}`, ``, "0 0 0 0"},
	{"v1 ConfigMap", `data: {a: b}`, `data: {c: d}`, "0 0 0 0"},
	{"v1 Node", `{}`, `spec: {unschedulable: true}`, "0 0 0 0"},
	{"v1 PersistentVolume", `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}`, `spec: {persistentVolumeReclaimPolicy: Delete}`, "0 0 0 0"},
	{"v1 Namespace", `{}`, ``, "0 0 0 0"},
	{"apps/v1 Deployment", fmt.Sprintf(`spec: {selector: {matchLabels: {a: b}}, template: `+podTemplate+`}`, "Always"), `spec: {paused: true}`, "1 2 2 3"},
	{"apps/v1 ReplicaSet", fmt.Sprintf(`spec: {selector: {matchLabels: {a: b}}, template: `+podTemplate+`}`, "Always"), `spec: {replicas: 0}`, "1 2 2 2"},
	{"apps/v1 StatefulSet", fmt.Sprintf(`spec: {serviceName: a, selector: {matchLabels: {a: b}}, template: `+podTemplate+`}`, "Always"), `spec: {replicas: 0}`, "1 2 2 2"},
	{"apps/v1 DaemonSet", fmt.Sprintf(`spec: {selector: {matchLabels: {a: b}}, template: `+podTemplate+`}`, "Always"), `spec: {minReadySeconds: 5}`, "1 2 2 2"},
	{"apps/v1 ControllerRevision", `{revision: 1, data: {}}`, ``, "0 0 0 0"},
	{"batch/v1 Job", fmt.Sprintf(`spec: {template: `+podTemplate+`}`, "Never"), `spec: {suspend: true}`, "1 2 2 2"},
	{"batch/v1 CronJob", fmt.Sprintf(`spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: `+podTemplate+`}}}`, "Never"), `spec: {suspend: true}`, "1 2 2 2"},
	{"autoscaling/v2 HorizontalPodAutoscaler", `spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, maxReplicas: 2}`, `spec: {maxReplicas: 3}`, "1 2 2 2"},
	{"policy/v1 PodDisruptionBudget", `spec: {minAvailable: 1, selector: {}}`, `spec: {minAvailable: 2}`, "1 2 2 2"},
	{"networking.k8s.io/v1 Ingress", `spec: {defaultBackend: {service: {name: a, port: {number: 1}}}}`, `spec: {defaultBackend: {service: {name: b}}}`, "1 2 2 2"},
	{"networking.k8s.io/v1 IngressClass", `spec: {controller: example.com/a}`, `spec: {parameters: {kind: A, name: a, scope: Cluster}}`, "1 2 2 2"},
	{"networking.k8s.io/v1 NetworkPolicy", `spec: {podSelector: {}}`, `spec: {policyTypes: [Egress]}`, "1 2 2 2"},
	{"discovery.k8s.io/v1 EndpointSlice", `{addressType: IPv4, endpoints: []}`, `endpoints: [{addresses: [10.1.2.3]}]`, "1 2 3 3"},
	{"coordination.k8s.io/v1 Lease", `spec: {leaseDurationSeconds: 4}`, `spec: {leaseDurationSeconds: 5}`, "0 0 0 0"},
	{"flowcontrol.apiserver.k8s.io/v1 FlowSchema", `spec: {priorityLevelConfiguration: {name: a}}`, `spec: {matchingPrecedence: 9000}`, "1 2 2 2"},
	{"flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration", `spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}`, `spec: {limited: {nominalConcurrencyShares: 2}}`, "1 2 2 2"},
	{"scheduling.k8s.io/v1 PriorityClass", `value: 1`, `description: a`, "1 1 1 1"},
	{"storage.k8s.io/v1 CSIDriver", `spec: {}`, `spec: {requiresRepublish: true}`, "0 1 1 1"},
	{"storage.k8s.io/v1 StorageClass", `provisioner: example.com/a`, `allowVolumeExpansion: true`, "0 0 0 0"},
	{"storage.k8s.io/v1 VolumeAttachment", `spec: {attacher: example.com, nodeName: a, source: {persistentVolumeName: a}}`, ``, "0 0 0 0"},
	{"resource.k8s.io/v1 DeviceClass", `spec: {}`, `spec: {selectors: [{cel: {expression: "true"}}]}`, "1 2 2 2"},
	{"resource.k8s.io/v1 DeviceTaintRule", `spec: {taint: {key: example.com/a, effect: NoExecute}}`, `spec: {taint: {value: a}}`, "1 2 2 2"},
	{"resource.k8s.io/v1 ResourceClaim", `spec: {devices: {}}`, ``, "0 0 0 0"},
	{"resource.k8s.io/v1 ResourceSlice", `spec: {driver: example.com, nodeName: a, pool: {name: a, generation: 1, resourceSliceCount: 1}}`, `spec: {pool: {generation: 2}}`, "1 2 2 2"},
	{"rbac.authorization.k8s.io/v1 Role", `rules: []`, `rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`, "0 0 0 0"},
	{"node.k8s.io/v1 RuntimeClass", `handler: a`, ``, "0 0 0 0"},
	{"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", hookForKinds, hookForKinds[:len(hookForKinds)-2] + `, timeoutSeconds: 5}]`, "1 2 2 2"},
	{"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration", hookForKinds, hookForKinds[:len(hookForKinds)-2] + `, timeoutSeconds: 5}]`, "1 2 2 2"},
	{"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy", `spec: {` + matching + `, validations: [{expression: "true"}]}`, `spec: {failurePolicy: Ignore}`, "1 2 2 2"},
	{"admissionregistration.k8s.io/v1 MutatingAdmissionPolicy", `spec: {` + matching + `, reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/a'}]"}}]}`, `spec: {failurePolicy: Ignore}`, "1 2 2 2"},
	{"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding", `spec: {policyName: a, validationActions: [Deny]}`, `spec: {validationActions: [Audit]}`, "1 2 2 2"},
	{"admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding", `spec: {policyName: a}`, `spec: {policyName: b}`, "1 2 2 2"},
}

func TestServer_Generation(t *testing.T) {
	t.Parallel()
	generation(t, apiservertest.Start(t).Config())
}

func TestServer_GenerationInACluster(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.SkipIfOlder(t, "lacks kinds, or their generation")
	generation(t, cp.Config())
}

func generation(t *testing.T, config *rest.Config) {
	mapper, client := mapperOf(t, config), dynamic.NewForConfigOrDie(config)
	labels := []string{"Namespace", "Service", "StatefulSet"}
	anyName := []string{"PodDisruptionBudget", "Role"}
	for _, k := range builtInKinds {
		t.Run(k.kind, func(t *testing.T) {
			var version, kind string
			_, err := fmt.Sscan(k.kind, &version, &kind)
			expect.NoError(t, err)
			gvk := schema.FromAPIVersionAndKind(version, kind)
			resource := resourceOf(t, mapper, client, gvk, "default")
			u := &unstructured.Unstructured{Object: *testobj.As[map[string]any](t, k.object)}
			u.SetGroupVersionKind(gvk)
			create := func() error {
				_, err := resource.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			}
			isValid := func(what string, want bool, err error) {
				if (err == nil) != want || err != nil && !apierrors.IsInvalid(err) {
					t.Errorf("%s: got %v, want that it is valid: %t", what, err, want)
				}
			}
			for name, want := range map[string]bool{"A": slices.Contains(anyName, kind), "a.b": !slices.Contains(labels, kind)} {
				u.SetName(name)
				isValid("the name "+name, want, create())
			}
			u.SetName("generation")
			u.SetFinalizers([]string{"short"})
			want := slices.Contains([]string{"admissionregistration.k8s.io", "coordination.k8s.io", "node.k8s.io", "policy"}, gvk.Group)
			isValid("a finalizer without a domain", want, create())
			u.SetFinalizers(nil)
			u, err = resource.Create(t.Context(), u, metav1.CreateOptions{})
			expect.NoError(t, err)
			got := fmt.Sprint(u.GetGeneration())
			short := []byte(`{"metadata":{"finalizers":["short"]}}`)
			_, err = resource.Patch(t.Context(), u.GetName(), types.MergePatchType, short, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			isValid("a new finalizer without a domain", want, err)
			for _, patch := range []string{k.patch, "metadata: {labels: {c: d}}", "metadata: {annotations: {c: d}}"} {
				text, err := yaml.YAMLToJSON([]byte(patch))
				expect.NoError(t, err)
				if patch != "" {
					u, err = resource.Patch(t.Context(), u.GetName(), types.MergePatchType, text, metav1.PatchOptions{})
					expect.NoError(t, err)
				}
				got += fmt.Sprint(" ", u.GetGeneration())
			}
			if got != k.want {
				t.Errorf("the generations are %s, want %s", got, k.want)
			}
		})
	}
}

func TestServer_ImmutableFields(t *testing.T) {
	t.Parallel()
	immutableFields(t, apiservertest.Start(t).Config())
}

func TestServer_ImmutableFieldsInACluster(t *testing.T) {
	immutableFields(t, controlplane.Shared(t).Config())
}

// immutableFields sends merge patches for an object of a kind, some of which are refused because of a field.
func immutableFields(t *testing.T, config *rest.Config) {
	const (
		workload = `spec: {serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: a, image: a}]}}, volumeClaimTemplates: [{metadata: {name: v}, spec: ` + claim + `}]}`
		selector = "spec: {selector: {matchLabels: {c: d}}}"
		image    = "spec: {template: {spec: {containers: [{name: a, image: b}]}}}"
		role     = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}"
	)
	mapper, client := mapperOf(t, config), dynamic.NewForConfigOrDie(config)
	for typed, test := range map[string]struct {
		object  string
		refused map[string]string // by patch, the field
		allowed []string
	}{
		"apps/v1 Deployment": {workload, map[string]string{selector: "spec.selector"}, []string{image, "spec: {replicas: 3}"}},
		"apps/v1 DaemonSet":  {workload, map[string]string{selector: "spec.selector"}, []string{image}},
		"apps/v1 ReplicaSet": {workload, map[string]string{selector: "spec.selector"}, []string{image}},
		"apps/v1 StatefulSet": {workload, map[string]string{
			selector: "spec.selector", "spec: {serviceName: t}": "spec.serviceName",
			"spec: {volumeClaimTemplates: [{metadata: {name: w}, spec: " + claim + "}]}": "spec.volumeClaimTemplates",
		}, []string{image, "spec: {podManagementPolicy: OrderedReady}", "spec: {volumeClaimTemplates: [{metadata: {name: v}, spec: " + claim + "}]}", "spec: {minReadySeconds: 3, ordinals: {start: 1}}"}},
		"batch/v1 Job": {fmt.Sprintf("spec: {completionMode: NonIndexed, template: "+podTemplate+"}", "Never"), map[string]string{image: "spec.template", "spec: {completionMode: Indexed, completions: 1}": "spec.completionMode"},
			[]string{"spec: {parallelism: 2, backoffLimit: 3}"}},
		"v1 Secret":    {"{type: a/b, data: {a: YQ==}}", map[string]string{"type: Opaque": "type"}, []string{"data: {a: Yg==}", "data: {b: YQ==}"}},
		"v1 ConfigMap": {"{immutable: true, data: {a: b}}", map[string]string{"data: {a: c}": "data", "immutable: false": "immutable", "binaryData: {b: YQ==}": "binaryData"}, []string{"metadata: {labels: {a: b}}"}},
		"v1 PersistentVolumeClaim": {"spec: " + claim, map[string]string{
			"spec: {accessModes: [ReadOnlyMany]}": "spec", "spec: {storageClassName: b}": "spec",
		}, []string{"spec: {volumeName: a}"}},
		"rbac.authorization.k8s.io/v1 RoleBinding":        {role, map[string]string{"roleRef: {name: b}": "roleRef"}, []string{"subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: a}]"}},
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding": {role, map[string]string{"roleRef: {name: b}": "roleRef"}, nil},
		"storage.k8s.io/v1 StorageClass": {"{provisioner: example.com/a, parameters: {a: b}}", map[string]string{
			"parameters: {a: c}": "parameters", "provisioner: example.com/b": "provisioner",
		}, []string{"allowVolumeExpansion: true", "reclaimPolicy: Delete"}},
	} {
		t.Run(typed, func(t *testing.T) {
			version, kind, _ := strings.Cut(typed, " ")
			gvk := schema.FromAPIVersionAndKind(version, kind)
			resource := resourceOf(t, mapper, client, gvk, "kube-public")
			u := &unstructured.Unstructured{Object: *testobj.As[map[string]any](t, test.object)}
			u.SetGroupVersionKind(gvk)
			u.SetName("immutable-" + rand.String(5))
			_, err := resource.Create(t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
			expect.NoError(t, err)
			patch := func(text string) error {
				body, err := yaml.YAMLToJSON([]byte(text))
				expect.NoError(t, err)
				_, err = resource.Patch(t.Context(), u.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
				return err
			}
			for text, at := range test.refused {
				err := patch(text)
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "immutable") {
					t.Errorf("%s: got %v, want that %s is immutable", text, err, at)
				}
			}
			for _, text := range test.allowed {
				expect.NoError(t, patch(text))
			}
		})
	}
}

const claim = `{accessModes: [ReadWriteOnce], storageClassName: a, resources: {requests: {storage: 1Gi}}}`

func mapperOf(t *testing.T, config *rest.Config) meta.RESTMapper {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(client)
	expect.NoError(t, err)
	return restmapper.NewDiscoveryRESTMapper(groups)
}

// resourceOf returns a client of a kind, in a namespace if it has one.
func resourceOf(t *testing.T, mapper meta.RESTMapper, client dynamic.Interface, gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	expect.NoError(t, err)
	if mapping.Scope == meta.RESTScopeNamespace {
		return client.Resource(mapping.Resource).Namespace(namespace)
	}
	return client.Resource(mapping.Resource)
}

// A watch can begin at the resourceVersion of the first answer about a kind, however late the watch is.
func TestServer_WatchFromFirstAnswer(t *testing.T) {
	t.Parallel()
	core := kubernetes.NewForConfigOrDie(apiservertest.Start(t).Config()).CoreV1()
	secret, err := core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	account, err := core.ServiceAccounts("default").Apply(t.Context(), applycorev1.ServiceAccount("a", "default"), metav1.ApplyOptions{FieldManager: "ann"})
	expect.NoError(t, err)
	list, err := core.ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	expect.NoError(t, core.Secrets("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	expect.NoError(t, core.ServiceAccounts("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	_, err = core.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	for _, from := range []struct {
		version string
		watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	}{
		{secret.ResourceVersion, core.Secrets("default").Watch},
		{account.ResourceVersion, core.ServiceAccounts("default").Watch},
		{list.ResourceVersion, core.ConfigMaps("default").Watch},
	} {
		w, err := from.watch(t.Context(), metav1.ListOptions{ResourceVersion: from.version})
		expect.NoError(t, err)
		if e := <-w.ResultChan(); e.Type == watch.Error {
			t.Errorf("from %s: %v", from.version, e.Object)
		}
		w.Stop()
	}
}
