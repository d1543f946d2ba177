package corpus_test

import (
	"reflect"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	awsv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	awsv1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta1"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	awsexpv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta1"
	awsexpv1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crdkit/crdkit/roundtrip"
)

// clusterAPIAWS returns the conversions of Cluster API Provider AWS. Since v2.4.0, the server does not
// serve v1beta1, but still calls the webhook for objects that are stored in it.
func clusterAPIAWS(t *testing.T) *project {
	t.Helper()
	p := newProject(t,
		awsv1beta1.AddToScheme, awsv1.AddToScheme, awsexpv1beta1.AddToScheme, awsexpv1.AddToScheme,
		eksbootstrapv1beta1.AddToScheme, eksbootstrapv1.AddToScheme, ekscontrolplanev1beta1.AddToScheme, ekscontrolplanev1.AddToScheme)
	const module = "sigs.k8s.io/cluster-api-provider-aws"
	files := []string{
		"config/crd/bases/*_awscluster*.yaml", "config/crd/bases/*_awsmachine*.yaml", "config/crd/bases/*_awsfargateprofiles.yaml",
		"config/crd/bases/*_awsmanagedcontrolplanes.yaml", "config/crd/bases/*_awsmanagedmachinepools.yaml", "config/crd/bases/*_eksconfig*.yaml",
	}
	p.definitions = published(t, module+"/v2@v2.13.0", files...)
	p.releases = []string{"v1.5.0", "v2.8.4"}
	p.history["v1.5.0"] = published(t, module+"@v1.5.0", files...) // v1beta1 was the storage version
	p.history["v2.8.4"] = published(t, module+"/v2@v2.8.4", files...)
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Aliasing, "conversion-gen generates functions that share memory"),
		roundtrip.SkipLaw(roundtrip.Edited, "v1beta1 is not served, so that no client edits an object in it"),
		roundtrip.SkipLaw(roundtrip.Decoding, awsDecodes),
		roundtrip.Refuse(awsDecodes, func(err error) bool {
			return regexp.MustCompile(`: (time: |json: cannot unmarshal |quantities must match )`).MatchString(err.Error())
		}),
	}
	p.normal = []func(v reflect.Value){
		visit(func(m *metav1.ObjectMeta) { delete(m.Annotations, "cluster.x-k8s.io/conversion-data") }),
		visit(func(r *awsv1beta1.AWSResourceReference) { r.ARN = nil }),
		visit(func(s *awsv1beta1.AWSMachineSpec) { s.FailureDomain = nil }),
	}
	p.known = awsKnown
	addConvertible[*awsv1beta1.AWSCluster, *awsv1.AWSCluster](p)
	addConvertible[*awsv1beta1.AWSClusterTemplate, *awsv1.AWSClusterTemplate](p)
	addConvertible[*awsv1beta1.AWSClusterControllerIdentity, *awsv1.AWSClusterControllerIdentity](p)
	addConvertible[*awsv1beta1.AWSClusterRoleIdentity, *awsv1.AWSClusterRoleIdentity](p)
	addConvertible[*awsv1beta1.AWSClusterStaticIdentity, *awsv1.AWSClusterStaticIdentity](p)
	addConvertible[*awsv1beta1.AWSMachine, *awsv1.AWSMachine](p)
	addConvertible[*awsv1beta1.AWSMachineTemplate, *awsv1.AWSMachineTemplate](p)
	addConvertible[*awsexpv1beta1.AWSFargateProfile, *awsexpv1.AWSFargateProfile](p)
	addConvertible[*awsexpv1beta1.AWSMachinePool, *awsexpv1.AWSMachinePool](p)
	addConvertible[*awsexpv1beta1.AWSManagedMachinePool, *awsexpv1.AWSManagedMachinePool](p)
	addConvertible[*eksbootstrapv1beta1.EKSConfig, *eksbootstrapv1.EKSConfig](p)
	addConvertible[*eksbootstrapv1beta1.EKSConfigTemplate, *eksbootstrapv1.EKSConfigTemplate](p)
	addConvertible[*ekscontrolplanev1beta1.AWSManagedControlPlane, *ekscontrolplanev1.AWSManagedControlPlane](p)
	return p
}

// awsDecodes is why a schema may accept what no Go type can decode.
const awsDecodes = "the admission webhooks of controller-runtime refuse objects that their Go types cannot decode"

var awsKnown = []known{{
	title:   "Annotation_IsNotJSON",
	effect:  blocksReads,
	client:  "after the upgrade, neither the object nor a list that includes it can be read, in the ten kinds that keep lost fields in an annotation; any user who may write the object can set the annotation before",
	cause:   "UnmarshalData of Cluster API, in util/conversion/conversion.go",
	missed:  "the fuzz tests convert only annotations that the conversion wrote",
	report:  `the annotations law(?s:.*)(unexpected end of JSON input|invalid character)`,
	release: "v1.5.0",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSMachineTemplate
metadata:
  name: a
  annotations:
    cluster.x-k8s.io/conversion-data: "{"
spec:
  template:
    spec:
      instanceType: t3.large`,
	meet: unreadable("v1beta2", "unexpected end of JSON input"),
}, {
	title:   "Update_ChangesImmutableSpec",
	effect:  blocksWrites,
	client:  "if a client adds a label, or removes a finalizer, the server adds hostAffinity: default to the new object only, because it applies no defaults to the result of a conversion; the admission webhook, which this test calls with both objects, refuses the update; an AWSMachine fails in the same way, and an AWSClusterTemplate with the default of subnetSchema",
	cause:   "AWSMachineSpec in api/v1beta2/awsmachine_types.go has the default, and AWSMachineTemplate.ValidateUpdate in webhooks/awsmachinetemplate_webhook.go has an exception for instanceMetadataOptions only",
	missed:  "the fuzz tests do not apply defaults",
	report:  `AWS(Machine|MachineTemplate|ClusterTemplate) v1beta1→v1beta2: the defaulting law(?s:.*)\+ spec\.\S*(hostAffinity|subnetSchema): `,
	release: "v1.5.0",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSMachineTemplate
metadata:
  name: a
  finalizers: [example.com/a]
spec:
  template:
    spec:
      instanceType: t3.large`,
	meet: func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		read := func() *awsv1.AWSMachineTemplate {
			out := &awsv1.AWSMachineTemplate{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.get(t, object, "v1beta2").Object, out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		before := read()
		edits("v1beta2", addLabel, func(*testing.T, *cluster, *unstructured.Unstructured) {})(t, c, object)
		ctx := admission.NewContextWithRequest(t.Context(), admission.Request{})
		_, err := new(webhooks.AWSMachineTemplate).ValidateUpdate(ctx, before, read())
		wantError(t, "update", err, "AWSMachineTemplate.Spec is immutable")
	},
}, {
	title:   "Subnets_HaveNoID",
	effect:  blocksWrites,
	client:  `a client of v1beta2 reads id: "" in both subnets, and cannot create a copy of the object; updates pass, because they do not change the list`,
	cause:   "SubnetSpec in api/v1beta2/network_types.go has no omitempty for the ID, which is the key of the list in v1beta2 only",
	missed:  "AWSClusterTemplate has no fuzz test, and that of AWSCluster, which has the same field, does not validate",
	report:  `the acceptance law(?s:.*)network\.subnets\[\d+\]: Duplicate value: \{"id":""\}`,
	release: "v1.5.0",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSClusterTemplate
metadata:
  name: a
spec:
  template:
    spec:
      network:
        subnets:
        - availabilityZone: us-east-1a
          cidrBlock: 10.0.0.0/24
        - availabilityZone: us-east-1b
          cidrBlock: 10.0.1.0/24`,
	meet: uncopyable("v1beta2", `spec.template.spec.network.subnets[1]: Duplicate value: {"id":""}`),
}, {
	title:   "FailureDomain_IsLost", // normal declares it
	reason:  "the project removed the field; v1.5.0 used it for machines that do not name a zone, and those that v2.13.0 creates can be in another",
	release: "v1.5.0",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSMachineTemplate
metadata:
  name: a
spec:
  template:
    spec:
      failureDomain: us-east-1a
      instanceType: t3.large`,
	meet: reads("v1beta2", `
template:
  metadata: {}
  spec:
    ami: {}
    cloudInit: {}
    instanceType: t3.large`),
}, {
	title:   "Spec_WasOptional",
	report:  `AWSMachineTemplate v1beta1→v1beta2: the acceptance law(?s:.*)spec\.template\.spec\.instanceType: Invalid value: ""`,
	reason:  "an update passes, because it does not change the empty type",
	release: "v1.5.0",
	object: `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSMachineTemplate
metadata:
  name: a`,
	meet: writable("v1beta2"),
}, {
	title:   "Field_IsEmpty",
	report:  `v1beta1→v1beta2: the acceptance law(?s:.*)(oidcIdentityProviderConfig\.clientId: Required value|(healthCheckProtocol|ingressRule\[\d+\]\.protocol): Unsupported value: "")`,
	reason:  "an update passes, because it does not change what is empty",
	release: "v1.5.0",
	object: `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: AWSManagedControlPlane
metadata:
  name: a
spec:
  oidcIdentityProviderConfig:
    clientId: ""
    identityProviderConfigName: ""
    issuerUrl: ""`,
	meet: writable("v1beta2"),
}, {
	report: `AWS(Machine|MachinePool|FargateProfile) v1beta1→v1beta2: the acceptance law(?s:.*)spec\.(instanceType|maxSize|clusterName): Invalid value: (""|0)`,
	reason: "the project's defaulting webhook adds a spec, which the server then refuses",
}, {
	report: `AWS(Cluster|ManagedControlPlane|ManagedMachinePool) v1beta1→v1beta2: the defaulting law`,
	reason: "the project's admission webhook accepts the defaults, which the next update adds",
}, {
	report: `v1beta2→v1beta1: the (acceptance|defaulting) law|AWSClusterTemplate v1beta2→v1beta1→v1beta2: the (round-trip|partial|total) law`,
	reason: "v1beta1 is not served, so that no client reads an object in it",
}, {
	report: `the input-untouched law(?s:.*)conversion-data`,
	reason: "the webhook does not use its input again",
}}
