package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
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

// Report is the result of [Run]. If Run started again because the CRD changed, the report
// covers only the last pass.
type Report struct {
	Progress
	// Storage is the storage version.
	Storage string
	// Dropped are the versions that were removed from status.storedVersions. With [DryRun],
	// they are the versions that would be removed.
	Dropped []string
	// Problems are the first hundred objects that could not be rewritten. Failed counts all
	// such objects.
	Problems []Problem
}

// Run rewrites all stored objects of a CRD in its storage version, and then removes the other
// versions from status.storedVersions. crd is the name of the CRD, such as
// "pizzas.restaurant.example.com". If status.storedVersions contains only the storage version, Run
// rewrites nothing. The storage version must be served, because patches in another version could
// lose fields. Run needs the permissions of [PolicyRules].
//
// If an object cannot be rewritten, because admission or validation refuses it, or its conversion
// fails, Run continues with the others. It then does not change status.storedVersions, names the
// object in the report, and returns an error that matches [ErrRefused]. After you have fixed the
// cause, call Run again: it rewrites only the remaining objects. If Run is interrupted at any
// point, no field is lost; for managedFields, see the package documentation.
//
// If an object cannot be read in any served version, all lists that contain it fail, and Run
// returns an error without rewriting the objects after it.
//
// Run lists pages of at most 500 objects, without their spec and status. It retries
// temporary failures for a while, and logs one of them every five seconds with the logger of the
// context. It returns an error if the API server cannot be reached for a minute, or if a hundred
// objects in a row fail temporarily.
//
// The report is nil only if an argument is invalid, or the CRD cannot be read.
func Run(ctx context.Context, config *rest.Config, crd string, opts ...Option) (*Report, error) {
	m, err := newMigrator(config, crd, opts)
	if err != nil {
		return nil, err
	}
	return m.run(ctx)
}

func (m *migrator) run(ctx context.Context) (*Report, error) {
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

// migrator holds the state of one call of Run or Remove.
type migrator struct {
	settings
	name     string
	limiter  flowcontrol.RateLimiter
	retries  *rate.Sometimes // that are logged
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func newMigrator(config *rest.Config, crd string, opts []Option) (*migrator, error) {
	set, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if len(validation.IsDNS1123Subdomain(crd)) > 0 || !strings.Contains(crd, ".") {
		return nil, fmt.Errorf("migrate: %q is not the name of a CustomResourceDefinition, expected one such as pizzas.restaurant.example.com", crd)
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
	m := &migrator{settings: set, name: crd, limiter: set.limiter(), retries: &rate.Sometimes{First: 1, Interval: retryLog}}
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

// round rewrites the remaining objects. It reports whether all are done. If not, the CRD
// has changed meanwhile.
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
	_, subresources := d.target()
	// The managedFields are restored in the object itself.
	if err := m.permitted(ctx, d, append(subresources, "")...); err != nil {
		return false, err
	}
	since, err := m.begin(ctx, d)
	if err != nil || since == "" {
		return false, err
	}
	err = m.objects(ctx, d, report, func(ctx context.Context, l listed) (outcome, error) {
		return m.object(ctx, d, since, l)
	})
	if err == nil && report.Failed > 0 {
		err = report.refusal("status.storedVersions keeps %s: %d of %d objects could not be rewritten in %s", strings.Join(old, ", "), report.Failed, report.Done(), d.storage)
	}
	if err != nil {
		if _, away := errors.AsType[*unreachableError](err); ctx.Err() == nil && !away {
			if now, readErr := m.read(ctx); absent(readErr) || readErr == nil && !d.same(now) {
				return false, nil // it may have failed for that
			}
		}
		return false, err
	}
	if done = m.dryRun; !done {
		done, err = m.drop(ctx, d)
	}
	if done {
		report.Dropped = old
	}
	return done, err
}

// begin returns the resourceVersion since which all that is written is stored in the storage version:
// that of the checkpoint, or a new one, which becomes the checkpoint. It returns "" if the CRD has
// changed meanwhile.
func (m *migrator) begin(ctx context.Context, d *definition) (since string, err error) {
	if since = d.checkpoint(m.propagationDelay); since != "" {
		return since, nil
	}
	if same, err := m.settled(ctx, d); err != nil || !same {
		return "", err
	}
	// Nothing that is written from now on is stored in an old version.
	if since, err = m.now(ctx, d); err != nil {
		return "", err
	}
	if m.dryRun {
		return since, nil
	}
	c := &checkpoint{StorageVersion: d.storage, ResourceVersion: since, Generation: d.Generation, UID: d.UID, PropagationDelay: m.propagationDelay.String()}
	if done, err := m.unless(m.annotate(ctx, d, c)); err != nil || !done {
		return "", err
	}
	return since, nil
}

// unless reports whether there is no error. It drops a conflict: then the CRD must be read
// again.
func (m *migrator) unless(err error) (ok bool, _ error) {
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// settled waits until all API servers know the storage version, and have stored earlier
// requests. It reports whether the CRD is still the same.
func (m *migrator) settled(ctx context.Context, d *definition) (bool, error) {
	// A clock that is ahead by less than ten minutes makes no difference.
	if changed := d.changed(); m.dryRun || !changed.IsZero() && time.Since(changed) > m.propagationDelay+10*time.Minute {
		return true, nil
	}
	if m.propagationDelay > 0 {
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

// drop leaves only the storage version in status.storedVersions. It returns false if the
// CRD has changed since its objects were rewritten.
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

// ErrRefused matches, with [errors.Is], the error of Run if objects could not be rewritten,
// and the error of Remove if the version is still needed.
var ErrRefused = errors.New("migrate: refused")

// refused marks an error as ErrRefused, without changing its text.
type refused struct{ error }

func (e refused) Is(target error) bool { return target == ErrRefused }
func (e refused) Unwrap() error        { return e.error }

// refusal returns an error that says what is left to do, and all problems.
func (r *Report) refusal(format string, args ...any) error {
	errs := []error{fmt.Errorf(format+": fix them, or what refuses them, and run again", args...)}
	for _, p := range r.Problems {
		errs = append(errs, p)
	}
	if more := r.Failed - int64(len(r.Problems)); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return refused{errors.Join(errs...)}
}

var errTooMany = errors.New("a hundred objects in a row failed")
