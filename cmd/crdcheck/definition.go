package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/schema"
)

// definitions are those that a command was given.
type definitions struct {
	list   []*schema.Definition
	byKind map[runtimeschema.GroupKind]*schema.Definition
	of     map[*schema.Definition]object    // where they are
	faulty map[runtimeschema.GroupKind]bool // of these, nothing can be said
	// incomplete says that there may be others, which could not be read.
	incomplete bool
}

// groups returns the groups of the kinds.
func (all definitions) groups() map[string]bool {
	groups := map[string]bool{}
	for kind := range all.byKind {
		groups[kind.Group] = true
	}
	for kind := range all.faulty {
		groups[kind.Group] = true
	}
	delete(groups, "") // of a definition that does not even have one
	return groups
}

// version returns a version that is served, or nil.
func (all definitions) version(gvk runtimeschema.GroupVersionKind) *schema.Version {
	d := all.byKind[gvk.GroupKind()]
	if d == nil {
		return nil
	}
	if v := d.Version(gvk.Version); v.Served() {
		return v
	}
	return nil
}

// parse compiles the definitions of files, of which there must be one at least. It says which are
// faulty, and goes on.
func (c *command) parse(ctx context.Context, paths []string) definitions {
	all := definitions{
		byKind: map[runtimeschema.GroupKind]*schema.Definition{},
		of:     map[*schema.Definition]object{},
		faulty: map[runtimeschema.GroupKind]bool{},
	}
	var found []object
	before := len(c.failures)
	for _, f := range c.read(ctx, paths) {
		documents := c.findDefinitions(f)
		if len(documents) == 0 && f.named {
			c.fail(fmt.Errorf("%s: there is no CustomResourceDefinition", f.name))
		}
		for _, d := range documents {
			found = append(found, d.objects...)
		}
	}
	if len(found) == 0 && len(c.failures) == before {
		c.fail(fmt.Errorf("%s: there is no CustomResourceDefinition", strings.Join(paths, ", ")))
	}
	all.incomplete = len(c.failures) > before
	first := map[runtimeschema.GroupKind]place{}
	c.each(ctx, "compile", len(found), func(i int) string { return found[i].name }, func(i int) error {
		o := found[i]
		d, err := compile(o)
		if err != nil {
			all.faulty[o.defined().kind()] = true
			return fmt.Errorf("%s: %w\nRun crdcheck lint for the line of each fault, and advice", o.place, err)
		}
		all.of[d] = o
		kind := d.GroupKind()
		if other, twice := first[kind]; !twice {
			first[kind] = o.place
			all.list = append(all.list, d)
			all.byKind[kind] = d
		} else if !same(d, all.byKind[kind]) {
			all.faulty[kind] = true
			return fmt.Errorf("%s: %s is defined otherwise in %s", o.place, kind, other)
		}
		return nil
	})
	return all
}

// compile compiles a definition.
func compile(o object) (*schema.Definition, error) {
	if len(o.duplicates) > 0 {
		return nil, errors.New(strings.Join(o.duplicates, "\n"))
	}
	d, err := schema.Parse(o.text)
	if err = o.inFile(err); err != nil && len(err.Error()) > longest { // the server quotes what is wrong
		problems, _ := schema.Check(o.text)
		var all []string
		for _, p := range problems {
			all = append(all, p.Path+": "+p.Message)
		}
		err = fmt.Errorf("%s is invalid: [%s]", o.name, strings.Join(all, ", "))
	}
	return d, err
}

// inFile returns an error of package schema without the place in the text, which would mislead: what it is in
// the file is known here.
func (o object) inFile(err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && len(joined.Unwrap()) == 1 {
		if cause := errors.Unwrap(joined.Unwrap()[0]); cause != nil {
			return errors.New(shiftLines(cause.Error(), o.before))
		}
	}
	return err
}

// check returns the problems of a definition, where they are in the file.
func (o object) check() ([]schema.Problem, error) {
	if len(o.duplicates) > 0 {
		return nil, errors.New(strings.Join(o.duplicates, "\n"))
	}
	problems, err := schema.Check(o.text)
	for i := range problems {
		p := &problems[i]
		switch {
		case o.node == nil:
			p.Line += o.Line - 1
		case o.Item == "":
			p.Line += o.before
		default: // the text is JSON
			p.Line, p.Column = o.positionOf(p.Path)
		}
	}
	return problems, o.inFile(err)
}

// same reports whether two definitions differ in nothing that matters to objects.
func same(a, b *schema.Definition) bool {
	return apiequality.Semantic.DeepEqual(a.CustomResourceDefinition().Spec, b.CustomResourceDefinition().Spec)
}

// findDefinitions returns the documents of a file that have definitions, without their other
// objects, and those that cannot be read, of which it says so: in a directory, only those
// that mention a definition, as templates may.
func (c *command) findDefinitions(f file) (found []document) {
	for d := range f.documents() {
		c.progress.show("read %s:%d", f.name, d.line)
		objects := d.objects
		d.objects = nil
		for _, o := range objects {
			switch {
			case !o.isDefinition():
			case !f.named && o.defined().isPatch():
				c.warn("%s: %s looks like a patch: passed over", o.place, o)
			default:
				d.objects = append(d.objects, o)
			}
		}
		unreadable := d.err != nil && (f.named || bytes.Contains(d.unread, []byte("CustomResourceDefinition")))
		if unreadable {
			c.fail(d.err)
		}
		if len(d.objects) > 0 || unreadable {
			found = append(found, d)
		}
	}
	return found
}

// isDefinition reports whether it is a CustomResourceDefinition.
func (o object) isDefinition() bool {
	return strings.HasPrefix(o.APIVersion, "apiextensions.k8s.io/") && strings.HasPrefix(o.Kind, "CustomResourceDefinition")
}

// defined is what a definition says of itself, be it faulty or not.
type defined struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions json.RawMessage `json:"versions"`
		Version  string          `json:"version"` // of v1beta1
	} `json:"spec"`
}

func (o object) defined() (d defined) {
	_ = kjson.UnmarshalCaseSensitivePreserveInts(o.asJSON, &d) // what cannot be read stays empty
	return d
}

func (d defined) kind() runtimeschema.GroupKind {
	return runtimeschema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

// isPatch reports whether it is part of a definition, as kustomize merges it into another.
func (d defined) isPatch() bool {
	return d.Spec.Group == "" && d.Spec.Versions == nil && d.Spec.Version == ""
}
