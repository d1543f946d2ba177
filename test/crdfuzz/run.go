package crdfuzz

import (
	"context"
	"sync/atomic"

	"github.com/crdkit/crdkit/test/differential"
)

const (
	// workers run suites at the same time. Each waits for seconds until its definition is
	// served.
	workers = 24
	// perSuite is how many cases a suite has; each is a request or some more.
	perSuite = 30
)

// Definitions counts what was made.
type Definitions struct {
	Accepted, Refused int64
}

// Run makes suites of a seed, and runs them until the tally has enough requests; or only
// suite number only, if that is not negative.
func Run(ctx context.Context, server *differential.Server, tally *differential.Tally, seed uint64, only int) (Definitions, error) {
	var accepted, refused atomic.Int64
	err := differential.InParallel(ctx, workers, func(yield func(int) bool) {
		for i := max(only, 0); (only < 0 || i == only) && yield(i); i++ {
		}
	}, func(ctx context.Context, i int) error {
		made, err := Suite(seed, i, perSuite)
		if err != nil {
			return err
		}
		if err := differential.CompareDefinition(ctx, server, tally, made.Name, made.Raw); err != nil {
			return err
		}
		if made.Suite == nil {
			refused.Add(1)
			return nil
		}
		accepted.Add(1)
		return made.Suite.Run(ctx, server, tally)
	})
	return Definitions{Accepted: accepted.Load(), Refused: refused.Load()}, err
}
