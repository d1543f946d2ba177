package crdfuzz

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/schema"
)

// Objects makes objects of a definition that is not random.
type Objects map[string]version

// NewObjects returns what makes objects of the served versions of a definition in YAML.
func NewObjects(definition []byte) (Objects, error) {
	d, err := schema.Parse(definition)
	if err != nil {
		return nil, err
	}
	var raw object
	if err := yaml.Unmarshal(definition, &raw); err != nil {
		return nil, err
	}
	versions, err := maker{}.versions(raw, d.CustomResourceDefinition())
	if err != nil {
		return nil, err
	}
	all := Objects{}
	for _, v := range versions {
		if v.generator == nil {
			return nil, fmt.Errorf("%s: no generator of version %s", d.GroupKind(), v.name)
		}
		all[v.name] = v
	}
	return all, nil
}

// Make returns an object in a version, without apiVersion, kind and metadata: one that is valid, one
// that is not quite, or anything. The seed chooses it.
func (all Objects) Make(seed uint64, version string) map[string]any {
	o := newMaker(choices.New(seed, version, 1)).object(all[version])
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(o, name)
	}
	if _, err := json.Marshal(o); err != nil {
		return object{} // a number that Go does not take for one
	}
	return o
}
