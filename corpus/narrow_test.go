package corpus_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/expect"
)

// narrowed is a further run of a law, with fewer objects. A law reports one failure on a path, and
// another one if no object has the first.
type narrowed struct {
	kind, path, law string
	without         []string // the fields that no object of the path's first version has
	require         []string // the fields that each one has, with an element if they are lists
	objects         int      // how many objects are made, or [objects] if 0
}

// narrow returns copies of definitions that allow fewer objects.
func (n narrowed) narrow(t *testing.T, files []string) (copies []string) {
	t.Helper()
	gone := func(name string) bool { return slices.Contains(n.without, name) }
	var prune func(s *apiextensionsv1.JSONSchemaProps)
	prune = func(s *apiextensionsv1.JSONSchemaProps) {
		if s == nil {
			return
		}
		maps.DeleteFunc(s.Properties, func(name string, _ apiextensionsv1.JSONSchemaProps) bool { return gone(name) })
		s.Required = slices.DeleteFunc(s.Required, gone)
		for _, name := range n.require {
			property, ok := s.Properties[name]
			if ok && !slices.Contains(s.Required, name) {
				s.Required = append(s.Required, name)
			}
			if ok && property.Type == "array" && property.MinItems == nil {
				property.MinItems = new(int64(1))
				s.Properties[name] = property
			}
		}
		s.XValidations = slices.DeleteFunc(s.XValidations, func(r apiextensionsv1.ValidationRule) bool {
			return slices.ContainsFunc(n.without, func(name string) bool { return strings.Contains(r.Rule, name) })
		})
		for name, property := range s.Properties {
			prune(&property)
			s.Properties[name] = property
		}
		if s.Items != nil {
			prune(s.Items.Schema)
		}
	}
	from, _, _ := strings.Cut(n.path, "→")
	dir := t.TempDir()
	for _, file := range files {
		crd := definition(t, file).CustomResourceDefinition()
		for _, v := range crd.Spec.Versions {
			if v.Name == from {
				prune(v.Schema.OpenAPIV3Schema)
			}
		}
		text, err := yaml.Marshal(crd)
		copied := filepath.Join(dir, strconv.Itoa(len(copies))+filepath.Base(file))
		expect.NoError(t, errors.Join(err, os.WriteFile(copied, text, 0o600)))
		copies = append(copies, copied)
	}
	return copies
}
