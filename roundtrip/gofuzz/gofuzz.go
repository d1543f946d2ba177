package gofuzz

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	fuzz "github.com/google/gofuzz"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// Funcs returns functions for roundtrip.Funcs that call the given functions. A given function is
// one of these:
//
//   - func(*T, fuzz.Continue), or func(M, fuzz.Continue) for a map type M.
//   - func(*T, randfill.Continue), which is returned unchanged.
//   - a function that returns a list of such functions: func(serializer.CodecFactory) []any or
//     [fuzzer.FuzzerFuncs].
//
// For any other argument, the test of package roundtrip fails before it generates an object.
//
// A function must take all its randomness from its fuzz.Continue, which uses the random numbers of
// package roundtrip, so that a failing object can be made smaller, and the functions also apply to
// the smallest object.
//
// For a value within the value of a function, the other functions are called. Without a function,
// package roundtrip fills metadata, times, quantities and the like, and gofuzz fills all other
// values, with at most three elements, and with nil in one of five cases.
func Funcs(functions ...any) []any {
	// A list, so that roundtrip reports what is wrong with it when it reads the options.
	return []any{func(codecs serializer.CodecFactory) []any { return newBridge(codecs, functions).ours }}
}

// bridge connects randfill to the functions for gofuzz, and gofuzz to the functions for
// randfill.
type bridge struct {
	ours   []any              // for randfill
	theirs []func(r *run) any // for gofuzz; of two for a type, the last counts
	idle   sync.Pool          // of runs
}

// newBridge panics if an argument is not a function.
func newBridge(codecs serializer.CodecFactory, functions []any) *bridge {
	b := &bridge{}
	for _, t := range filledByRoundtrip {
		b.leaveTo(t)
		b.leaveTo(reflect.PointerTo(t)) // which may be nil
	}
	b.add(codecs, functions)
	b.idle.New = func() any { return b.newRun() }
	return b
}

// filledByRoundtrip are pointers to the types that package roundtrip or randfill fills.
var filledByRoundtrip = []reflect.Type{
	reflect.TypeFor[*metav1.ObjectMeta](),
	reflect.TypeFor[*bool](),
	reflect.TypeFor[*string](),
	reflect.TypeFor[*metav1.Time](),
	reflect.TypeFor[*metav1.MicroTime](),
	reflect.TypeFor[*resource.Quantity](),
	reflect.TypeFor[*any](),
	reflect.TypeFor[*json.RawMessage](),
	reflect.TypeFor[*apiextensionsv1.JSON](),
	reflect.TypeFor[*runtime.RawExtension](),
	reflect.TypeFor[*metav1.FieldsV1](),
	reflect.TypeFor[*intstr.IntOrString](),
}

func (b *bridge) add(codecs serializer.CodecFactory, functions []any) {
	for _, f := range functions {
		switch list := f.(type) {
		case fuzzer.FuzzerFuncs:
			b.add(codecs, list(codecs))
			continue
		case func(serializer.CodecFactory) []any:
			b.add(codecs, list(codecs))
			continue
		}
		t := reflect.TypeOf(f)
		if t == nil || t.Kind() != reflect.Func || t.NumIn() != 2 || t.NumOut() != 0 || !fillable(t.In(0)) {
			panic(fmt.Sprintf("gofuzz.Funcs: %T is not a function for gofuzz, such as func(*T, fuzz.Continue)", f))
		}
		switch t.In(1) {
		case reflect.TypeFor[fuzz.Continue]():
			b.ours = append(b.ours, b.over(reflect.ValueOf(f)))
			b.theirs = append(b.theirs, func(*run) any { return f })
		case reflect.TypeFor[randfill.Continue]():
			b.ours = append(b.ours, f)
			b.leaveTo(t.In(0))
		default:
			panic(fmt.Sprintf("gofuzz.Funcs: the second argument of %T is not a fuzz.Continue", f))
		}
	}
}

// fillable reports whether either library has functions for a type.
func fillable(t reflect.Type) bool { return t.Kind() == reflect.Pointer || t.Kind() == reflect.Map }

// over returns a function for randfill that calls one for gofuzz.
func (b *bridge) over(f reflect.Value) any {
	t := reflect.FuncOf([]reflect.Type{f.Type().In(0), reflect.TypeFor[randfill.Continue]()}, nil, false)
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		r := b.idle.Get().(*run)
		r.call(f, args[0], args[1].Interface().(randfill.Continue))
		b.idle.Put(r) // not if the function panics
		return nil
	}).Interface()
}

// leaveTo leaves values of a pointer or map type to randfill.
func (b *bridge) leaveTo(t reflect.Type) {
	of := reflect.FuncOf([]reflect.Type{t, reflect.TypeFor[fuzz.Continue]()}, nil, false)
	b.theirs = append(b.theirs, func(r *run) any {
		return reflect.MakeFunc(of, func(args []reflect.Value) []reflect.Value {
			v := args[0]
			if t.Kind() == reflect.Map {
				v = reflect.New(t)
				v.Elem().Set(args[0])
			}
			r.back.Fill(v)
			return nil
		}).Interface()
	})
}

// run is one call of a function for gofuzz. Calls nest, because randfill may call another
// function of gofuzz for a value inside.
type run struct {
	fuzzer *fuzz.Fuzzer
	enter  func(c fuzz.Continue)
	back   randfill.Continue
}

// entrance is a type that only a run fills, which is the only way to obtain a fuzz.Continue.
type entrance struct{}

func (b *bridge) newRun() *run {
	r := &run{fuzzer: fuzz.NewWithSeed(0).NilChance(0.2).NumElements(0, 3)}
	for _, f := range b.theirs {
		r.fuzzer.Funcs(f(r))
	}
	r.fuzzer.Funcs(func(_ *entrance, c fuzz.Continue) { r.enter(c) })
	return r
}

func (r *run) call(f, value reflect.Value, c randfill.Continue) {
	r.back = c
	r.enter = func(c fuzz.Continue) { f.Call([]reflect.Value{value, reflect.ValueOf(c)}) }
	r.fuzzer.RandSource(c.Rand).Fuzz(&entrance{})
}
