package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/objectwatch"
)

const (
	// retry is the pause after an error, which doubles with each further error. A change of the CRD
	// ends the pause.
	retry = time.Minute
	// resync is the maximum time between two checks of a CRD.
	resync = 10 * time.Minute
	// watchRetry is the pause after a failed watch of a CRD.
	watchRetry = 5 * time.Second
)

// Controller migrates the stored objects of some CRDs like [Run], from inside an operator,
// whenever their storage version has changed. Run it in one replica at a time.
type Controller struct {
	migrators   []*migrator
	definitions dynamic.ResourceInterface // without the timeout of the migrators, which would end each watch
}

// NewController returns a controller for the CRDs with the given names, such as
// pizzas.example.com. The options are the options of [Run], except [DryRun]. [Rate] limits the
// requests for all CRDs together. The function of [Observe] is called for each CRD, and must be
// safe for concurrent use.
//
// The controller does not use StorageVersionMigrations, which Kubernetes 1.37 has. The cluster sets status.storedVersions
// also after a migration that failed, and patches in its preferred version, which may lack fields of the storage version
// (kubernetes/pkg/controller/storageversionmigrator: finishCRDMigration and resourceFor).
//
// NewController returns an error if crds is empty, if an argument is invalid, or if DryRun is set.
func NewController(config *rest.Config, crds []string, opts ...Option) (*Controller, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	if len(crds) == 0 {
		return nil, errors.New("migrate: crds is empty, expected the names of CustomResourceDefinitions")
	}
	c := &Controller{definitions: client.Resource(definitions)}
	for _, crd := range crds {
		m, err := newMigrator(config, crd, opts)
		if err != nil {
			return nil, err
		}
		if len(c.migrators) > 0 {
			m.limiter = c.migrators[0].limiter
		}
		if m.dryRun {
			return nil, errors.New("migrate: DryRun is given, expected options without it")
		}
		c.migrators = append(c.migrators, m)
	}
	return c, nil
}

// Start migrates objects until the context is done, and then returns nil. Start logs errors with
// the logger of the context, and retries the migration after a minute, or when the CRD changes. The
// minute doubles with each further error, to at most ten minutes. Start waits for a CRD that does not
// exist, and logs that every ten minutes. [ControllerRules] returns the necessary permissions.
//
// A Controller is a Runnable for a manager of controller-runtime, which respects
// NeedLeaderElection. Without a manager, call Start when the replica becomes the leader
// (k8s.io/client-go/tools/leaderelection).
func (c *Controller) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, m := range c.migrators {
		running.Go(func() {
			var told time.Time // that there is no CRD
			wait := retry
			objectwatch.Object{
				Client: c.definitions, Name: m.name, WatchRetry: watchRetry,
				Message: "Cannot migrate the stored objects",
				Sync: func(ctx context.Context) (time.Duration, error) {
					report, err := m.run(ctx)
					missing := report == nil && absent(err) // a webhook may answer the same for an object
					if !missing {
						told = time.Time{}
					} else if time.Since(told) >= resync {
						told = time.Now()
						klog.FromContext(ctx).Info("The CustomResourceDefinition does not exist; its stored objects are migrated once it is created", "customResourceDefinition", m.name)
					}
					if err == nil || missing {
						wait = retry
						return resync, nil
					}
					again := wait
					wait = min(2*wait, resync)
					return again, err
				},
			}.Run(ctx, make(chan struct{}, 1))
		})
	}
	running.Wait()
	return nil
}

// NeedLeaderElection returns true, although several replicas that migrate at the same time only
// write each object more often.
func (*Controller) NeedLeaderElection() bool { return true }
