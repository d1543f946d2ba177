package reference

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
)

// Option changes what [Exists] asks for.
type Option func(*options)

type options struct {
	strict      bool
	everyUpdate bool
	crossing    Policy
	authorizer  *authorizer
	faults      []error
}

// Strict confirms by a live read also what the informer knows: an object that was
// deleted a moment ago is missing, though the informer is behind. Each reference
// that is checked then costs a request; see [LiveRate]. An object with a deletion
// timestamp, which waits for its finalizers, still exists.
func Strict() Option { return func(o *options) { o.strict = true } }

// Exists returns a validating function for objects of type T, for
// [admission.Validate]: what they refer to must exist. The answer has one error
// for each field at fault: field.NotFound for a missing object, and field.Forbidden
// where [CrossNamespace] or [Authorize] say so. Then nothing is said of whether the
// object exists; it is not even looked up.
//
// A miss of the informer is confirmed by one live read. The function returns an
// error, and so no verdict, while the informer has not synced, when a request to
// the API server fails or takes too long, and when there would be too many of them.
//
// In an update, only the references are checked that the object did not have
// before, wherever it had them: who touches a label, or removes a finalizer, must
// not be denied because of what somebody else deleted, or may read. See
// [OnEveryUpdate]. An object that is being deleted may name what is missing.
//
// Exists panics, with all faults in one error, if an argument is nil or an option
// cannot be.
func Exists[T runtime.Object](target *Target, refs func(obj T) []Ref, opts ...Option) func(ctx context.Context, obj T) (field.ErrorList, error) {
	c := &checker{target: target}
	for _, opt := range opts {
		opt(&c.options)
	}
	if target == nil {
		c.faults = append(c.faults, errors.New("reference: Exists: the target is nil"))
	}
	if refs == nil {
		c.faults = append(c.faults, errors.New("reference: Exists: the function is nil"))
	}
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Pointer {
		c.faults = append(c.faults, fmt.Errorf("reference: Exists: %s is not a pointer", t))
	}
	if err := errors.Join(c.faults...); err != nil {
		panic(err)
	}
	return func(ctx context.Context, obj T) (field.ErrorList, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		request, _ := admission.RequestFrom(ctx)
		from := namespaceOf(m, request)
		found := refs(obj)
		if len(found) == 0 {
			return nil, nil
		}
		before, err := namedBefore(ctx, c, request, refs)
		if err != nil {
			return nil, err
		}
		questions := c.questions(from, found, before, m.GetDeletionTimestamp() != nil)
		if err := c.answer(ctx, from, selfOf(m, request, target.resource), questions.distinct); err != nil {
			return nil, err
		}
		return questions.errors(), nil
	}
}

type checker struct {
	options
	target *Target
}

// question is what is to be found out about one named object.
type question struct {
	name    cache.ObjectName
	ref     Ref  // the first that names it
	isNew   bool // so that policy and permission matter
	asks    bool // so that existence matters
	refused string
	missing bool
}

type questions struct {
	refs     []Ref
	of       []*question // of each ref; nil if there is none
	distinct []*question
	homeless []bool // refs that name no namespace, where one is needed
}

// questions collects what is to be found out, once for each object that is named.
func (c *checker) questions(from string, refs []Ref, before before, deleting bool) *questions {
	q := &questions{refs: refs, of: make([]*question, len(refs)), homeless: make([]bool, len(refs))}
	known := map[cache.ObjectName]*question{}
	for i, ref := range refs {
		if ref.Name == "" {
			continue
		}
		name := c.target.resource.named(from, ref)
		required, had := before[name]
		asks := !ref.Optional && !deleting && (!required || c.everyUpdate)
		if had && !asks {
			continue
		}
		if c.target.resource.namespaced && name.Namespace == "" {
			q.homeless[i] = true
			continue
		}
		one := known[name]
		if one == nil {
			one = &question{name: name, ref: ref, isNew: !had}
			known[name] = one
			q.distinct = append(q.distinct, one)
		}
		one.asks = one.asks || asks
		q.of[i] = one
	}
	return q
}

func (q *questions) errors() (errs field.ErrorList) {
	for i, ref := range q.refs {
		switch one := q.of[i]; {
		case q.homeless[i]:
			errs = append(errs, field.Invalid(ref.Path, ref.Name, "it needs a namespace: the object that names it has none"))
		case one == nil:
		case one.refused != "":
			errs = append(errs, field.Forbidden(ref.Path, one.refused))
		case one.missing && !ref.Optional:
			errs = append(errs, field.NotFound(ref.Path, ref.Name))
		}
	}
	return errs
}

// answer answers the questions, those that need a request side by side.
func (c *checker) answer(ctx context.Context, from string, self cache.ObjectName, all []*question) error {
	var slow []*question
	for _, q := range all {
		switch {
		case q.name == self:
			q.isNew, q.asks = false, false // it is there when this request has passed
		case !possible(q.name):
			q.missing = q.asks
		case q.isNew && c.target.resource.namespaced && from != "" && q.name.Namespace != from:
			if c.crossing == nil {
				q.refused = c.crosses(from, q.name)
				continue
			}
			slow = append(slow, q)
		case q.isNew && c.authorizer != nil, q.asks && c.strict:
			slow = append(slow, q)
		case q.asks:
			known, err := c.target.knows(q.name)
			if err != nil {
				return err
			}
			if !known {
				slow = append(slow, q)
			}
		}
	}
	return sideBySide(slow, cap(c.target.reads.slots), func(q *question) error { return c.decide(ctx, from, q) })
}

// decide answers one question. What the author or the user may not name is not
// looked up: neither the answer nor its time may tell whether it exists.
func (c *checker) decide(ctx context.Context, from string, q *question) (err error) {
	if q.isNew && c.target.resource.namespaced && from != "" && q.name.Namespace != from {
		allowed, err := c.crossing(ctx, from, q.name)
		if err != nil {
			return unavailable("%s: cannot find out whether %s %q may be named from namespace %q: %v", q.ref.Path, c.target.resource, q.name, from, err)
		}
		if !allowed {
			q.refused = c.crosses(from, q.name)
			return nil
		}
	}
	if q.isNew && c.authorizer != nil {
		if q.refused, err = c.authorizer.refuses(ctx, c.target.resource, q.name); err != nil || q.refused != "" {
			return at(q.ref.Path, err)
		}
	}
	if !q.asks {
		return nil
	}
	known, err := c.target.knows(q.name)
	if err == nil && (!known || c.strict) {
		known, err = c.target.read(ctx, q.name)
	}
	q.missing = err == nil && !known
	return at(q.ref.Path, err)
}
