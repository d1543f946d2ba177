package migrate

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// claims returns the managedFields without those of versions that the definition does not
// have, which the API server cannot keep.
func (d *definition) claims(obj *metav1.PartialObjectMetadata) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(obj.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		if err != nil || gv.Group != d.Spec.Group {
			return true
		}
		_, i := d.version(gv.Version)
		return i < 0
	})
}

// claim writes the managedFields of an object, and nothing else. If admission would change
// more, or refuse it, it is left alone. A subresource would do without admission, but there
// the API server ignores managedFields (decodeLiveOrNew,
// apimachinery/pkg/util/managedfields/internal/fieldmanager.go).
func (m *migrator) claim(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata, claims []metav1.ManagedFieldsEntry) (outcome, error) {
	patch := patchOf(obj, claims)
	if len(claims) == 0 {
		patch = patchOf(obj, []any{map[string]any{}}) // an empty list would change nothing
	}
	for _, dryRun := range []bool{true, false} {
		now, o, err := m.try(ctx, d, obj, patch, dryRun)
		if now == nil {
			return o, err
		}
		if err := wouldChange(changes(obj, now)); err != nil {
			return failed, err
		}
		if m.dryRun {
			break
		}
	}
	return rewritten, nil
}

// forget takes the claims of a version out of an object. Others may write it meanwhile.
func (m *migrator) forget(ctx context.Context, d *definition, version string, obj *metav1.PartialObjectMetadata) (outcome, error) {
	for {
		claims := d.claims(obj)
		kept := slices.DeleteFunc(slices.Clone(claims), func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == d.apiVersion(version) })
		if len(kept) == len(claims) {
			return current, nil
		}
		o, err := m.claim(ctx, d, obj, kept)
		if o != current {
			return o, err
		}
		if obj, err = m.get(ctx, d, obj); absent(err) {
			return gone, nil
		} else if err != nil {
			return failed, err
		}
	}
}
