package differential

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// RunAll runs suites, so many at a time: each waits for seconds until its definition is
// ready to be used. It ends with the first error.
func RunAll(ctx context.Context, server *Server, tally *Tally, suites []*Suite) error {
	return InParallel(ctx, 32, slices.Values(suites), func(ctx context.Context, s *Suite) error {
		if err := s.Run(ctx, server, tally); err != nil {
			return fmt.Errorf("%s: %w", s.CRD.Name, err)
		}
		return nil
	})
}

// InParallel calls a function for each value, so many at a time, until there is an error;
// ErrEnough is none.
func InParallel[T any](ctx context.Context, workers int, values iter.Seq[T], do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue, enough := make(chan T), make(chan bool, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for v := range queue {
				if err := do(ctx, v); errors.Is(err, ErrEnough) {
					enough <- true
					return
				} else if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for v := range values {
		select {
		case queue <- v:
			continue
		case <-enough:
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}
