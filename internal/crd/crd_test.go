package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/test/expect"
)

// FuzzRead reads definitions from outside. A definition that was read encodes to the same.
func FuzzRead(f *testing.F) {
	const head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: pizzas.example.com}\n"
	for _, text := range []string{
		"", "---", "--- # nothing\n...\n", "\uFEFF{}", "[]", "a: [", head,
		head + "spec: {group: example.com, names: {kind: Pizza, plural: pizzas}, scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}\n",
		head + "spec: {group: example.com, names: {kind: Pizza, plural: pizzas}, scope: Cluster, versions: [{name: v1}, {name: v2, subresources: {status: {}}}], conversion: {strategy: None}}\n--- {a: b}\n",
		"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := crd.Read(text)
		if len(found) == 0 && err == nil {
			t.Fatal("there is no definition, and no error")
		}
		for _, d := range found {
			out, err := yaml.Marshal(d.Object)
			expect.NoError(t, err)
			again, err := crd.Read(out)
			if err != nil || len(again) != 1 {
				t.Fatalf("%v in\n%s", err, out)
			}
			if diff := cmp.Diff(d.Fields, again[0].Fields); diff != "" {
				t.Errorf("(-first +again):\n%s", diff)
			}
		}
	})
}
