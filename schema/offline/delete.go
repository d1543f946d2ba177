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
// that is default. An object with finalizers stays, marked as being deleted, until an update
// takes the last of them away: it is the result's Object then. Else that is the Status which
// the server answers, and Deleted is true (apiserver/pkg/registry/generic/registry/store.go,
// Delete).
func (r *Resource) Delete(ctx context.Context, version, namespace, name string, opts ...RequestOption) (*schema.Result, error) {
	req, err := r.begin(version, "delete", admission.Delete, opts)
	if err != nil {
		return req.fail(err)
	}
	key := r.key(namespace, name)
	req.namespace = key.Namespace
	for {
		out, again, err := req.tryDelete(ctx, key)
		if err != nil {
			return req.fail(err)
		}
		if !again {
			return out, nil
		}
	}
}

func (r *request) tryDelete(ctx context.Context, key types.NamespacedName) (_ *schema.Result, again bool, _ error) {
	was, old, err := r.read(ctx, key)
	if err != nil {
		return nil, false, err
	}
	if err := r.admitted(ctx, r.attributes(nil, old, key.Name)); err != nil {
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
		old.SetDeletionTimestamp(new(metav1.NewTime(r.now())))
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
		Details:  &metav1.StatusDetails{Name: u.GetName(), Group: r.crd.Spec.Group, Kind: r.crd.Spec.Names.Plural, UID: u.GetUID()},
	}
}
