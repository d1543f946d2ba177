package reference

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// Policy says whether objects in one namespace may name an object in another.
// It is called from several goroutines.
type Policy func(ctx context.Context, from string, to cache.ObjectName) (allowed bool, err error)

// CrossNamespace allows what the policy allows, of references from one namespace
// into another. Without it they are denied. The policy may look into the cluster,
// for an object in the other namespace that allows the reference, as Gateway API's
// ReferenceGrant does. Its error leaves the request undecided.
//
// The policy is not asked about references within a namespace, to cluster-scoped
// kinds, or from cluster-scoped objects: who may write those is trusted in every
// namespace, unless [Authorize] says otherwise. Neither is it asked about
// references that an object had before the update.
//
// A reference into another namespace tells by the verdict whether something exists
// there. Where that matters, use [Authorize] too. To give two policies to one [Exists]
// is a fault.
func CrossNamespace(policy Policy) Option {
	return func(o *options) {
		if o.crossing != nil {
			o.faults = append(o.faults, errors.New("reference: CrossNamespace is given twice"))
		}
		if policy == nil {
			o.faults = append(o.faults, errors.New("reference: CrossNamespace: the policy is nil"))
		}
		o.crossing = policy
	}
}

// crosses says whether a reference leads from one namespace into another.
func (r Resource) crosses(from string, to cache.ObjectName) bool {
	return r.namespaced && from != "" && to.Namespace != from
}

// mayCross returns why a reference that crosses is not allowed, and not whether it
// leads anywhere; it is empty if it is allowed.
func (c *checker) mayCross(ctx context.Context, from string, to cache.ObjectName) (string, *undecided) {
	if c.crossing != nil {
		allowed, err := c.crossing(ctx, from, to)
		if err != nil {
			return "", because(err, "cannot find out whether %s %q may be named from namespace %q", c.target.resource, to, from)
		}
		if allowed {
			return "", nil
		}
	}
	return fmt.Sprintf("objects in namespace %q may not name %s in namespace %q", from, c.target.resource, to.Namespace), nil
}
