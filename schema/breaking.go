package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// BreakingChange is a difference between an old definition and a new one for which
// something that worked does so no longer.
type BreakingChange struct {
	// Version is the version whose objects or clients it concerns, and empty if it
	// concerns all.
	Version string
	// Path is a field of the objects, such as spec.toppings[].name, where [] is any item
	// of a list and [*] any value of a map; or a field of the definition, such as
	// spec.names.plural, or subresources.scale in a version.
	Path string
	// What is what has changed, and Why is what breaks for that.
	What, Why string
	// Proof is an object that shows it. It is nil if none was found, or if the change is
	// not about what objects may be, but, for example, about names.
	Proof *Proof
	// Unproven says that it is about what objects may be, but that no object was found
	// which shows it: there may be none.
	Unproven bool
}

// String is the change in one line, without the proof.
func (c BreakingChange) String() string {
	s := c.Path + ": " + c.What + ": " + c.Why
	if c.Version != "" {
		s = c.Version + ": " + s
	}
	if c.Unproven {
		s += " (unproven)"
	}
	return s
}

// Proof is an object that the old definition accepts, and what the new one makes of it.
type Proof struct {
	// Object is the object as a client would send it.
	Object json.RawMessage
	// Errors are those that creating it with the new definition has for the change, and
	// Altered says what is stored otherwise than with the old one: spec.size: "large", was
	// "small". Fields that the old definition does not have are not looked at.
	Errors  field.ErrorList
	Altered []string
}

// BreakingChanges compares two definitions of a kind, and returns the changes that break
// stored objects or clients: first those of the definition as a whole, then those of each
// version that both have, field by field.
//
// A change of the schema is found by comparing, and proven by an object: a small one, that
// the old definition accepts, and that the new one refuses, at that field, or
// stores otherwise. After that, random objects that the old definition accepts are
// put to the new one, so that nothing remains which is not named. What is wider than before
// is no breaking change: a field that is new and not required, a value more in an enum, a
// higher maximum.
//
// An object is judged as when it is created. The server is milder with objects that it has
// stored already: a fault that was there before is forgiven as long as that part does not
// change (see [Version.Update]). But clients that create objects, or apply them elsewhere,
// find the change at once.
//
// The result is the same each time, but for how far it comes: when the context ends, or
// after some seconds for each version, changes are left unproven, and the random search
// ends.
func BreakingChanges(ctx context.Context, old, new *Definition) []BreakingChange {
	b := &breaking{ctx: ctx, old: old, new: new}
	b.names()
	for _, name := range old.names {
		was, is := old.versions[name], new.versions[name]
		b.version(name, was)
		if is != nil && (was.spec.Served || was.spec.Storage) {
			b.serving(was, is)
			b.objects(was, is)
		}
	}
	return b.changes
}

// breaking collects breaking changes.
type breaking struct {
	ctx      context.Context
	old, new *Definition
	changes  []BreakingChange
}

func (b *breaking) add(version, path, what, why string) *BreakingChange {
	b.changes = append(b.changes, BreakingChange{Version: version, Path: path, What: what, Why: why})
	return &b.changes[len(b.changes)-1]
}

// names compares what is not in a version.
func (b *breaking) names() {
	old, new := &b.old.crd.Spec, &b.new.crd.Spec
	const immutable = "the API server refuses the update, and "
	for _, n := range []struct{ path, old, new, why string }{
		{"spec.group", old.Group, new.Group, "to the API server it is another resource: its objects, URLs and RBAC rules are not those of before"},
		{"spec.names.plural", old.Names.Plural, new.Names.Plural, "to the API server it is another resource: its objects, URLs and RBAC rules are not those of before"},
		{"spec.names.kind", old.Names.Kind, new.Names.Kind, immutable + "stored objects and clients say the old kind"},
		{"spec.scope", string(old.Scope), string(new.Scope), immutable + "objects are stored, and asked for, with a namespace or without one"},
		{"spec.names.listKind", old.Names.ListKind, new.Names.ListKind, "clients that go by the kind of a list do not know the new one"},
		{"spec.names.singular", old.Names.Singular, new.Names.Singular, "kubectl no longer knows " + old.Names.Singular},
	} {
		if n.old != n.new {
			b.add("", n.path, fmt.Sprintf("%s is now %s", n.old, n.new), n.why)
		}
	}
	for _, name := range missing(old.Names.ShortNames, new.Names.ShortNames) {
		b.add("", "spec.names.shortNames", name+" is removed", "kubectl get "+name+" fails")
	}
	for _, name := range missing(old.Names.Categories, new.Names.Categories) {
		b.add("", "spec.names.categories", name+" is removed", "kubectl get "+name+" no longer shows these objects")
	}
	if old.Conversion.Strategy == apiextensionsv1.WebhookConverter && new.Conversion.Strategy != old.Conversion.Strategy && len(b.old.names) > 1 {
		b.add("", "spec.conversion.strategy", "Webhook is now None", "objects get another apiVersion, but are not converted: fields that the other version has elsewhere are pruned")
	}
	if old.PreserveUnknownFields && !new.PreserveUnknownFields {
		c := b.add("", "spec.preserveUnknownFields", "true is now false", "fields that the schema does not have are pruned")
		c.Proof = b.unknownField()
		c.Unproven = c.Proof == nil
	}
}

// unknownField proves that fields are pruned which were not.
func (b *breaking) unknownField() *Proof {
	for _, name := range b.old.names {
		was, is := b.old.versions[name], b.new.versions[name]
		if is == nil {
			continue
		}
		object := map[string]any{"apiVersion": was.apiVersion(), "kind": b.old.crd.Spec.Names.Kind, "metadata": map[string]any{"name": "x"}, "unknown": "field"}
		if proof := b.judge(was, is, object).proof(); proof != nil {
			return proof
		}
	}
	return nil
}

// missing returns what the old list has and the new one has not.
func missing(old, new []string) (gone []string) {
	for _, name := range old {
		if !slices.Contains(new, name) {
			gone = append(gone, name)
		}
	}
	return gone
}

// version compares which versions there are, and what becomes of them.
func (b *breaking) version(name string, was *Version) {
	is := b.new.versions[name]
	path := "spec.versions[" + name + "]"
	stored := was.spec.Storage || slices.Contains(b.old.crd.Status.StoredVersions, name)
	switch {
	case is == nil && (was.spec.Served || stored):
		why := "clients of that version find nothing"
		if stored {
			why = "objects may be stored in it, which nobody can read then; the API server refuses the update as long as it is in status.storedVersions"
			if was.spec.Served {
				why += "; and clients of that version find nothing"
			}
		}
		c := b.add(name, path, "the version is removed", why)
		if object := b.least(was); object != nil {
			c.Proof = &Proof{Object: object, Errors: b.new.Version(name).Validate(b.ctx, nil)}
		}
	case is != nil && was.spec.Served && !is.spec.Served:
		b.add(name, path+".served", "true is now false", "clients of that version find nothing")
	}
}

// serving compares how a version is served, apart from its objects.
func (b *breaking) serving(was, is *Version) {
	if was.hasStatus && !is.hasStatus {
		b.add(was.name, "subresources.status", "the subresource is removed", "clients that write the status find no such URL, and any other write changes the status too")
	}
	if !was.hasStatus && is.hasStatus {
		b.add(was.name, "subresources.status", "the subresource is added", "a write to the object no longer changes its status, and a write to the status nothing else")
	}
	switch old, new := was.scale, is.scale; {
	case old != nil && new == nil:
		b.add(was.name, "subresources.scale", "the subresource is removed", "kubectl scale and autoscalers fail")
	case old != nil && !reflect.DeepEqual(old, new):
		b.add(was.name, "subresources.scale", "other fields are read", "kubectl scale and autoscalers read and write other fields than before")
	}
	columns := map[string]apiextensionsv1.CustomResourceColumnDefinition{}
	for _, column := range is.spec.AdditionalPrinterColumns {
		columns[column.Name] = column
	}
	for _, column := range was.spec.AdditionalPrinterColumns {
		path := "additionalPrinterColumns[" + column.Name + "]"
		switch now, ok := columns[column.Name]; {
		case !ok:
			b.add(was.name, path, "the column is removed", "clients that read it from a table do not find it")
		case now.Type != column.Type || now.JSONPath != column.JSONPath:
			b.add(was.name, path, fmt.Sprintf("%s %s is now %s %s", column.Type, column.JSONPath, now.Type, now.JSONPath), "clients that read it from a table find something else")
		}
	}
	var before, now []string
	for _, f := range was.spec.SelectableFields {
		before = append(before, f.JSONPath)
	}
	for _, f := range is.spec.SelectableFields {
		now = append(now, f.JSONPath)
	}
	for _, path := range missing(before, now) {
		b.add(was.name, "selectableFields["+path+"]", "the field is removed", "requests with a field selector for it are refused")
	}
}

// objects compares what objects of a version may be.
func (b *breaking) objects(was, is *Version) {
	c := &comparison{}
	if b.old.crd.Spec.PreserveUnknownFields || was.structural == nil || is.structural == nil {
		return // no objects are made of a schema that is not structural
	}
	if sameSchema(was, is) && sameSchema(b.old.versions[b.old.storage], b.new.versions[b.new.storage]) {
		return
	}
	c.compare(was.structural, is.structural, nil)
	slices.SortStableFunc(c.changes, func(x, y *change) int { return cmp.Compare(x.Path, y.Path) })
	s := newSearch(b, was, is, c.changes)
	for _, effort := range []struct {
		part  func(s *structuralschema.Structural, steps []string) *structuralschema.Structural
		tries int
	}{{leanest, fewTries}, {lean, proofTries}} {
		for _, change := range c.changes {
			if change.Version = was.name; change.Proof == nil && !change.merged {
				change.Proof = s.prove(change, effort.part(was.structural, change.steps), effort.tries)
				change.Unproven = change.Proof == nil
			}
		}
	}
	s.net()
	for _, change := range s.changes {
		b.changes = append(b.changes, change.BreakingChange)
	}
}

func sameSchema(was, is *Version) bool {
	return was != nil && is != nil && reflect.DeepEqual(was.structural, is.structural)
}

// A path of the objects is made of steps: the names of fields, and these two.
const (
	anyItem  = "[]"
	anyValue = "[*]"
)

// pathOf writes steps as a path.
func pathOf(steps []string) string {
	var s strings.Builder
	for _, step := range steps {
		if s.Len() > 0 && step != anyItem && step != anyValue {
			s.WriteByte('.')
		}
		s.WriteString(step)
	}
	return cmp.Or(s.String(), ".")
}
