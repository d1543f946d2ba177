package corpus_test

import (
	"cmp"
	"context"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	bootstrap "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplane "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	core "sigs.k8s.io/cluster-api/core/webhooks/conversion"

	"github.com/crdkit/crdkit/roundtrip"
)

// clusterAPI returns the conversions of Cluster API.
func clusterAPI(t *testing.T) *project {
	t.Helper()
	p := newProject(t,
		addonsv1beta1.AddToScheme, addonsv1.AddToScheme, bootstrapv1beta1.AddToScheme, bootstrapv1.AddToScheme,
		controlplanev1beta1.AddToScheme, controlplanev1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1.AddToScheme,
		ipamv1alpha1.AddToScheme, ipamv1beta1.AddToScheme, ipamv1.AddToScheme, runtimev1alpha1.AddToScheme, runtimev1.AddToScheme)
	// The webhook reads the version from the CRD of the referenced kind.
	version := func(_ context.Context, kind kubeschema.GroupKind) (string, error) {
		return kind.WithVersion("v1beta1").GroupVersion().String(), nil
	}
	core.SetAPIVersionGetter(version)
	controlplane.SetAPIVersionGetter(version)
	const module = "sigs.k8s.io/cluster-api@"
	p.definitions = published(t, module+"v1.14.2", "core/config/crd/bases/*.yaml", "bootstrap/kubeadm/config/crd/bases/*.yaml", "controlplane/kubeadm/config/crd/bases/*.yaml")
	p.releases = []string{"v1.8.4", "v1.13.6"}
	for _, release := range p.releases {
		p.history[release] = published(t, module+release, "config/crd/bases/*.yaml", "bootstrap/kubeadm/config/crd/bases/*.yaml", "controlplane/kubeadm/config/crd/bases/*.yaml")
	}
	p.options = []roundtrip.Option{
		roundtrip.Without(roundtrip.Aliasing, "conversion-gen generates functions that share memory"),
		roundtrip.Without(roundtrip.InputUntouched, "MarshalDataUnsafeNoCopy clears the metadata of its input, and its documentation says so"),
		roundtrip.Without(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project, whose NodeSystemInfo has more fields"),
		roundtrip.Without(roundtrip.Defaulting, "only the schema of v1beta1 has defaults for rolloutStrategy: the webhook of v1beta2 has them"),
		roundtrip.Without(roundtrip.Decoding, clusterAPIDecodes),
		roundtrip.Refuse(clusterAPIDecodes, func(err error) bool {
			return regexp.MustCompile(`: (time: |json: cannot unmarshal |the bootstrap token |quantities must match )`).MatchString(err.Error())
		}),
	}
	p.normal = []func(v reflect.Value){
		visit(func(m *metav1.ObjectMeta) { delete(m.Annotations, "cluster.x-k8s.io/conversion-data") }),
		visit(func(ref *corev1.ObjectReference) {
			gv, _ := kubeschema.ParseGroupVersion(ref.APIVersion)
			*ref = corev1.ObjectReference{APIVersion: gv.Group, Kind: ref.Kind, Name: ref.Name}
		}),
		visit(func(d *metav1.Duration) { d.Duration = d.Truncate(time.Second) }),
		visit(func(c *bootstrapv1beta1.ClusterConfiguration) {
			c.TypeMeta, c.ClusterName, c.KubernetesVersion, c.Networking = metav1.TypeMeta{}, "", "", bootstrapv1beta1.Networking{}
		}),
		visit(func(c *bootstrapv1beta1.InitConfiguration) { c.TypeMeta = metav1.TypeMeta{} }),
		visit(func(c *bootstrapv1beta1.JoinConfiguration) { c.TypeMeta = metav1.TypeMeta{} }),
		visit(func(m *clusterv1beta1.MachineStatus) {
			m.Phase = ""
			if m.NodeRef != nil && m.NodeRef.Name != "" {
				m.NodeRef = &corev1.ObjectReference{Name: m.NodeRef.Name}
			} else {
				m.NodeRef = nil
			}
		}),
		visit(func(s *bootstrapv1beta1.KubeadmConfigSpec) { s.UseExperimentalRetryJoin = false }),
		visit(func(s *controlplanev1beta1.KubeadmControlPlaneStatus) { s.Ready = false }),
		visit(func(r *controlplanev1beta1.RolloutStrategy) {
			if r.Type == controlplanev1beta1.RollingUpdateStrategyType {
				r.Type = ""
			}
		}),
		visit(func(s *ipamv1alpha1.IPAddressSpec) { s.Prefix = int(int32(s.Prefix)) }),
		visit(func(s *ipamv1beta1.IPAddressSpec) { s.Prefix = int(int32(s.Prefix)) }),
		visit(func(v *clusterv1beta1.ClusterVariable) { v.DefinitionFrom = "" }),
		visit(func(args *[]bootstrapv1.Arg) {
			*args = bootstrapv1.ConvertToArgs(bootstrapv1.ConvertFromArgs(*args))
		}),
		visit(func(c *bootstrapv1.KubeadmConfigSpec) {
			c.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = nil
		}),
		visit(func(all *[]clusterv1.FailureDomain) {
			slices.SortFunc(*all, func(a, b clusterv1.FailureDomain) int { return cmp.Compare(a.Name, b.Name) })
		}),
		visit(func(m *clusterv1beta1.Topology) { m.RolloutAfter = nil }),
		visit(func(m *clusterv1beta1.MachineDeploymentSpec) {
			m.ProgressDeadlineSeconds, m.RevisionHistoryLimit = nil, nil
		}),
	}
	add(p, core.Cluster, core.ConvertClusterV1Beta1ToHub, core.ConvertClusterHubToV1Beta1)
	add(p, core.ClusterClass, core.ConvertClusterClassV1Beta1ToHub, core.ConvertClusterClassHubToV1Beta1)
	add(p, core.ClusterResourceSet, core.ConvertClusterResourceSetV1Beta1ToHub, core.ConvertClusterResourceSetHubToV1Beta1)
	add(p, core.ClusterResourceSetBinding, core.ConvertClusterResourceSetBindingV1Beta1ToHub, core.ConvertClusterResourceSetBindingHubToV1Beta1)
	add(p, core.ExtensionConfig, core.ConvertExtensionConfigV1Alpha1ToHub, core.ConvertExtensionConfigHubToV1Alpha1)
	add(p, core.IPAddress, core.ConvertIPAddressV1Alpha1ToHub, core.ConvertIPAddressHubToV1Alpha1)
	add(p, core.IPAddress, core.ConvertIPAddressV1Beta1ToHub, core.ConvertIPAddressHubToV1Beta1)
	add(p, core.IPAddressClaim, core.ConvertIPAddressClaimV1Alpha1ToHub, core.ConvertIPAddressClaimHubToV1Alpha1)
	add(p, core.IPAddressClaim, core.ConvertIPAddressClaimV1Beta1ToHub, core.ConvertIPAddressClaimHubToV1Beta1)
	add(p, core.Machine, core.ConvertMachineV1Beta1ToHub, core.ConvertMachineHubToV1Beta1)
	add(p, core.MachineDeployment, core.ConvertMachineDeploymentV1Beta1ToHub, core.ConvertMachineDeploymentHubToV1Beta1)
	add(p, core.MachineDrainRule, core.ConvertMachineDrainRuleV1Beta1ToHub, core.ConvertMachineDrainRuleHubToV1Beta1)
	add(p, core.MachineHealthCheck, core.ConvertMachineHealthCheckV1Beta1ToHub, core.ConvertMachineHealthCheckHubToV1Beta1)
	add(p, core.MachinePool, core.ConvertMachinePoolV1Beta1ToHub, core.ConvertMachinePoolHubToV1Beta1)
	add(p, core.MachineSet, core.ConvertMachineSetV1Beta1ToHub, core.ConvertMachineSetHubToV1Beta1)
	add(p, bootstrap.KubeadmConfig, bootstrap.ConvertKubeadmConfigV1Beta1ToHub, bootstrap.ConvertKubeadmConfigHubToV1Beta1)
	add(p, bootstrap.KubeadmConfigTemplate, bootstrap.ConvertKubeadmConfigTemplateV1Beta1ToHub, bootstrap.ConvertKubeadmConfigTemplateHubToV1Beta1)
	add(p, controlplane.KubeadmControlPlane, controlplane.ConvertKubeadmControlPlaneV1Beta1ToHub, controlplane.ConvertKubeadmControlPlaneHubToV1Beta1)
	add(p, controlplane.KubeadmControlPlaneTemplate, controlplane.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub, controlplane.ConvertKubeadmControlPlaneTemplateHubToV1Beta1)
	p.again = []narrowed{
		{kind: "ClusterClass", path: "v1beta1→v1beta2→v1beta1", law: "total", objects: 3000, without: []string{
			"status", "variables", "workers", "infrastructure", "jsonPatches", "external", "enabledIf", "description", "ref",
			"machineDeploymentClass", "machinePoolClass", "machineInfrastructure", "machineHealthCheck", "readinessGates",
		}},
		{kind: "KubeadmConfigTemplate", path: "v1beta1→v1beta2", law: "acceptance", require: []string{"spec"}},
		{kind: "Machine", path: "v1beta1→v1beta2", law: "acceptance", require: []string{"spec"}},
	}
	p.known = clusterAPIKnown
	return p
}

// clusterAPIDecodes is why a schema may accept what no Go type can decode.
const clusterAPIDecodes = "each kind has an admission webhook of controller-runtime, which refuses objects that its Go type cannot decode"

var clusterAPIKnown = []known{{
	title:   "Annotation_IsNotJSON",
	report:  `the annotations law(?s:.*)(unexpected end of JSON input|invalid character)`,
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: a
  annotations:
    cluster.x-k8s.io/conversion-data: "{"`,
	meet: unreadable("v1beta2", "unexpected end of JSON input"),
}, {
	title:   "Reference_APIVersionHasTwoSlashes",
	report:  `failed to parse apiVersion: unexpected GroupVersion string`,
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata:
  name: a
spec:
  clusterName: a
  template:
    spec:
      clusterName: a
      bootstrap:
        dataSecretName: a
      infrastructureRef:
        apiVersion: a/b/c`,
	meet: unreadable("v1beta2", "unexpected GroupVersion string: a/b/c"),
}, {
	title:   "Spec_WasOptional",
	report:  `the acceptance law(?s:.*)\tspec: Required value`,
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: a
  finalizers: [example.com/a]
spec:
  controlPlaneEndpoint:
    host: ""
    port: 0`,
	meet: unwritable("v1beta2", "spec: Required value"),
}, {
	title:   "ClusterName_IsNoLabelValue",
	report:  `the acceptance law(?s:.*)a valid label must be`,
	release: today,
	object: `
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddressClaim
metadata:
  name: a
spec:
  clusterName: /
  poolRef:
    apiGroup: a
    kind: a
    name: a`,
	meet: unreadable("v1alpha1", "metadata.labels: Invalid value"),
}, {
	title:   "ExtraVolumes_SameHostPath",
	report:  `extraVolumes\[\d+\]\.readOnly: true`,
	release: "v1.8.4",
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata:
  name: a
spec:
  clusterConfiguration:
    controllerManager:
      extraVolumes:
      - name: a
        hostPath: /a
        mountPath: /a
      - name: b
        hostPath: /a
        mountPath: /b
        readOnly: true`,
	meet: reads("v1beta2", `
clusterConfiguration:
  controllerManager:
    extraVolumes:
    - name: a
      hostPath: /a
      mountPath: /a
    - name: b
      hostPath: /a
      mountPath: /b`),
}, {
	title:   "JoinConfiguration_ComesBack",
	report:  `the edited law(?s:.*)\+ spec\.(template\.spec\.|kubeadmConfigSpec\.)?(joinConfiguration\.discovery\.timeout|clusterConfiguration\.apiServer\.timeoutForControlPlane): "1s"`,
	release: today,
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata:
  name: a
spec:
  joinConfiguration:
    timeouts:
      tlsBootstrapSeconds: 1`,
	meet: edits("v1beta1", func(object map[string]any) { unstructured.RemoveNestedField(object, "spec", "joinConfiguration") },
		reads("v1beta2", `
joinConfiguration:
  timeouts:
    tlsBootstrapSeconds: 1`)),
}, {
	title:   "AllOf_Panics", // the law edited does not add a single element
	release: today,
	object: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata:
  name: a
spec:
  infrastructure:
    templateRef:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
      kind: ATemplate
      name: a
  controlPlane:
    templateRef:
      apiVersion: controlplane.cluster.x-k8s.io/v1beta1
      kind: ATemplate
      name: a
  variables:
  - name: a
    required: false
    schema:
      openAPIV3Schema:
        type: string`,
	meet: uneditable("v1beta1", func(object map[string]any) {
		variables, _, _ := unstructured.NestedSlice(object, "spec", "variables")
		_ = unstructured.SetNestedSlice(variables[0].(map[string]any), []any{map[string]any{"minLength": int64(1)}}, "schema", "openAPIV3Schema", "allOf")
		_ = unstructured.SetNestedSlice(object, variables, "spec", "variables")
	}, "internal error occurred during conversion"),
}, {
	title:   "Duration_LessThanASecond", // normal declares it
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata:
  name: a
spec:
  clusterName: a
  bootstrap:
    dataSecretName: a
  infrastructureRef:
    kind: a
    name: a
  nodeDrainTimeout: 500ms`,
	meet: reads("v1beta2", `
clusterName: a
bootstrap:
  dataSecretName: a
infrastructureRef:
  kind: a
  name: a
deletion:
  nodeDrainTimeoutSeconds: 0`),
}, {
	report: `definition \d+ for variable .* not found in source data`,
	reason: "only the project writes a status, and no two variables of it with one name",
}, {
	report: `\.certificatesExpiryDays in body should be greater than or equal to 7`,
	reason: "the project's admission webhook refuses less than 7 days",
}, {
	report: `\.files\[\d+\]\.append: true`,
	reason: "the project's admission webhook refuses two files with one path",
}, {
	report: `\.patches\[\d+\]\.definitions\[\d+\]\.selector\.matchResources\.(controlPlane|infrastructureCluster): true`,
	reason: "the project's admission webhook refuses two patches with one name",
}, {
	title:   "Machines_BecomeEqual",
	report:  `entries in (machines|pods) must be unique`,
	reason:  "an update passes, because it does not change the machines",
	release: today,
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDrainRule
metadata:
  name: a
spec:
  drain:
    behavior: Drain
  machines:
  - selector:
      matchLabels: {}
  - selector: {}`,
	meet: writable("v1beta2"),
}, {
	report: `IPAddress \S+: the acceptance law(?s:.*)spec.address`,
	reason: "the project's admission webhook refuses an empty address",
}, {
	title:   "Object_IsEmpty",
	report:  `the acceptance law(?s:.*)in body should have at least 1 properties`,
	reason:  "an update passes, because it does not change what is empty",
	release: "v1.8.4",
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata:
  name: a
spec:
  diskSetup: {}`,
	meet: writable("v1beta2"),
}, {
	title:   "Reference_IsEmpty",
	report:  `spec\.infrastructureRef: Required value`,
	reason:  "an update passes, because it does not change the reference",
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata:
  name: reference
spec:
  clusterName: a
  bootstrap:
    dataSecretName: a
  infrastructureRef: {}`,
	meet: writable("v1beta2"),
}, {
	title:   "Timeout_IsNegative",
	report:  `timeouts\.\w+: Invalid value: -`,
	reason:  "an update passes, because it does not change the timeout",
	release: "v1.8.4",
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata:
  name: negative
spec:
  joinConfiguration:
    discovery:
      timeout: -1s`,
	meet: writable("v1beta2"),
}, {
	title:   "HealthCheckTimeout_IsLost", // normal declares it
	reason:  "the project requires that a control plane has one value",
	release: today,
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata:
  name: timeouts
spec:
  joinConfiguration:
    timeouts:
      controlPlaneComponentHealthCheckSeconds: 5
      tlsBootstrapSeconds: 1`,
	meet: edits("v1beta1", addLabel, reads("v1beta2", `
joinConfiguration:
  timeouts:
    tlsBootstrapSeconds: 1`)),
}, {
	title:   "Prefix_OutsideOf32Bits", // normal declares it
	reason:  "no valid prefix is as large",
	release: today,
	object: `
apiVersion: ipam.cluster.x-k8s.io/v1beta1
kind: IPAddress
metadata:
  name: a
spec:
  address: 10.0.0.1
  prefix: 4294967320
  claimRef:
    name: a
  poolRef:
    apiGroup: a
    kind: a
    name: a`,
	meet: reads("v1beta1", `
address: 10.0.0.1
prefix: 24
claimRef:
  name: a
poolRef:
  apiGroup: a
  kind: a
  name: a`),
}}
