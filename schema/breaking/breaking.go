package breaking

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema"
)

// Change is a difference between an old definition and a new one that breaks something.
type Change struct {
	// Effect is what breaks.
	Effect Effect
	// Version is the version that it concerns. It is empty if it concerns all.
	Version string
	// Path is a field of the objects, such as spec.toppings[].name, or a field of the
	// definition, such as spec.names.plural, or subresources.scale in a version. In a path
	// of the objects, [] is any item of a list and [*] is the value of any key of a map.
	Path string
	// The change, and Why it breaks something, for a person to read.
	What, Why string
	// Proof is an object that shows it. It is nil if none was found, or if it takes none: for
	// a name or a version, for example. A removed field, and a new one that is required, break
	// something even if no object was found.
	Proof *Proof
	// Unproven reports that an object should show it, but that none was found. There may be
	// none: whether a pattern or a rule allows less than another one cannot be decided in
	// general.
	Unproven bool
}

// Effect is what a change breaks.
type Effect string

const (
	// Refused: an object, or an update, that was accepted is refused.
	Refused Effect = "refused"
	// Altered: an object is stored, or read, with other data than before.
	Altered Effect = "altered"
	// Clients: something else is gone or changed that clients rely on, such as a name, a
	// version, a subresource, a printer column, or how server-side apply merges.
	Clients Effect = "clients"
)

// String is the change in one line, without the proof.
func (c Change) String() string {
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
	// Object is the object as a client sends it. It is about as small as what it shows
	// allows: what shows that strings may no longer be long is a long string.
	Object json.RawMessage
	// Stored is the object that Object replaces, if it takes an update to show the change.
	// It is nil if Object is created.
	Stored json.RawMessage
	// Errors are those that the new definition has for the change. Altered lists what is
	// stored otherwise than with the old one, such as: spec.size: "large", was "small".
	// Fields that the old definition does not have are left out.
	Errors  field.ErrorList
	Altered []string
}

// Changes compares two definitions of a kind, and returns the changes that break
// stored objects or clients. First come those of the definition as a whole. Then come those
// of each version that both have, sorted by path.
//
// The schemas are compared field by field, and each change is then proven by an object: the
// old definition accepts it, and the new one refuses it at that field, or stores it
// otherwise. A small one that should show the change is tried first, and then random ones. A new
// rule about updates (with oldSelf) is proven by two objects: in the old definition one may
// replace the other, and in the new one it may not.
//
// A change that only allows more does not break anything: a field that is new and not required,
// one more value in an enum, a higher maximum.
//
// An object is judged as when it is created. The server tolerates more in objects that are
// stored already: an old error in a part that does not change
// (see [schema.Version.Update]). But clients that create objects meet the change at once. A
// version that is not served has no such clients. If objects may be stored in it (it is
// the storage version, or in status.storedVersions of the old definition), then data that
// is lost or changed is reported, and nothing else.
//
// A new CEL rule that refuses nothing which the old definition accepts is left out where that can
// be told: it is about a field or a value that is new too, or an old rule says the same.
//
// Samples are objects of the kind, such as those in a cluster. The search tries those of a version,
// and copies of them with another value where the change is, before it makes others. This helps
// where few objects satisfy the old rules.
//
// For each version, the search stops after a minute, or when the context ends, and the changes that
// are left are unproven. Apart from that, the result is the same each time.
func Changes(ctx context.Context, before, after *schema.Definition, samples ...map[string]any) []Change {
	up := &upgrade{ctx: ctx, old: before.CustomResourceDefinition(), new: after.CustomResourceDefinition(), samples: samples}
	up.names()
	were, are := versionsOf(before, up.old), versionsOf(after, up.new)
	for _, name := range before.Versions() {
		was, is := were[name], are[name]
		up.presence(was, is)
		if is == nil {
			continue
		}
		if bothServed(was, is) {
			up.serving(was, is)
		}
		if bothServed(was, is) || up.mayBeStored(was) {
			up.objects(was, is)
		}
	}
	return up.changes
}

// upgrade is an old definition that a new one replaces, and what was found to break.
type upgrade struct {
	ctx      context.Context
	old, new *apiextensionsv1.CustomResourceDefinition
	samples  []map[string]any
	changes  []Change
}

// version is a version of a definition.
type version struct {
	*schema.Version
	name       string
	gvk        runtimeschema.GroupVersionKind
	spec       *apiextensionsv1.CustomResourceDefinitionVersion
	structural *structuralschema.Structural // nil if there is none
}

// versionsOf returns the versions of a definition by their names.
func versionsOf(d *schema.Definition, crd *apiextensionsv1.CustomResourceDefinition) map[string]*version {
	versions := map[string]*version{}
	for i := range crd.Spec.Versions {
		spec := &crd.Spec.Versions[i]
		v := d.Version(spec.Name)
		versions[spec.Name] = &version{v, spec.Name, d.GroupKind().WithVersion(spec.Name), spec, v.Structural()}
	}
	return versions
}

// bothServed reports whether clients see a version in both definitions.
func bothServed(was, is *version) bool { return was.Served() && is.Served() }

func (up *upgrade) add(effect Effect, version, path, what, why string) {
	up.changes = append(up.changes, Change{Effect: effect, Version: version, Path: path, What: what, Why: why})
}

// mayBeStored reports whether objects may be stored in a version.
func (up *upgrade) mayBeStored(v *version) bool {
	return v.spec.Storage || slices.Contains(up.old.Status.StoredVersions, v.name)
}

// objects compares what objects of a version may be.
func (up *upgrade) objects(was, is *version) {
	if up.old.Spec.PreserveUnknownFields || was.structural == nil || is.structural == nil {
		return // objects are made of structural schemas only
	}
	c := &comparison{}
	c.compare(was.structural, is.structural, nil)
	c.scale(was, is)
	if !bothServed(was, is) {
		c.changes = slices.DeleteFunc(c.changes, func(c *change) bool { return c.shown&byData == 0 || c.merged })
	}
	slices.SortStableFunc(c.changes, func(x, y *change) int { return cmp.Compare(x.Path, y.Path) })
	s := newSearch(up, was, is, c.changes)
	s.proveAll()
	for _, change := range s.changes {
		change.Version = was.name
		change.Effect = change.effect()
		change.Unproven = change.Proof == nil && !change.merged && !change.certain
		up.changes = append(up.changes, change.Change)
	}
}
