package corpus_test

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/open-telemetry/opentelemetry-operator/apis/v1alpha1"
	"github.com/open-telemetry/opentelemetry-operator/apis/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/roundtrip"
)

// openTelemetryOperator returns the conversions of the OpenTelemetry operator.
func openTelemetryOperator(t *testing.T) *project {
	t.Helper()
	p := newProject(t, v1alpha1.AddToScheme, v1beta1.AddToScheme)
	const module, definition = "github.com/open-telemetry/opentelemetry-operator@", "config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml"
	p.definitions = published(t, module+"v0.148.0", definition)
	p.releases = []string{"v0.140.0", "v0.143.0"}
	for _, release := range p.releases {
		p.history[release] = published(t, module+release, definition)
	}
	const decodes = "the project's admission webhook cannot decode such an object, and refuses it"
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project"),
		roundtrip.SkipLaw(roundtrip.Decoding, decodes),
		roundtrip.Refuse(decodes, func(err error) bool {
			return regexp.MustCompile(`: (time: |json: cannot unmarshal |quantities must match )`).MatchString(err.Error())
		}),
		roundtrip.SkipLaw(roundtrip.Defaulting, "the versions have different defaults, and the converted object has a spec"),
	}
	p.normal = []func(v reflect.Value){
		visit(openTelemetryConfig),
		// The status has fields that the operator does not write any more.
		visit(func(s *v1alpha1.OpenTelemetryCollectorStatus) { s.Messages, s.Replicas = nil, 0 }),
		visit(func(s *v1alpha1.OpenTelemetryCollectorSpec) {
			s.MinReplicas, s.MaxReplicas = nil, nil // deprecated, for those of the autoscaler
			if a := s.Autoscaler; a != nil {
				if a.MinReplicas, a.MaxReplicas = nil, nil; reflect.ValueOf(*a).IsZero() {
					s.Autoscaler = nil
				}
			}
		}),
		visit(openTelemetrySpec),
		visit(func(a *v1alpha1.OpenTelemetryTargetAllocator) { // only two values have a meaning
			if a.FilterStrategy != string(v1beta1.TargetAllocatorFilterStrategyRelabelConfig) {
				a.FilterStrategy = ""
			}
		}),
		visit(func(a *v1beta1.TargetAllocatorEmbedded) {
			a.CollectorNotReadyGracePeriod, a.CollectorTargetReloadInterval = nil, nil
		}),
		visit(func(m *v1beta1.MetricsConfigSpec) { m.ExtraLabels = nil }),
		visit(func(c *v1beta1.TargetAllocatorPrometheusCR) {
			*c = v1beta1.TargetAllocatorPrometheusCR{
				Enabled: c.Enabled, ScrapeInterval: c.ScrapeInterval, ScrapeClasses: c.ScrapeClasses,
				PodMonitorSelector: c.PodMonitorSelector, ServiceMonitorSelector: c.ServiceMonitorSelector,
			}
		}),
	}
	p.known = openTelemetryKnown
	addConvertible[*v1alpha1.OpenTelemetryCollector, *v1beta1.OpenTelemetryCollector](p)
	return p
}

// openTelemetryConfig writes the config as the conversions do, which keep neither comments nor
// the order of keys. The operator replaces a config that it cannot read.
func openTelemetryConfig(s *v1alpha1.OpenTelemetryCollectorSpec) {
	var hub v1beta1.OpenTelemetryCollector
	var spoke v1alpha1.OpenTelemetryCollector
	if (&v1alpha1.OpenTelemetryCollector{Spec: *s}).ConvertTo(&hub) == nil && spoke.ConvertFrom(&hub) == nil {
		s.Config = spoke.Spec.Config
	}
}

// openTelemetrySpec clears the fields that v1alpha1 lacks, except hostPID: NewField_IsLost lists them.
func openTelemetrySpec(s *v1beta1.OpenTelemetryCollectorSpec) {
	s.ConfigVersions, s.NetworkPolicy, s.ReadinessProbe, s.StartupProbe = 0, v1beta1.NetworkPolicy{}, nil, nil
	s.DNSPolicy, s.PodDNSConfig, s.IpFamilies, s.IpFamilyPolicy, s.HostUsers = nil, corev1.PodDNSConfig{}, nil, nil, nil
	s.PersistentVolumeClaimRetentionPolicy, s.PodManagementPolicy = nil, ""
}

var openTelemetryKnown = []known{{
	title:   "Config_IsErased", // the next failure hides it from the laws
	effect:  losesByUpdate,
	client:  "if a client of v1alpha1 adds a label, the whole config becomes empty; a text has this effect if it begins with an empty line, and the next line has more indentation than a later one",
	cause:   "Config.Yaml in apis/v1beta1/config.go writes the text without the indentation indicator that YAML requires, because of its library goccy/go-yaml; tov1beta1 in apis/v1alpha1/convert.go cannot read this YAML, and replaces it with an empty config",
	missed:  "the examples have no such text",
	release: today,
	object: `
apiVersion: opentelemetry.io/v1beta1
kind: OpenTelemetryCollector
metadata:
  name: a
spec:
  upgradeStrategy: automatic
  config:
    receivers:
      a:
        b: "\n  c\nd"
    exporters: {}
    service:
      pipelines: {}`,
	meet: edits("v1alpha1", addLabel, readsField("v1beta1", `
receivers: {}
exporters: {}
service:
  pipelines: {}`, "spec", "config")),
}, {
	title:   "Tab_IsDropped",
	effect:  losesByUpdate,
	client:  "if a client of v1alpha1 adds a label, the text becomes c; other texts lose a tab at the beginning, or their carriage returns",
	cause:   "goccy/go-yaml writes these texts without quotation marks",
	missed:  "the examples have no tabs",
	report:  `[-+] spec\.config\.\S+: "[^"]*\\[trn]`,
	release: today,
	object: `
apiVersion: opentelemetry.io/v1beta1
kind: OpenTelemetryCollector
metadata:
  name: a
spec:
  upgradeStrategy: automatic
  config:
    receivers:
      a:
        b: "c\t"
    exporters: {}
    service:
      pipelines: {}`,
	meet: edits("v1alpha1", addLabel, readsField("v1beta1", "c", "spec", "config", "receivers", "a", "b")),
}, {
	title:   "ServiceName_IsDropped",
	effect:  loses,
	client:  "the server stores the object without serviceName, and the StatefulSet gets the default name; if a client of v1alpha1 adds a label to an object of v1beta1, the name is lost too",
	cause:   "tov1beta1 and tov1alpha1 in convert.go do not copy the field, which both versions have",
	missed:  "the examples do not have the field",
	report:  `- spec\.serviceName: `,
	release: today,
	object: `
apiVersion: opentelemetry.io/v1alpha1
kind: OpenTelemetryCollector
metadata:
  name: a
spec:
  mode: statefulset
  upgradeStrategy: automatic
  config: ""
  serviceName: a`,
	meet: readsField("v1alpha1", "null", "spec", "serviceName"),
}, {
	title:   "NewField_IsLost",
	effect:  losesByUpdate,
	client:  "if a client of v1alpha1 adds a label, hostPID: true is lost, and so are networkPolicy, readinessProbe, startupProbe, dnsPolicy, podDnsConfig, ipFamilies, ipFamilyPolicy, hostUsers, podManagementPolicy, persistentVolumeClaimRetentionPolicy, the extra labels of metrics, and fields of the target allocator",
	cause:   "tov1alpha1 in convert.go saves no annotation",
	missed:  "the examples have only the fields of v1alpha1",
	report:  `- spec\.hostPID: true`,
	release: today,
	object: `
apiVersion: opentelemetry.io/v1beta1
kind: OpenTelemetryCollector
metadata:
  name: a
spec:
  upgradeStrategy: automatic
  hostPID: true
  config:
    receivers: {}
    exporters: {}
    service:
      pipelines: {}`,
	meet: edits("v1alpha1", addLabel, readsField("v1beta1", "null", "spec", "hostPID")),
}, {
	title:   "Selector_SelectsEverything", // the failures above hide it from the laws
	effect:  losesByUpdate,
	client:  "if a client of v1alpha1 adds a label, both selectors become {}, which selects everything according to the documentation of the fields, while an absent one selects nothing",
	cause:   "tov1beta1TA in convert.go, with the types of v1alpha1, whose selectors have labels only",
	missed:  "the test of selectors begins with v1alpha1",
	release: today,
	object: `
apiVersion: opentelemetry.io/v1beta1
kind: OpenTelemetryCollector
metadata:
  name: a
spec:
  mode: statefulset
  upgradeStrategy: automatic
  targetAllocator:
    enabled: true
    prometheusCR:
      enabled: true
      serviceMonitorSelector:
        matchExpressions:
        - key: a
          operator: Exists
  config:
    receivers:
      prometheus: {}
    exporters: {}
    service:
      pipelines: {}`,
	meet: edits("v1alpha1", addLabel, func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		readsField("v1beta1", "{}", "spec", "targetAllocator", "prometheusCR", "serviceMonitorSelector")(t, c, object)
		readsField("v1beta1", "{}", "spec", "targetAllocator", "prometheusCR", "podMonitorSelector")(t, c, object)
	}),
}, {
	title:   "ConditionTime_IsNull",
	effect:  blocksWrites,
	client:  "a client that has applied the object in v1alpha1, such as Flux, cannot apply it in v1beta1: the error is about nulls that neither version has; in the other direction it is the same",
	cause:   "tov1alpha1 and tov1beta1 in convert.go copy the claims, and PersistentVolumeClaimCondition of k8s.io/api writes both times as null if they are absent",
	missed:  "the claims of the examples have no conditions",
	report:  `the acceptance law(?s:.*)\.status\.conditions\[\d+\]\.last\w+Time: Invalid value: "null"`,
	release: today,
	object: `
apiVersion: opentelemetry.io/v1alpha1
kind: OpenTelemetryCollector
metadata:
  name: claim
spec:
  mode: statefulset
  upgradeStrategy: automatic
  config: ""
  volumeClaimTemplates:
  - metadata:
      name: a
    status:
      conditions:
      - type: Resizing
        status: "True"`,
	meet: unappliable("v1beta1", `status.conditions[0].lastProbeTime in body must be of type string: "null"`),
}, {
	report: `the acceptance law(?s:.*)(spec\.upgradeStrategy: Unsupported value: ""|\.ports\[\d+\]: Duplicate value: \{"containerPort":\d+,"protocol":"TCP"\})|` +
		`spec\.config\.\w+: the schema of v1beta1 keeps it, and its Go type drops it`,
	reason: "the project's admission webhook sets an empty strategy to automatic, and removes empty protocols and unknown sections of a config",
}, {
	title:   "Config_IsNotYAML",
	reason:  "a comment in the code says that an empty config is better than a conversion that fails",
	release: today,
	object: `
apiVersion: opentelemetry.io/v1alpha1
kind: OpenTelemetryCollector
metadata:
  name: a
spec:
  upgradeStrategy: automatic
  config: "{"`,
	meet: readsField("v1alpha1", `"receivers: {}\nexporters: {}\nservice:\n  pipelines: {}\n"`, "spec", "config"),
}}
