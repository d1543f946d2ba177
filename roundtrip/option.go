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
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
)

// Option configures the functions of this package.
type Option func(*config)

type config struct {
	funcs       []any
	seed        uint64
	seeded      bool // whether the caller has chosen the seed
	iterations  int  // 0 for the default
	outside     bool // CheckLaw(OutsideSchema)
	without     map[Law]string
	normalizers []normalizer
	// definitions are those of [CRD].
	definitions []*schema.Definition
	history     []release // the definitions of earlier releases
	refusals    []refusal
	generators  map[generatorKey]generator
	errs        []error
	began       time.Time // the test
}

// Funcs adds functions that fill values with random data, for rules that a Go type does not
// express, such as the values of an enum, a bound, or fields that depend on each other. They
// replace the package's own functions for the same type, such as that for metadata. If several
// functions fill the same type, the last one is called.
//
// A function has the type func(*T, randfill.Continue), where T is the type of the object or of any
// part of it (package sigs.k8s.io/randfill). To decide when a pointer is nil, add a
// func(**T, randfill.Continue).
//
// Funcs also accepts functions that return a list of such functions, as in Kubernetes:
// [fuzzer.FuzzerFuncs]. For functions of github.com/google/gofuzz, see package
// [github.com/crdkit/crdkit/roundtrip/gofuzz].
//
// A function must take all its randomness from its randfill.Continue, and terminate if each random
// number is zero, because the smallest objects of a report are generated with zeros; an object for
// which it does not terminate is skipped.
//
// If each kind of the registry has a CRD and no internal hub, Funcs is an error, because no
// function would be called.
func Funcs(functions ...any) Option {
	return func(c *config) { c.funcs = append(c.funcs, functions...) }
}

// functions returns the functions of [Funcs] in the form of randfill.
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

// Iterations sets the number of objects for each law on each path. By default, each law on each
// path gets at least 100 objects, and all laws and paths of a kind together up to 10,000, as far as
// these take 1.5 seconds. A kind with 30 fields takes about two seconds in all, and one with pod
// templates takes 5 to 10. After 30 seconds, the tests of the kind stop, pass, and log how many
// objects they have checked.
//
// With Iterations, only the timeout of go test stops the tests, which then fail, because they have
// checked fewer objects than n.
func Iterations(n int) Option {
	return func(c *config) {
		if n < 1 {
			c.errorf("roundtrip.Iterations: %d objects prove nothing", n)
		}
		c.iterations = n
	}
}

// Seed sets the seed of the random objects, so that each run checks the same objects. By
// default, [Test] and [TestScheme] choose another seed for each run, and print it to standard error
// before they begin. [Fuzz] and [Golden] use seed 1 by default.
func Seed(n uint64) Option {
	return func(c *config) { c.seed, c.seeded = n, true }
}

// CheckLaw adds a law that is not checked by default. The only such law is [OutsideSchema], which
// requires a [CRD].
func CheckLaw(law Law) Option {
	return func(c *config) {
		if law != OutsideSchema {
			c.errorf("roundtrip.CheckLaw: %q is not checked on request", law)
		}
		c.outside = true
	}
}

// SkipLaw skips the subtests of a law, and logs the reason, which must not be empty.
func SkipLaw(law Law, reason string) Option {
	return func(c *config) {
		if !slices.Contains(allLaws, law) || reason == "" {
			c.errorf("roundtrip.SkipLaw: it needs a law and a reason, and has %q and %q", law, reason)
		}
		c.without[law] = reason
	}
}

// errorf records an error of an option.
func (c *config) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// newConfig returns the configuration of the options and the environment, and joins all their
// errors.
func newConfig(opts []Option) (*config, error) {
	c := &config{began: time.Now(), seed: rand.Uint64(), without: map[Law]string{}, generators: map[generatorKey]generator{}}
	for _, opt := range opts {
		opt(c)
	}
	c.override()
	return c, errors.Join(c.errs...)
}

// newConfigFor is newConfig for the conversions of a registry, which must be complete.
func newConfigFor(reg *conversion.Registry, opts []Option) (*config, error) {
	c, err := newConfig(opts)
	if err := errors.Join(err, reg.Check()); err != nil {
		return nil, err
	}
	return c, errors.Join(c.checkFuncs(reg.Scheme(), reg.Kinds()), c.checkNormalizers(reg.Scheme(), reg.Kinds()), c.checkDefinitions(reg), c.checkHistory(reg))
}

// These variables override options for one run. They are not flags, because go test passes flags to
// each package that it tests, even to one that does not define them.
const (
	seedVariable       = "CRDKIT_ROUNDTRIP_SEED"
	iterationsVariable = "CRDKIT_ROUNDTRIP_ITERATIONS"
	updateVariable     = "CRDKIT_ROUNDTRIP_UPDATE"
)

// override applies the environment variables, which take precedence over the options.
func (c *config) override() {
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			c.errorf("%s: %w", seedVariable, err)
		}
		c.seed, c.seeded = seed, true
	}
	if text := os.Getenv(iterationsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			c.errorf("%s: %q is not a number of objects", iterationsVariable, text)
		}
		c.iterations = n
	}
}

// printSeed prints the seed, unless the caller has chosen it. It does not use the log of the test, which
// is lost if the process is killed or the test exceeds the timeout of go test.
func (c *config) printSeed(test string) {
	if !c.seeded {
		fmt.Fprintf(os.Stderr, "%s: %s=%d\n", test, seedVariable, c.seed)
	}
}

// updating reports whether golden files are to be written.
func updating() bool { return os.Getenv(updateVariable) == "true" }

// checkFuncs returns an error if a function of [Funcs] has a wrong type, or if none of them would be
// called.
func (c *config) checkFuncs(s *runtime.Scheme, kinds []conversion.Kind) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("roundtrip.Funcs: %v", v)
		}
	}()
	randfill.New().Funcs(c.functions(s)...)
	byType := func(k conversion.Kind) bool {
		return c.definition(k.GroupKind) == nil || k.Hub == runtime.APIVersionInternal
	}
	if len(c.funcs) > 0 && !slices.ContainsFunc(kinds, byType) {
		return errors.New("roundtrip.Funcs: there is a CRD for each kind, and so no function is called: see roundtrip.CRD")
	}
	return nil
}
