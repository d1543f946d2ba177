package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/schema"
)

// origin is how objects came to be stored in a version.
type origin struct {
	release           // the release under which they were created
	written string    // the version of the request
	created string    // the version in which the release stored them
	writers []release // the releases under which they may have been updated since; one without a definition stands for no update
}

// origins returns how objects came to be stored in a version under the releases of [History].
// Objects that a webhook of that time converted are unknown.
func (c *config) origins(kind conversion.Kind, stored string) (all []origin) {
	today := c.definition(kind.GroupKind)
	if today == nil {
		return nil
	}
	webhook := today.CustomResourceDefinition().Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	relabels := func(r release) bool {
		return webhook && r.CustomResourceDefinition().Spec.Conversion.Strategy == apiextensionsv1.NoneConverter
	}
	past := slices.DeleteFunc(slices.Clone(c.history), func(r release) bool { return r.GroupKind() != kind.GroupKind })
	for i, r := range past {
		created := r.StorageVersion()
		var writers []release
		if created == stored {
			writers = []release{{}}
		}
		for _, later := range append(slices.Clone(past[i+1:]), release{Definition: today, name: "today's definition"}) {
			reads := slices.Contains(later.Versions(), created)
			if reads && later.StorageVersion() == stored && (created == stored || relabels(later)) {
				writers = append(writers, later)
			}
		}
		for _, v := range r.CustomResourceDefinition().Spec.Versions {
			if len(writers) > 0 && v.Served && (v.Name == created || relabels(r)) {
				all = append(all, origin{r, v.Name, created, writers})
			}
		}
	}
	return all
}

// earlier makes an object as an earlier release has stored it in the first version of the path, and says
// how.
func earlier(_ context.Context, s *subject, src *choices.Source) (m sample, err error) {
	stored := s.path[0]
	pick := func(n int) int { return int(src.Uint64() >> 33 % uint64(n)) }
	o := s.origins[pick(len(s.origins))]
	later, keep := o.writers[pick(len(o.writers))], src.Uint64()>>33 // as in edit
	object, err := s.made(src, o.release, o.written)
	if err != nil {
		return m, err
	}
	m.from = fmt.Sprintf("%s could have stored it", o.name)
	if o.written != o.created {
		s.relabel(object, o.release, o.created)
		m.from += fmt.Sprintf(", written as %s with the strategy None", o.written)
	}
	if later.Definition != nil {
		later.Version(o.created).Prune(object)
		later.Version(o.created).Default(object)
		m.from += fmt.Sprintf(", and %s could have let it pass in an update", later.name)
		if o.created != stored {
			s.relabel(object, later, stored)
			m.from += ", as " + stored
		}
		if keep > 0 {
			edits, err := s.made(src, later, stored)
			if err != nil {
				return m, err
			}
			if edited := mix(object, edits, keep); len(later.Version(stored).ValidateUpdate(context.Background(), edited, object)) == 0 {
				object = edited
			}
		}
	}
	m.json, err = kubejson.Marshal(object)
	return m, err
}

// made makes an object that a release accepts, with its defaults.
func (s *subject) made(src *choices.Source, r release, version string) (m map[string]any, err error) {
	g, err := s.cfg.schemaGenerator(s.registry, s.kind.WithVersion(version), r.Definition, r.Definition == s.definition)
	if err == nil {
		src.Part(func() { m, err = g.by.Object(src) })
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	r.Version(version).Default(m)
	if bit := src.Uint64() >> 33; bit%2 > 0 {
		twice := runtime.DeepCopyJSON(m)
		if repeat(twice, bit>>1); len(r.Version(version).Validate(context.Background(), twice)) == 0 {
			m = twice
		}
	}
	return m, nil
}

// repeat appends the first element to some lists: the keys of a list may have been declared since.
func repeat(v any, bit uint64) {
	members, _ := v.(map[string]any)
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if list, ok := members[name].([]any); ok && len(list) > 0 && name != "metadata" {
			repeat(list[0], bit>>1)
			if bit>>(i%31)&1 > 0 {
				members[name] = append(list, runtime.DeepCopyJSONValue(list[0]))
			}
		} else if name != "metadata" {
			repeat(members[name], bit)
		}
	}
}

// relabel does what the strategy None does.
func (s *subject) relabel(m map[string]any, r release, version string) {
	m["apiVersion"] = s.kind.WithVersion(version).GroupVersion().String()
	r.Version(version).Prune(m)
}

// withUnknown returns the schema of a version in an earlier release, with the fields that it
// preserved without knowing them, and that are known today, which may have any value.
func withUnknown(past, today *schema.Definition, version string) *structuralschema.Structural {
	all := past.CustomResourceDefinition().Spec.PreserveUnknownFields
	s := &structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"}}
	if known := past.Version(version).Structural(); known != nil {
		s = known.DeepCopy()
	}
	if slices.Contains(today.Versions(), version) && today.Version(version).Structural() != nil {
		addUnknown(s, today.Version(version).Structural(), all)
	}
	s.XPreserveUnknownFields = s.XPreserveUnknownFields || all
	return s
}

func addUnknown(s, today *structuralschema.Structural, all bool) {
	for name, now := range today.Properties {
		p, known := s.Properties[name]
		if !known {
			if !all && !s.XPreserveUnknownFields {
				continue
			}
			p.Nullable, p.XPreserveUnknownFields = true, true
		}
		addUnknown(&p, &now, all)
		if s.Properties == nil {
			s.Properties = map[string]structuralschema.Structural{}
		}
		s.Properties[name] = p
	}
	if s.Items != nil && today.Items != nil {
		addUnknown(s.Items, today.Items, all)
	}
	if a, b := s.AdditionalProperties, today.AdditionalProperties; a != nil && a.Structural != nil && b != nil && b.Structural != nil {
		addUnknown(a.Structural, b.Structural, all)
	}
}

// mix returns a copy of an object with some values of another one. A value is taken if its bit
// is set. Metadata stays.
func mix(object, other map[string]any, bit uint64) map[string]any {
	out := maps.Clone(object)
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			continue
		}
		bit = bits.RotateLeft64(bit, -1)
		was, isObject := out[name].(map[string]any)
		if now, ok := other[name].(map[string]any); ok && isObject {
			out[name] = mix(was, now, bit)
		} else if bit&1 > 0 {
			out[name] = other[name]
		}
	}
	return out
}

// refusal is a declared failure of [Total].
type refusal struct {
	reason  string
	refused func(error) bool
}

// Refuse declares that the conversion of some stored objects fails on purpose. refused(err) reports
// whether err is expected. The error of the registry wraps the error of your conversion function. A
// panic is never accepted. The output of the test includes the reason, which must not be empty.
//
// Refuse only affects the law [Total], and requires [History]. Other laws do not generate
// objects of earlier releases.
func Refuse(reason string, refused func(err error) bool) Option {
	return func(c *config) {
		if reason == "" || refused == nil {
			c.errorf("roundtrip.Refuse: it needs a reason and a function, and has %q and %v", reason, refused != nil)
			return
		}
		c.refusals = append(c.refusals, refusal{reason, refused})
	}
}

// total does with a stored object what the API server does: reads it, converts it, and converts it
// back when a client sends it.
func total(ctx context.Context, s *subject, stored []byte) *failure {
	a, b := s.path[0], s.path[1]
	object, err := s.pruned(a, stored)
	if err == nil {
		object, err = withDefaults(s.definition.Version(a), object)
	}
	if err != nil {
		return &failure{err: err}
	}
	var back []byte
	convert := func(ctx context.Context) {
		var there []byte
		if there, err = s.along(ctx, object, b); err == nil {
			there, err = s.pruned(b, there)
		}
		if err == nil {
			if back, err = s.along(ctx, there, a); err != nil {
				err = fmt.Errorf("an update fails: %w", err)
			}
		}
	}
	if convert(ctx); err != nil {
		refused := slices.ContainsFunc(s.cfg.refusals, func(r refusal) bool { return r.refused(err) })
		if refused && stackOf(ctx, convert) == "" {
			return nil
		}
		return &failure{err: err}
	}
	if f := s.same(a, object, back); f != nil {
		return f
	}
	written, err := rewrite(s.registry.Scheme(), s.kind.WithVersion(a), object)
	if err != nil {
		return nil // the version has no Go type
	}
	return s.dropped(object, written, back)
}

// pruned returns an object as clients get it in a version.
func (s *subject) pruned(version string, object []byte) ([]byte, error) {
	m, err := decode(object)
	if err != nil {
		return nil, err
	}
	s.definition.Version(version).Prune(m)
	return kubejson.Marshal(m)
}

// dropped returns the fields of an object that are in none of the others, because the Go type of the first version lacks
// them. A type may leave out zero values.
func (s *subject) dropped(object []byte, others ...[]byte) *failure {
	had, kept := leavesOf(object), map[string]string{}
	for _, other := range others {
		maps.Copy(kept, leavesOf(other))
	}
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(had)) {
		zero := slices.Contains([]string{"null", `""`, "0", "false", "[]", "{}"}, had[path])
		if _, ok := kept[path]; !ok && !zero {
			errs = append(errs, fmt.Errorf("%s: the schema of %s keeps it, and its Go type drops it", path, s.path[0]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &failure{err: err}
	}
	return nil
}

// leavesOf returns the leaves of a converted object, which is valid JSON.
func leavesOf(object []byte) map[string]string {
	leaves := map[string]string{}
	if v, err := decodeExactly(object); err == nil {
		addLeaves(leaves, "", v)
	}
	return leaves
}
