package schema

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// inTime validates until the context ends, or the time of a write is over; the error is the
// server's Timeout then. Some of upstream's validation takes quadratic time, and does not
// look at a context: like the server, inTime leaves it alone
// (apiserver/pkg/endpoints/handlers/finisher/finisher.go, FinishRequest).
func inTime(ctx context.Context, validate func(context.Context) field.ErrorList) (field.ErrorList, error) {
	ctx, cancel := context.WithTimeout(ctx, pipeline.MaxTime)
	defer cancel()
	type result struct {
		errs     field.ErrorList
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.errs = validate(ctx)
	}()
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.errs, nil
	case <-ctx.Done():
		return nil, pipeline.Timeout(ctx.Err())
	}
}
