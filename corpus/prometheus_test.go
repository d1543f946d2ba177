package corpus_test

import (
	"cmp"
	"reflect"
	"testing"

	"github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1beta1"

	"github.com/crdkit/crdkit/roundtrip"
)

// prometheusOperator returns the conversions of the Prometheus operator.
func prometheusOperator(t *testing.T) *project {
	t.Helper()
	p := newProject(t, v1alpha1.AddToScheme, v1beta1.AddToScheme)
	const module = "github.com/prometheus-operator/prometheus-operator@"
	const definition = "example/prometheus-operator-crd-full/monitoring.coreos.com_alertmanagerconfigs.yaml"
	p.definitions = published(t, module+"v0.89.0", definition)
	p.releases = []string{"v0.66.0"}
	p.history["v0.66.0"] = published(t, module+"v0.66.0", definition)
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Aliasing, "the functions share memory, and a webhook uses neither object again"),
	}
	p.normal = []func(v reflect.Value){
		visit(func(m *v1alpha1.Matcher) {
			m.MatchType = cmp.Or(m.MatchType, map[bool]v1alpha1.MatchType{true: v1alpha1.MatchRegexp, false: v1alpha1.MatchEqual}[m.Regex])
			m.Regex = false
		}),
		visit(func(m *v1beta1.Matcher) { m.MatchType = cmp.Or(m.MatchType, v1beta1.MatchEqual) }),
	}
	p.again = []narrowed{
		{kind: "AlertmanagerConfig", path: "v1alpha1→v1beta1", law: "acceptance", require: []string{"route", "receivers"}},
		{kind: "AlertmanagerConfig", path: "v1beta1→v1alpha1", law: "acceptance", require: []string{"route", "receivers"}},
		{kind: "AlertmanagerConfig", path: "v1beta1→v1alpha1", law: "acceptance", require: []string{"route", "receivers", "timeIntervals"}},
	}
	p.known = prometheusOperatorKnown
	addConvertible[*v1beta1.AlertmanagerConfig, *v1alpha1.AlertmanagerConfig](p)
	return p
}

var prometheusOperatorKnown = []known{{
	title:   "TTL_IsDropped",
	effect:  loses,
	client:  "the server stores and returns the object without ttl; release v0.95.1 keeps it",
	cause:   "convertPushoverConfigTo and convertPushoverConfigFrom in pkg/apis/monitoring/v1beta1 do not copy the field",
	report:  `\.pushoverConfigs\[\d+\]\.ttl: `,
	release: today,
	object: `
apiVersion: monitoring.coreos.com/v1beta1
kind: AlertmanagerConfig
metadata:
  name: a
spec:
  receivers:
  - name: a
    pushoverConfigs:
    - ttl: 1h
      token:
        name: a
        key: token
      userKey:
        name: a
        key: user`,
	meet: reads("v1beta1", `
receivers:
- name: a
  pushoverConfigs:
  - token:
      name: a
      key: token
    userKey:
      name: a
      key: user`),
}, {
	title:   "OptionalOfSecret_IsLost",
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, optional: true is lost; the operator does not notice, because a missing Secret of a receiver is always an error",
	cause:   "SecretKeySelector in pkg/apis/monitoring/v1beta1 lacks the field",
	report:  `\.optional: true`,
	release: today,
	object: `
apiVersion: monitoring.coreos.com/v1alpha1
kind: AlertmanagerConfig
metadata:
  name: a
spec:
  receivers:
  - name: a
    pagerdutyConfigs:
    - routingKey:
        name: a
        key: a
        optional: true`,
	meet: edits("v1beta1", addLabel, reads("v1alpha1", `
receivers:
- name: a
  pagerdutyConfigs:
  - routingKey:
      name: a
      key: a`)),
}, {
	title:   "Route_IsNull",
	effect:  blocksWrites,
	client:  "a client that has applied the object in v1alpha1, such as Flux, cannot apply it in v1beta1: the error is about nulls that neither version has; in the other direction it is the same",
	cause:   "route and receivers of AlertmanagerConfigSpec in pkg/apis/monitoring/v1alpha1 and v1beta1 are optional, and lack omitempty",
	report:  `the acceptance law(?s:.*)spec\.(route|receivers): Invalid value: "null"`,
	release: today,
	object: `
apiVersion: monitoring.coreos.com/v1alpha1
kind: AlertmanagerConfig
metadata:
  name: inhibit
spec:
  inhibitRules:
  - sourceMatch:
    - name: severity
      value: critical
    targetMatch:
    - name: severity
      value: warning`,
	meet: unappliable("v1beta1", `spec.route in body must be of type object: "null"`),
}, {
	title:   "SecretKey_IsEmpty",
	report:  `the acceptance law(?s:.*)\.(key|name) in body should be at least 1 chars long`,
	reason:  "an update passes, because it does not change the reference, and no Secret has an empty name or key",
	release: today,
	object: `
apiVersion: monitoring.coreos.com/v1alpha1
kind: AlertmanagerConfig
metadata:
  name: empty
spec:
  receivers:
  - name: a
    pagerdutyConfigs:
    - routingKey:
        name: ""
        key: ""`,
	meet: writable("v1beta1"),
}, {
	report: `imeIntervals\[0\]\.name: Required value`,
	reason: "the project's admission webhook refuses an empty name",
}, {
	report: `spec\.receivers\[\d+\]: Duplicate value`,
	reason: "the project's admission webhook refuses two receivers with one name",
}, {
	report: `route\[\d+\]: json: cannot unmarshal \w+ into Go value of type \w+\.Route`,
	reason: "the project's admission webhook refuses a route that is not an object",
}}
