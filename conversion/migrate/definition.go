package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/report"
)

// checkpointAnnotation is set on a CRD while its objects are being migrated. It contains a
// resourceVersion since which all objects were stored in the storage version.
const checkpointAnnotation = "migrate.crdkit.github.io/checkpoint"

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// definition is a CRD as it was read.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	storage string
	// The versions that are served, the storage version first.
	served []apiextensionsv1.CustomResourceDefinitionVersion
}

// read reads the CRD from the API server.
func (m *migrator) read(ctx context.Context) (*definition, error) {
	var d *definition
	err := m.insist(ctx, func() error {
		u, err := m.dynamic.Resource(definitions).Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			return err
		}
		d = newDefinition(crd)
		return nil
	})
	return d, err
}

func newDefinition(crd *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{CustomResourceDefinition: crd}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			d.storage = v.Name
		}
		switch {
		case v.Served && v.Storage:
			d.served = slices.Insert(d.served, 0, v)
		case v.Served:
			d.served = append(d.served, v)
		}
	}
	return d
}

// old returns the versions, other than the storage version, in which objects may be stored.
func (d *definition) old() []string {
	return slices.DeleteFunc(slices.Clone(d.Status.StoredVersions), func(v string) bool { return v == d.storage })
}

// check returns an error if the objects cannot be read.
func (d *definition) check() error {
	if len(d.served) == 0 {
		return fmt.Errorf("no version is served, expected served: true for %s, so that objects can be read", d.storage)
	}
	return nil
}

// writable returns an error if the objects cannot be written in the storage version. A
// patch in another version would convert an object that is stored in the storage version to
// that version, prune it by that schema, and convert it back. Fields that the other version
// lacks would be lost (apiextensions-apiserver/pkg/apiserver/customresource_handler.go,
// unstructuredSchemaCoercer).
func (d *definition) writable() error {
	if err := d.check(); err != nil {
		return err
	}
	if d.served[0].Name != d.storage {
		return fmt.Errorf("the storage version %s is not served, expected served: true: a rewrite in %s would lose what that has no field for", d.storage, d.served[0].Name)
	}
	return nil
}

// resource returns the resource in a version.
func (d *definition) resource(v apiextensionsv1.CustomResourceDefinitionVersion) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural}
}

// apiVersion returns the apiVersion of a version.
func (d *definition) apiVersion(version string) string {
	return schema.GroupVersion{Group: d.Spec.Group, Version: version}.String()
}

// target returns the resource and subresource that a rewrite patches: the status, if there
// is one.
func (d *definition) target() (resource schema.GroupVersionResource, subresources []string) {
	v := d.served[0]
	if v.Subresources != nil && v.Subresources.Status != nil {
		subresources = []string{"status"}
	}
	return d.resource(v), subresources
}

// same reports whether the CRD has not changed since it was read.
func (d *definition) same(now *definition) bool {
	return now.Generation == d.Generation && now.UID == d.UID
}

// index returns the index of a version, which is -1 if the CRD lacks the version.
func (d *definition) index(version string) int {
	return slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// changed returns the time of the last write of the CRD. It is zero if it is unknown: nobody owns the versions, whose
// entry has been removed since.
func (d *definition) changed() time.Time {
	var last time.Time
	if len(report.Managers(d, fieldpath.MakePathOrDie("spec", "versions"))) == 0 {
		return last
	}
	for _, entry := range d.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// checkpoint records that all objects with a higher resourceVersion are stored in a
// version.
type checkpoint struct {
	StorageVersion   string    `json:"storageVersion"`
	ResourceVersion  string    `json:"resourceVersion"`
	Generation       int64     `json:"generation"`
	UID              types.UID `json:"uid"`
	PropagationDelay string    `json:"propagationDelay"` // for which the run waited
}

// checkpoint returns the resourceVersion of the annotation. It returns "" if the annotation
// is absent or outdated, or if its run waited for a shorter time.
func (d *definition) checkpoint(propagationDelay time.Duration) (resourceVersion string) {
	var c checkpoint
	if err := json.Unmarshal([]byte(d.Annotations[checkpointAnnotation]), &c); err != nil {
		return "" // absent, or not ours: it is written again
	}
	if waited, err := time.ParseDuration(c.PropagationDelay); err != nil || waited < propagationDelay {
		return ""
	}
	if c.StorageVersion != d.storage || c.Generation != d.Generation || c.UID != d.UID {
		return ""
	}
	if _, err := resourceversion.CompareResourceVersion(c.ResourceVersion, c.ResourceVersion); err != nil {
		return ""
	}
	return c.ResourceVersion
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch changes the CRD. It returns a conflict if the CRD has changed since it was read.
func (m *migrator) patch(ctx context.Context, d *definition, op operation, subresources ...string) error {
	data, err := json.Marshal([]operation{{"replace", "/metadata/resourceVersion", d.ResourceVersion}, op})
	if err != nil {
		return err
	}
	return m.insist(ctx, func() error {
		_, err := m.dynamic.Resource(definitions).Patch(ctx, m.name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
		return err
	})
}

// annotate writes the checkpoint; nil removes it.
func (m *migrator) annotate(ctx context.Context, d *definition, c *checkpoint) error {
	annotations := map[string]string{}
	maps.Copy(annotations, d.Annotations)
	delete(annotations, checkpointAnnotation)
	if c != nil {
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		annotations[checkpointAnnotation] = string(text)
	}
	if maps.Equal(annotations, d.Annotations) {
		return nil
	}
	return m.patch(ctx, d, operation{"add", "/metadata/annotations", annotations})
}
