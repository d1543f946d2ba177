package roundtrip

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
)

// Option changes what the functions of this package do.
type Option func(*config)

type config struct {
	funcs       []any
	seed        uint64
	seeded      bool // the caller has chosen that seed
	iterations  int  // 0 for the default
	outside     bool // With(OutsideSchema)
	without     map[Law]string
	normalizers []normalizer
	// definitions are those of [CRD].
	definitions []*schema.Definition
	history     []release // the definitions of earlier ones
	refusals    []refusal
	generators  map[schemaKey]schemaGenerator
	faults      []error
}

// Funcs adds functions that fill values of a type, as package sigs.k8s.io/randfill has
// them: func(*T, randfill.Continue), for an object or for any part of it. They are for
// what the Go type does not say: the values of an enum, a bound, fields that belong
// together. Of two for a type, the last counts; they also replace those for metadata and
// the like.
//
// Lists of functions as Kubernetes has them, [fuzzer.FuzzerFuncs], are accepted too.
// Functions for github.com/google/gofuzz are, if they go through package
// [github.com/crdkit/crdkit/roundtrip/gofuzz].
//
// A pointer may be nil unless it has a function of its own: func(**T, randfill.Continue).
//
// All randomness of a function must come from its randfill.Continue. If all of its draws
// are zero, a function must come to an end; the examples that are reported shrink towards
// what it makes then.
func Funcs(functions ...any) Option {
	return func(c *config) { c.funcs = append(c.funcs, functions...) }
}

// functions returns those of [Funcs] as randfill has them.
func (c *config) functions(s *runtime.Scheme) []any {
	var all []any
	for _, f := range c.funcs {
		switch f := f.(type) {
		case fuzzer.FuzzerFuncs:
			all = append(all, f(serializer.NewCodecFactory(s))...)
		case func(serializer.CodecFactory) []any:
			all = append(all, f(serializer.NewCodecFactory(s))...)
		default:
			all = append(all, f)
		}
	}
	return all
}

// Iterations is how many objects each law is checked with on each path. By default, all laws
// and paths of a kind share two seconds, but each law has a hundred objects on each path, even
// if that takes longer, as it does with the race detector or with many rules of CEL.
func Iterations(n int) Option {
	return func(c *config) {
		if n < 1 {
			c.fault("roundtrip.Iterations: %d objects prove nothing", n)
		}
		c.iterations = n
	}
}

// Seed makes all runs check the same objects. The default is another seed each time; it
// is part of each failure.
func Seed(n uint64) Option {
	return func(c *config) { c.seed, c.seeded = n, true }
}

// With adds a law that is checked on request alone: [OutsideSchema], which needs a [CRD].
func With(law Law) Option {
	return func(c *config) {
		if law != OutsideSchema {
			c.fault("roundtrip.With: %q is not checked on request", law)
		}
		c.outside = true
	}
}

// Without leaves out a law: its subtests are skipped, and say the reason, which must not
// be empty.
func Without(law Law, reason string) Option {
	return func(c *config) {
		if !slices.Contains(allLaws, law) || reason == "" {
			c.fault("roundtrip.Without: it needs a law and a reason, and has %q and %q", law, reason)
		}
		c.without[law] = reason
	}
}

// fault notes what is wrong with the options.
func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// newConfig returns what the options and the environment say, and all that is
// wrong with it.
func newConfig(opts []Option) (*config, error) {
	c := &config{seed: rand.Uint64(), without: map[Law]string{}, generators: map[schemaKey]schemaGenerator{}}
	for _, opt := range opts {
		opt(c)
	}
	c.override()
	return c, errors.Join(c.faults...)
}

// newConfigFor is newConfig for the conversions of a registry, which must be complete.
func newConfigFor(reg *conversion.Registry, opts []Option) (*config, error) {
	c, err := newConfig(opts)
	if err := errors.Join(err, reg.Check()); err != nil {
		return nil, err
	}
	return c, errors.Join(c.checkFuncs(reg), c.checkNormalizers(reg.Scheme(), reg.Kinds()), c.checkDefinitions(reg), c.checkHistory(reg))
}

// These variables override options for one run. Flags would not do: go test passes them to
// each package that it tests, also to those that do not know them.
const (
	seedVariable       = "CRDKIT_ROUNDTRIP_SEED"
	iterationsVariable = "CRDKIT_ROUNDTRIP_ITERATIONS"
	updateVariable     = "CRDKIT_ROUNDTRIP_UPDATE"
)

// override changes what the options say to what the environment says.
func (c *config) override() {
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			c.fault("%s: %w", seedVariable, err)
		}
		c.seed, c.seeded = seed, true
	}
	if text := os.Getenv(iterationsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			c.fault("%s: %q is not a number of objects", iterationsVariable, text)
		}
		c.iterations = n
	}
}

// updating reports whether golden files are to be written.
func updating() bool { return os.Getenv(updateVariable) == "true" }

// budget is how many objects one subject is checked with: at most, and at least if it
// takes longer than that.
type budget struct {
	most, least int
	time        time.Duration
}

func (c *config) budget(subjects int) budget {
	const least = 100
	if c.iterations > 0 {
		return budget{most: c.iterations, least: c.iterations}
	}
	subjects = max(subjects, 1)
	return budget{max(10000/subjects, least), least, 2 * time.Second / time.Duration(subjects)}
}

// checkFuncs returns an error if what was given to [Funcs] is wrong, or is for nothing.
func (c *config) checkFuncs(reg *conversion.Registry) error {
	kinds := reg.Kinds()
	byType := func(k conversion.Kind) bool { return c.definition(k) == nil || k.Hub == runtime.APIVersionInternal }
	for _, k := range slices.DeleteFunc(slices.Clone(kinds), func(k conversion.Kind) bool { return !byType(k) }) {
		if _, err := newTypeGenerator(reg, c, k, k.Versions[0]); errors.Is(err, errNoFunction) {
			return err
		}
	}
	if len(c.funcs) > 0 && !slices.ContainsFunc(kinds, byType) {
		return errors.New("roundtrip.Funcs: there is a CRD for each kind, and so no function is called: see roundtrip.CRD")
	}
	return nil
}
