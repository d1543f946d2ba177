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
		roundtrip.SkipLaw(roundtrip.Aliasing, "conversion-gen generates functions that share memory"),
		roundtrip.SkipLaw(roundtrip.InputUntouched, "MarshalDataUnsafeNoCopy clears the metadata of its input, and its documentation says so"),
		roundtrip.SkipLaw(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project, whose NodeSystemInfo has more fields"),
		roundtrip.SkipLaw(roundtrip.Defaulting, "only the schema of v1beta1 has defaults for rolloutStrategy: the webhook of v1beta2 has them"),
		roundtrip.SkipLaw(roundtrip.Decoding, clusterAPIDecodes),
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
		{kind: "Machine", path: "v1beta1→v1beta2", law: "acceptance", require: []string{"spec"}},
	}
	p.known = clusterAPIKnown
	return p
}

// clusterAPIDecodes is why a schema may accept what no Go type can decode.
const clusterAPIDecodes = "each kind has an admission webhook of controller-runtime, which refuses objects that its Go type cannot decode"
