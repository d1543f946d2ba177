package offline

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	"github.com/crdkit/crdkit/schema"
)

// Delete deletes an object, if the webhooks for deletions allow it. Without a namespace,
// that is default.
//
// An object without finalizers goes at once. The result's Object is then the Status that the
// server answers, and Deleted is true. An object with finalizers stays, and is marked as being
// deleted; it is the result's Object. It goes with the update that takes away its last
// finalizer (apiserver/pkg/registry/generic/registry/store.go, Delete).
func (r *Resource) Delete(ctx context.Context, version, namespace, name string, opts ...RequestOption) (*schema.Result, error) {
	req := &request{version: version, namespace: namespace, operation: admission.Delete}
	return r.serve(ctx, req, "delete", opts, func(ctx context.Context) (*schema.Result, error) {
		key, err := req.key(name)
		if err != nil {
			return nil, err
		}
		return req.retry(ctx, key, func() (*schema.Result, bool, error) { return req.tryDelete(ctx, key) })
	})
}

func (r *request) tryDelete(ctx context.Context, key types.NamespacedName) (_ *schema.Result, again bool, _ error) {
	was, old, err := r.read(ctx, key)
	if err != nil {
		return nil, false, err
	}
	// AdmissionToValidateObjectDeleteFunc of apiserver/pkg/registry/rest/delete.go.
	attr := r.attributes(nil, old, key.Name)
	if err := r.mutate(ctx, attr); err != nil {
		return nil, false, err
	}
	if err := r.validate(ctx, attr); err != nil {
		return nil, false, err
	}
	if len(old.GetFinalizers()) == 0 {
		if _, ok := r.store(key, nil, was.version); !ok {
			return nil, true, nil
		}
		text, err := json.Marshal(r.deleted(old))
		return &schema.Result{Object: text, Warnings: r.warnings, Deleted: true}, false, err
	}
	rec := was
	if old.GetDeletionTimestamp() == nil {
		// markAsDeleting of store.go.
		old.SetGeneration(old.GetGeneration() + 1)
		old.SetDeletionTimestamp(new(metav1.NewTime(r.resource.now())))
		old.SetDeletionGracePeriodSeconds(new(int64(0)))
		text, err := r.encode(ctx, old)
		if err != nil {
			return nil, false, err
		}
		var ok bool
		if rec, ok = r.store(key, text, was.version); !ok {
			return nil, true, nil
		}
	}
	out, err := r.finish(ctx, rec)
	return out, false, err
}

// deleted is the answer of finalizeDelete of store.go.
func (r *request) deleted(u *unstructured.Unstructured) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: u.GetName(), Group: r.resource.crd.Spec.Group, Kind: r.resource.crd.Spec.Names.Plural, UID: u.GetUID()},
	}
}
