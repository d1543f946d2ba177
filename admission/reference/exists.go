package reference

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
)

const (
	// requestTimeout is how long all requests for one object take together at most. The
	// API server waits 10 seconds by default.
	requestTimeout = 2 * time.Second
	// requestConcurrency is how many of them are under way at a time.
	requestConcurrency = 10
)

// Option changes what [Exists] asks for.
type Option func(*options)

type options struct {
	policy     Policy
	authorizer *authorizer
}

// Policy reports whether objects in one namespace may name an object in another.
// It is called from several goroutines.
type Policy func(ctx context.Context, from string, to cache.ObjectName) (allowed bool, err error)

// CrossNamespace allows references from one namespace into another if the policy allows
// them. Without it they are denied. The policy may read from the cluster, for example an
// object in the other namespace that allows the reference, like Gateway API's
// ReferenceGrant. Its error leaves the request undecided.
//
// The policy is not asked about references within a namespace, to cluster-scoped
// kinds, or from cluster-scoped objects, nor about references that an object had before
// the update.
//
// The verdict on a reference into another namespace reveals whether something exists
// there. Where that matters, use [Authorize] too.
func CrossNamespace(policy Policy) Option { return func(o *options) { o.policy = policy } }

// Exists returns a validating function for objects of type T, for
// [admission.Validate]: what they refer to must exist. The answer has one error
// for each wrong field: field.NotFound for a missing object, field.Forbidden
// where [CrossNamespace] or [Authorize] deny it, and field.Invalid for a name that no
// object can have, such as "..", or where a required namespace is missing.
// A name that is forbidden or invalid is not looked up, so that the answer does not
// reveal whether it exists.
//
// The function returns an error, and so no verdict, where something is not known: see "Denied,
// or not decided" in the package documentation. All requests for one object together take two
// seconds at most.
//
// In an update, only the references are checked that the object did not have
// before. If the old object cannot be decoded, all references are new. An object
// that is being deleted may name what is missing.
//
// T is a pointer to a struct.
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
		if old, err := admission.OldFrom[T](ctx); err == nil && !reflect.ValueOf(old).IsNil() {
			for _, ref := range refs(old) {
				name := target.resource.resolve(m.GetNamespace(), ref)
				before[name] = before[name] || !ref.Optional
			}
		}
		return c.answer(ctx, m, found, before)
	}
}

type checker struct {
	options
	target *Target
}

// question is what is to be found out about one named object.
type question struct {
	name  cache.ObjectName
	path  *field.Path // of the first reference that names it
	isNew bool        // so that policy and permission matter
	asks  bool        // so that existence matters

	invalid   string
	forbidden string
	missing   bool
	undecided error
}

// answer checks the references of an object. before holds what it named before the
// update, and whether by a reference that is not optional.
func (c *checker) answer(
	ctx context.Context, m metav1.Object, refs []Ref, before map[cache.ObjectName]bool,
) (errs field.ErrorList, _ error) {
	questions := make(map[cache.ObjectName]*question, len(refs))
	var all []*question
	for _, ref := range refs {
		name := c.target.resource.resolve(m.GetNamespace(), ref)
		// The API server sets and clears the deletionTimestamp before it validates, so that
		// users cannot (apiserver/pkg/registry/rest/update.go, generic/registry/store.go).
		required, had := before[name]
		asks := !ref.Optional && !required && m.GetDeletionTimestamp() == nil
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
		case ref.problem != "":
			errs = append(errs, field.TypeInvalid(path, field.OmitValueType{}, ref.problem))
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
		return errs, nil // whatever else is not known
	}
	for _, q := range all {
		if q.undecided != nil {
			return nil, q.undecided
		}
	}
	return nil, nil
}

// isItself reports whether an object names itself. It exists when the request has passed.
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

// find answers the questions, those that need a request side by side.
func (c *checker) find(ctx context.Context, from string, questions []*question) {
	var slow []*question
	for _, q := range questions {
		switch {
		case q.invalid != "":
		case q.isNew && (c.authorizer != nil || c.crosses(from, q.name)):
			slow = append(slow, q)
		case q.asks:
			var known bool
			if known, q.undecided = c.target.knows(q.name); !known && q.undecided == nil {
				slow = append(slow, q)
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	slots := make(chan struct{}, requestConcurrency)
	var wg sync.WaitGroup
	for _, q := range slow {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c.decide(ctx, from, q)
		})
	}
	wg.Wait()
}

// decide answers one question. Objects that the author or the user may not name are not
// looked up: neither the answer nor its time may reveal whether it exists.
func (c *checker) decide(ctx context.Context, from string, q *question) {
	defer func() {
		if v := recover(); v != nil { // of the policy, the reviews or the getter
			err := fmt.Errorf("panic: %v", v)
			stack := string(debug.Stack())
			klog.FromContext(ctx).Error(err, "The check of a reference panicked", "stack", stack)
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
	var known bool
	if known, q.undecided = c.target.knows(q.name); known || q.undecided != nil {
		return
	}
	known, err := c.target.read(ctx, q.name)
	if err != nil {
		q.undecided = undecided(err, "%s: cannot find out whether %s %q exists",
			q.path, c.target.resource, q.name)
	}
	q.missing = !known && err == nil
}

// crosses reports whether a reference leads from one namespace into another.
func (c *checker) crosses(from string, to cache.ObjectName) bool {
	return c.target.resource.namespaced && from != "" && to.Namespace != from
}

// cross asks the policy about a reference into another namespace.
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
