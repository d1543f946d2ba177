package corpus_test

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	eventingv1beta1 "knative.dev/eventing/pkg/apis/eventing/v1beta1"
	eventingv1beta2 "knative.dev/eventing/pkg/apis/eventing/v1beta2"
	eventingv1beta3 "knative.dev/eventing/pkg/apis/eventing/v1beta3"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	sourcesv1beta2 "knative.dev/eventing/pkg/apis/sources/v1beta2"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/crdkit/crdkit/roundtrip"
)

// eventing returns the conversions of Knative Eventing. The hubs are those of cmd/webhook.
func eventing(t *testing.T) *project {
	t.Helper()
	p := newProject(t, eventingv1beta1.AddToScheme, eventingv1beta2.AddToScheme, eventingv1beta3.AddToScheme, sourcesv1.AddToScheme, sourcesv1beta2.AddToScheme)
	const module, types, pings = "knative.dev/eventing@", "config/core/resources/eventtype.yaml", "config/core/resources/pingsource.yaml"
	p.definitions = published(t, module+"v0.46.0", types, pings)
	p.releases = []string{"v0.41.0", "v0.43.0"}
	for _, release := range p.releases {
		p.history[release] = published(t, module+release, types, pings)
	}
	p.options = []roundtrip.Option{
		roundtrip.SkipLaw(roundtrip.Aliasing, "the functions share memory, and a webhook uses neither object again"),
		roundtrip.SkipLaw(roundtrip.InputUntouched, "a webhook does not use its input again"),
		roundtrip.SkipLaw(roundtrip.Drift, "Address_IsPruned is about the address of a sink, and the group is experimental"),
		roundtrip.SkipLaw(roundtrip.Decoding, eventingDecodes),
		roundtrip.Refuse(eventingDecodes, func(err error) bool {
			return undecodable.MatchString(err.Error()) || regexp.MustCompile(`parse ".*": `).MatchString(err.Error())
		}),
	}
	p.normal = []func(v reflect.Value){
		visit(func(e *eventingv1beta1.EventType) {
			if e.Spec.Reference == nil && e.Spec.Broker != "" {
				e.Spec.Reference = &duckv1.KReference{APIVersion: "eventing.knative.dev/v1", Kind: "Broker", Name: e.Spec.Broker}
				e.SetDefaults(context.Background())
			}
			e.Spec.Broker = ""
		}),
		visit(func(s *eventingv1beta2.EventTypeSpec) {
			if s.Reference != nil {
				s.Broker = ""
			}
		}),
		visit(func(s *eventingv1beta3.EventTypeSpec) { s.Attributes = attributes(s.Attributes) }),
	}
	p.known = eventingKnown
	addKnative[*eventingv1beta2.EventType, *eventingv1beta1.EventType](p)
	addKnative[*eventingv1beta3.EventType, *eventingv1beta1.EventType](p)
	addKnative[*sourcesv1.PingSource, *sourcesv1beta2.PingSource](p)
	return p
}

// eventingDecodes is why a schema may accept what no Go type can decode.
const eventingDecodes = "the admission webhooks cannot decode such a spec, and only the project writes a status"

// attributes returns the attributes that the admission webhook requires, and then the others. Of two with
// one name, the webhook reads the last.
func attributes(all []eventingv1beta3.EventAttributeDefinition) (sorted []eventingv1beta3.EventAttributeDefinition) {
	names := []string{"specversion", "id", "type", "source"}
	for _, a := range all {
		names = append(names, a.Name)
	}
	byName := map[string]eventingv1beta3.EventAttributeDefinition{}
	for _, name := range names[:4] {
		byName[name] = eventingv1beta3.EventAttributeDefinition{Name: name}
	}
	for _, a := range all {
		byName[a.Name] = a
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		a := byName[name]
		a.Required = a.Required || i < 4
		sorted = append(sorted, a)
	}
	return sorted
}

var eventingKnown = []known{{
	title:   "Attribute_IsLost",
	effect:  loses,
	client:  "the server stores the object without the attribute extension, and without the values of specversion and id",
	cause:   "EventType.ConvertFrom in pkg/apis/eventing/v1beta2/eventtype_conversion.go copies type, source and schema only",
	missed:  "the example has no other attributes",
	report:  `- spec\.attributes\[\d+\]\.name: `,
	release: today,
	object: `
apiVersion: eventing.knative.dev/v1beta3
kind: EventType
metadata:
  name: a
spec:
  attributes:
  - name: type
    required: true
    value: a
  - name: source
    required: true
    value: a
  - name: specversion
    required: true
  - name: id
    required: true
  - name: extension
    value: a`,
	meet: reads("v1beta3", `
attributes:
- name: specversion
  required: true
- name: id
  required: true
- name: type
  required: true
  value: a
- name: source
  required: true
  value: a`),
}, {
	title:   "Template_IsEscaped", // no law reports it: objects rarely have an attribute with this name
	effect:  loses,
	client:  "the server stores and returns %7Bnamespace%7D, although a value may have sections in curly brackets, according to the documentation of the field",
	cause:   "EventType.ConvertFrom in the same file parses the value as a URL",
	missed:  "the example has no template",
	release: today,
	object: `
apiVersion: eventing.knative.dev/v1beta3
kind: EventType
metadata:
  name: a
spec:
  attributes:
  - name: type
    required: true
    value: a
  - name: source
    required: true
    value: /apis/v1/namespaces/{namespace}
  - name: specversion
    required: true
  - name: id
    required: true`,
	meet: reads("v1beta3", `
attributes:
- name: specversion
  required: true
- name: id
  required: true
- name: type
  required: true
  value: a
- name: source
  required: true
  value: /apis/v1/namespaces/%7Bnamespace%7D`),
}, {
	title:   "SchemaData_IsLost",
	effect:  losesByUpdate,
	client:  "if a client of v1beta3 adds a label, spec.schemaData is lost",
	cause:   "EventType.ConvertTo in the same file makes the attribute schemadata of the field schema",
	missed:  "the example has no schemaData",
	report:  `- spec\.schemaData: `,
	release: "v0.43.0",
	object: `
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: a
spec:
  type: a
  schemaData: a`,
	meet: edits("v1beta3", addLabel, reads("v1beta2", `type: a`)),
}, {
	title:   "Broker_IsLost",
	effect:  losesByUpdate,
	client:  "clients of v1beta1 and v1beta3 read neither a broker nor a reference, and if they add a label, spec.broker is lost; in v1beta1, it is also lost if the object has the empty reference {}",
	cause:   "EventType.ConvertTo in the same file copies the reference before it makes one of the broker, and writes that one to its input; EventType.ConvertFrom in pkg/apis/eventing/v1beta1/eventtype_conversion.go does not copy the broker",
	missed:  "the broker of the example is empty",
	report:  `- spec\.broker: |- spec\.reference\.kind: "Broker"`,
	release: "v0.43.0",
	object: `
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: a
spec:
  type: a
  broker: a`,
	meet: edits("v1beta3", addLabel, reads("v1beta2", `type: a`)),
}, {
	title:   "Address_IsPruned", // the law drift reports it
	effect:  loses,
	client:  "if a client adds spec.sink.ref.address, the server drops it; a client with strict field validation, such as kubectl, gets an error",
	cause:   "config/core/resources/pingsource.yaml lacks the field of the Go type, which the schema of EventType has",
	missed:  "no test compares the schema with the type",
	release: today,
	object: `
apiVersion: sources.knative.dev/v1
kind: PingSource
metadata:
  name: a
spec:
  schedule: "* * * * *"
  sink:
    ref:
      apiVersion: v1
      kind: Service
      name: a
      namespace: a`,
	meet: edits("v1", func(object map[string]any) {
		if err := unstructured.SetNestedField(object, "a", "spec", "sink", "ref", "address"); err != nil {
			panic(err)
		}
	}, reads("v1", `
schedule: '* * * * *'
sink:
  ref:
    apiVersion: v1
    kind: Service
    name: a
    namespace: a`)),
}}
