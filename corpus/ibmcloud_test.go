package corpus_test

import (
	"context"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	ibmv1beta1 "sigs.k8s.io/cluster-api-provider-ibmcloud/api/v1beta1"
	ibmv1 "sigs.k8s.io/cluster-api-provider-ibmcloud/api/v1beta2"
	peer "sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
)

// clusterAPIIBMCloud returns the conversions of Cluster API Provider IBM Cloud.
func clusterAPIIBMCloud(t *testing.T) *project {
	t.Helper()
	p := newProject(t, ibmv1beta1.AddToScheme, ibmv1.AddToScheme)
	const module, machines = "sigs.k8s.io/cluster-api-provider-ibmcloud@", "config/crd/bases/*machine*.yaml"
	const clusters, templates, images = "config/crd/bases/*clusters.yaml", "config/crd/bases/*_ibmpowervsclustertemplates.yaml", "config/crd/bases/*images.yaml"
	p.definitions = published(t, module+"v0.13.1", clusters, templates, images, machines)
	p.releases = []string{"v0.2.4", "v0.9.0"}
	p.history["v0.2.4"] = published(t, module+"v0.2.4", clusters, images, machines) // v1beta1 was the storage version
	p.history["v0.9.0"] = published(t, module+"v0.9.0", clusters, templates, images, machines)
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Aliasing, "conversion-gen generates functions that share memory"),
		roundtrip.SkipLaw(roundtrip.Decoding, ibmCloudDecodes),
		roundtrip.Refuse(ibmCloudDecodes, func(err error) bool {
			return regexp.MustCompile(`: (time: |json: cannot unmarshal |quantities must match )`).MatchString(err.Error())
		}),
	}
	p.normal = []func(v reflect.Value){
		visit(setMemory),
		visit(func(m *metav1.ObjectMeta) { delete(m.Annotations, "cluster.x-k8s.io/conversion-data") }),
		visit(func(s *ibmv1.IBMPowerVSClusterSpec) {
			*s = ibmv1.IBMPowerVSClusterSpec{ServiceInstanceID: s.ServiceInstanceID, Network: s.Network, ControlPlaneEndpoint: s.ControlPlaneEndpoint}
		}),
		visit(func(s *ibmv1.IBMPowerVSClusterStatus) { *s = ibmv1.IBMPowerVSClusterStatus{Ready: s.Ready} }),
		visit(func(s *ibmv1.IBMPowerVSImageSpec) { s.ServiceInstance = nil }),
		visit(func(s *ibmv1.IBMPowerVSImageStatus) { s.V1Beta2 = nil }),
		visit(func(s *ibmv1.IBMPowerVSMachineSpec) {
			s.ServiceInstance, s.Processors = nil, intstr.FromString(s.Processors.String())
		}),
		visit(func(s *ibmv1.IBMPowerVSMachineStatus) { s.V1Beta2 = nil }),
		visit(func(s *ibmv1.IBMVPCClusterSpec) { s.Image, s.Network = nil, nil }),
		visit(func(s *ibmv1.IBMVPCClusterStatus) {
			s.Image, s.Network, s.ResourceGroup, s.V1Beta2 = nil, nil, nil, nil
		}),
		visit(func(s *ibmv1.VPCLoadBalancerSpec) { *s = ibmv1.VPCLoadBalancerSpec{Name: s.Name} }),
		visit(func(s *ibmv1.IBMVPCMachineSpec) {
			s.CatalogOffering, s.PlacementTarget, s.LoadBalancerPoolMembers, s.AdditionalVolumes = nil, nil, nil, nil
		}),
		visit(func(i *ibmv1.NetworkInterface) { i.SecurityGroups = nil }),
		visit(func(s *ibmv1.IBMVPCMachineStatus) {
			s.Conditions, s.FailureReason, s.FailureMessage, s.LoadBalancerPoolMembers, s.V1Beta2 = nil, nil, nil, nil, nil
		}),
		visit(func(s *ibmv1.IBMVPCMachineTemplateStatus) { s.Capacity = nil }),
	}
	addConvertible[*ibmv1beta1.IBMPowerVSCluster, *ibmv1.IBMPowerVSCluster](p)
	addConvertible[*ibmv1beta1.IBMPowerVSClusterTemplate, *ibmv1.IBMPowerVSClusterTemplate](p)
	addConvertible[*ibmv1beta1.IBMPowerVSImage, *ibmv1.IBMPowerVSImage](p)
	addMachine[*ibmv1beta1.IBMPowerVSMachine, *ibmv1.IBMPowerVSMachine](p, func(m *ibmv1beta1.IBMPowerVSMachine) *ibmv1beta1.IBMPowerVSMachineSpec {
		return &m.Spec
	})
	addMachine[*ibmv1beta1.IBMPowerVSMachineTemplate, *ibmv1.IBMPowerVSMachineTemplate](p, func(m *ibmv1beta1.IBMPowerVSMachineTemplate) *ibmv1beta1.IBMPowerVSMachineSpec {
		return &m.Spec.Template.Spec
	})
	addConvertible[*ibmv1beta1.IBMVPCCluster, *ibmv1.IBMVPCCluster](p)
	addConvertible[*ibmv1beta1.IBMVPCMachine, *ibmv1.IBMVPCMachine](p)
	addConvertible[*ibmv1beta1.IBMVPCMachineTemplate, *ibmv1.IBMVPCMachineTemplate](p)
	p.known = ibmCloudKnown
	return p
}

// addMachine adds the conversions of a kind whose memory is a number, because the admission webhook of v0.2.4
// sets it. With v0.13.1, the conversion fails if a client of v1beta1 leaves out the memory.
func addMachine[S peer.Convertible, H peer.Hub](p *project, spec func(object S) *ibmv1beta1.IBMPowerVSMachineSpec) {
	p.must(conversion.AddSpoke(p.Registry,
		func(_ context.Context, in S, out H) error {
			in = in.DeepCopyObject().(S)
			setMemory(spec(in))
			return in.ConvertTo(out)
		},
		func(_ context.Context, in H, out S) error { return out.ConvertFrom(in) }))
	normalize[S](p)
	normalize[H](p)
}

func setMemory(s *ibmv1beta1.IBMPowerVSMachineSpec) {
	n, err := strconv.ParseInt(s.Memory, 10, 32)
	if err != nil {
		n = 4
	}
	s.Memory = strconv.FormatInt(n, 10)
}

// ibmCloudDecodes is why a schema may accept what no Go type can decode.
const ibmCloudDecodes = "the admission webhooks of controller-runtime refuse objects that their Go types cannot decode"

var ibmCloudKnown = []known{{
	title:   "Volume_IsDeleted",
	effect:  loses,
	client:  "a client that creates the object with false reads true, and the boot volume is deleted with the instance",
	cause:   "the tag omitempty of VPCVolume in api/v1beta1 and api/v1beta2/ibmvpcmachine_types.go drops false, and the schema has the default true",
	report:  `the defaulting law(?s:.*)\+ spec\.\S*bootVolume\.deleteVolumeOnInstanceDelete: true`,
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: IBMVPCMachine
metadata:
  name: a
spec:
  bootVolume:
    deleteVolumeOnInstanceDelete: false
    sizeGiB: 10
  image: a
  zone: a`,
	meet: reads("v1beta1", `
bootVolume:
  deleteVolumeOnInstanceDelete: true
  profile: general-purpose
  sizeGiB: 10
image: a
primaryNetworkInterface: {}
zone: a`),
}, {
	title:   "VPC_IsLost", // normal declares it
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, spec.vpc is lost, and with it every other field that only v1beta2 has; all kinds of Power VS and IBMVPCCluster have the fault",
	cause:   "ConvertFrom of these kinds in api/v1beta1/ibmpowervs_conversion.go and ibmvpc_conversion.go does not keep the fields",
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: IBMPowerVSCluster
metadata:
  name: a
spec:
  network: {}
  serviceInstanceID: a
  vpc:
    name: a`,
	meet: edits("v1beta1", addLabel, reads("v1beta2", `
controlPlaneEndpoint:
  host: ""
  port: 0
network: {}
serviceInstanceID: a`)),
}, {
	title:   "PlacementTarget_IsLost", // normal declares it
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, spec.placementTarget is lost, and machines that a template creates afterwards do not run on the dedicated host",
	cause:   "ConvertFrom of IBMVPCMachine and IBMVPCMachineTemplate in ibmvpc_conversion.go writes the annotation cluster.x-k8s.io/conversion-data, and ConvertTo does not read it",
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: IBMVPCMachine
metadata:
  name: a
spec:
  image:
    id: a
  placementTarget:
    dedicatedHost:
      id: a
  zone: a`,
	meet: edits("v1beta1", addLabel, reads("v1beta2", `
image:
  id: a
primaryNetworkInterface: {}
zone: a`)),
}, {
	title:   "Reference_HasIDAndName",
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, the image has only its name, although the documentation says that the ID takes precedence; the SSH key becomes two, of which that with the name can be another key",
	cause:   "ConvertTo in ibmvpc_conversion.go replaces the ID of the image with the name, and appends the names to the keys",
	report:  `- spec\.(template\.spec\.)?(image(\.id)?: "|sshKeys\[)`,
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: IBMVPCMachine
metadata:
  name: a
spec:
  image:
    id: a
    name: b
  sshKeys:
  - id: a
    name: b
  zone: a`,
	meet: edits("v1beta1", addLabel, reads("v1beta2", `
image:
  name: b
primaryNetworkInterface: {}
sshKeys:
- id: a
- name: b
zone: a`)),
}, {
	title:   "ServiceInstanceID_IsEmpty",
	effect:  blocksWrites,
	client:  "a client of v1beta1 cannot create a copy of the object; updates pass, because they do not change the field",
	cause:   "IBMPowerVSClusterSpec in api/v1beta1/ibmpowervscluster_types.go requires an ID of at least one character",
	report:  `v1beta2→v1beta1: the acceptance law(?s:.*)serviceInstanceID: Invalid value: ""`,
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: IBMPowerVSCluster
metadata:
  name: a
spec:
  network: {}
  serviceInstance:
    name: a
  serviceInstanceID: ""`,
	meet: uncopyable("v1beta1", "spec.serviceInstanceID in body should be at least 1 chars long"),
}, {
	title:   "ProcType_IsUnknown",
	effect:  loses,
	client:  "the server stores the object without a processor type, because the types of v1beta1 begin with a lower case letter, and those of v1beta2 with a capital one; the admission webhook sees the converted object, accepts it, and sets the type to Shared",
	cause:   "Convert_v1beta1_IBMPowerVSMachineSpec_To_v1beta2_IBMPowerVSMachineSpec in ibmpowervs_conversion.go ignores other types",
	report:  `- spec\.(template\.spec\.)?procType: "`,
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: IBMPowerVSMachine
metadata:
  name: a
spec:
  image:
    id: a
  memory: "4"
  network: {}
  procType: Dedicated
  processors: "1"
  serviceInstanceID: a`,
	meet: reads("v1beta1", `
image:
  id: a
memory: "4"
network: {}
processors: "1"
serviceInstanceID: a`),
}, {
	title:   "Memory_IsFraction", // normal declares it
	effect:  loses,
	client:  "a client that creates the object with 4.5 reads 4",
	cause:   "the same function converts the memory to an int32",
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: IBMPowerVSMachine
metadata:
  name: a
spec:
  image:
    id: a
  memory: "4.5"
  network: {}
  processors: "1"
  serviceInstanceID: a`,
	meet: reads("v1beta1", `
image:
  id: a
memory: "4"
network: {}
processors: "1"
serviceInstanceID: a`),
}, {
	title:   "Image_IsEmpty",
	report:  `IBMVPCMachine(Template)? v1beta1→v1beta2: the acceptance law(?s:.*)image: Required value`,
	reason:  "an update passes, because it does not change the image",
	release: "v0.2.4",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: IBMVPCMachine
metadata:
  name: a
spec:
  image: ""
  zone: a`,
	meet: writable("v1beta2"),
}, {
	title:   "Status_IsEmpty",
	report:  `IBMVPCCluster \S+: the acceptance law(?s:.*)status\.vpcEndpoint\.address: Required value`,
	reason:  "an update passes, because it does not change the status",
	release: "v0.2.4",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: IBMVPCCluster
metadata:
  name: a`,
	meet: func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		writable("v1beta1")(t, c, object)
		writable("v1beta2")(t, c, object)
	},
}, {
	title:   "SysType_IsUnknown",
	report:  `IBMPowerVSMachine(Template)? v1beta1→v1beta2: the acceptance law(?s:.*)systemType: Unsupported value`,
	reason:  "an update passes, because it does not change the type",
	release: today,
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: IBMPowerVSMachine
metadata:
  name: a
spec:
  image:
    id: a
  memory: "4"
  network: {}
  processors: "1"
  serviceInstanceID: a
  sysType: a`,
	meet: writable("v1beta2"),
}, {
	report: `IBMPowerVSImage v1beta1→v1beta2: the (acceptance|defaulting) law`,
	reason: "the project's defaulting webhook adds a spec, which the server then refuses",
}, {
	report: `the input-untouched law(?s:.*)conversion-data`,
	reason: "the webhook does not use its input again",
}}
