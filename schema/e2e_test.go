package schema_test

import (
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/crdfuzz"
	"github.com/crdkit/crdkit/test/differential"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/tier"
)

// TestRequests_LikeTheAPIServer sends every request of testdata/traps to a real API server
// too, in each mode of field validation, and compares everything.
func TestRequests_LikeTheAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	server, err := differential.NewServer(cp.Config(), filepath.Join(cp.Dir(), "etcd.sock"))
	expect.NoError(t, err)
	tally := &differential.Tally{}
	expect.NoError(t, differential.RunAll(t.Context(), server, tally, traps(t)))
	for name, text := range refused(t) {
		crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, text)
		expect.NoError(t, differential.CompareDefinition(t.Context(), server, tally, name, crd))
	}
	report(t, tally)
}

// TestRequests_RandomObjects is `make differential`, but shorter, and with
// a seed that does not change: a fault that another seed finds must not fail an unrelated
// change.
// The API server does the same to random objects.
func TestRequests_RandomObjects(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	server, err := differential.NewServer(cp.Config(), filepath.Join(cp.Dir(), "etcd.sock"))
	expect.NoError(t, err)
	tally := &differential.Tally{Limit: tier.Pick(300, 2000)}
	_, err = crdfuzz.Run(t.Context(), server, tally, 1, -1)
	expect.NoError(t, err)
	report(t, tally)
}

func report(t *testing.T, tally *differential.Tally) {
	t.Helper()
	for _, d := range tally.Disagreements() {
		t.Error(d)
	}
	for _, problem := range tally.Unexpected() {
		t.Error(problem)
	}
	t.Log("\n" + tally.Summary())
}

// traps returns the suites of testdata/traps.
func traps(t testing.TB) (suites []*differential.Suite) {
	t.Helper()
	files, err := filepath.Glob("testdata/traps/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		suite, err := differential.ReadSuite(file)
		expect.NoError(t, err)
		suites = append(suites, suite)
	}
	return suites
}

// refused returns definitions that the server does not take.
func refused(t testing.TB) map[string]string {
	t.Helper()
	pizza, tiny := pizzaYAML(t), tiny("apples")
	withSchema := func(s string) string { return strings.Replace(tiny, "{type: object}", s, 1) }
	return map[string]string{
		"many problems": strings.NewReplacer(
			"name: pizzas.restaurant", "name: pizza.restaurant",
			"maxItems: 10", "maxItems: 10\n                uniqueItems: true",
			"known: {type: object,", "known: {",
		).Replace(pizza),
		"a bad default":             strings.Replace(pizza, "default: large", "default: huge", 1),
		"a rule that is not typed":  strings.Replace(pizza, "self.size != 'small'", "self.sizes != 'small'", 1),
		"no storage version":        strings.Replace(tiny, "storage: true", "storage: false", 1),
		"no schema":                 strings.Replace(tiny, ", schema: {openAPIV3Schema: {type: object}}", "", 1),
		"a protected group":         strings.ReplaceAll(tiny, "example.com", "example.k8s.io"),
		"no names":                  strings.Replace(tiny, "kind: Apples}", "kind: ''}", 1),
		"another scope":             strings.Replace(tiny, "scope: Cluster", "scope: World", 1),
		"the same version twice":    strings.Replace(tiny, "  versions:", "  versions:\n  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}", 1),
		"a webhook without address": strings.Replace(tiny, "scope:", "conversion: {strategy: Webhook}\n  scope:", 1),
		"an array without items":    withSchema("{type: object, properties: {a: {type: array}}}"),
		"a list map without keys":   withSchema("{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, items: {type: object, properties: {k: {type: string}}}}}}"),
		"a list map, keys optional": withSchema("{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}}}"),
		"a bad pattern":             withSchema("{type: object, properties: {a: {type: string, pattern: '('}}}"),
		"a default in metadata":     withSchema("{type: object, properties: {metadata: {type: object, properties: {name: {type: string, default: x}}}}}"),
		"a type in a composition":   withSchema("{type: object, properties: {a: {type: string}}, oneOf: [{properties: {a: {type: string}}}]}"),
		"a panic":                   withSchema("{type: object, properties: {a: {type: object, additionalProperties: true, x-kubernetes-validations: [{rule: 'true', fieldPath: .b.c}]}}}"),
		"a reference":               withSchema("{type: object, properties: {a: {$ref: '#/x'}}}"),
		"a costly rule":             withSchema("{type: object, properties: {a: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, x != y))'}]}}}"),
		"a root that is no object":  withSchema("{type: string}"),
		"no type":                   withSchema("{properties: {a: {}}}"),
		"both kinds of fields":      withSchema("{type: object, properties: {a: {type: object, properties: {b: {type: string}}, additionalProperties: true}}}"),
		"a default that is pruned":  withSchema("{type: object, properties: {a: {type: object, default: {b: c}, properties: {d: {type: string}}}}}"),
		"a scale without paths":     strings.Replace(tiny, "storage: true,", "storage: true, subresources: {scale: {specReplicasPath: replicas}},", 1),
		"preserveUnknownFields":     strings.Replace(tiny, "scope:", "preserveUnknownFields: false\n  scope:", 1),
	}
}
