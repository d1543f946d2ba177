package reference

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// Ref is one reference that an object holds.
type Ref struct {
	// Path of the field that holds the name.
	Path *field.Path
	// Namespace of the named object; empty if it is cluster-scoped.
	Namespace string
	// Name of the named object.
	Name string
}

func (r Ref) key() string { return cache.NewObjectName(r.Namespace, r.Name).String() }

// Informer is what this package needs of an informer. Every
// [cache.SharedIndexInformer] has it: typed, dynamic or metadata-only.
type Informer interface {
	HasSynced() bool
	GetIndexer() cache.Indexer
}

// Getter reads one object from the API server. It returns nil if the object
// exists, and an error for which [apierrors.IsNotFound] holds if it does not.
type Getter func(ctx context.Context, namespace, name string) error

// Target is a kind that other objects refer to.
type Target struct {
	resource schema.GroupResource
	informer Informer
	get      Getter
}

// NewTarget returns the kind of which the informer holds the objects. The
// resource stands in error messages. The getter confirms what the informer does
// not know; it is called for no name that the informer knows.
func NewTarget(resource schema.GroupResource, informer Informer, get Getter) *Target {
	return &Target{resource: resource, informer: informer, get: get}
}

// Exists returns a validating function for objects of type T: all objects to
// which it refers must exist. The answer has one field.NotFound error for each
// field that names a missing object. An empty name is no reference: whether it is
// allowed is for the schema to say. An object that is being deleted is not
// checked: what it refers to may be gone already, and to remove its finalizers
// must not be denied.
//
// It returns an error, and so no verdict, while the informer has not synced, and
// when a live read fails.
func Exists[T runtime.Object](target *Target, refs func(obj T) []Ref) func(ctx context.Context, obj T) (field.ErrorList, error) {
	return func(ctx context.Context, obj T) (field.ErrorList, error) {
		if m, err := meta.Accessor(obj); err == nil && m.GetDeletionTimestamp() != nil {
			return nil, nil
		}
		if !target.informer.HasSynced() {
			return nil, notSynced(target.resource)
		}
		var errs field.ErrorList
		known := map[string]bool{} // each name is looked up once
		for _, ref := range refs(obj) {
			if ref.Name == "" {
				continue
			}
			exists, looked := known[ref.key()]
			if !looked {
				var err error
				if exists, err = target.exists(ctx, ref); err != nil {
					return nil, err
				}
				known[ref.key()] = exists
			}
			if !exists {
				errs = append(errs, field.NotFound(ref.Path, ref.Name))
			}
		}
		return errs, nil
	}
}

func (t *Target) exists(ctx context.Context, ref Ref) (bool, error) {
	if _, found, err := t.informer.GetIndexer().GetByKey(ref.key()); err != nil || found {
		return found, err
	}
	switch err := t.get(ctx, ref.Namespace, ref.Name); {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, unavailable("%s: cannot find out whether %s %q exists: %v", ref.Path, t.resource, ref.key(), err)
	}
}

// notSynced says that the question cannot be answered yet.
func notSynced(resource schema.GroupResource) error {
	return unavailable("the informer of %s has not synced yet", resource)
}

// unavailable is an error that the API server may try again in a second. It
// wraps nothing: a NotFound or a Forbidden of our own live read must not be
// taken for a verdict about the user's request.
func unavailable(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}
}
