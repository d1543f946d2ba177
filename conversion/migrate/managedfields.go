package migrate

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// claims returns the managedFields without entries of versions that the CRD lacks, which
// the API server cannot preserve.
func (d *definition) claims(obj *metav1.PartialObjectMetadata) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(obj.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		return err != nil || gv.Group != d.Spec.Group || d.index(gv.Version) < 0
	})
}

// converts reports whether the API server must convert the object for its managedFields.
func (d *definition) converts(claims []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(claims, func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion != d.apiVersion(d.storage) })
}

// kept reports whether an object has these claims and no others. It compares the owners
// without their fields, because the API server writes the fields again.
func (d *definition) kept(claims []metav1.ManagedFieldsEntry, obj *metav1.PartialObjectMetadata) bool {
	return slices.Equal(ownersOf(claims), ownersOf(d.claims(obj)))
}

func ownersOf(claims []metav1.ManagedFieldsEntry) []string {
	owners := make([]string, len(claims))
	for i, e := range claims {
		owners[i] = fmt.Sprintf("%q %q %q %q", e.Manager, e.Operation, e.APIVersion, e.Subresource)
	}
	slices.Sort(owners)
	return owners
}

// claim writes only the managedFields of an object. If admission would change more or
// refuse it, the object is left unchanged. A subresource would avoid admission, but the API
// server ignores managedFields there (decodeLiveOrNew,
// apimachinery/pkg/util/managedfields/internal/fieldmanager.go).
func (m *migrator) claim(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata, claims []metav1.ManagedFieldsEntry) (outcome, error) {
	fields := any(claims)
	if len(claims) == 0 {
		fields = []any{map[string]any{}} // an empty list would change nothing
	}
	return d.untilKept(ctx, claims, func() (*metav1.PartialObjectMetadata, outcome, error) {
		now, o, err := m.tryUnchanged(ctx, d, obj, patchOf(obj, fields), true)
		if now != nil && d.kept(claims, now) && !m.dryRun {
			now, o, err = m.tryUnchanged(ctx, d, obj, patchOf(obj, fields), false)
		}
		obj = now // a dry run returns the resourceVersion that is stored
		return now, o, err
	})
}

// forget removes the claims of a version from an object, which other clients may write
// meanwhile.
func (m *migrator) forget(ctx context.Context, d *definition, version string, l listed) (outcome, error) {
	// managedFields are the same in all versions, but labels and annotations may differ.
	obj, writable := l.PartialObjectMetadata, l.version == d.storage
	for range maxWrites {
		claims := d.claims(obj)
		rest := slices.DeleteFunc(slices.Clone(claims), func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == d.apiVersion(version) })
		if len(rest) == len(claims) {
			return current, nil
		}
		if writable {
			if o, err := m.claim(ctx, d, obj, rest); o != current {
				return o, err
			}
		}
		now, o, err := m.get(ctx, d, obj)
		if now == nil {
			return o, err
		}
		obj, writable = now, true
	}
	return failed, fmt.Errorf("changed %d times while its managedFields were written", maxWrites)
}

// maxWrites is how often other clients may write in between.
const maxWrites = 20
