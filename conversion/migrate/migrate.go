package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// fieldManager owns nothing in the objects, since it changes nothing; audit logs have it.
	fieldManager = "crdkit-migrate"
	// maxRounds is how often Run begins again, because the definition has changed.
	maxRounds = 5
)

// Report is what Run has done. If the definition has changed in the meantime, so that Run has
// begun again, it is about the last time.
type Report struct {
	Progress
	// Storage is the storage version.
	Storage string
	// Dropped are the versions that were taken out of status.storedVersions; with [DryRun],
	// those that would be.
	Dropped []string
	// Problems are the objects that could not be rewritten, the first hundred; Failed counts
	// all of them.
	Problems []Problem
}

// Run rewrites all stored objects of a definition in its storage version, and then takes
// the other versions out of status.storedVersions. The definition is named as its metadata
// is: "pizzas.restaurant.example.com". If nothing but the storage version is stored, it
// does nothing.
//
// An object that cannot be rewritten, because admission or validation refuses it, or its
// conversion fails, does not stop the others; it is in the report, and the stored versions
// stay as they are. Then the error is [ErrRefused], and names them. (An object that no served
// version can show fails every list: Run ends there.) After that has been fixed, Run may be
// called again: only what is left is rewritten. No field is lost when it stops at any point.
//
// It reads pages of at most 500 objects, without their spec and status. It tries again for a while what
// fails for the moment; Run gives up when the API server cannot be reached for a minute, or
// has failed a hundred objects in a row.
//
// The storage version must be served: in another one, objects could lose fields.
//
// The report is not nil, also when there is an error, unless an option is wrong or the
// definition cannot be read. [PolicyRules] has the rights that it needs.
func Run(ctx context.Context, config *rest.Config, crd string, opts ...Option) (*Report, error) {
	m, err := newMigrator(config, crd, opts)
	if err != nil {
		return nil, err
	}
	d, err := m.read(ctx)
	if err != nil {
		return nil, m.explain(err)
	}
	report := &Report{Storage: d.storage}
	for range maxRounds {
		// The work of the last round is done, even if another storage version was in between.
		*report = Report{Storage: d.storage}
		done, err := m.round(ctx, d, report)
		if err != nil || done {
			return report, m.explain(err)
		}
		if d, err = m.read(ctx); err != nil {
			return report, m.explain(err)
		}
	}
	return report, m.explain(fmt.Errorf("changed %d times while objects were rewritten: find the other writer, and run again", maxRounds))
}

// migrator is one call of Run or Remove.
type migrator struct {
	settings
	name     string
	limiter  flowcontrol.RateLimiter
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func newMigrator(config *rest.Config, crd string, opts []Option) (*migrator, error) {
	set, err := apply(opts)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// insist waits for the limiter instead: client-go logs when it does that for a second.
	config.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	// The user of the migration knows that an old version is deprecated.
	config.WarningHandler = rest.NoWarnings{}
	config.WarningHandlerWithContext = nil
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	m := &migrator{settings: set, name: crd, limiter: set.limiter()}
	if m.dynamic, err = dynamic.NewForConfig(config); err == nil {
		m.metadata, err = metadata.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return m, nil
}

func (m *migrator) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrate: CustomResourceDefinition %s: %w", m.name, err)
}

// round rewrites what is left. It reports whether that was all; if not, the definition has
// changed meanwhile.
func (m *migrator) round(ctx context.Context, d *definition, report *Report) (done bool, err error) {
	old := d.old()
	if len(old) == 0 {
		if m.dryRun {
			return true, nil
		}
		return m.unless(m.annotate(ctx, d, nil))
	}
	if err := d.writable(); err != nil {
		return false, err
	}
	if err := m.permitted(ctx, d, d.patched(m.dryRun)...); err != nil {
		return false, err
	}
	since := d.checkpoint(m.propagationDelay)
	if since == "" {
		if done, err := m.settled(ctx, d); err != nil || !done {
			return false, err
		}
		// Nothing that is written from now on is stored in an old version.
		if since, err = m.now(ctx, d); err != nil {
			return false, err
		}
		if !m.dryRun {
			c := &checkpoint{StorageVersion: d.storage, ResourceVersion: since, Generation: d.Generation, UID: d.UID, PropagationDelay: m.propagationDelay.String()}
			if done, err := m.unless(m.annotate(ctx, d, c)); err != nil || !done {
				return false, err
			}
		}
	}
	err = m.objects(ctx, d, report, func(ctx context.Context, l listed) (outcome, error) {
		return m.object(ctx, d, since, l)
	})
	if err == nil && report.Failed > 0 {
		err = report.refusal(old)
	}
	if err != nil {
		var away *unreachableError
		if ctx.Err() != nil || errors.As(err, &away) {
			return false, err
		}
		if now, readErr := m.read(ctx); readErr == nil && !d.same(now) {
			return false, nil // it may have failed for that
		}
		return false, err
	}
	report.Dropped = old
	if m.dryRun {
		return true, nil
	}
	dropped, err := m.drop(ctx, d)
	if err != nil || !dropped {
		report.Dropped = nil
	}
	return dropped, err
}

// unless says that all is well, unless there is an error. A conflict is not an error: the definition
// is to be read again.
func (m *migrator) unless(err error) (ok bool, _ error) {
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// settled waits until all API servers have heard of the storage version, and have stored what
// they were asked before. It reports whether the definition is still the same.
func (m *migrator) settled(ctx context.Context, d *definition) (bool, error) {
	// A clock that is ahead by less than nine minutes makes no difference.
	if changed := d.changed(); m.dryRun || !changed.IsZero() && time.Since(changed) > 10*time.Minute {
		return true, nil
	}
	if m.observe != nil && m.propagationDelay > 0 {
		m.observe(Progress{Waiting: m.propagationDelay})
	}
	if err := pause(ctx, m.propagationDelay); err != nil {
		return false, err
	}
	now, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	same := d.same(now)
	*d = *now
	return same, nil
}

// drop leaves the storage version alone in status.storedVersions. It reports whether it has: if
// not, the definition has been changed since its objects were rewritten.
func (m *migrator) drop(ctx context.Context, d *definition) (bool, error) {
	for range maxWrites {
		now, err := m.read(ctx)
		if err != nil {
			return false, err
		}
		if !d.same(now) {
			return false, nil
		}
		if len(now.old()) == 0 {
			if done, err := m.unless(m.annotate(ctx, now, nil)); done || err != nil {
				return done, err
			}
			continue
		}
		// A status has another field manager's fields in it, so it is written where it lies.
		only := operation{"replace", "/status/storedVersions", []string{now.storage}}
		if _, err := m.unless(m.patch(ctx, now, only, "status")); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("changed %d times while status.storedVersions was written: find the other writer, and run again", maxWrites)
}

// ErrRefused is what [errors.Is] finds in errors of Run if objects could not be rewritten,
// and of Remove if the version is still needed.
var ErrRefused = errors.New("migrate: refused")

// refused marks an error as ErrRefused, whose text adds nothing.
type refused struct{ error }

func (e refused) Is(target error) bool { return target == ErrRefused }
func (e refused) Unwrap() error        { return e.error }

// refusal says that objects are still stored in an old version.
func (r *Report) refusal(old []string) error {
	text := fmt.Sprintf("status.storedVersions keeps %s: %d of %d objects could not be rewritten in %s: fix them, or what refuses them, and run again", strings.Join(old, ", "), r.Failed, r.Done(), r.Storage)
	return refused{errors.Join(append([]error{errors.New(text)}, r.faults()...)...)}
}

var errTooMany = errors.New("a hundred objects in a row failed")
