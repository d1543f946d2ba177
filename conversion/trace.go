package conversion

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/conversiontrace"
)

// trace lets package roundtrip watch the functions, and convert through the hub where a request would
// not, if the context asks for it: see package conversiontrace. It reports whether it does.
func (c *converter) trace(ctx context.Context) (traced bool) {
	if watch := conversiontrace.From(ctx); watch != nil {
		traced = true
		c.call = func(ctx context.Context, s *step, in, out runtime.Object) error {
			after := watch(conversiontrace.Call{From: s.from, To: s.to, In: in, Out: out, Func: s.function, Shares: s.shares})
			err := s.function(ctx, in, out)
			after()
			return err
		}
	}
	if conversiontrace.IsThroughHub(ctx) {
		traced = true
		c.route, c.findRoute = nil, func(from schema.GroupVersionKind, to schema.GroupVersion) (*route, error) {
			if from.GroupVersion() == to {
				return c.registry.graph.throughHub(from)
			}
			return c.registry.graph.route(from, to)
		}
	}
	return traced
}
