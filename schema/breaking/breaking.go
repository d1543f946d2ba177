package breaking

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema"
)

// Change is a difference between the old and the new CRD that breaks stored objects or clients.
type Change struct {
	// Kind is the kind of the CRD in the old release.
	Kind runtimeschema.GroupKind
	// Effect is the kind of damage.
	Effect Effect
	// Version is the version with the change. It is empty if the change concerns all versions.
	Version string
	// Path is a field of the objects, such as spec.toppings[].name, or a field of the CRD, such
	// as spec.names.plural or, within a version, subresources.scale. It is empty if the whole CRD is
	// removed. In a path of the objects, [] is any item of a list, and [*] is the value of any key of a map.
	Path string
	// What describes the change, and Why says why it breaks something. Both are for people to read.
	// Kind, Version, Path and What identify the change: another new value at the path has another What, which
	// ends with a hash if the value is too long. Files of crdcheck's --accept repeat What, so its wording
	// changes only as the API does.
	What, Why string
	// Proof is an object that shows the change. It is nil if none was found, or if the change needs
	// no proof, such as the change of a name or a version.
	Proof *Proof
	// Unproven reports whether the change may be harmless, because it needs a proof and none was
	// found. A removed field or a new required field is breaking even without a proof.
	Unproven bool
}

// Effect is the kind of damage that a change does.
type Effect string

const (
	// Refused means that the new CRD refuses an object or an update that the old CRD accepts.
	Refused Effect = "refused"
	// Altered means that an object is stored or read with other data than before.
	Altered Effect = "altered"
	// Clients means that something else that clients rely on is missing or different: the CRD itself, with
	// all its objects, a name, a version, a subresource, a printer column, or the way in which server-side
	// apply merges.
	Clients Effect = "clients"
)

// String returns the change in one line, without the proof.
func (c Change) String() string {
	where := slices.DeleteFunc([]string{c.Kind.String(), c.Version, c.Path}, func(s string) bool { return s == "" })
	s := strings.Join(where, " ") + ": " + c.What + ": " + c.Why
	if c.Unproven {
		s += " (unproven)"
	}
	return s
}

// Proof is an example object that the old CRD accepts, and the result of processing it with the new
// CRD.
type Proof struct {
	// Object is the object as a client sends it, as small as the search could make it.
	Object json.RawMessage
	// Stored is the object that Object replaces, if only an update shows the change, and nil if
	// Object is created. A status in Stored was written to the status subresource, if the old CRD
	// has it.
	Stored json.RawMessage
	// Subresource is status if the update writes the status, even to the object itself in a CRD
	// without the subresource. Otherwise, it is empty.
	Subresource string
	// Errors are the errors of the new CRD that the change causes. Altered lists the values that
	// the two CRDs store differently, such as: spec.size: "large", was "small". Fields that the old
	// CRD lacks are not listed.
	Errors  field.ErrorList
	Altered []string
	// Blocked reports whether the new CRD even refuses an update that changes nothing in the object
	// that the old CRD has stored, because ratcheting (KEP-4008) does not apply to the error.
	Blocked bool
}

// Changes compares the CRDs of two releases, and returns the changes that break stored objects or
// clients, in the order of the old CRDs: for each CRD, first the changes of the CRD as a whole, and then
// those of each old version, sorted by path. CRDs of the same kind are compared. If each release has a
// single CRD, these two are compared even if the kind has changed. Only the Definitions of the releases are
// used.
//
// Schemas are compared field by field. For each change, Changes searches for a proof: an object
// that the old CRD accepts, and that the new CRD refuses at that field or stores differently. The
// search starts from the smallest object that has the field, and from the samples, and edits it
// until the old CRD accepts it and the change shows. A new rule about updates (with oldSelf) is
// proven by two objects of which one may replace the other in the old CRD, but not in the new one.
// A change of a status that is a subresource is proven by a write of the status, because a create
// request ignores it.
//
// Changes that refuse and alter nothing are not reported: a new field that is not required, another
// value in an enum, a higher maximum, a pattern that matches all strings that the old one matches, or
// a length that each value of the old enum has. A new CEL rule is not reported if the old CRD already
// refuses all objects that the rule refuses, as far as Changes can tell: the rule is about a field or
// a value that is also new, or it follows from the old rules, such as a rule with a higher limit.
//
// The server refuses a value in new objects and in updates that change it, but an update may leave
// it unchanged, unless the [Proof] is Blocked. A version that is not served has no clients, so only
// lost and changed data is reported, and only if objects may be stored in the version, because it
// is the storage version or in status.storedVersions of the old CRD.
//
// The search tries a limited number of objects for each change, so the result does not depend on
// the speed of the machine. If the context is done first, Changes returns an error, and the changes of which
// the search was completed. Changes also returns an error if a release has no Definitions, or two for a kind.
func Changes(ctx context.Context, before, after schema.Release, opts ...Option) ([]Change, error) {
	olds, oldErr := byKind(before, "old")
	news, newErr := byKind(after, "new")
	if err := errors.Join(oldErr, newErr); err != nil {
		return nil, err
	}
	up := &upgrade{ctx: ctx, progress: func(Change) {}}
	for _, opt := range opts {
		opt(up)
	}
	for _, was := range before.Definitions {
		if up.ended() {
			break
		}
		is := news[was.GroupKind()]
		if is == nil && len(olds) == 1 && len(news) == 1 {
			is = after.Definitions[0]
		}
		up.compare(was, is)
	}
	if up.ended() {
		return up.changes, fmt.Errorf("breaking: the search for proofs was not completed: %w", context.Cause(ctx))
	}
	return up.changes, nil
}

// byKind returns the definitions of a release.
func byKind(release schema.Release, name string) (map[runtimeschema.GroupKind]*schema.Definition, error) {
	all, err := release.ByKind()
	if err != nil {
		return nil, fmt.Errorf("breaking: the %s release: %w", name, err)
	}
	return all, nil
}

// Option configures [Changes].
type Option func(*upgrade)

// Samples are objects of the kinds, for example from a cluster. They need apiVersion and kind; objects of
// other kinds are ignored. The search tries the samples of a version, and copies of them with another value
// at the changed field, which helps if few objects satisfy the old rules.
func Samples(objects ...map[string]any) Option {
	return func(up *upgrade) { up.samples = append(up.samples, objects...) }
}

// Progress calls f for each CRD, with the Kind alone, and then for each change of a schema before the search
// for its proof, with Kind, Version, Path, What and Why.
func Progress(f func(Change)) Option {
	return func(up *upgrade) { up.progress = f }
}

// upgrade collects what breaks when one definition after another is replaced.
type upgrade struct {
	ctx      context.Context
	samples  []map[string]any
	progress func(Change)
	changes  []Change

	kind     runtimeschema.GroupKind // of the old definition
	old, new *apiextensionsv1.CustomResourceDefinition
	lost     map[string]bool // what the new storage version changes, by path and change
}

// compare adds what breaks when a definition replaces another one. The new one is nil if the old one is removed.
func (up *upgrade) compare(before, after *schema.Definition) {
	up.kind, up.lost = before.GroupKind(), map[string]bool{}
	up.progress(Change{Kind: up.kind})
	if after == nil {
		up.add(Clients, "", "", "the definition is removed", "all its objects are deleted, and clients find nothing")
		return
	}
	up.old, up.new = before.CustomResourceDefinition(), after.CustomResourceDefinition()
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
}

func (up *upgrade) ended() bool { return up.ctx.Err() != nil }

// version is a version of a definition.
type version struct {
	*schema.Version
	name       string
	gvk        runtimeschema.GroupVersionKind
	spec       *apiextensionsv1.CustomResourceDefinitionVersion
	structural *structuralschema.Structural // nil if there is none
	// storage is the storage version, if objects are converted to it without a webhook. It is nil if
	// this is the storage version.
	storage *version
}

func (v *version) hasStatus() bool { return subresources(v).Status != nil }

// versionsOf returns the versions of a definition by their names.
func versionsOf(d *schema.Definition, crd *apiextensionsv1.CustomResourceDefinition) map[string]*version {
	versions := map[string]*version{}
	for i := range crd.Spec.Versions {
		spec := &crd.Spec.Versions[i]
		v := d.Version(spec.Name)
		gvk := d.GroupKind().WithVersion(spec.Name)
		versions[spec.Name] = &version{v, spec.Name, gvk, spec, normal(v.Structural()), nil}
	}
	for _, v := range versions {
		if !v.spec.Storage && crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter {
			v.storage = versions[d.StorageVersion()]
		}
	}
	return versions
}

// bothServed reports whether clients see a version in both definitions.
func bothServed(was, is *version) bool { return was.Served() && is.Served() }

func (up *upgrade) add(effect Effect, version, path, what, why string) {
	up.changes = append(up.changes, Change{Kind: up.kind, Effect: effect, Version: version, Path: path, What: what, Why: why})
}

// mayBeStored reports whether objects may be stored in a version.
func (up *upgrade) mayBeStored(v *version) bool {
	return v.spec.Storage || slices.Contains(up.old.Status.StoredVersions, v.name)
}

// objects compares what objects of a version may be.
func (up *upgrade) objects(was, is *version) {
	if was.structural == nil || is.structural == nil { // objects are made of structural schemas only
		if bothServed(was, is) && is.spec.Schema != nil && !reflect.DeepEqual(was.spec.Schema, is.spec.Schema) {
			up.add(Refused, was.name, ".", "the schema has changed", "the changes are unknown, because a schema is missing or not structural: review them")
			up.changes[len(up.changes)-1].Unproven = true
		}
		return
	}
	c := &comparison{}
	c.compare(was.structural, is.structural, nil)
	c.scale(was, is)
	c.status(was, is)
	c.stored(up, was, is)
	if !bothServed(was, is) {
		c.changes = slices.DeleteFunc(c.changes, func(c *change) bool { return c.shown&byData == 0 || c.merged })
	}
	slices.SortStableFunc(c.changes, func(x, y *change) int { return cmp.Compare(x.Path, y.Path) })
	s := &search{upgrade: up, was: was, is: is, made: map[string]any{}}
	for _, change := range c.changes {
		change.Kind, change.Version = up.kind, was.name
		if !change.merged {
			up.progress(change.Change)
			s.prove(change)
		}
		if change.harmless && change.Proof == nil {
			continue
		}
		change.Effect = change.effect()
		if change.Unproven = change.Proof == nil && !change.merged && !change.certain; change.Unproven && up.ended() {
			continue // the search was not completed
		}
		up.changes = append(up.changes, change.Change)
	}
}
