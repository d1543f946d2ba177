package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rewrite writes an object as it is.
func (m *migrator) rewrite(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata) (outcome, error) {
	claims := d.claims(obj)
	_, subresources := d.target()
	if m.dryRun || len(subresources) == 0 || d.converts(claims) {
		if o, err := m.rehearse(ctx, d, obj, claims, subresources); o != rewritten || m.dryRun {
			return o, err
		}
	}
	now, o, err := m.try(ctx, d, obj, patchOf(obj, nil), false, subresources...)
	if now == nil {
		return o, err
	}
	if now.ResourceVersion == obj.ResourceVersion {
		return current, nil // nothing had to be stored
	}
	if changes := changes(obj, now); len(changes) > 0 {
		return failed, fmt.Errorf("%s: changed by admission when rewritten in %s", strings.Join(changes, ", "), d.storage)
	}
	if d.kept(claims, now) {
		return rewritten, nil
	}
	// An interrupt here would hide a loss.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	switch o, err := m.claim(ctx, d, now, claims); {
	case o == rewritten, o == gone:
		return o, nil
	case err != nil:
		return failed, fmt.Errorf("metadata.managedFields: dropped by the API server when rewritten in %s: %w", d.storage, err)
	}
	return failed, fmt.Errorf("metadata.managedFields: dropped by the API server when rewritten in %s, and the object has been written since", d.storage)
}

// rehearse tests with dryRun whether a rewrite changes more than the version in which the object is
// stored. Changes of a mutating webhook increase the generation, unless they are in the metadata
// (apiextensions-apiserver/pkg/registry/customresource/strategy.go, PrepareForUpdate). For the dropped
// managedFields, see UpdateNoErrors in apimachinery/pkg/util/managedfields/internal/fieldmanager.go. If
// a version in them does not exist any longer, they are lost in any case, and claim saves the others.
// Otherwise a webhook may have failed once, so the test is repeated.
func (m *migrator) rehearse(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata, claims []metav1.ManagedFieldsEntry, subresources []string) (outcome, error) {
	return d.untilKept(ctx, claims, func() (*metav1.PartialObjectMetadata, outcome, error) {
		would, o, err := m.tryUnchanged(ctx, d, obj, patchOf(obj, nil), true, subresources...)
		if would != nil && len(claims) < len(obj.ManagedFields) {
			return nil, rewritten, nil
		}
		return would, o, err
	})
}

// untilKept repeats an attempt until the object has these claims and no others after it. An attempt
// returns the object, or nil and the outcome.
func (d *definition) untilKept(ctx context.Context, claims []metav1.ManagedFieldsEntry, attempt func() (*metav1.PartialObjectMetadata, outcome, error)) (outcome, error) {
	for n := 0; ; n++ {
		now, o, err := attempt()
		switch {
		case now == nil:
			return o, err
		case d.kept(claims, now):
			return rewritten, nil
		case n == maxConflicts:
			return failed, fmt.Errorf("metadata.managedFields: the API server would drop them, since it cannot convert the object from %s to each version that they name: fix that conversion", d.storage)
		}
		if err := pause(ctx, 100*time.Millisecond<<n); err != nil {
			return failed, err
		}
	}
}

// tryUnchanged is try, but fails if admission changes the object.
func (m *migrator) tryUnchanged(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata, patch []byte, dryRun bool, subresources ...string) (*metav1.PartialObjectMetadata, outcome, error) {
	now, o, err := m.try(ctx, d, obj, patch, dryRun, subresources...)
	if now == nil {
		return nil, o, err
	}
	if changes := changes(obj, now); len(changes) > 0 {
		return nil, failed, fmt.Errorf("%s: admission would change them: let the webhook leave alone what is not changed, or exempt updates by %s in its matchConditions; any other write of the object migrates it too", strings.Join(changes, ", "), fieldManager)
	}
	return now, o, nil
}

// patchOf returns a merge patch that changes nothing, or only the managedFields.
func patchOf(obj *metav1.PartialObjectMetadata, claims any) []byte {
	// The UID would be another one if the object was deleted and created again; but then so
	// is the resourceVersion, which is compared first.
	metadata := map[string]any{"uid": obj.UID, "resourceVersion": obj.ResourceVersion}
	if claims != nil {
		metadata["managedFields"] = claims
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // decoded JSON can be encoded
	}
	return patch
}

// try patches an object. It returns the result, or nil and the outcome.
func (m *migrator) try(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata, patch []byte, dryRun bool, subresources ...string) (*metav1.PartialObjectMetadata, outcome, error) {
	resource, _ := d.target()
	opts := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationIgnore}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	client := m.metadata.Resource(resource).Namespace(obj.Namespace)
	for attempt := 0; ; attempt++ {
		var result *metav1.PartialObjectMetadata
		err := m.insist(ctx, func() (err error) {
			result, err = client.Patch(ctx, obj.Name, types.MergePatchType, patch, opts, subresources...)
			return err
		})
		switch {
		case err == nil:
			return result, 0, nil
		case apierrors.IsNotFound(err):
			// The error may come from a webhook.
		case !apierrors.IsConflict(err):
			return nil, failed, err
		}
		// It may be another object by now, or none.
		now, o, getErr := m.get(ctx, d, obj)
		switch {
		case getErr != nil:
			return nil, o, errors.Join(err, getErr)
		case now == nil:
			return nil, o, nil
		case now.ResourceVersion != obj.ResourceVersion:
			return nil, current, nil // it was written after it was listed
		case apierrors.IsNotFound(err) || attempt == maxConflicts:
			return nil, failed, err
		}
	}
}

// maxConflicts is how often a conflict is retried if no client has written the object. Such
// a conflict is the answer of a webhook.
const maxConflicts = 3

// get reads the metadata of an object in the version in which it is rewritten. It returns
// nil and the outcome if the object does not exist.
func (m *migrator) get(ctx context.Context, d *definition, obj *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, outcome, error) {
	resource, _ := d.target()
	var now *metav1.PartialObjectMetadata
	err := m.insist(ctx, func() (err error) {
		now, err = m.metadata.Resource(resource).Namespace(obj.Namespace).Get(ctx, obj.Name, metav1.GetOptions{})
		return err
	})
	switch {
	case absent(err):
		return nil, gone, nil
	case err != nil:
		return nil, failed, err
	}
	return now, 0, nil
}

// changes returns the names of the fields in which an object differs before and after a
// write, apart from managedFields.
func changes(before, after *metav1.PartialObjectMetadata) []string {
	var names []string
	for _, c := range []struct {
		name          string
		before, after any
	}{
		{"metadata.labels", before.Labels, after.Labels},
		{"metadata.annotations", before.Annotations, after.Annotations},
		{"metadata.finalizers", before.Finalizers, after.Finalizers},
		{"metadata.ownerReferences", before.OwnerReferences, after.OwnerReferences},
		{"metadata.generation and so other fields than metadata", before.Generation, after.Generation},
	} {
		if !equality.Semantic.DeepEqual(c.before, c.after) {
			names = append(names, c.name)
		}
	}
	return names
}
