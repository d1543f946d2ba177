package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// claims returns the managedFields without entries of versions that the CRD lacks, which
// the API server cannot preserve.
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
	for attempt := 0; ; attempt++ {
		now, o, err := m.claimOnce(ctx, d, obj, claims)
		if now == nil {
			return o, err
		}
		if d.kept(claims, now) {
			return rewritten, nil
		}
		if attempt == maxConflicts {
			return failed, errors.New("metadata.managedFields: the API server drops them, since it cannot convert the object to each version that they name: fix that conversion")
		}
		if err := pause(ctx, 100*time.Millisecond<<attempt); err != nil {
			return failed, err
		}
		obj = now // a dry run returns the resourceVersion that is stored
	}
}

// claimOnce makes one attempt. It returns the object as it is or would be after the write,
// or nil and the outcome.
func (m *migrator) claimOnce(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata, claims []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, outcome, error) {
	patch := patchOf(obj, claims)
	if len(claims) == 0 {
		patch = patchOf(obj, []any{map[string]any{}}) // an empty list would change nothing
	}
	for dryRun := true; ; dryRun = false {
		now, o, err := m.try(ctx, d, obj, patch, dryRun)
		if now == nil {
			return nil, o, err
		}
		if err := wouldChange(changes(obj, now)); err != nil {
			return nil, failed, err
		}
		if !dryRun || m.dryRun || !d.kept(claims, now) {
			return now, 0, nil
		}
	}
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
