package reference

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/internal/logtext"
)

const (
	// requestTimeout limits all requests for one object together. The API server waits 10
	// seconds for a webhook by default.
	requestTimeout = 2 * time.Second
	// requestConcurrency is the number of concurrent requests for one object.
	requestConcurrency = 10
)

// Option adds a check to [Exists].
type Option func(*options)

type options struct {
	policy     func(ctx context.Context, from string, to cache.ObjectName) (allowed bool, err error)
	authorizer *authorizer
}

// CrossNamespace allows references to another namespace, which are denied by default, if the policy
// reports that objects in the namespace from may reference the target. The policy must be safe for
// concurrent use. It may read from the cluster, for example to look for an object in the other
// namespace that allows the reference, like a ReferenceGrant of Gateway API. If the policy returns
// an error, the request is left undecided.
//
// The policy is not called in these cases:
//
//   - The target is in the same namespace as the referrer, or is cluster-scoped.
//   - The referrer is cluster-scoped.
//   - The referrer had the reference before the update.
//
// If users must not learn whether the target of an allowed reference exists, add [Authorize].
func CrossNamespace(policy func(ctx context.Context, from string, to cache.ObjectName) (allowed bool, err error)) Option {
	return func(o *options) { o.policy = policy }
}

// Exists returns a function for [admission.Validate] which checks that the targets of all
// references in an object of type T, a pointer to a struct, exist. The function returns a field
// error for each wrong reference:
//
//   - field.NotFound if the target does not exist.
//   - field.Forbidden if [CrossNamespace] or [Authorize] denies the reference.
//   - field.Invalid if no object can have the name, such as "..", or if a required namespace
//     is missing.
//
// A name that is forbidden or invalid is not looked up, so that the response does not reveal
// whether the target exists. If a check cannot be completed, the request is left undecided; see
// "Undecided requests" in the package documentation.
//
// For one object, permission checks, live reads and the wait for them, and calls to the policy of
// [CrossNamespace] share a time limit of two seconds.
//
// In an update, only references that are new, or no longer optional, are checked. If the old
// object cannot be decoded, all references are new. If the object is being deleted, targets
// need not exist.
func Exists[T runtime.Object](target *Target, refs func(obj T) []Ref, opts ...Option) func(ctx context.Context, obj T) (field.ErrorList, error) {
	c := &checker{target: target}
	for _, opt := range opts {
		opt(&c.options)
	}
	return func(ctx context.Context, obj T) (field.ErrorList, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		found := refs(obj)
		if len(found) == 0 {
			return nil, nil
		}
		before := map[cache.ObjectName]bool{}
		// The API server ignores the deletionTimestamp that a user sends, but before 1.37 not in an apply that creates the
		// object (apiserver/pkg/registry/generic/registry/store.go, Update).
		deleting := m.GetDeletionTimestamp() != nil
		if old, err := admission.OldFrom[T](ctx); err == nil && reflect.ValueOf(old).IsNil() {
			deleting = false
		} else if err == nil {
			for _, ref := range refs(old) {
				name := target.resource.resolve(m.GetNamespace(), ref)
				before[name] = before[name] || !ref.Optional
			}
		}
		return c.answer(ctx, m, deleting, found, before)
	}
}

type checker struct {
	options
	target *Target
}

// question is a target with the checks that it needs, and their results.
type question struct {
	name  cache.ObjectName
	path  *field.Path // of the first reference to it
	isNew bool        // policy and permission are checked
	asks  bool        // existence is checked

	invalid   string
	forbidden string
	missing   bool
	undecided error
}

// answer checks the references of an object. The map before has the targets of the stored
// object, and whether one of the references to the target was not optional.
func (c *checker) answer(
	ctx context.Context, m metav1.Object, deleting bool, refs []Ref, before map[cache.ObjectName]bool,
) (errs field.ErrorList, _ error) {
	questions := make(map[cache.ObjectName]*question, len(refs))
	var all []*question
	for _, ref := range refs {
		name := c.target.resource.resolve(m.GetNamespace(), ref)
		required, had := before[name]
		asks := !ref.Optional && !required && !deleting
		if ref.Name == "" || had && !asks || c.isItself(ctx, m, name) {
			continue
		}
		q := questions[name]
		if q == nil {
			q = &question{name: name, path: c.pathOf(ref), isNew: !had, invalid: c.target.resource.impossible(name)}
			questions[name] = q
			all = append(all, q)
		}
		q.asks = q.asks || asks
	}
	c.find(ctx, m.GetNamespace(), all)

	for _, ref := range refs {
		q := questions[c.target.resource.resolve(m.GetNamespace(), ref)]
		switch path := c.pathOf(ref); {
		case q == nil:
		case q.invalid != "":
			errs = append(errs, field.Invalid(path, ref.Name, q.invalid))
		case q.forbidden != "":
			errs = append(errs, field.Forbidden(path, q.forbidden))
		case q.missing && !ref.Optional:
			errs = append(errs, field.NotFound(path, ref.Name))
		}
	}
	if len(errs) > 0 {
		return errs, nil // even if other checks failed
	}
	for _, q := range all {
		if q.undecided != nil {
			return nil, q.undecided
		}
	}
	return nil, nil
}

// isItself reports whether an object references itself. The object exists once the request has
// passed.
func (c *checker) isItself(ctx context.Context, m metav1.Object, name cache.ObjectName) bool {
	if name != cache.MetaObjectToName(m) {
		return false
	}
	request, ok := admission.RequestFrom(ctx)
	return ok && isFor(request, c.target.resource.resource)
}

func (c *checker) pathOf(ref Ref) *field.Path {
	if ref.Path == nil {
		return field.NewPath(c.target.resource.resource.Resource)
	}
	return ref.Path
}

// find answers the questions. It makes requests concurrently.
func (c *checker) find(ctx context.Context, from string, questions []*question) {
	var slow []*question
	for _, q := range questions {
		switch {
		case q.invalid != "":
		case q.isNew && (c.authorizer != nil || c.crosses(from, q.name)):
			slow = append(slow, q)
		case q.asks:
			if !c.target.knows(q.name) {
				slow = append(slow, q)
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(requestConcurrency)
	for _, q := range slow {
		group.Go(func() error { c.decide(ctx, from, q); return nil })
	}
	_ = group.Wait()
}

// decide answers one question. A forbidden target is not looked up, because neither the answer
// nor its time may reveal whether it exists.
func (c *checker) decide(ctx context.Context, from string, q *question) {
	defer func() {
		if v := recover(); v != nil { // of the policy, the reviews or the getter
			err := fmt.Errorf("panic: %v", v)
			stack := string(debug.Stack())
			klog.FromContext(ctx).Error(logtext.Error(err), "The check of a reference panicked", "stack", stack)
			q.undecided = undecided(err, "%s: cannot check %s %q", q.path, c.target.resource, q.name)
		}
	}()
	if q.isNew && c.crosses(from, q.name) {
		c.cross(ctx, from, q)
	}
	if q.isNew && c.authorizer != nil && q.forbidden == "" && q.undecided == nil {
		q.forbidden, q.undecided = c.authorizer.refuses(ctx, c.target.resource, q)
	}
	if !q.asks || q.forbidden != "" || q.undecided != nil {
		return
	}
	if c.target.knows(q.name) {
		return
	}
	found, err := c.target.read(ctx, q.name)
	if err != nil {
		doubt := ""
		if err := c.target.Ready(nil); err != nil {
			doubt = err.Error() + ", and "
		}
		q.undecided = undecided(err, "%s: %scannot find out whether %s %q exists",
			q.path, doubt, c.target.resource, q.name)
	}
	q.missing = !found && err == nil
}

// crosses reports whether a reference is from one namespace to another.
func (c *checker) crosses(from string, to cache.ObjectName) bool {
	return c.target.resource.namespaced && from != "" && to.Namespace != from
}

// cross calls the policy for a reference to another namespace.
func (c *checker) cross(ctx context.Context, from string, q *question) {
	var allowed bool
	if c.policy != nil {
		var err error
		if allowed, err = c.policy(ctx, from, q.name); err != nil {
			q.undecided = undecided(err, "%s: cannot find out whether %s %q may be named from namespace %q",
				q.path, c.target.resource, q.name, from)
			return
		}
	}
	if !allowed {
		q.forbidden = fmt.Sprintf("objects in namespace %q may not name %s in namespace %q",
			from, c.target.resource, q.name.Namespace)
	}
}
