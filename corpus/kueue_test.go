package corpus_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kueue/apis/kueue/v1beta1"
	"sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/crdkit/crdkit/roundtrip"
)

// kueue returns the conversions of Kueue.
func kueue(t *testing.T) *project {
	t.Helper()
	p := newProject(t, v1beta1.AddToScheme, v1beta2.AddToScheme)
	const module, queues, cohorts = "sigs.k8s.io/kueue@", "config/components/crd/bases/*queues.yaml", "config/components/crd/bases/*cohorts.yaml"
	const workloads, clusters = "config/components/crd/bases/*workloads.yaml", "config/components/crd/bases/*multikueueclusters.yaml"
	p.definitions = published(t, module+"v0.15.0", queues, cohorts, workloads, clusters)
	p.releases = []string{"v0.10.0", "v0.14.0"}
	p.history["v0.10.0"] = published(t, module+"v0.10.0", queues, workloads, clusters) // cohorts had another version
	p.history["v0.14.0"] = published(t, module+"v0.14.0", queues, cohorts, workloads, clusters)
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Aliasing, "conversion-gen generates functions that share memory"),
		roundtrip.SkipLaw(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project"),
		roundtrip.SkipLaw(roundtrip.Decoding, kueueDecodes),
		roundtrip.Refuse(kueueDecodes, func(err error) bool {
			return regexp.MustCompile(`: (json: cannot unmarshal |quantities must match )`).MatchString(err.Error())
		}),
		roundtrip.SkipLaw(roundtrip.Defaulting, "the converted object has a spec, and so its defaults"),
	}
	p.normal = []func(v reflect.Value){
		visit(func(s *v1beta1.ClusterQueueSpec) {
			if len(s.AdmissionChecks) > 0 {
				s.AdmissionChecksStrategy = &v1beta1.AdmissionChecksStrategy{}
			}
			for _, name := range s.AdmissionChecks {
				s.AdmissionChecksStrategy.AdmissionChecks = append(s.AdmissionChecksStrategy.AdmissionChecks, v1beta1.AdmissionCheckStrategyRule{Name: name})
			}
			s.AdmissionChecks = nil
		}),
		visit(func(f *v1beta1.FlavorFungibility) {
			if f.WhenCanBorrow == v1beta1.Borrow {
				f.WhenCanBorrow = v1beta1.MayStopSearch
			}
			if f.WhenCanPreempt == v1beta1.Preempt {
				f.WhenCanPreempt = v1beta1.MayStopSearch
			}
		}),
		visit(func(s *v1beta1.FairSharingStatus) { s.AdmissionFairSharingStatus = nil }),
		visit(func(s *v1beta1.ClusterQueueStatus) { s.PendingWorkloadsStatus = nil }),
		visit(func(s *v1beta1.LocalQueueStatus) { s.Flavors = nil }),
	}
	p.again = []narrowed{
		{kind: "ClusterQueue", path: "v1beta1→v1beta2", law: "acceptance", without: []string{"admissionChecksStrategy", "resourceGroups", "flavorsReservation", "flavorsUsage"}},
		{kind: "ClusterQueue", path: "v1beta1→v1beta2", law: "acceptance", without: []string{"admissionChecks", "resourceGroups", "flavorsReservation", "flavorsUsage"}},
		{kind: "Workload", path: "v1beta1→v1beta2", law: "acceptance", require: []string{"spec", "podSets"}, without: []string{"status", "priorityClassSource", "containers"}},
		{kind: "MultiKueueCluster", path: "v1beta1→v1beta2", law: "acceptance", without: []string{"clusterProfileRef", "conditions"}},
		{kind: "Workload", path: "v1beta1→v1beta2→v1beta1", law: "round-trip", without: []string{"priorityClassName", "topologyAssignment"}},
		{kind: "Workload", path: "v1beta1→v1beta2→v1beta1", law: "total", without: []string{"priorityClassName", "topologyAssignment"}},
	}
	p.known = kueueKnown
	addConvertible[*v1beta1.ClusterQueue, *v1beta2.ClusterQueue](p)
	addConvertible[*v1beta1.Cohort, *v1beta2.Cohort](p)
	addConvertible[*v1beta1.LocalQueue, *v1beta2.LocalQueue](p)
	addConvertible[*v1beta1.MultiKueueCluster, *v1beta2.MultiKueueCluster](p)
	addConvertible[*v1beta1.Workload, *v1beta2.Workload](p)
	return p
}

// kueueDecodes is why a schema may accept what no Go type can decode.
const kueueDecodes = "the admission webhooks cannot decode such a spec, only the project writes a status, and Weight_IsNoQuantity is about LocalQueue, which has no admission webhook"

var kueueKnown = []known{{
	title:   "AdmissionCheck_EmptyName",
	effect:  blocksWrites,
	client:  "after the upgrade, each update in v1beta2 fails, even the removal of a finalizer; the schema and the admission webhook of v0.14.0 accept an empty name",
	cause:   "Convert_v1beta1_ClusterQueueSpec_To_v1beta2_ClusterQueueSpec in apis/kueue/v1beta1/clusterqueue_conversion.go, with the tag omitempty of the required name",
	missed:  "no example has an empty name",
	report:  `admissionChecks\[\d+\]\.name: Required value`,
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: a
  finalizers: [example.com/a]
spec:
  admissionChecks: [""]`,
	meet: unwritable("v1beta2", "admissionChecks[0].name: Required value"),
}, {
	title:   "Strategy_IsEmpty",
	effect:  blocksWrites,
	client:  "a client of v1beta2 cannot create a copy of the object, for example from a backup; updates pass, because they do not change the field; the schema and the admission webhook of v0.14.0 accept the object",
	cause:   "AdmissionChecksStrategy in apis/kueue/v1beta2 requires admissionChecks, and the conversion keeps an empty strategy",
	missed:  "no example has an empty strategy",
	report:  `spec\.admissionChecksStrategy\.admissionChecks: Required value`,
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: strategy
spec:
  admissionChecksStrategy: {}`,
	meet: uncopyable("v1beta2", "spec.admissionChecksStrategy.admissionChecks: Required value"),
}, {
	title:   "ClusterSource_HasTwo",
	effect:  blocksWrites,
	client:  "a client of v1beta1 that sets kubeConfig of a cluster with a clusterProfileRef writes such an object; the controller of v0.15.0 ignores the kubeConfig, although the schema of v1beta1 says the opposite; a copy in v1beta2 is refused; updates pass if they do not change the source; the kind has no admission webhook; the feature gate MultiKueueClusterProfile is off by default",
	cause:   "Convert_v1beta1_MultiKueueClusterSpec_To_v1beta2_MultiKueueClusterSpec in apis/kueue/v1beta1/multikueue_conversion.go sets both sources",
	missed:  "no example has both sources",
	report:  `exactly one of the fields in \[kubeConfig clusterProfileRef\] must be set`,
	release: today,
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: MultiKueueCluster
metadata:
  name: two
spec:
  clusterProfileRef:
    name: a
  kubeConfig:
    locationType: Secret
    location: a`,
	meet: uncopyable("v1beta2", "exactly one of the fields in [kubeConfig clusterProfileRef] must be set"),
}, {
	title:   "KubeConfig_AppearsEmpty",
	effect:  blocksWrites,
	client:  "a client of v1beta1 reads an empty kubeConfig, and cannot create a copy of the object; updates pass, because they do not change the field",
	cause:   "kubeConfig of MultiKueueClusterSpec in apis/kueue/v1beta1 is required, and not a pointer",
	missed:  "an example is this object, but in Go an empty kubeConfig equals an absent one",
	report:  `spec\.kubeConfig\.locationType: Unsupported value`,
	release: today,
	object: `
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata:
  name: a
spec:
  clusterSource:
    clusterProfileRef:
      name: a`,
	meet: uncopyable("v1beta1", `spec.kubeConfig.locationType: Unsupported value: ""`),
}, {
	title:   "PriorityClass_WithoutSource",
	effect:  losesByUpdate,
	client:  "if a client of v1beta2 adds a label, spec.priorityClassName is lost",
	cause:   "Convert_v1beta1_WorkloadSpec_To_v1beta2_WorkloadSpec in workload_conversion.go ignores the name if the source is empty, which is its default",
	missed:  "no example has a name without a source",
	report:  `- spec\.priorityClassName: `,
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata:
  name: a
spec:
  podSets:
  - name: main
    count: 0
    template: {}
  priority: 1
  priorityClassName: a
  priorityClassSource: ""`,
	meet: edits("v1beta2", addLabel, reads("v1beta1", `
active: true
podSets:
- name: main
  count: 0
  template:
    metadata: {}
    spec: {}
priority: 1
priorityClassSource: ""`)),
}, {
	report: `ClusterQueue \S+: the input-untouched law(?s:.*)flavorFungibility`,
	reason: "a webhook does not use its input again",
}, {
	report: `resources\[\d+\]\.name: Required value`,
	reason: "the project's admission webhook refuses an empty name of a resource",
}, {
	report: `status\.((flavorsUsage|flavorsReservation)\[\d+\]\.resources: Required value|conditions: Too many)`,
	reason: "only the project writes a status",
}, {
	report: `topologyAssignment(?s:.*)(tas\.V1Beta2From|domains\[\d+\]\.values\[\d+\])`,
	reason: "only the project writes a status",
}, {
	title:   "Containers_AreMissing",
	report:  `template\.spec\.containers: Required value`,
	reason:  "an update passes, because it does not change the pod sets",
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata:
  name: containers
spec:
  podSets:
  - name: main
    count: 0
    template: {}`,
	meet: writable("v1beta2"),
}, {
	report: `Workload v1beta1→v1beta2: the acceptance law(?s:.*)spec\.podSets: Invalid value: "null"`,
	reason: "each Workload that somebody applies has pod sets",
}, {
	title:   "Workload_WithoutSpec",
	report:  `Workload v1beta2→v1beta1: the acceptance law(?s:.*)spec\.podSets: Required value`,
	reason:  "an update passes, because it does not change the pod sets",
	release: today,
	object: `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: empty`,
	meet: writable("v1beta1"),
}, {
	title:   "Location_IsTooLong",
	report:  `spec\.clusterSource\.kubeConfig\.location: Too long`,
	reason:  "an update passes, because it does not change the location",
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: MultiKueueCluster
metadata:
  name: long
spec:
  kubeConfig:
    locationType: Secret
    location: ` + strings.Repeat("a", 257) + "\n",
	meet: writable("v1beta2"),
}, {
	title:   "Location_IsEmpty",
	report:  `\+ spec\.kubeConfig\.locationType: ""`,
	reason:  "no kubeconfig can be found without a location",
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: MultiKueueCluster
metadata:
  name: empty
spec:
  kubeConfig:
    locationType: Secret
    location: ""`,
	meet: reads("v1beta2", "null"),
}, {
	title:   "Weight_IsNoQuantity", // kueueDecodes declares it
	reason:  "v0.14.0 cannot read it either",
	release: "v0.14.0",
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata:
  name: a
spec:
  fairSharing:
    weight: 1E.5`,
	meet: unreadable("v1beta2", "quantities must match"),
}, {
	title:   "AdmissionChecks_ReplaceStrategy", // normal declares it
	reason:  "the admission webhook of v0.14.0 refuses both together; that of v0.15.0 sees v1beta2 only, and accepts them",
	release: today,
	object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: both
spec:
  admissionChecks: [a]
  admissionChecksStrategy:
    admissionChecks:
    - name: b
      onFlavors: [c]`,
	meet: edits("v1beta2", addLabel, reads("v1beta1", `
admissionChecksStrategy:
  admissionChecks:
  - name: a
flavorFungibility:
  whenCanBorrow: MayStopSearch
  whenCanPreempt: TryNextFlavor
preemption:
  borrowWithinCohort:
    policy: Never
  reclaimWithinCohort: Never
  withinClusterQueue: Never
queueingStrategy: BestEffortFIFO
stopPolicy: None`)),
}}
