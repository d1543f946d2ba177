package schema_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
)

// soon fails t if f takes long.
func soon(t *testing.T, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > 2*time.Minute {
		t.Errorf("it took %s", took)
	}
}

// FuzzParse checks that no bytes make a parser panic or dawdle, and that what is parsed
// can be used.
func FuzzParse(f *testing.F) {
	f.Add([]byte(pizzaYAML(f)))
	f.Add([]byte(oldDefinition))
	f.Add([]byte(tiny("apples") + "---\n" + tiny("bananas")))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [{}]\n"))
	f.Add([]byte("apiVersion: v1\nkind: List\nkind: List\nitems: [{a: 1, a: 2}, null]\n"))
	f.Add([]byte(indented(tiny("apples")) + asJSON(tiny("bananas")) + "}"))
	f.Add([]byte("--- {a: b}\nfoo: bar\n"))
	for _, suite := range traps(f) {
		suite.CRD.APIVersion, suite.CRD.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		text, err := yaml.Marshal(suite.CRD)
		expect.NoError(f, err)
		f.Add(text)
	}
	for _, text := range refused(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		soon(t, func() {
			definitions, err := schema.ParseAll(data)
			if err != nil && definitions != nil {
				t.Fatal("definitions and an error")
			}
			for _, d := range definitions {
				for _, name := range d.Versions() {
					v := d.Version(name)
					object := map[string]any{"apiVersion": d.GroupKind().Group + "/" + name, "kind": d.GroupKind().Kind, "metadata": map[string]any{"name": "x"}, "spec": map[string]any{"a": nil}}
					v.Prune(object)
					v.Default(object)
					v.Validate(t.Context(), object)
				}
			}
		})
	})
}

// everything is testdata/everything.yaml, a definition with every feature.
var everything = sync.OnceValue(func() *schema.Definition {
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		panic(err)
	}
	d, err := schema.Parse(data)
	if err != nil {
		panic(err)
	}
	return d
})

// FuzzCreate checks that no object makes a request panic or dawdle, and that what is
// created can be read, created again and updated with itself, and stays the same.
func FuzzCreate(f *testing.F) {
	for _, suite := range traps(f) {
		for _, c := range suite.Cases {
			if c.Object != nil {
				text, err := yaml.Marshal(c.Object)
				expect.NoError(f, err)
				j, err := yaml.YAMLToJSON(text)
				expect.NoError(f, err)
				f.Add(append([]byte(`{"apiVersion":"all.example.com/v1","kind":"All","metadata":{"name":"x"},`), j[1:]...))
			}
			f.Add([]byte(strings.NewReplacer(suite.CRD.Spec.Group, "all.example.com", `"kind":"`+suite.CRD.Spec.Names.Kind, `"kind":"All`).Replace(c.Raw)))
		}
	}
	good := []byte(`{"apiVersion":"all.example.com/v1","kind":"All","metadata":{"name":"x"}}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		soon(t, func() {
			ctx, ignore := t.Context(), schema.FieldValidation(metav1.FieldValidationIgnore)
			v := everything().Version("v1")
			for _, name := range everything().Versions() {
				v := everything().Version(name)
				_, _ = v.Create(ctx, body)
				_, _ = v.Update(ctx, body, good)
				_, _ = v.Update(ctx, good, body)
				_, _ = v.UpdateStatus(ctx, body, good)
				_, _ = v.UpdateStatus(ctx, body, body)
				_, _ = v.Read(ctx, body)
			}
			out, err := v.Create(ctx, body, ignore)
			if err != nil {
				return
			}
			for name, f := range map[string]func() (*schema.Result, error){
				"create": func() (*schema.Result, error) {
					return v.Create(ctx, out.Object, schema.FieldValidation(metav1.FieldValidationStrict))
				},
				"read":   func() (*schema.Result, error) { return v.Read(ctx, out.Stored) },
				"update": func() (*schema.Result, error) { return v.Update(ctx, out.Object, out.Stored) },
			} {
				again, err := f()
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if diff := cmp.Diff(valueOf(t, out.Object), valueOf(t, again.Object)); diff != "" {
					t.Errorf("%s (-created +again):\n%s", name, diff)
				}
			}
		})
	})
}
