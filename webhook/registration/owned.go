package registration

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// owned returns a copy of what a field manager has applied of an object, for another apply;
// nil if it has applied nothing. That a release does not know what a later one has declared
// must not take it away.
func owned(obj *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	for _, m := range obj.GetManagedFields() {
		if m.Manager != manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil || len(fields) == 0 {
			continue
		}
		members, ok := extract(fields, obj.Object).(map[string]any)
		if !ok {
			continue
		}
		u := (&unstructured.Unstructured{Object: members}).DeepCopy()
		u.SetAPIVersion(obj.GetAPIVersion())
		u.SetKind(obj.GetKind())
		u.SetName(obj.GetName())
		return u
	}
	return nil
}

// extract returns the part of a value that a set of fields names: f: is a member, k: the
// element of a list with these keys, and a set without either is the whole value
// (structured-merge-diff/fieldpath/serialize.go). Values in sets of scalars, v:, are passed
// over: nothing that is registered has any.
func extract(fields map[string]any, value any) any {
	if len(fields) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for key, sub := range fields {
			name, isMember := strings.CutPrefix(key, "f:")
			member, isThere := value[name]
			if sub, ok := sub.(map[string]any); ok && isMember && isThere {
				part[name] = extract(sub, member)
			}
		}
		return part
	case []any:
		part := []any{}
		for _, element := range value {
			for key, sub := range fields {
				text, isKeys := strings.CutPrefix(key, "k:")
				var keys map[string]any
				if sub, ok := sub.(map[string]any); ok && isKeys && json.Unmarshal([]byte(text), &keys) == nil && len(keys) > 0 && has(element, keys) {
					part = append(part, extract(sub, element))
					break
				}
			}
		}
		return part
	default:
		return value
	}
}

// has says whether an element of a list has the keys.
func has(element any, keys map[string]any) bool {
	members, _ := element.(map[string]any)
	for name, value := range keys {
		if members == nil || !equal(members[name], value) {
			return false
		}
	}
	return true
}

// withoutUpdates returns the managed fields of a configuration with what the manager has
// written by other means than apply turned into what it has applied; nil if there is no such.
// Otherwise it would keep a webhook there that is not declared any more. To drop the entries
// is not enough: nobody's fields stay, too, and an object without any managed fields gets a
// manager "before-first-apply" for all that it has
// (apimachinery/pkg/util/managedfields/internal/skipnonapplied.go).
func withoutUpdates(obj *unstructured.Unstructured, manager string) ([]metav1.ManagedFieldsEntry, error) {
	before := obj.GetManagedFields()
	if !slices.ContainsFunc(before, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == ""
	}) {
		return nil, nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetManagedFields(before)
	if err := csaupgrade.UpgradeManagedFields(u, sets.New(manager), manager); err != nil {
		return nil, err
	}
	return u.GetManagedFields(), nil
}
