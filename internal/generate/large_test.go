package generate

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

// gatewayAPI returns versions of the Gateway API, which upstream tests with: schemas with
// hundreds of fields and dozens of CEL rules.
func gatewayAPI(t testing.TB) map[string]*server {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apiextensions-apiserver").Output()
	if err != nil || len(dir) == 0 {
		t.Skip("the sources of k8s.io/apiextensions-apiserver are not there:", err)
	}
	all := crds(t, filepath.Join(strings.TrimSpace(string(dir)), "test/integration/ratcheting_test_cases/crds/*.yaml"))
	return map[string]*server{"HTTPRoute": all["HTTPRoute/v1"], "Gateway": all["Gateway/v1"], "GatewayClass": all["GatewayClass/v1"]}
}

// Objects of large schemas are accepted.
func TestGenerator_LargeSchemas(t *testing.T) {
	for name, s := range gatewayAPI(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := s.generator(t)
			for _, object := range objectsOf(t, g, 15) {
				s.check(t, object)
			}
			for i := range 10 {
				object, err := g.Outside(choices.New(1, t.Name(), i))
				expect.NoError(t, err)
				s.refused(t, object)
			}
		})
	}
}

// Elements of large lists differ, too.
func TestGenerator_LargeLists(t *testing.T) {
	for name, schema := range map[string]string{
		"set":               `{type: array, x-kubernetes-list-type: set, items: {type: string}, minItems: 1001}`,
		"list map":          `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string, pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$', maxLength: 63}}}, minItems: 1001}`,
		"list map of ports": `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [protocol, port], items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1, maximum: 65535}, protocol: {type: string, default: TCP, enum: [TCP, UDP]}}}, minItems: 1001}`,
		"map":               `{type: object, additionalProperties: {type: string}, minProperties: 1001}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemaOf(t, "{type: object, required: [v], properties: {v: "+schema+"}}")
			for _, object := range objectsOf(t, s.generator(t), 5) {
				s.check(t, object)
			}
		})
	}
}

// BenchmarkObject reports how often valid was asked for an object.
func BenchmarkObject(b *testing.B) {
	all := gatewayAPI(b)
	for name, s := range crds(b, "../../examples/pizza/config/crd/*.yaml") {
		all[name] = s
	}
	for name, s := range all {
		b.Run(name, func(b *testing.B) {
			asked := 0
			g, err := New(pizza, s.structural, func(object map[string]any) field.ErrorList {
				asked++
				return s.rules(object)
			})
			if err != nil {
				b.Fatal(err)
			}
			asked = 0
			i := 0
			for b.Loop() {
				i++
				if _, err := g.Object(choices.New(1, name, i)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(asked)/float64(i), "asked/op")
		})
		b.Run(name+"/without CEL", func(b *testing.B) {
			g, err := New(pizza, s.structural, nil)
			if err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				i++
				if _, err := g.Object(choices.New(1, name, i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
