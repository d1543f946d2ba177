package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Remove removes a version from spec.versions of a CRD. If the version is still needed, Remove
// changes nothing in spec.versions, and returns an error that matches [ErrRefused], with all
// reasons and how to resolve each one:
//
//   - The version is the storage version.
//   - The version is in status.storedVersions. Call [Run] first.
//   - The version is served, so its clients would fail.
//   - The managedFields of an object contain the version, see [PruneManagedFields].
//
// Remove lists the metadata of all objects to check their managedFields. If your CRDs are
// applied from a repository, call Remove with [DryRun], and remove the version in the
// repository.
//
// After you set "served: false" for the version, wait a few minutes before you call Remove, because
// a request that was in progress can still add the version to managedFields until it ends within
// the API server's --request-timeout, by default 60 seconds.
func Remove(ctx context.Context, config *rest.Config, crd, version string, opts ...Option) error {
	m, err := newMigrator(config, crd, opts)
	if err != nil {
		return err
	}
	tried := false
	for range maxRounds {
		d, err := m.read(ctx)
		if err != nil {
			return m.explain(err)
		}
		if tried && d.index(version) < 0 {
			return nil // the answer got lost
		}
		i, err := m.removable(ctx, d, version)
		if err != nil || m.dryRun {
			return m.explain(err)
		}
		tried = true
		if ok, err := m.unless(m.patch(ctx, d, operation{Op: "remove", Path: fmt.Sprintf("/spec/versions/%d", i)})); ok || err != nil {
			return m.explain(err)
		}
	}
	return m.explain(fmt.Errorf("changed %d times while %s was about to be removed: find the other writer, and run again", maxRounds, version))
}

// removable returns the index of a version that is not needed any longer.
func (m *migrator) removable(ctx context.Context, d *definition, version string) (int, error) {
	i := d.index(version)
	if i < 0 {
		var names []string
		for _, v := range d.Spec.Versions {
			names = append(names, v.Name)
		}
		return 0, fmt.Errorf("no version %q, expected one of %s", version, strings.Join(names, ", "))
	}
	v := d.Spec.Versions[i]
	var errs []error
	if v.Storage {
		errs = append(errs, fmt.Errorf("%s is the storage version: set storage: true for another one, and migrate the objects", version))
	} else if slices.Contains(d.Status.StoredVersions, version) {
		errs = append(errs, fmt.Errorf("%s is in status.storedVersions, so objects may be stored in it: migrate them", version))
	}
	if v.Served {
		errs = append(errs, fmt.Errorf("%s is served: set served: false, and check that no client asks for it (the metric apiserver_requested_deprecated_apis, if it is marked as deprecated, or the audit log)", version))
	}
	if m.pruneManagedFields && len(errs) == 0 {
		if err := m.forgetAll(ctx, d, version); err != nil {
			return 0, err
		}
	}
	if !m.pruneManagedFields || len(errs) == 0 && !m.dryRun {
		owners, err := m.owners(ctx, d, version)
		if err != nil {
			return 0, errors.Join(append(errs, err)...)
		}
		errs = append(errs, owners...)
	}
	if len(errs) > 0 {
		return 0, refused{errors.Join(errs...)}
	}
	return i, nil
}

// forgetAll removes the claims of a version from all objects.
func (m *migrator) forgetAll(ctx context.Context, d *definition, version string) error {
	if err := d.writable(); err != nil {
		return err
	}
	if err := m.permitted(ctx, d, ""); err != nil {
		return err
	}
	report := &Report{}
	err := m.objects(ctx, d, report, func(ctx context.Context, l listed) (outcome, error) {
		return m.forget(ctx, d, version, l)
	})
	if err != nil || report.Failed == 0 {
		return err
	}
	return report.refusal("%s stays in managedFields of %d of %d objects", version, report.Failed, report.Done())
}

// owners returns an error for each owner in managedFields of objects with a version.
func (m *migrator) owners(ctx context.Context, d *definition, version string) (errs []error, _ error) {
	apiVersion := d.apiVersion(version)
	found := map[string]int{} // objects, by owner
	advice := map[string]string{}
	err := m.each(ctx, d, func(int64, *int64) {}, func(l listed) error {
		seen := map[string]bool{}
		for _, e := range l.ManagedFields {
			owner := fmt.Sprintf("%q (%s)", e.Manager, e.Operation)
			if e.APIVersion != apiVersion || seen[owner] {
				continue
			}
			seen[owner] = true
			if found[owner]++; found[owner] > 1 {
				continue
			}
			cure := "nothing moves such an owner; PruneManagedFields (--prune-managed-fields) lets go of it, and loses no field"
			if e.Operation == metav1.ManagedFieldsOperationApply {
				cure = "let it apply once in " + d.storage
			}
			advice[owner] = fmt.Sprintf("such as %s: %s", objectName(l.Namespace, l.Name), cure)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, owner := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, fmt.Errorf("%s is named in managedFields by %s, in %d objects, %s", version, owner, found[owner], advice[owner]))
	}
	return errs, nil
}
