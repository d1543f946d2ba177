package corpus_test

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/vmware-tanzu/vm-operator/api/utilconversion"
	"github.com/vmware-tanzu/vm-operator/api/v1alpha1"
	"github.com/vmware-tanzu/vm-operator/api/v1alpha3"
	"github.com/vmware-tanzu/vm-operator/api/v1alpha5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/roundtrip"
)

// vmOperator returns the conversions of VM Operator, without v1alpha2, v1alpha4, and VirtualMachineImage: its
// conversions lose parts of the status, but only the project writes these objects.
func vmOperator(t *testing.T) *project {
	t.Helper()
	p := newProject(t, v1alpha1.AddToScheme, v1alpha3.AddToScheme, v1alpha5.AddToScheme)
	const module = "github.com/vmware-tanzu/vm-operator@"
	kinds := []string{"virtualmachines", "virtualmachineclasses", "virtualmachinepublishrequests", "virtualmachineservices", "virtualmachinesetresourcepolicies"}
	p.releases = []string{"v1.8.6", "v1.9.0"}
	for _, kind := range kinds {
		definition := "config/crd/bases/vmoperator.vmware.com_" + kind + ".yaml"
		p.definitions = append(p.definitions, published(t, module+"v1.10.0", definition)...)
		for _, release := range p.releases {
			p.history[release] = append(p.history[release], published(t, module+release, definition)...)
		}
	}
	const decodes = "the project's admission webhooks cannot decode such an object, and refuse it"
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Aliasing, "conversion-gen generates functions that share memory"),
		roundtrip.SkipLaw(roundtrip.InputUntouched, "a webhook does not use its input again"),
		roundtrip.SkipLaw(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project"),
		roundtrip.SkipLaw(roundtrip.Decoding, decodes),
		roundtrip.Refuse(decodes, func(err error) bool {
			return regexp.MustCompile(`: (time: |json: cannot unmarshal |quantities must match )`).MatchString(err.Error())
		}),
		roundtrip.SkipLaw(roundtrip.Defaulting, "the converted object has a spec, and so its defaults"),
	}
	p.normal = []func(v reflect.Value){
		visit(func(m *metav1.ObjectMeta) { delete(m.Annotations, utilconversion.AnnotationKey) }),
		// Only the project writes a status, and an older version cannot change it.
		visit(func(s *v1alpha1.VirtualMachineStatus) { *s = v1alpha1.VirtualMachineStatus{} }),
		visit(func(s *v1alpha3.VirtualMachineStatus) { *s = v1alpha3.VirtualMachineStatus{} }),
		visit(func(s *v1alpha5.VirtualMachineStatus) { *s = v1alpha5.VirtualMachineStatus{} }),
		visit(func(s *v1alpha1.VirtualMachinePublishRequestStatus) {
			*s = v1alpha1.VirtualMachinePublishRequestStatus{}
		}),
		visit(func(s *v1alpha3.VirtualMachinePublishRequestStatus) {
			*s = v1alpha3.VirtualMachinePublishRequestStatus{}
		}),
		visit(func(s *v1alpha5.VirtualMachinePublishRequestStatus) {
			*s = v1alpha5.VirtualMachinePublishRequestStatus{}
		}),
		visit(func(s *v1alpha1.VirtualMachineSpec) {
			s.Ports = nil // deprecated
			for i := range s.Volumes {
				s.Volumes[i].VsphereVolume = nil
			}
			s.Volumes = slices.DeleteFunc(s.Volumes, func(v v1alpha1.VirtualMachineVolume) bool { return v.PersistentVolumeClaim == nil })
			if len(s.Volumes) == 0 {
				s.Volumes = nil
			}
		}),
		visit(func(i *v1alpha1.VirtualMachineNetworkInterface) {
			i.ProviderRef, i.EthernetCardType = nil, "" // deprecated
			if !slices.Contains([]string{"vsphere-distributed", "nsx-t", "nsx-t-subnet", "nsx-t-subnetset"}, i.NetworkType) {
				i.NetworkType = ""
			}
		}),
		visit(func(o *v1alpha1.VirtualMachineVolumeProvisioningOptions) {
			if o.ThinProvisioned != nil && *o.ThinProvisioned {
				o.EagerZeroed = nil // not applicable
			}
		}),
		visit(func(all *[]v1alpha3.VirtualMachineVolume) {
			*all = slices.DeleteFunc(*all, func(v v1alpha3.VirtualMachineVolume) bool { return v.PersistentVolumeClaim == nil })
		}),
		visit(func(all *[]v1alpha5.VirtualMachineVolume) {
			*all = slices.DeleteFunc(*all, func(v v1alpha5.VirtualMachineVolume) bool {
				return v.PersistentVolumeClaim == nil && (v.ControllerType == "" || v.ControllerBusNumber == nil || v.UnitNumber == nil)
			})
		}),
		visit(func(m *v1alpha1.VirtualMachineMetadata) {
			if m.SecretName != "" { // mutually exclusive
				m.ConfigMapName = ""
			}
			if m.SecretName == "" && m.ConfigMapName == "" && m.Transport == v1alpha1.VirtualMachineMetadataExtraConfigTransport {
				m.Transport = v1alpha1.VirtualMachineMetadataCloudInitTransport // nothing to transport
			}
		}),
	}
	p.known = vmOperatorKnown
	addConvertible[*v1alpha1.VirtualMachine, *v1alpha5.VirtualMachine](p)
	addConvertible[*v1alpha3.VirtualMachine, *v1alpha5.VirtualMachine](p)
	addConvertible[*v1alpha1.VirtualMachineClass, *v1alpha5.VirtualMachineClass](p)
	addConvertible[*v1alpha3.VirtualMachineClass, *v1alpha5.VirtualMachineClass](p)
	addConvertible[*v1alpha1.VirtualMachinePublishRequest, *v1alpha5.VirtualMachinePublishRequest](p)
	addConvertible[*v1alpha3.VirtualMachinePublishRequest, *v1alpha5.VirtualMachinePublishRequest](p)
	addConvertible[*v1alpha1.VirtualMachineService, *v1alpha5.VirtualMachineService](p)
	addConvertible[*v1alpha3.VirtualMachineService, *v1alpha5.VirtualMachineService](p)
	addConvertible[*v1alpha1.VirtualMachineSetResourcePolicy, *v1alpha5.VirtualMachineSetResourcePolicy](p)
	addConvertible[*v1alpha3.VirtualMachineSetResourcePolicy, *v1alpha5.VirtualMachineSetResourcePolicy](p)
	return p
}

var vmOperatorKnown = []known{{
	title:   "Annotation_IsNotJSON",
	effect:  blocksReads,
	client:  "after the upgrade from v1.9.0, which stores v1alpha3, v1alpha5 can read neither the object nor a list that includes it; any user who may write a VirtualMachine can set the annotation; VirtualMachinePublishRequest has the same fault",
	cause:   "UnmarshalData in api/utilconversion, which comes from Cluster API",
	missed:  "the fuzz tests of v1.8.6 convert only annotations that the conversion wrote",
	report:  `the annotations law(?s:.*)(unexpected end of JSON input|invalid character)`,
	release: "v1.9.0",
	object: `
apiVersion: vmoperator.vmware.com/v1alpha3
kind: VirtualMachine
metadata:
  name: a
  annotations:
    vmoperator.vmware.com/conversion: "{"
spec:
  className: a
  imageName: a`,
	meet: unreadable("v1alpha5", "unexpected end of JSON input"),
}, {
	title:   "Metadata_WithoutTransport",
	effect:  loses,
	client:  "the server stores the object without the name of the Secret; transport is optional in v1alpha1, and has no default",
	cause:   "convert_v1alpha1_VmMetadata_To_v1alpha5_BootstrapSpec in api/v1alpha1/virtualmachine_conversion.go copies the name for known transports only",
	missed:  "the example objects of v1.8.6 have a transport",
	report:  `- spec\.vmMetadata\.(configMapName|secretName): `,
	release: today,
	object: `
apiVersion: vmoperator.vmware.com/v1alpha1
kind: VirtualMachine
metadata:
  name: a
spec:
  className: a
  imageName: a
  vmMetadata:
    secretName: a`,
	meet: readsField("v1alpha1", "null", "spec", "vmMetadata"),
}, {
	title:   "Class_IsLost",
	effect:  losesByUpdate,
	client:  "if a client of v1alpha3 adds a label, spec.class is lost, and with the feature ImmutableClasses the admission webhook sets the instance that is active then; a request to revert to a snapshot, spec.currentSnapshotName, is lost in the same way",
	cause:   "VirtualMachine.ConvertTo in api/v1alpha1 and api/v1alpha3 restores other fields from the annotation",
	report:  `- spec\.(class\.|currentSnapshotName: )`,
	release: today,
	object: `
apiVersion: vmoperator.vmware.com/v1alpha5
kind: VirtualMachine
metadata:
  name: a
spec:
  className: a
  class:
    apiVersion: vmoperator.vmware.com/v1alpha5
    kind: VirtualMachineClassInstance
    name: a
  imageName: a`,
	meet: edits("v1alpha3", addLabel, readsField("v1alpha5", "null", "spec", "class")),
}, {
	title:   "TwoGPUs_WithOneProfile",
	effect:  blocksWrites,
	client:  "a client of v1alpha5 cannot create a copy of the object; updates pass, because the list had the duplicate before",
	cause:   "VirtualDevices in api/v1alpha5/virtualmachineclass_types.go: profileName is the key of the list in all versions but v1alpha1",
	missed:  "the fuzz tests of v1.8.6 do not validate",
	report:  `vgpuDevices\[\d+\]: Duplicate value: `,
	release: today,
	object: `
apiVersion: vmoperator.vmware.com/v1alpha1
kind: VirtualMachineClass
metadata:
  name: a
spec:
  hardware:
    devices:
      vgpuDevices:
      - profileName: a
      - profileName: a`,
	meet: uncopyable("v1alpha5", `spec.hardware.devices.vgpuDevices[1]: Duplicate value: {"profileName":"a"}`),
}, {
	title:   "EagerZeroed_IsLost",
	effect:  loses,
	client:  "the server stores Thick instead of ThickEagerZero; according to its documentation, eagerZeroed applies only if thinProvisioned is false",
	cause:   "convert_v1alpha1_VirtualMachineAdvancedOptions_To_v1alpha5_VirtualMachineAdvancedSpec in virtualmachine_conversion.go reads eagerZeroed only if thinProvisioned is absent",
	missed:  "the fuzz tests of v1.8.6 remove eagerZeroed from such objects",
	report:  `- spec\.advancedOptions\.defaultVolumeProvisioningOptions\.eagerZeroed: true`,
	release: today,
	object: `
apiVersion: vmoperator.vmware.com/v1alpha1
kind: VirtualMachine
metadata:
  name: a
spec:
  className: a
  imageName: a
  advancedOptions:
    defaultVolumeProvisioningOptions:
      thinProvisioned: false
      eagerZeroed: true`,
	meet: readsField("v1alpha5", "Thick", "spec", "advanced", "defaultVolumeProvisioningMode"),
}, {
	report: `bootstrap:\s+(cloudInit:|linuxPrep:(?s:.*)sysprep:)(?s:.*)[-+] spec\.bootstrap\.(linuxPrep|sysprep|vAppConfig)\.`,
	reason: "the project's admission webhook refuses cloudInit with another bootstrap provider, and linuxPrep with sysprep",
}, {
	report: `- spec\.bootstrap\.(cloudInit\.rawCloudConfig|sysprep\.rawSysprep)\.name: ""`,
	reason: "a Secret has a name",
}, {
	report: `the edited law(?s:.*)[-+] spec\.(imageName: |affinity\.|vmMetadata\.|networkInterfaces\[)`,
	reason: "the project's admission webhook refuses updates of the first three, and a comment in the code says that v1alpha1 cannot change the last",
}, {
	report: `the acceptance law(?s:.*)spec\.volumes\[\d+\]: Duplicate value: \{"name":`,
	reason: "the project's admission webhook refuses two volumes with one name",
}, {
	report: `the acceptance law(?s:.*)status\.conditions\[\d+\]\.\w+: `,
	reason: "only the project writes a status",
}}
