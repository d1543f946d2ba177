package crdfuzz

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/differential"
)

// Made is what is made of one number.
type Made struct {
	// Name says of what it is made.
	Name string
	// Raw is a definition as it was drawn. Most such are refused.
	Raw *apiextensionsv1.CustomResourceDefinition
	// Suite has that definition without its faults, and requests; nil if they could
	// not be removed.
	Suite *differential.Suite
}

// Suite makes suite number i of a seed, with so many cases.
func Suite(seed uint64, i, cases int) (*Made, error) {
	made := &Made{Name: fmt.Sprintf("seed %d, definition %d", seed, i)}
	m := newMaker(choices.New(seed, "definition", i+1))
	definition := m.definition(fmt.Sprintf("s%d.wild.example.com", i))
	var err error
	if made.Raw, err = typed(definition); err != nil {
		return nil, err
	}
	s := &differential.Suite{Made: made.Name}
	if definition, s.CRD, err = makeValid(definition); err != nil || definition == nil {
		return made, err
	}
	before := definition
	if m.Intn(2) == 0 {
		if before, s.Before, err = makeValid(m.earlier(definition)); err != nil {
			return nil, err
		}
		if before == nil {
			before = definition
		}
	}
	now, err := m.versions(definition, s.CRD)
	if err != nil || len(now) == 0 {
		return made, err
	}
	then := now
	if s.Before != nil {
		if then, err = m.versions(before, s.Before); err != nil {
			return nil, err
		}
	}
	for k := range cases {
		// Each has a stream of its own, so that it can be made without the others.
		m := newMaker(choices.New(seed, fmt.Sprintf("case %d of", k), i+1))
		s.Cases = append(s.Cases, m.request(now, then))
	}
	made.Suite = s
	return made, nil
}

// version is a version that is served.
type version struct {
	name      string
	root      object
	status    bool
	generator *generate.Generator // nil if it could not be made
}

func (m maker) versions(definition object, crd *apiextensionsv1.CustomResourceDefinition) (all []version, err error) {
	d, err := schema.New(crd)
	if err != nil {
		return nil, err
	}
	for i, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		version := version{
			name:   v.Name,
			root:   rootOf(definition["spec"].(object)["versions"].([]any)[i].(object)),
			status: v.Subresources != nil && v.Subresources.Status != nil,
		}
		tries := 200
		version.generator, _ = generate.New(d.GroupKind().WithVersion(v.Name), d.Version(v.Name).Structural(), func(o map[string]any) field.ErrorList {
			if tries == 0 {
				return nil // it will be one that is refused
			}
			tries--
			o = clone(o)
			d.Version(v.Name).Default(o)
			return d.Version(v.Name).Validate(context.Background(), o)
		})
		all = append(all, version)
	}
	return all, nil
}

// request makes one case.
func (m maker) request(now, then []version) differential.Case {
	v := one(m, now...)
	c := differential.Case{Version: v.name, Sends: []differential.Send{{
		FieldValidation: one(m, "", metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore),
	}}}
	switch n := m.Intn(10); {
	case n < 4:
		o, metadata := m.object(v), object{"name": theName}
		if m.rarely(4) {
			m.odd(metadata)
		}
		c.Raw, c.ReadBack = m.body(o, v, metadata), m.rarely(3)
		return c
	case n == 9:
		c.Read, c.Sends = true, nil
	case n >= 7 && v.status:
		c.Status = true
	}
	before := one(m, then...)
	old := m.object(before)
	delete(old, "metadata")
	delete(old, "apiVersion")
	delete(old, "kind")
	c.OldVersion, c.Old = before.name, plainObject(old)
	if c.Read {
		return c
	}
	var o object
	switch {
	case m.rarely(6):
		o = m.object(v)
	case m.rarely(10):
		o = clone(old)
	default:
		o = m.mutate(old)
	}
	metadata := object{"name": theName, "resourceVersion": theResourceVersion}
	if m.rarely(6) {
		m.odd(metadata)
	}
	c.Raw, c.ReadBack = m.body(o, v, metadata), m.rarely(4)
	return c
}

// object makes an object: one that is valid, one that is not quite, or anything.
func (m maker) object(v version) object {
	n := m.Intn(10)
	if v.generator != nil && n < 6 {
		var o object
		var err error
		if n < 4 {
			o, err = v.generator.Object(m.draws)
		} else if n < 5 && m.rarely(4) { // it takes its time
			o, err = v.generator.Outside(m.draws)
		} else if o, err = v.generator.Object(m.draws); err == nil {
			o = m.mutate(o)
		}
		if err == nil {
			return o
		}
	}
	o, _ := m.value(v.root, 1<<30).(object)
	if m.rarely(3) {
		o, _ = m.value(v.root, 25).(object)
	}
	if o == nil {
		o = object{}
	}
	return o
}

// plainObject is an object without the ways to write JSON that only a request has.
func plainObject(o object) object {
	out, ok := plain(o).(object)
	if !ok {
		return object{}
	}
	return out
}

// body writes an object as it is sent.
func (m maker) body(o object, v version, metadata object) string {
	o = clone(o)
	o["apiVersion"], o["kind"], o["metadata"] = theGroup+"/"+v.name, "Wild", metadata
	if m.rarely(25) {
		name := m.word("apiVersion kind metadata")
		o[name] = one[any](m, nil, "", "v1", "Other", theGroup+"/v9", theGroup, int64(1), []any{}, object{}, "a/b/c")
		if m.rarely(3) {
			delete(o, name)
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return theName // a number that Go does not take for one
	}
	if m.rarely(15) {
		if as, err := yaml.JSONToYAML(text); err == nil {
			text = as
		}
	}
	if m.rarely(80) {
		text = text[:m.Intn(len(text))]
	}
	if m.rarely(60) {
		text = []byte(strings.Replace(string(text), "{", `{"spec":`+one(m, "1", "{}", `"a"`)+",", 1))
	}
	return string(text)
}
