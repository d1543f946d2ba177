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

// Controller runs inside an operator. It does what [Run] does for the given CRDs whenever their
// storage version has changed. One replica at a time should run it.
type Controller struct {
	migrators []*migrator
}

// NewController returns a controller for the named CRDs. The names have the same form as for
// [Run]. The options are those of Run, without [DryRun]. [Rate] limits all CRDs together. The
// function of [Observe] is called for each CRD, possibly concurrently. The error reports
// everything that is wrong with the arguments.
//
// Where the API server has storagemigration.k8s.io/v1 (Kubernetes 1.37), the cluster rewrites
// the objects. Its migrator patches the objects, not their status. It stops at the first
// refusal, and does not notice changes by admission. Therefore the Controller first tries each
// patch with dryRun. If an object would be refused or changed, or would lose managedFields, the
// Controller rewrites the objects itself, as Run does. It also rewrites objects that the
// cluster leaves behind, and all objects if the cluster's migrator does not begin within five
// minutes.
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

// Start migrates until the context ends, and then returns nil. Errors are logged with the
// logger of the context, and the migration is retried. After a refusal, it is retried after a
// minute, or when the CRD changes. [ControllerRules] has the rights that it needs.
//
// A Controller is a Runnable of controller-runtime. Because of its NeedLeaderElection method, a
// manager runs it only on the leader. Without a manager, call Start in the OnStartedLeading
// callback of k8s.io/client-go/tools/leaderelection.
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
