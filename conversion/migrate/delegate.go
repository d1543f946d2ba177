package migrate

import (
	"context"
	"fmt"
	"time"

	svmv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
)

var migrations = svmv1.SchemeGroupVersion.WithResource("storageversionmigrations")

// delegate lets the cluster rewrite the objects, if that harms none, and waits until it has. It
// returns the resourceVersion since which all that is written is stored in the storage version, or
// "" if the cluster does not rewrite them.
func (m *migrator) delegate(ctx context.Context, d *definition) (since string, err error) {
	client := m.dynamic.Resource(migrations)
	// Before the objects are tried: most clusters cannot do it.
	if _, err := client.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		if !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "Cannot use the StorageVersionMigration API; the objects are rewritten without it")
		}
		return "", ctx.Err()
	}
	if harmless, err := m.harmless(ctx, d); err != nil || !harmless {
		return "", err
	}
	name := fmt.Sprintf("crdkit-%s-%d", d.UID, d.Generation)
	for begin := time.Now(); ; {
		migration, err := m.migration(ctx, client, d, name)
		if err != nil {
			return "", err
		}
		conditions := migration.Status.Conditions
		switch {
		case meta.IsStatusConditionTrue(conditions, string(svmv1.MigrationSucceeded)):
			return migration.Status.ResourceVersion, nil
		case meta.IsStatusConditionTrue(conditions, string(svmv1.MigrationFailed)):
			failure := meta.FindStatusCondition(conditions, string(svmv1.MigrationFailed))
			klog.FromContext(ctx).Info("The StorageVersionMigration failed; what is left is rewritten without it", "migration", name, "message", logtext.Text(failure.Message))
			return migration.Status.ResourceVersion, nil
		case !meta.IsStatusConditionTrue(conditions, string(svmv1.MigrationRunning)) && time.Since(begin) > m.delegatePatience:
			klog.FromContext(ctx).Info("No controller runs the StorageVersionMigration; the objects are rewritten without it", "migration", name)
			m.delegates = false
			return "", m.insist(ctx, func() error { return client.Delete(ctx, name, metav1.DeleteOptions{}) })
		}
		if err := pause(ctx, time.Second); err != nil {
			return "", err
		}
	}
}

// harmless reports whether a patch of each object itself would be accepted, and change nothing but
// the version in which it is stored.
func (m *migrator) harmless(ctx context.Context, d *definition) (bool, error) {
	quiet := *m
	quiet.observe = unobserved // nothing is written
	report := &Report{}
	err := quiet.objects(ctx, d, report, func(ctx context.Context, l listed) (o outcome, err error) {
		obj := l.PartialObjectMetadata
		if l.version != d.storage {
			if obj, o, err = m.get(ctx, d, obj); obj == nil {
				return o, err
			}
		}
		return m.rehearse(ctx, d, obj, nil)
	})
	if err == nil && report.Failed > 0 {
		klog.FromContext(ctx).Info("The StorageVersionMigration API would harm objects; they are rewritten without it", "objects", report.Failed, "problem", logtext.Text(report.Problems[0].Error()))
	}
	return report.Failed == 0, err
}

// migration returns the StorageVersionMigration of a definition, and creates it first if necessary.
// Kubernetes deletes it with the definition.
func (m *migrator) migration(ctx context.Context, client dynamic.ResourceInterface, d *definition, name string) (*svmv1.StorageVersionMigration, error) {
	var u *unstructured.Unstructured
	err := m.insist(ctx, func() (err error) {
		if u, err = client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return err
		}
		u, err = client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": svmv1.SchemeGroupVersion.String(), "kind": "StorageVersionMigration",
			"metadata": map[string]any{"name": name, "ownerReferences": []any{map[string]any{
				"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition", "name": d.Name, "uid": string(d.UID),
			}}},
			"spec": map[string]any{"resource": map[string]any{"group": d.Spec.Group, "resource": d.Spec.Names.Plural}},
		}}, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("StorageVersionMigration %s: %w", name, err)
	}
	migration := &svmv1.StorageVersionMigration{}
	return migration, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, migration)
}
