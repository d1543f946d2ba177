package roundtrip

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
)

// These environment variables override the options, for one run.
const (
	seedVariable       = "CRDKIT_ROUNDTRIP_SEED"
	iterationsVariable = "CRDKIT_ROUNDTRIP_ITERATIONS"
)

// Option changes what [Test] does.
type Option func(*config)

type config struct {
	funcs      []any
	seed       uint64
	iterations int // 0 for the default
	without    map[Law]string
	faults     []error
}

// Funcs adds functions that fill values of a type, as package sigs.k8s.io/randfill has
// them: func(*T, randfill.Continue), for an object or for any part of it. They are for
// what the Go type does not say: the values of an enum, a bound, fields that belong
// together. Of two for a type, the last counts; they also replace those for metadata and
// the like.
//
// As randfill has it, a pointer to a type with a function is never nil; where it may be,
// add a function for the pointer as well: func(**T, randfill.Continue).
//
// All randomness of a function must come from its randfill.Continue. If all of its draws
// are zero, a function must come to an end; the examples that are reported shrink towards
// what it makes then.
func Funcs(functions ...any) Option {
	return func(c *config) { c.funcs = append(c.funcs, functions...) }
}

// Iterations is how many objects each law is checked with on each path. The default is
// what a second is enough for, shared by all laws and paths of a kind, but a hundred at
// least. The environment variable CRDKIT_ROUNDTRIP_ITERATIONS overrides it.
func Iterations(n int) Option {
	return func(c *config) {
		if n < 1 {
			c.faults = append(c.faults, fmt.Errorf("roundtrip.Iterations: %d objects prove nothing", n))
		}
		c.iterations = n
	}
}

// Seed makes all runs check the same objects. The default is another seed each time; it
// is part of each failure. The environment variable CRDKIT_ROUNDTRIP_SEED overrides it.
func Seed(n uint64) Option {
	return func(c *config) { c.seed = n }
}

// Without leaves out a law: its subtests are skipped, and say the reason, which must not
// be empty.
func Without(law Law, reason string) Option {
	return func(c *config) {
		known := law == PathIndependence || slices.ContainsFunc(laws, func(l lawOnPath) bool { return l.law == law })
		if !known || reason == "" {
			c.faults = append(c.faults, fmt.Errorf("roundtrip.Without: it needs a law and a reason, and has %q and %q", law, reason))
		}
		c.without[law] = reason
	}
}

// newConfig returns what the options and the environment say, and all that is wrong
// with it.
func newConfig(opts []Option) (*config, error) {
	c := &config{seed: rand.Uint64(), without: map[Law]string{}}
	for _, opt := range opts {
		opt(c)
	}
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			c.faults = append(c.faults, fmt.Errorf("%s: %w", seedVariable, err))
		}
		c.seed = seed
	}
	if text := os.Getenv(iterationsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			c.faults = append(c.faults, fmt.Errorf("%s: %q is no number of objects", iterationsVariable, text))
		}
		c.iterations = n
	}
	return c, errors.Join(c.faults...)
}
