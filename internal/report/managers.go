package report

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxManagers bounds the length of a log line. A field that is written, and not applied, has one.
const maxManagers = 4

// Managers returns the field managers that own one of the fields, according to the managedFields of
// an object: the last writer of a field, and those that applied the same value. This is not a
// proof, because clients choose the name of their manager, and may edit managedFields.
func Managers(obj metav1.Object, paths ...fieldpath.Path) (managers []string) {
	for _, m := range obj.GetManagedFields() {
		owned := &fieldpath.Set{}
		if err := owned.FromJSON(m.FieldsV1.GetRawReader()); err != nil {
			continue // the API server would not have accepted it
		}
		if slices.ContainsFunc(paths, owned.Has) {
			managers = append(managers, m.Manager)
		}
	}
	slices.Sort(managers)
	managers = slices.Compact(managers)
	return managers[:min(len(managers), maxManagers)]
}
