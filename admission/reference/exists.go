package reference

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

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
// that is checked then costs a request; see [RequestRate]. An object with a deletion
// timestamp, which waits for its finalizers, still exists.
func Strict() Option { return func(o *options) { o.strict = true } }

// Exists returns a validating function for objects of type T, for
// [admission.Validate]: what they refer to must exist. The answer has one error
// for each field at fault: field.NotFound for a missing object, field.Forbidden
// where [CrossNamespace] or [Authorize] say so, and field.Invalid for what no object
// can be called, such as "..", and where a namespace is needed and there is none.
// What is forbidden or invalid is not looked up, so that nothing is said of whether
// it exists.
//
// A miss of the informer is confirmed by one live read. The function returns an
// error, and so no verdict, while the informer has not synced or when it has stopped,
// when a request to the API server fails or takes too long, when there would be too
// many of them, and when the scope of the target is wrong. But if one reference is at
// fault for certain, the object is denied, whatever else could not be found out.
//
// In an update, only the references are checked that the object did not have
// before, wherever it had them: who touches a label, or removes a finalizer, must
// not be denied because of what somebody else deleted, or may read. See
// [OnEveryUpdate]. If the old object cannot be read, all references are new. An object
// that is being deleted may name what is missing; it is being deleted if the old
// object is, since users can write a deletionTimestamp into the new one. Without an
// admission request in the context, its own counts.
//
// Exists panics, with all faults in one error, if an argument or option is nil, an
// option cannot be, [CrossNamespace] or [Authorize] are given twice, or Authorize is
// given for a target of [NewSelectorTarget].
func Exists[T runtime.Object](target *Target, refs func(obj T) []Ref, opts ...Option) func(ctx context.Context, obj T) (field.ErrorList, error) {
	c := &checker{target: target}
	for i, opt := range opts {
		if opt == nil {
			c.faults = append(c.faults, fmt.Errorf("reference: Exists: the option at %d is nil", i))
			continue
		}
		opt(&c.options)
	}
	if target == nil {
		c.faults = append(c.faults, errors.New("reference: Exists: the target is nil"))
	}
	if target != nil && target.selects && c.authorizer != nil {
		c.faults = append(c.faults, errors.New("reference: Exists: Authorize asks for an object by its name, and the target has label selectors"))
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
		from := referrer{namespace: namespaceOf(m, request)}
		if isFor(request, target.resource.resource) {
			from.self = cache.ObjectName{Namespace: from.namespace, Name: m.GetName()}
			if err := target.resource.misplaced(from.self); err != nil {
				return nil, err
			}
		}
		found := refs(obj)
		if len(found) == 0 {
			return nil, nil
		}
		from.before, from.deleting = stored(ctx, target.resource, m, request, refs)
		q := c.questions(from, found)
		c.answer(ctx, from.namespace, q.distinct)
		return q.verdict()
	}
}

// referrer is what the answers need to know of the object that names others.
type referrer struct {
	namespace string
	self      cache.ObjectName // if it is of the kind that it names
	before    before
	deleting  bool
}

type checker struct {
	options
	target *Target
}

// question is what is to be found out about one named object.
type question struct {
	name    cache.ObjectName
	path    *field.Path // of the first that names it
	isNew   bool        // so that policy and permission matter
	crosses bool        // into another namespace, so that the policy matters
	asks    bool        // so that existence matters

	refused string
	missing bool
	open    *undecided
}

type questions struct {
	refs     []Ref
	of       []*question // of each ref; nil if there is none
	distinct []*question
	invalid  field.ErrorList // of each ref; nil if it can lead somewhere
}

// questions collects what is to be found out, once for each object that is named.
func (c *checker) questions(from referrer, refs []Ref) *questions {
	q := &questions{refs: slices.Clone(refs), of: make([]*question, len(refs)), invalid: make(field.ErrorList, len(refs))}
	known := map[cache.ObjectName]*question{}
	for i := range q.refs {
		ref := &q.refs[i]
		if ref.fault != "" {
			q.invalid[i] = field.TypeInvalid(ref.Path, field.OmitValueType{}, ref.fault)
		}
		if ref.Name == "" {
			continue
		}
		if ref.Path == nil {
			ref.Path = field.NewPath(c.target.resource.resource.Resource)
		}
		name := c.target.resource.named(from.namespace, *ref)
		required, had := from.before[name]
		asks := !ref.Optional && !from.deleting && (!required || c.everyUpdate)
		if had && !asks || name == from.self && !c.target.selects { // it is there when this request has passed
			continue
		}
		if why := c.target.impossible(name); why != "" {
			q.invalid[i] = field.Invalid(ref.Path, shortened(ref.Name), why)
			continue
		}
		one := known[name]
		if one == nil {
			one = &question{name: name, path: ref.Path, isNew: !had, crosses: !had && c.target.resource.crosses(from.namespace, name)}
			known[name] = one
			q.distinct = append(q.distinct, one)
		}
		one.asks = one.asks || asks
		q.of[i] = one
	}
	return q
}

// verdict returns what is certain, and only if nothing is, what is not.
func (q *questions) verdict() (errs field.ErrorList, _ error) {
	for i, ref := range q.refs {
		switch one := q.of[i]; {
		case q.invalid[i] != nil:
			errs = append(errs, q.invalid[i])
		case one == nil:
		case one.refused != "":
			errs = append(errs, field.Forbidden(ref.Path, one.refused))
		case one.missing && !ref.Optional:
			errs = append(errs, field.NotFound(ref.Path, ref.Name))
		}
	}
	var open []*undecided
	for _, one := range q.distinct {
		if one.open != nil {
			open = append(open, one.open)
		}
	}
	if len(errs) > 0 || len(open) == 0 {
		return errs, nil
	}
	return nil, worst(open).err()
}

// answer answers the questions, those that need a request side by side.
func (c *checker) answer(ctx context.Context, from string, all []*question) {
	var slow []*question
	for _, q := range all {
		switch {
		case q.crosses && c.crossing != nil, q.isNew && !q.crosses && c.authorizer != nil, q.asks && !q.crosses && c.strict:
			slow = append(slow, q)
		case q.crosses:
			q.refused, _ = c.mayCross(ctx, from, q.name)
		case q.asks:
			var known bool
			if known, q.open = c.target.knows(q.name); !known && q.open == nil {
				slow = append(slow, q)
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	patience, most := c.limits()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sideBySide(ctx, slow, most, func(q *question) { c.decide(ctx, from, q) })
}

// limits returns how long the questions of one object may take in all, and how many
// are asked at a time: each kind of request keeps to its own limits.
func (c *checker) limits() (patience time.Duration, most int) {
	patience, most = 2*c.target.reads.timeout, cap(c.target.reads.slots)
	if c.authorizer != nil {
		patience += 2 * c.authorizer.reviews.timeout
		most = max(most, cap(c.authorizer.reviews.slots))
	}
	return patience, most
}

// decide answers one question. What the author or the user may not name is not
// looked up: neither the answer nor its time may tell whether it exists.
func (c *checker) decide(ctx context.Context, from string, q *question) {
	defer func() { q.open = q.open.at(q.path) }()
	if q.crosses {
		if q.refused, q.open = c.mayCross(ctx, from, q.name); q.refused != "" || q.open != nil {
			return
		}
	}
	if q.isNew && c.authorizer != nil {
		if q.refused, q.open = c.authorizer.refuses(ctx, c.target.resource, q.name); q.refused != "" || q.open != nil {
			return
		}
	}
	if !q.asks {
		return
	}
	known, open := c.target.knows(q.name)
	if open == nil && (!known || c.strict) {
		known, open = c.target.read(ctx, q.name)
	}
	q.missing, q.open = !known && open == nil, open
}
