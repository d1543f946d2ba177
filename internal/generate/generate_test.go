package generate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// TestMain lets the heap grow more between collections: a quarter of the time went there.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

var pizza = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pizza"}

// server does with objects what an API server does.
type server struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
}

func newServer(t testing.TB, props *apiextensionsv1.JSONSchemaProps) *server {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	expect.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil))
	structural, err := structuralschema.NewStructural(internal)
	expect.NoError(t, err)
	validator, _, err := validation.NewSchemaValidator(internal)
	expect.NoError(t, err)
	return &server{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// schemaOf parses a schema written in YAML.
func schemaOf(t testing.TB, text string) *server {
	t.Helper()
	props := testobj.As[apiextensionsv1.JSONSchemaProps](t, text)
	return newServer(t, props)
}

// validate validates against the schema, without its CEL rules.
func (s *server) validate(object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.validator)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, object, s.structural, true)...)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
}

// rules evaluates the CEL rules as the server does: after defaulting.
func (s *server) rules(object map[string]any) field.ErrorList {
	if s.cel == nil {
		return nil
	}
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, s.structural)
	errs, _ := s.cel.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

func (s *server) generator(t testing.TB) *Generator {
	t.Helper()
	g, err := New(pizza, s.structural, s.rules)
	expect.NoError(t, err)
	return g
}

func text(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// diff is quick if there is no difference.
func diff(a, b map[string]any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}

// check fails if an object is not what an API server would accept and store.
func (s *server) check(t testing.TB, object map[string]any) {
	t.Helper()
	if errs := append(s.validate(object), s.rules(object)...); len(errs) > 0 {
		t.Fatalf("%v:\n%s", errs.ToAggregate(), text(object))
	}
	if diff := diff(object, runtime.DeepCopyJSON(object)); diff != "" {
		t.Fatalf("a copy differs: %s", diff)
	}
	pruned := runtime.DeepCopyJSON(object)
	pruning.Prune(pruned, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(pruned, s.structural)
	if diff := diff(object, pruned); diff != "" {
		t.Fatalf("pruning takes something away (-object +pruned):\n%s", diff)
	}
	var read map[string]any
	expect.NoError(t, utiljson.Unmarshal([]byte(key(object)), &read))
	if diff := diff(object, read); diff != "" {
		t.Fatalf("it is not what is read of its JSON (-object +read):\n%s", diff)
	}
	defaulting.Default(pruned, s.structural)
	if errs := s.validate(pruned); len(errs) > 0 {
		t.Fatalf("after defaulting: %v:\n%s", errs.ToAggregate(), text(object))
	}
}

func objectsOf(t testing.TB, g *Generator, n int) func(func(int, map[string]any) bool) {
	return func(yield func(int, map[string]any) bool) {
		for i := range n {
			object, err := g.Object(choices.New(1, t.Name(), i))
			if err != nil {
				t.Fatalf("object %d: %v", i, err)
			}
			if !yield(i, object) {
				return
			}
		}
	}
}

// crds returns the versions of CustomResourceDefinitions in files.
func crds(t testing.TB, pattern string) map[string]*server {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || files == nil {
		t.Fatal(errors.Join(err, errors.New("no files "+pattern)))
	}
	out := map[string]*server{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		expect.NoError(t, err)
		for _, document := range bytes.Split(b, []byte("\n---\n")) {
			crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, string(document))
			for _, v := range crd.Spec.Versions {
				out[crd.Spec.Names.Kind+"/"+v.Name] = newServer(t, v.Schema.OpenAPIV3Schema)
			}
		}
	}
	return out
}

// Objects of CustomResourceDefinitions are accepted.
func TestGenerator_CustomResourceDefinitions(t *testing.T) {
	for name, s := range crds(t, "../../examples/pizza/config/crd/*.yaml") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, object := range objectsOf(t, s.generator(t), 300) {
				s.check(t, object)
			}
		})
	}
}
