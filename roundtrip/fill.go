package roundtrip

import (
	"encoding/json"
	"reflect"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/internal/generate"
)

// filler fills a value of a type. A draw of zero gives the least.
type filler func(v reflect.Value, c randfill.Continue)

// fillers returns functions for types that randfill cannot fill with values that an API server
// could have stored, like k8s.io/apimachinery/pkg/apis/meta/fuzzer.
func (g *typeGenerator) fillers() (all []any) {
	for t, pattern := range texts {
		text := generate.Matching(pattern)
		all = append(all, g.functions(t, func(v reflect.Value, c randfill.Continue) {
			read := func(text []byte) { mustDecode(text, v.Addr().Interface()) }
			read([]byte(strconv.Quote(text(c.Rand.Uint64()))))
			read(mustEncode(v.Interface())) // as it is after encoding, without the fraction of a second
		})...)
	}
	add := func(f []any) { all = append(all, f...) }
	add(fill(g, func(m *metav1.ObjectMeta, c randfill.Continue) {
		name := "x" + generate.Word(uint64(c.Int31()))
		*m = metav1.ObjectMeta{}
		made := generate.Metadata(name, g.typed.GroupVersion().String(), func() (x uint64, ok bool) {
			n := c.Int31()
			return uint64(n / 4), n%4 > 0
		})
		mustDecode(mustEncode(made), m)
	}))
	port := generate.Matching(`^[a-z][a-z0-9]{0,9}$|` + percent)
	add(fill(g, func(v *intstr.IntOrString, c randfill.Continue) {
		switch draw := c.Rand.Uint64(); draw >> 33 % 3 {
		case 0:
			*v = intstr.FromInt32(int32(generate.Integer(draw, 32)))
		case 1:
			*v = intstr.FromString(port(draw))
		default:
			*v = intstr.FromString(generate.Text(draw))
		}
	}))
	anything := func() any { return generate.Anything(g.source, 3) }
	add(fill(g, func(v *any, _ randfill.Continue) { *v = anything() }))
	add(fill(g, func(j *json.RawMessage, _ randfill.Continue) { *j = mustEncode(anything()) }))
	add(fill(g, func(j *apiextensionsv1.JSON, _ randfill.Continue) { j.Raw = mustEncode(anything()) }))
	add(fill(g, func(j *runtime.RawExtension, _ randfill.Continue) {
		j.Raw = mustEncode(map[string]any{"apiVersion": "example.com/v1", "kind": "Embedded", "value": anything()})
	}))
	add(fill(g, func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) }))
	return all
}

// functions returns what randfill needs to fill values of a type, and pointers to them, which
// randfill would otherwise never leave nil.
func (g *typeGenerator) functions(t reflect.Type, fill filler) []any {
	pointer := reflect.PointerTo(t)
	function := func(pointer reflect.Type, f filler) any {
		of := reflect.FuncOf([]reflect.Type{pointer, reflect.TypeFor[randfill.Continue]()}, nil, false)
		return reflect.MakeFunc(of, func(in []reflect.Value) []reflect.Value {
			f(in[0].Elem(), in[1].Interface().(randfill.Continue))
			return nil
		}).Interface()
	}
	fillPointer := func(v reflect.Value, c randfill.Continue) {
		if v.SetZero(); g.some() {
			v.Set(reflect.New(t))
			c.Fill(v) // by the user's function, if there is one
		}
	}
	return []any{function(pointer, fill), function(reflect.PointerTo(pointer), fillPointer)}
}

func fill[T any](g *typeGenerator, function func(v *T, c randfill.Continue)) []any {
	return g.functions(reflect.TypeFor[T](), func(v reflect.Value, c randfill.Continue) {
		function(v.Addr().Interface().(*T), c)
	})
}

// The following functions make values that JSON has, and that the types can decode.

func mustEncode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func mustDecode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		panic(err)
	}
}
