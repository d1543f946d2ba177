package roundtrip

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
)

// normalizer is what makes objects of a type equal that mean the same.
type normalizer struct {
	reason string
	object reflect.Type
	normal func(runtime.Object)
}

// Normalize says that objects of type T are equal if they are after normal, which changes
// an object in place: it sorts a list whose order does not matter, or fills in what
// absence means. The reason is part of the output; it must not be empty.
//
// T is a pointer to a Go type in the registry's scheme, or [unstructured.Unstructured]: that
// one is for each version without a Go type.
func Normalize[T runtime.Object](reason string, normal func(T)) Option {
	return func(c *config) {
		if reason == "" || normal == nil {
			c.fault("roundtrip.Normalize: it needs a reason and a function, and has %q and %v", reason, normal != nil)
			return
		}
		c.normal = append(c.normal, normalizer{reason, reflect.TypeFor[T](), func(obj runtime.Object) { normal(obj.(T)) }})
	}
}

// loss is a field that does not come back.
type loss struct {
	kind   schema.GroupVersionKind
	path   string
	steps  []string
	reason string
}

// Loss declares that a field of a version is lost on the way to other versions, and why:
// where two objects of that version are compared, the field is not. The reason is part of
// the output; it must not be empty.
//
// The path is that of the JSON: spec.toppings[*].quantity. [*] stands for each element of
// a list, and for each member of an object; ["example.com/name"] is a member whose name
// has dots. Fields without a JSON name, as internal versions have them, go by their Go names.
func Loss(kind schema.GroupVersionKind, path, reason string) Option {
	return func(c *config) {
		steps, err := parsePath(path)
		if err != nil {
			c.fault("roundtrip.Loss: %w", err)
		}
		if reason == "" {
			c.fault("roundtrip.Loss: the loss of %s needs a reason", path)
		}
		c.losses = append(c.losses, loss{kind, path, steps, reason})
	}
}

// each stands for all elements in a path.
const each = "[*]"

func parsePath(path string) (steps []string, err error) {
	for rest := path; rest != ""; {
		switch {
		case strings.HasPrefix(rest, each):
			steps, rest = append(steps, each), rest[len(each):]
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return nil, fmt.Errorf("the path %q is none: there is no end of %s", path, rest)
			}
			name, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("the path %q is none: %w", path, err)
			}
			steps, rest = append(steps, name), rest[len(quoted)+2:]
		default:
			if len(steps) > 0 {
				if rest[0] != '.' {
					return nil, fmt.Errorf("the path %q is none: no dot before %s", path, rest)
				}
				rest = rest[1:]
			}
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			if n == 0 {
				return nil, fmt.Errorf("the path %q is none: a name is empty", path)
			}
			steps, rest = append(steps, rest[:n]), rest[n:]
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("the path is empty")
	}
	return steps, nil
}

// remove removes a field from a JSON value.
func remove(v any, steps []string) {
	last := len(steps) == 1
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if steps[0] != each && steps[0] != name {
				continue
			}
			if last {
				delete(v, name)
			} else {
				remove(member, steps[1:])
			}
		}
	case []any:
		for i := range v {
			if steps[0] == each && last {
				v[i] = nil
			} else if steps[0] == each {
				remove(v[i], steps[1:])
			}
		}
	}
}

// checkDeclarations returns what the options say about other kinds than those that are
// converted.
func (c *config) checkDeclarations(s *runtime.Scheme, all []conversion.Kind) error {
	known := func(gvk schema.GroupVersionKind) bool {
		return slices.ContainsFunc(all, func(k conversion.Kind) bool {
			return k.GroupKind == gvk.GroupKind() && (gvk.Version == k.Hub || slices.Contains(k.Versions, gvk.Version))
		})
	}
	var faults []error
	for _, l := range c.losses {
		if !known(l.kind) {
			faults = append(faults, fmt.Errorf("roundtrip.Loss: the test does not convert %s", l.kind))
		}
	}
	for _, n := range c.normal {
		if n.object == reflect.TypeFor[*unstructured.Unstructured]() {
			continue
		}
		kinds, _, err := s.ObjectKinds(reflect.New(n.object.Elem()).Interface().(runtime.Object))
		if err != nil {
			faults = append(faults, fmt.Errorf("roundtrip.Normalize: %w", err))
		} else if !slices.ContainsFunc(kinds, known) {
			faults = append(faults, fmt.Errorf("roundtrip.Normalize: the test does not convert %v", n.object))
		}
	}
	return errors.Join(faults...)
}

// declared returns what the options say about the equality of the objects that the subject
// compares: those of the version that its path ends with.
func (s *subject) declared() (all []string) {
	if s.checkValue != nil && s.law != RoundTrip {
		return nil
	}
	version := s.path[len(s.path)-1]
	for _, l := range s.cfg.losses {
		if l.kind == s.kind.WithVersion(version) {
			all = append(all, fmt.Sprintf("%s of %s is lost: %s", l.path, version, l.reason))
		}
	}
	for _, n := range s.normalizers(version) {
		all = append(all, fmt.Sprintf("%s is compared after roundtrip.Normalize: %s", version, n.reason))
	}
	return all
}

func (s *subject) normalizers(version string) []normalizer {
	want := reflect.TypeFor[*unstructured.Unstructured]()
	if t, typed := s.registry.Scheme().AllKnownTypes()[s.kind.WithVersion(version)]; typed {
		want = reflect.PointerTo(t)
	}
	return slices.DeleteFunc(slices.Clone(s.cfg.normal), func(n normalizer) bool { return n.object != want })
}

// compare returns how two objects of a version differ; nil if they do not, or only in what
// the options allow.
func (s *subject) compare(version string, want, got []byte) *failure {
	asIs := compare(want, got)
	if asIs == nil || len(s.cfg.losses)+len(s.cfg.normal) == 0 {
		return asIs
	}
	var err error
	if want, err = s.normalized(version, want); err == nil {
		got, err = s.normalized(version, got)
	}
	if err != nil {
		return &failure{err: err}
	}
	return compare(want, got)
}

func (s *subject) normalized(version string, object []byte) ([]byte, error) {
	kind := s.kind.WithVersion(version)
	v, err := value(object)
	if err != nil {
		return nil, err
	}
	lost := false
	for _, l := range s.cfg.losses {
		if l.kind == kind {
			remove(v, l.steps)
			lost = true
		}
	}
	if lost {
		if object, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	normalizers := s.normalizers(version)
	if len(normalizers) == 0 {
		return object, nil
	}
	obj := runtime.Object(&unstructured.Unstructured{})
	if s.registry.Scheme().Recognizes(kind) {
		if obj, err = s.registry.Scheme().New(kind); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(object, obj); err != nil {
		return nil, err
	}
	for _, n := range normalizers {
		n.normal(obj)
	}
	return json.Marshal(obj)
}

// same returns how an object that has come back to the version it started from differs
// from what it was. A Go type may write more than it has read: a struct without omitzero is
// always there. That is not the fault of the conversion.
func (s *subject) same(object, got []byte) *failure {
	version := s.path[0]
	asIs := s.compare(version, object, got)
	kind := s.kind.WithVersion(version)
	if asIs == nil || !s.registry.Scheme().Recognizes(kind) {
		return asIs
	}
	written, err := rewrite(s.registry.Scheme(), kind, object)
	if err != nil {
		return asIs
	}
	return s.compare(version, written, got)
}
