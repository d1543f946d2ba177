package offline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema"
)

// ListOption says which objects are listed.
type ListOption func(*selection)

// LabelSelector selects objects by their labels, in the version of the request.
func LabelSelector(s labels.Selector) ListOption {
	return func(l *selection) { l.labels = s }
}

// FieldSelector selects objects by metadata.name, metadata.namespace, and the
// selectableFields of the version: see [schema.Version.SelectableFields]. Another field is
// an error of the server, BadRequest.
func FieldSelector(s fields.Selector) ListOption {
	return func(l *selection) { l.fields = s }
}

// selection is SelectionPredicate of apiserver/pkg/storage/selection_predicate.go.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

// List returns the objects of a namespace, or without one those of all namespaces, in any
// version that is served. The result's Object is a list, such as a PizzaList, in the server's
// order.
func (r *Resource) List(ctx context.Context, version, namespace string, opts ...ListOption) (*schema.Result, error) {
	sel := selection{labels.Everything(), fields.Everything()}
	for _, opt := range opts {
		opt(&sel)
	}
	req := &request{version: version, namespace: namespace}
	return r.serve(ctx, req, "get", nil, func(ctx context.Context) (*schema.Result, error) {
		if err := r.checkFields(version, sel.fields); err != nil {
			return nil, err
		}
		keys, records, latest := r.all()
		items := []any{}
		var unread []metav1.StatusCause // one for each object that cannot be decoded
		for i, key := range keys {
			if !r.reads(key, namespace, sel) {
				continue
			}
			u, err := r.decode(ctx, records[i], version)
			if err != nil {
				storageKey := "/registry" + r.storageKey(key)
				unread = append(unread, metav1.StatusCause{
					Type: metav1.CauseTypeUnexpectedServerResponse, Field: storageKey, Message: corrupt(storageKey, err).Error(),
				})
				if len(unread) == mostUnread {
					break
				}
				continue
			}
			selected, err := r.selects(u, version, sel)
			if err != nil {
				return nil, err
			}
			if selected {
				items = append(items, u.Object)
			}
		}
		if len(unread) > 0 {
			return nil, r.unreadable(unread)
		}
		text, err := json.Marshal(map[string]any{
			"apiVersion": r.gvk(version).GroupVersion().String(), "kind": r.crd.Spec.Names.ListKind,
			"metadata": map[string]any{"resourceVersion": formatVersion(latest)}, "items": items,
		})
		return &schema.Result{Object: text, Warnings: req.warnings}, err
	})
}

// mostUnread is maxCorruptObjErrsToAggregate of apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go.
const mostUnread = 100

// unreadable is the error of a list with objects that cannot be decoded: NewAPIStatusError of
// corrupt_obj_deleter.go.
func (r *Resource) unreadable(causes []metav1.StatusCause) error {
	message := fmt.Sprintf("failed to read one or more %s from the storage: %s", r.groupResource(), causes[0].Message)
	if more := len(causes) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	if len(causes) == mostUnread {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: message,
		Details: &metav1.StatusDetails{Name: "list", Group: r.crd.Spec.Group, Kind: r.crd.Spec.Names.Plural, Causes: causes},
	}}
}

// checkFields is ConvertFieldLabel of apiextensions-apiserver/pkg/apiserver/conversion/converter.go,
// as listOpts of apiserver/pkg/endpoints/handlers/get.go asks it.
func (r *Resource) checkFields(version string, s fields.Selector) error {
	known := []string{"metadata.name"}
	if r.namespaced() {
		known = append(known, "metadata.namespace")
	}
	for _, f := range r.spec(version).SelectableFields {
		known = append(known, strings.TrimPrefix(f.JSONPath, "."))
	}
	for _, q := range s.Requirements() {
		if !slices.Contains(known, q.Field) {
			return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", q.Field))
		}
	}
	return nil
}

// reads reports whether a list reads an object. If the selector has a name, no other object is
// read, so that its faults do not matter (apiserver/pkg/registry/generic/registry/store.go,
// ListPredicate).
func (r *Resource) reads(key types.NamespacedName, namespace string, sel selection) bool {
	if namespace != "" && key.Namespace != namespace {
		return false
	}
	name, single := sel.fields.RequiresExactMatch("metadata.name")
	return !single || namespace == "" && r.namespaced() || key.Name == name
}

// selects is MatchesObjectAttributes of selection_predicate.go.
func (r *Resource) selects(u *unstructured.Unstructured, version string, sel selection) (bool, error) {
	if !sel.labels.Matches(labels.Set(u.GetLabels())) {
		return false, nil
	}
	if sel.fields.Empty() {
		return true, nil
	}
	set, err := r.definition.Version(version).SelectableFields(u.Object)
	return err == nil && sel.fields.Matches(fields.Set(set)), err
}

// all returns everything at one point in time, sorted.
func (r *Resource) all() (keys []types.NamespacedName, records []record, latest uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Compare(a.String(), b.String()) // as etcd compares its keys
	})
	for _, key := range keys {
		records = append(records, r.objects[key])
	}
	return keys, records, r.version
}
