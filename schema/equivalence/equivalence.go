package equivalence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema"
)

// Test sends the same requests to two releases of an API, each on an API server in this process, and fails if they decide
// differently. See [Compare] for what it compares. Test also fails for each decision that was never taken, because then
// the requests prove nothing about it; see [Undecided].
func Test(t *testing.T, before, after schema.Release, opts ...Option) {
	t.Helper()
	report, err := Compare(t.Context(), before, after, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if !report.Equivalent() {
		t.Fail()
	}
}

// Compare sends the same requests to two releases, and returns how their responses differ: one allows a request and the
// other denies it, or both allow it and return different objects. Why both deny a request is not compared.
//
// The requests create, update and delete objects of all kinds that the releases define, and update their status; see also
// [Stored]. The objects are generated from the schemas of both releases and from [Samples], and are then edited: one field
// gets a constant of an expression or a value of its parameters, a value at a bound of the schema or next to it, the value of
// another field, or no value; lists get longer or shorter, and maps get keys that an expression or an objectSelector mentions.
// Half of the objects are also read and updated in another version. The names, the namespaces and the users of requests include
// those that expressions and selectors mention. The requests depend on [Seed] only.
//
// Compare returns an error if a release cannot be installed, if the releases do not define the same kinds, if a binding has
// no parameters, or if a webhook gives no valid answer. The error names the release, the file, the object and the field.
func Compare(ctx context.Context, before, after schema.Release, opts ...Option) (*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &comparison{requests: 2000, abort: cancel, found: map[signature]*Difference{}, declared: map[string]int{}}
	report, err := c.run(ctx, before, after, opts)
	if err != nil {
		return nil, fmt.Errorf("equivalence: %w", err)
	}
	return report, nil
}

func (c *comparison) run(ctx context.Context, before, after schema.Release, opts []Option) (*Report, error) {
	for _, opt := range opts {
		opt(c)
	}
	errs := c.errs
	for i, release := range []schema.Release{before, after} {
		s, err := newSide([...]string{"before", "after"}[i], release)
		c.sides[i] = s
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	fromManifests := c.readManifests()
	for _, s := range c.sides {
		errs = append(errs, s.failed(s.start(ctx, c.namespaces, c.stored, c.abort)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, name := range sorted(c.undecided) {
		if !slices.ContainsFunc(slices.Concat(c.sides[0].decisions, c.sides[1].decisions), func(d *Decision) bool { return d.Name == name }) {
			return nil, fmt.Errorf("Undecided: there is no decision %q", name)
		}
	}
	if err := c.findKinds(fromManifests); err != nil {
		return nil, err
	}
	c.send(ctx)
	report := c.report()
	for _, k := range c.kinds {
		if k.created == 0 && len(report.Differences) == 0 && ctx.Err() == nil {
			return nil, fmt.Errorf("no %s was created in both releases: add one that they allow to Samples", k.gvk)
		}
	}
	c.shrink(ctx, report.Differences)
	return report, context.Cause(ctx)
}

// send sends all requests.
func (c *comparison) send(ctx context.Context) {
	var running sync.WaitGroup
	turn := make(chan struct{}, 2*runtime.GOMAXPROCS(0)) // a worker also waits
	for i := range workers {
		w := &worker{comparison: c, number: i, left: (c.requests + workers - 1 - i) / workers, random: rand.New(rand.NewPCG(c.seed, uint64(i)))}
		running.Go(func() {
			for n := i; n < len(c.stored) && ctx.Err() == nil; n += workers {
				turn <- struct{}{}
				w.replay(ctx, c.stored[n])
				<-turn
			}
			for w.left > 0 && ctx.Err() == nil {
				turn <- struct{}{}
				w.round(ctx)
				<-turn
			}
		})
	}
	running.Wait()
}

// shrink makes differences smaller.
func (c *comparison) shrink(ctx context.Context, all []*Difference) {
	var running sync.WaitGroup
	for i := range shrinkers {
		w := &worker{comparison: c, number: workers + i}
		running.Go(func() {
			for n := i; n < len(all); n += shrinkers {
				w.shrink(ctx, all[n])
			}
		})
	}
	running.Wait()
}

// workers is the number of goroutines that send requests. Each has requests of its own, so that the result does not depend
// on their order.
const workers = 8

// shrinkers is the number of goroutines that make differences smaller.
const shrinkers = 2

// comparison is a call of Compare.
type comparison struct {
	requests  int
	seed      uint64
	users     []rest.ImpersonationConfig
	samples   []map[string]any
	stored    []map[string]any
	expected  []expectation
	undecided map[string]string // reasons by names
	errs      []error           // of options
	abort     context.CancelCauseFunc

	sides         [2]*side
	kinds         []*kind
	rules, bounds hints
	objectNames   []string            // with which rules compare that of an object
	objectLabels  [][2]string         // keys and values that an objectSelector mentions
	namespaces    []*corev1.Namespace // of the comparison

	mu       sync.Mutex
	sent     int
	found    map[signature]*Difference
	declared map[string]int // differences by reason
}

func (c *comparison) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// Option configures [Test] and [Compare].
type Option func(*comparison)

// Requests sets how many requests each release gets at least. The default is 2,000.
func Requests(n int) Option {
	return func(c *comparison) {
		if n < 1 {
			c.errorf("Requests(%d): expected at least 1", n)
		}
		c.requests = n
	}
}

// Seed selects other requests. The default is 0.
func Seed(n uint64) Option {
	return func(c *comparison) { c.seed = n }
}

// Users sets the users that send requests. The user without a name is an administrator. By default, that user and those with whom
// expressions compare request.userInfo.username and request.userInfo.groups send them.
func Users(users ...rest.ImpersonationConfig) Option {
	return func(c *comparison) {
		if len(users) == 0 {
			c.errorf("Users: expected at least one")
		}
		for i, user := range users {
			if user.UserName == "" && len(user.Groups) > 0 {
				c.errorf("Users: user %d with groups %v has no UserName", i, user.Groups)
			}
		}
		c.users = users
	}
}

// Samples adds objects with which requests begin. They need apiVersion and kind, and lose their names, namespaces and
// finalizers. For a kind that no definition has, such as a Deployment, they are required, and should have every field that
// matters.
func Samples(objects ...map[string]any) Option {
	return func(c *comparison) {
		for i, object := range objects {
			var u unstructured.Unstructured
			text, err := json.Marshal(object)
			if err == nil {
				err = u.UnmarshalJSON(text)
			}
			if err != nil {
				c.errorf("Samples: object %d: %w", i, err)
				continue
			}
			c.samples = append(c.samples, u.Object)
		}
	}
}

// Stored adds custom objects that both releases have stored before the first request, as JSON or YAML. Each of them is read
// in every version, updated without a change, and then edited, even if a release would not accept it as a new object: a
// policy or a webhook also decides about objects that are older than it is.
func Stored(objects ...[]byte) Option {
	return func(c *comparison) {
		for i, text := range objects {
			var object map[string]any
			if err := yaml.Unmarshal(text, &object); err != nil {
				c.errorf("Stored: object %d: %w", i, err)
				continue
			}
			c.stored = append(c.stored, object)
		}
	}
}

type expectation struct {
	reason  string
	applies func(Difference) bool
}

// Expect declares intended differences. The report counts them by reason.
func Expect(reason string, applies func(Difference) bool) Option {
	return func(c *comparison) {
		if reason == "" {
			c.errorf("Expect: the reason is empty")
		}
		c.expected = append(c.expected, expectation{reason, applies})
	}
}

// Undecided declares decisions that no request leads to, by their [Decision.Name].
func Undecided(reason string, names ...string) Option {
	return func(c *comparison) {
		if reason == "" {
			c.errorf("Undecided: the reason is empty")
		}
		if c.undecided == nil {
			c.undecided = map[string]string{}
		}
		for _, name := range names {
			c.undecided[name] = reason
		}
	}
}

// Operation is what a request does.
type Operation string

// The operations.
const (
	Read         Operation = "read" // of an object that is stored
	Create       Operation = "create"
	Update       Operation = "update"
	UpdateStatus Operation = "update status"
	Delete       Operation = "delete"
)

// Difference is a request to which two releases respond differently.
type Difference struct {
	Kind      runtimeschema.GroupVersionKind
	Operation Operation
	User      rest.ImpersonationConfig
	// Object is the body of the request, and Old is the object that it reads, replaces or deletes.
	Object, Old   json.RawMessage
	Before, After Response
	// Changed has the paths at which the returned objects differ, if both releases allow the request.
	Changed []string

	write write
	key   signature
}

// Response is how a release responds to a request.
type Response struct {
	Allowed bool
	// Message and Causes tell why the request is denied.
	Message string
	Causes  []metav1.StatusCause
	// Object is the object that is returned, without the metadata that a server sets.
	Object json.RawMessage
}

// Decision is a rule that allows or denies requests, and how often it did.
type Decision struct {
	Release string // before or after
	// Name is the rule: a rule of a schema, a validation of a policy, or a webhook. What a rule of a
	// schema allows is counted in a quarter of the allowed requests.
	Name                     string
	Allowed, Denied, Changed int
	// Undecided is the reason given with the option [Undecided].
	Undecided string
}

// Taken reports whether there were both requests that it allowed and requests that it denied or changed.
func (d Decision) Taken() bool { return d.Allowed+d.Changed > 0 && d.Denied+d.Changed > 0 }

// Report is the result of [Compare].
type Report struct {
	Requests    int // to each release
	Differences []*Difference
	Expected    map[string]int // by the reasons of the option [Expect]
	Decisions   []Decision
}

// Equivalent reports whether there are no differences, and whether all decisions were taken or declared.
func (r *Report) Equivalent() bool {
	return len(r.Differences) == 0 && !slices.ContainsFunc(r.Decisions, func(d Decision) bool { return !d.Taken() && d.Undecided == "" })
}
