package roundtrip

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// checkUnaffected returns what an edit in A takes away from B although the edit does not affect it:
// where the object converts to the same in B before and after the edit without annotations, the two
// conversions with annotations must be the same too.
//
// Objects that break other laws pass: those of which the object before the edit does not come back
// to B, or the edited object does not come back to A without its annotations.
func (s *subject) checkUnaffected(ctx context.Context, p *past, edited []byte) *failure {
	a, b := s.path[0], s.path[1]
	added := func(name string) bool {
		return !bytes.Equal(rawjson.At(p.original, "metadata", name), rawjson.At(p.before, "metadata", name))
	}
	if !added("labels") && !added("annotations") {
		return nil // B has nothing that A lacks
	}
	var err error
	convert := func(object []byte, version string) (out []byte) {
		if err == nil {
			out, err = s.along(ctx, object, version)
		}
		return out
	}
	plain := forget(edited)
	objects := [4][]byte{convert(forget(p.before), b), convert(plain, b), convert(p.before, b), convert(edited, b)}
	back := convert(objects[1], a)
	if err != nil || s.same(a, plain, back) != nil {
		return nil
	}
	objects[2] = withMetadataOf(p.original, objects[2])
	if s.same(b, p.original, objects[2]) != nil {
		return nil
	}
	f := s.lost(objects)
	if f == nil || len(s.normalizers(b)) == 0 {
		return f
	}
	for i := range objects {
		if objects[i], err = s.normalized(b, objects[i]); err != nil {
			return nil
		}
	}
	return s.lost(objects)
}

// lost compares the last two of four objects where the first two are equal.
func (s *subject) lost(objects [4][]byte) *failure {
	var v [4]any
	for i, text := range objects {
		var err error
		if v[i], err = decodeExactly(text); err != nil {
			return &failure{err: err}
		}
		if m, ok := v[i].(map[string]any); ok {
			delete(m, "metadata")
		}
	}
	var l losses
	l.compare("", s.structural(s.path[1]), v[0], v[1], v[2], v[3])
	if len(l.want) == 0 {
		return nil
	}
	return &failure{
		where: fmt.Sprintf("the difference in %s, in what the edit does not affect (-before the edit +after)", s.path[1]),
		diff:  func() string { return diffLeaves(l.want, l.got) },
	}
}

// losses are the leaves of what differs, by their paths.
type losses struct{ want, got map[string]string }

func (l *losses) add(path string, want, got any) {
	if l.want == nil {
		l.want, l.got = map[string]string{}, map[string]string{}
	}
	addLeaves(l.want, path, want)
	if got != nil {
		addLeaves(l.got, path, got)
	}
}

// compare compares two values where two others, plain and plainEdited, are equal, which lack the
// fields that only B has.
func (l *losses) compare(path string, s *structuralschema.Structural, plain, plainEdited, before, after any) {
	switch plain := plain.(type) {
	case map[string]any:
		edited, _ := plainEdited.(map[string]any)
		was, _ := before.(map[string]any)
		is, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(plain)) {
			had, ok := was[name]
			at := join(path, name)
			switch {
			case !ok || parts(plain[name]) <= 0:
			case textOf(plain[name]) != textOf(edited[name]): // in the order of lists too
				l.compare(at, property(s, name), plain[name], edited[name], had, is[name])
			case canonical(had) != canonical(is[name]):
				l.add(at, had, is[name])
			}
		}
	case []any:
		edited, _ := plainEdited.([]any)
		was, _ := before.([]any)
		is, _ := after.([]any)
		l.compareLists(path, s, plain, edited, was, is)
	}
}

func (l *losses) compareLists(path string, s *structuralschema.Structural, plain, edited, before, after []any) {
	var keys []string
	var items *structuralschema.Structural
	if s != nil {
		keys, items = s.XListMapKeys, s.Items
	}
	for _, element := range plain {
		same := func(other any) bool { return canonical(element) == canonical(other) }
		if len(keys) > 0 {
			same = func(other any) bool { return keyOf(element, keys) == keyOf(other, keys) }
		} else if !distinct(element, plain) || !distinct(element, edited) {
			continue
		}
		holds := func(other any) bool { return covers(other, element) && (len(keys) == 0 || same(other)) }
		_, once := only(plain, same)
		j, stays := only(edited, same)
		k, found := only(before, holds)
		if !once || !stays || !found {
			continue
		}
		had := before[k]
		at := path + "[" + strconv.Itoa(k) + "]"
		if textOf(edited[j]) != textOf(element) {
			if i, ok := only(after, same); ok {
				l.compare(at, items, element, edited[j], had, after[i])
			}
			continue
		}
		if !slices.ContainsFunc(after, func(is any) bool { return canonical(is) == canonical(had) }) {
			var is any
			if i := slices.IndexFunc(after, holds); i >= 0 {
				is = after[i]
			}
			l.add(at, had, is)
		}
	}
}

// only returns the index of the only element that is wanted.
func only(list []any, wanted func(any) bool) (i int, ok bool) {
	i = slices.IndexFunc(list, wanted)
	return i, i >= 0 && !slices.ContainsFunc(list[i+1:], wanted)
}

// distinct reports whether the texts of an element tell it apart from each other element of a list.
func distinct(element any, list []any) bool {
	m, _ := element.(map[string]any)
	some := false
	for name, v := range m {
		text, ok := v.(string)
		if !ok {
			continue
		}
		some = some || text != ""
		for _, other := range list {
			if o, _ := other.(map[string]any); o[name] == text && canonical(other) != canonical(element) {
				return false
			}
		}
	}
	return some
}

// covers reports whether a value has all that another one has.
func covers(v, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		m, ok := v.(map[string]any)
		for name := range part {
			if member, has := m[name]; !has || !covers(member, part[name]) {
				return false
			}
		}
		return ok
	case []any:
		list, ok := v.([]any)
		if !ok || len(list) != len(part) {
			return false
		}
		for i := range part {
			if !covers(list[i], part[i]) {
				return false
			}
		}
		return true
	}
	return v == part
}

// keyOf returns the keys of an element as a text.
func keyOf(element any, keys []string) string {
	m, _ := element.(map[string]any)
	var values []any
	for _, key := range keys {
		values = append(values, m[key])
	}
	return textOf(values)
}

// canonical returns a text that two values share if they differ only in the order of lists.
func canonical(v any) string {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]json.RawMessage{}
		for name := range v {
			m[name] = json.RawMessage(canonical(v[name]))
		}
		return textOf(m)
	case []any:
		list := make([]json.RawMessage, len(v))
		for i := range v {
			list[i] = json.RawMessage(canonical(v[i]))
		}
		slices.SortFunc(list, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
		return textOf(list)
	}
	return textOf(v)
}

// structural returns the schema of a version, or nil if the kind has no definition.
func (s *subject) structural(version string) *structuralschema.Structural {
	if s.definition == nil {
		return nil
	}
	return s.definition.Version(version).Structural()
}

// property returns the schema of a member, or nil if the schema does not have the member.
func property(s *structuralschema.Structural, name string) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	if p, ok := s.Properties[name]; ok {
		return &p
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}
