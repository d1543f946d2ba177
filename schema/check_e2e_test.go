package schema_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

// recorded has the warnings of a server.
type recorded map[string]bool

func (r recorded) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	r[text] = true
}

// warnsSince is the minor release whose server is the first to give a warning: 34, which
// has the first warnings (apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
// WarningsOnCreate), if the words have no release of their own.
func warnsSince(warning string, since map[string]int) int {
	for words, minor := range since {
		if strings.Contains(warning, words) {
			return minor
		}
	}
	return 34
}

// TestCheck_LikeTheAPIServer sends definitions to a real API server as they are
// in a file. It has to refuse those that have problems, and to warn of the others as Check does.
func TestCheck_LikeTheAPIServer(t *testing.T) {
	cp := controlplane.Shared(t)
	with := func(properties string) string {
		return withSchema("{type: object, properties: {\n" + properties + "}}")
	}
	for _, test := range []struct {
		name, text string
		refused    bool
		since      map[string]int // words of warnings, and the minor release that gives them first; a format of strings is 34
	}{
		{name: "nothing to warn of", text: with("a: {type: string, format: date-time}")},
		{name: "formats that are unknown", text: with("a: {type: string, format: date_time},\nb: {type: integer, format: int8},\nc: {type: number, format: half},\nd: {type: object, format: date},\ne: {x-kubernetes-int-or-string: true, format: port}"), since: map[string]int{"int8": 36, "half": 36, `"date"`: 36, "port": 36}},
		{name: "formats that are known", text: with("a: {type: string, format: k8s-short-name},\nb: {type: integer, format: int32},\nc: {type: number, format: double},\nd: {type: string, format: datetime},\ne: {type: string, format: ipv-4}")},
		{name: "the same format everywhere", text: withSchema("{type: object, properties: {a: {type: array, items: {type: object, properties: {b: {type: string, format: x}}}}, m: {type: object, additionalProperties: {type: string, format: x}}}, not: {properties: {a: {format: z}}}}"), since: map[string]int{`"z"`: 36}},
		{name: "sets of what is no scalar", text: with("a: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}},\nb: {type: array, x-kubernetes-list-type: set, items: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}}"), since: map[string]int{"x-kubernetes-list-type: set": 37}},
		{name: "a set of scalars", text: with("a: {type: array, x-kubernetes-list-type: set, items: {type: string}}")},
		{name: "what neither sees", text: withSchema("{type: object, properties: {spec: {type: object, anyOf: [{properties: {nowhere: {minLength: 1}}}]}, list: {type: array, items: {type: string, bogus: 1}}, map: {type: object, additionalProperties: {type: string, bogus: 1}}}}")},
		{name: "a namespace", text: strings.Replace(withSchema("{type: object}"), "metadata:", "metadata:\n  namespace: default", 1)},
		{name: "a version that is gone", text: strings.Replace(withSchema("{type: object}"), "/v1\n", "/v1beta1\n", 1), refused: true},
		{name: "an unknown field", text: with("a: {type: string, bogus: 1}"), refused: true},
		{name: "a value of another type", text: with("a: {type: string, description: 5}"), refused: true},
		{name: "another below items", text: with("a: {type: array, items: {type: string, maxLength: '5'}}"), refused: true},
		{name: "a path that crashes the server", text: with("a: {type: object, additionalProperties: true, x-kubernetes-validations: [{rule: 'true', fieldPath: .a.b}]}"), refused: true},
		{name: "a selectable field that does", text: strings.Replace(with("a: {type: object, additionalProperties: true}"), "name: v1,", "name: v1, selectableFields: [{jsonPath: .a.b.c}],", 1), refused: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := recorded{}
			config := rest.CopyConfig(cp.Config())
			config.WarningHandlerWithContext = got
			client, err := apiextensionsclient.NewForConfig(config)
			expect.NoError(t, err)
			body, err := yaml.YAMLToJSON([]byte(test.text))
			expect.NoError(t, err)
			err = client.ApiextensionsV1().RESTClient().Post().Resource("customresourcedefinitions").
				Param("dryRun", "All").Param("fieldValidation", "Strict").
				SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
			if refused := err != nil; refused != test.refused {
				t.Errorf("the server says %v, refused should be %t", err, test.refused)
			}
			if cp.Minor() == 34 {
				// It knows k8s-short-name, and warns of it: definitions may have it from 1.35 on.
				delete(got, `unrecognized format "k8s-short-name"`)
			}
			found, err := schema.Check([]byte(test.text))
			expect.NoError(t, err)
			want, refused := recorded{}, false
			for _, f := range found {
				switch {
				case !f.Warning:
					refused = true
				case cp.Minor() >= warnsSince(f.Message, test.since):
					want[f.Message] = true
				}
			}
			if refused != test.refused {
				t.Errorf("Check says %q, refused should be %t", found, test.refused)
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))); diff != "" {
				t.Errorf("warnings (-server +offline):\n%s", diff)
			}
		})
	}
}
