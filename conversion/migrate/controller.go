package migrate

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/internal/objectwatch"
)

const (
	// retry is when a controller tries again after an error. It learns of changes at once.
	retry = time.Minute
	// resync is when it looks again in any case.
	resync = 10 * time.Minute
	// watchRetry is the pause after a watch of a definition that failed.
	watchRetry = 5 * time.Second
	// delegatePatience is how long a migration of the API may wait for a controller.
	delegatePatience = 5 * time.Minute
)

// Controller does what [Run] does for some definitions, whenever their storage version has
// changed, from inside an operator. One replica at a time should run it.
type Controller struct {
	migrators []*migrator
}

// NewController returns a controller for definitions that are named as [Run] names them. The options
// are those of Run, without [DryRun]. [Rate] is for all definitions together, and [Observe] is called
// for each, also at the same time. The error has all that is wrong with the arguments.
//
// Where the API server has storagemigration.k8s.io/v1 (Kubernetes 1.37), the cluster rewrites the
// objects. It patches the objects themselves, stops at the first one that admission refuses, and does
// not notice what admission changes. So each patch is tried with dryRun first: if admission would
// refuse or change an object, or managedFields would be lost, the controller rewrites the objects
// itself, as Run does. So it does for what the cluster leaves behind, and if no controller of the
// cluster begins within five minutes.
func NewController(config *rest.Config, crds []string, opts ...Option) (*Controller, error) {
	c := &Controller{}
	var errs []error
	if len(crds) == 0 {
		errs = append(errs, errors.New("migrate: crds is empty, expected the names of CustomResourceDefinitions"))
	}
	for _, crd := range crds {
		m, err := newMigrator(config, crd, opts)
		if err != nil {
			return nil, err // the same for each
		}
		m.delegates = true
		if len(c.migrators) > 0 {
			m.limiter = c.migrators[0].limiter
		}
		if m.dryRun {
			errs = append(errs, errors.New("migrate: DryRun is given, expected options without it"))
			break
		}
		c.migrators = append(c.migrators, m)
	}
	return c, errors.Join(errs...)
}

// Start migrates until the context ends, and then returns nil. Errors are logged with the logger of
// the context, and tried again: what is refused, after a minute, or when the definition changes.
// [ControllerRules] has the rights that it needs.
//
// With NeedLeaderElection, a Controller is a Runnable for a manager of controller-runtime. Without a
// manager, call Start where k8s.io/client-go/tools/leaderelection says that this replica leads.
func (c *Controller) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, m := range c.migrators {
		running.Go(func() {
			objectwatch.Object{
				Client: m.dynamic.Resource(definitions), Name: m.name, WatchRetry: watchRetry,
				Message: "Cannot migrate the stored objects",
				Sync: func(ctx context.Context) (time.Duration, error) {
					_, err := m.run(ctx)
					if err == nil || absent(err) {
						return resync, nil
					}
					return retry, err
				},
			}.Run(ctx, make(chan struct{}, 1))
		})
	}
	running.Wait()
	return nil
}

// NeedLeaderElection returns true: replicas that migrate at the same time do no harm, but each
// object is written more often.
func (*Controller) NeedLeaderElection() bool { return true }
