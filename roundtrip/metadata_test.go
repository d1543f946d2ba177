package roundtrip

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// metadataBugs drop each member of metadata that a function must not change, and a few of
// what such members consist of.
func metadataBugs() []bug {
	change := func(name string, of func(m *metav1.ObjectMeta)) bug {
		return bug{name: name, law: RoundTrip, toHub: func(_ *alphaJob, out *hubJob) { of(&out.ObjectMeta) }}
	}
	bugs := []bug{
		change("changed UID", func(m *metav1.ObjectMeta) { m.UID = "new" }),
		change("invented managedFields", func(m *metav1.ObjectMeta) { m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me"}} }),
		change("only the first finalizer", func(m *metav1.ObjectMeta) { m.Finalizers = m.Finalizers[:min(1, len(m.Finalizers))] }),
		change("sorted finalizers", func(m *metav1.ObjectMeta) { slices.Sort(m.Finalizers) }),
		change("no owner is controller", func(m *metav1.ObjectMeta) {
			for i := range m.OwnerReferences {
				m.OwnerReferences[i].Controller = nil
			}
		}),
		change("no owner blocks its deletion", func(m *metav1.ObjectMeta) {
			for i := range m.OwnerReferences {
				m.OwnerReferences[i].BlockOwnerDeletion = nil
			}
		}),
		change("dropped grace period of zero", func(m *metav1.ObjectMeta) {
			if s := m.DeletionGracePeriodSeconds; s != nil && *s == 0 {
				m.DeletionGracePeriodSeconds = nil
			}
		}),
		change("grace period becomes zero", func(m *metav1.ObjectMeta) {
			if m.DeletionGracePeriodSeconds != nil {
				m.DeletionGracePeriodSeconds = new(int64)
			}
		}),
	}
	first := change("only the first owner", func(m *metav1.ObjectMeta) { m.OwnerReferences = m.OwnerReferences[:min(1, len(m.OwnerReferences))] })
	first.lines = 13
	bugs = append(bugs, first)
	for _, f := range jsontype.FieldsOf(reflect.TypeFor[metav1.ObjectMeta]()) {
		switch f.JSON {
		case "labels", "annotations": // may be changed
		case "managedFields": // no function sees them
		default:
			dropped := change("dropped metadata field", func(m *metav1.ObjectMeta) {
				reflect.ValueOf(m).Elem().FieldByIndex(f.Index).SetZero()
			})
			dropped.variant = f.JSON
			bugs = append(bugs, dropped)
		}
	}
	return bugs
}

// The default budget finds them, whether objects are made of the Go types or of a schema.
func TestMetadata_EachMemberIsExercised(t *testing.T) {
	for _, b := range metadataBugs() {
		for how, definition := range map[string]func(string) string{"type": nil, "schema": defined.definition} {
			b.definition = definition
			t.Run(b.name+"/"+b.variant+"/"+how, func(t *testing.T) {
				for seed := range seeds() {
					c := b.find(t, seed, b.law, Iterations(100))[b.law]
					if c == nil {
						t.Errorf("seed %d: not found", seed)
					} else if n := strings.Count(c.yaml(), "\n"); n > cmp.Or(b.lines, 10) {
						t.Errorf("seed %d: %d lines:\n%s", seed, n, c.report())
					}
				}
			})
		}
	}
}
