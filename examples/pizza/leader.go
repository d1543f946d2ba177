package pizza

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// Lease names the object of that kind in coordination.k8s.io/v1 by which the replicas of the
// operator elect the one whose controller works. The durations are those of
// client-go/tools/leaderelection.
type Lease struct {
	// Namespace and Name of the object, which the leader creates.
	Namespace, Name string
	// Identity of this replica, which no other replica has or had, not even one that was killed.
	Identity string
	// Duration, in whole seconds, is how long the others wait after the last renewal of the lease
	// before one of them acquires it.
	Duration time.Duration
	// RenewDeadline is how long the leader tries to renew the lease before it stops its controller,
	// which must end within the rest of Duration.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two attempts to renew or acquire the lease.
	RetryPeriod time.Duration
}

// leadership runs the work of the leader while this replica leads.
type leadership struct {
	lease Lease
	lock  resourcelock.Interface
}

// newLeadership returns the leadership of a lease in the cluster of the configuration. The error
// joins all mistakes in the lease.
func newLeadership(config *rest.Config, lease Lease) (*leadership, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "pizza-operator/leader-election"
	// One request that hangs must not cost the lease (resourcelock.NewFromKubeconfig).
	config.Timeout = max(time.Second, lease.RenewDeadline/2)
	client, err := v1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return leadershipOf(lease, &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: lease.Identity},
	})
}

func leadershipOf(lease Lease, lock resourcelock.Interface) (*leadership, error) {
	l := &leadership{lease: lease, lock: lock}
	var errs []error
	if lease.Namespace == "" || lease.Name == "" {
		errs = append(errs, errors.New("no namespace or name"))
	}
	if lease.Duration%time.Second != 0 {
		// The object holds whole seconds only, so the others would not wait long enough.
		errs = append(errs, fmt.Errorf("its duration must be whole seconds, not %s", lease.Duration))
	}
	if _, err := l.elector(lock, func(context.Context) {}); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("the lease for the leader: %w", err)
	}
	return l, nil
}

func (l *leadership) elector(lock resourcelock.Interface, elected func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: l.lease.Duration,
		RenewDeadline: l.lease.RenewDeadline,
		RetryPeriod:   l.lease.RetryPeriod,
		Callbacks:     leaderelection.LeaderCallbacks{OnStartedLeading: elected, OnStoppedLeading: func() {}},
	})
}

// run calls work in each term in which this replica leads, until ctx is done. The context of work
// is done at the end of the term, after which work must return soon (see [Lease]). There is never
// more than one call, and the lease is released after work has returned.
//
// No lease prevents that a process that was suspended for longer than the lease lasts writes once
// more before it looks at the clock, so the work of its successor must correct such a write.
func (l *leadership) run(ctx context.Context, work func(context.Context)) {
	for ctx.Err() == nil {
		if err := l.term(ctx, work); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot release the lease of the leader; the others wait until it ends", "lease", l.lock.Describe())
		}
	}
}

// term waits until this replica leads, and works until it no longer does, or ctx is done.
//
// It does not use ReleaseOnCancel of the elector, which releases the lease before it tells the
// callback to stop, and may release the lease of another replica after a failed update
// (leaderelection.go: renew, tryRelease).
func (l *leadership) term(ctx context.Context, work func(context.Context)) error {
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	// The lease is renewed until the work has ended.
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElecting()
	elected := make(chan struct{})
	elector, err := l.elector(&watchedLock{Interface: l.lock, lost: stopWorking}, func(leading context.Context) {
		context.AfterFunc(leading, stopWorking)
		close(elected)
	})
	if err != nil {
		return err // impossible, because leadershipOf has tried it
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-elected:
		work(working)
	case <-ctx.Done():
	}
	stopElecting()
	<-ended
	return l.release(ctx)
}

// release releases the lease, if this replica still holds it.
func (l *leadership) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.lease.RenewDeadline)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := l.lock.Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case record.HolderIdentity != l.lock.Identity():
			return nil
		}
		now := metav1.Now()
		return l.lock.Update(ctx, resourcelock.LeaderElectionRecord{ // as tryRelease in leaderelection.go
			LeaderTransitions:    record.LeaderTransitions,
			LeaseDurationSeconds: 1,
			AcquireTime:          now,
			RenewTime:            now,
		})
	})
}

// watchedLock calls lost as soon as another replica holds the lease, because the elector would
// continue to renew it, and the work to run, until RenewDeadline. It also makes each renewal by
// another holder visible.
type watchedLock struct {
	resourcelock.Interface
	lost func()
	held atomic.Bool
}

func (w *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	// The JSON of a record has whole seconds. If the first renewal falls into the second of the
	// acquisition and is slow to arrive, the others would not see it, and take the lease too early.
	raw = record.RenewTime.AppendFormat(raw, time.RFC3339Nano)
	if record.HolderIdentity != w.Identity() && w.held.Load() {
		w.lost()
	}
	return record, raw, nil
}

func (w *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.note(w.Interface.Create(ctx, record))
}

func (w *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.note(w.Interface.Update(ctx, record))
}

func (w *watchedLock) note(err error) error {
	if err == nil {
		w.held.Store(true)
	}
	return err
}
