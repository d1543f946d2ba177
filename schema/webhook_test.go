package schema_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
)

// twoVersions stores v1, where the field is a; v2 has b instead, with a default of its own for c.
const twoVersions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pairs.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: pairs, kind: Pair}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://localhost:1/"}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}, c: {type: string, default: x}}}}}
`

// rename is the webhook: it renames a to b, and b to a.
func rename(_ context.Context, object []byte, to runtimeschema.GroupVersion) ([]byte, error) {
	from, field := `"v1"`, [2]string{`"a":`, `"b":`}
	if to.Version == "v1" {
		from, field = `"v2"`, [2]string{`"b":`, `"a":`}
	}
	text := strings.Replace(string(object), "example.com/"+strings.Trim(from, `"`), to.String(), 1)
	return []byte(strings.Replace(text, field[0], field[1], 1)), nil
}

func TestConvert_IsCalledForOtherVersions(t *testing.T) {
	d, err := schema.Parse([]byte(twoVersions))
	expect.NoError(t, err)
	stored := []byte(`{"apiVersion":"example.com/v1","kind":"Pair","metadata":{"name":"x","uid":"u"},"a":"1"}`)
	v2 := d.Version("v2")
	_, err = v2.Read(t.Context(), stored)
	expect.ErrorContains(t, err, "give Convert")
	read, err := v2.Read(t.Context(), stored, schema.Convert(rename))
	expect.NoError(t, err)
	if want := `{"apiVersion":"example.com/v2","b":"1","kind":"Pair","metadata":{"generation":1,"name":"x","uid":"u"}}`; string(read.Object) != want {
		t.Errorf("read as v2: %s, want %s", read.Object, want)
	}
	written, err := v2.Update(t.Context(), []byte(strings.Replace(string(read.Object), `"1"`, `"2"`, 1)), stored, schema.Convert(rename))
	expect.NoError(t, err)
	// The default of v2 does not reach the storage version.
	if want := `{"a":"2","apiVersion":"example.com/v1","kind":"Pair","metadata":{"generation":2,"name":"x","uid":"u"}}`; string(written.Stored) != want {
		t.Errorf("stored: %s, want %s", written.Stored, want)
	}
	if want := `"b":"2"`; !strings.Contains(string(written.Object), want) {
		t.Errorf("answered: %s, want %s in it", written.Object, want)
	}
}

// The rules are those of the server for the answer of a webhook.
func TestConvert_IsHeldToTheRules(t *testing.T) {
	d, err := schema.Parse([]byte(twoVersions))
	expect.NoError(t, err)
	const head = `{"apiVersion":"example.com/v2","kind":"Pair",`
	for answer, want := range map[string]string{
		`{`: `unexpected end of JSON input`,
		`{"apiVersion":"example.com/v1","kind":"Pair"}`:                   `invalid groupVersion (expected example.com/v2, received example.com/v1)`,
		`{"apiVersion":"example.com/v2","kind":"Apple"}`:                  `must have the same kind: Pair != Apple`,
		head + `"metadata":{"name":"y"}}`:                                 `must have the same name: x != y`,
		head + `"metadata":{"name":"x","namespace":"y"}}`:                 `must have the same namespace:  != y`,
		head + `"metadata":{"name":"x","uid":"v"}}`:                       `must have the same UID: u != v`,
		head + `"metadata":{"name":"x","uid":"u","labels":[]}}`:           `invalid metadata.labels of type []interface {}`,
		head + `"metadata":{"name":"x","uid":"u","labels":{"a":1}}}`:      `metadata.labels[a] must be a string, but is int64`,
		head + `"metadata":{"name":"x","uid":"u","labels":{"a":"/"}}}`:    `metadata.labels: Invalid value: "/"`,
		head + `"metadata":{"name":"x","uid":"u","annotations":{"":""}}}`: `metadata.annotation: Invalid value`,
		"": `conversion webhook for example.com/v1, Kind=Pair failed: out of flour`,
	} {
		_, err := d.Version("v2").Read(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Pair","metadata":{"name":"x","uid":"u"}}`),
			schema.Convert(func(context.Context, []byte, runtimeschema.GroupVersion) ([]byte, error) {
				if answer == "" {
					return nil, errors.New("out of flour")
				}
				return []byte(answer), nil
			}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", answer, err, want)
		}
	}
}

func TestConvert_LeavesMetadataAlone(t *testing.T) {
	d, err := schema.Parse([]byte(twoVersions))
	expect.NoError(t, err)
	out, err := d.Version("v2").Read(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Pair","metadata":{"name":"x","finalizers":["example.com/f"],"labels":{"a":"b"}}}`),
		schema.Convert(func(context.Context, []byte, runtimeschema.GroupVersion) ([]byte, error) {
			return []byte(`{"apiVersion":"example.com/v2","kind":"Pair","metadata":{"name":"x","finalizers":[],"annotations":{"c":"d"}}}`), nil
		}))
	if want := `"metadata":{"annotations":{"c":"d"},"finalizers":["example.com/f"],"generation":1,"name":"x"}`; err != nil || !strings.Contains(string(out.Object), want) {
		t.Errorf("got %s, %v; want %s", out.Object, err, want)
	}
}
