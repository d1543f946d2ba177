package roundtrip

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/internal/generate"
)

// fillers returns functions for types that randfill cannot fill, or not with what an API
// server could have stored. They do for one version what
// k8s.io/apimachinery/pkg/apis/meta/fuzzer does for all of Kubernetes. A draw of zero gives
// the least.
func (g *typeGenerator) fillers() []any {
	gv := g.typed.GroupVersion()
	return slices.Concat(
		fill(func(m *metav1.ObjectMeta, c randfill.Continue) { fillMetadata(m, gv, c) }),
		fill(func(t *time.Time, c randfill.Continue) { *t = moment(c.Rand.Uint64(), true) }),
		fill(func(t *metav1.Time, c randfill.Continue) {
			*t = metav1.NewTime(moment(c.Rand.Uint64(), false).Truncate(time.Second))
		}),
		fill(func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(moment(c.Rand.Uint64(), false).Truncate(time.Microsecond))
		}),
		fill(func(q *resource.Quantity, c randfill.Continue) { *q = quantity(c.Int31()) }),
		fill(func(v *intstr.IntOrString, c randfill.Continue) { *v = intOrString(c.Rand.Uint64()) }),
		fill(func(d *metav1.Duration, c randfill.Continue) { d.Duration = duration(c.Rand.Uint64()) }),
		fill(func(v *any, c randfill.Continue) { *v = g.anything(c, 3) }),
		fill(func(j *json.RawMessage, c randfill.Continue) { *j = g.text(c) }),
		fill(func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = g.text(c) }),
		fill(func(j *runtime.RawExtension, c randfill.Continue) {
			*j = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Embedded","value":%s}`, g.text(c))}
		}),
		fill(func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) }),
	)
}

// small is how large a draw is: the smallest few are taken as they are.
func small(draw uint64) (n int64, yes bool) {
	n = int64(draw >> 33)
	return n, n < 16
}

// moment is the beginning of this century for zero; most others are in this century, some
// before 1970. It has nanoseconds, and maybe a zone.
func moment(draw uint64, zones bool) time.Time {
	n, yes := small(draw)
	if yes {
		return time.Date(2000, 1, 1, 0, 0, int(n), 0, time.UTC)
	}
	rng := rand.New(rand.NewPCG(draw, 0))
	year := 2000 + rng.IntN(100)
	if rng.IntN(3) == 0 {
		year = 1000 + rng.IntN(970)
	}
	t := time.Date(year, 1, 1+rng.IntN(365), rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1e9), time.UTC)
	if zones && rng.IntN(2) == 0 {
		t = t.In(time.FixedZone("", (rng.IntN(27*4)-12*4)*15*60))
	}
	return t
}

// duration is positive or not, and whole or not, in each unit that a text of it may have.
func duration(draw uint64) time.Duration {
	n, yes := small(draw)
	if yes {
		return time.Duration(n) * time.Second
	}
	rng := rand.New(rand.NewPCG(draw, 0))
	units := []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour}
	d := time.Duration(rng.IntN(1000)) * units[rng.IntN(len(units))]
	if rng.IntN(3) == 0 {
		return -d
	}
	return d
}

// quantity has each of the ways in which people write one.
func quantity(n int32) resource.Quantity {
	v := int64(n / 8)
	switch n % 8 {
	case 0, 1:
		return *resource.NewQuantity(v, resource.DecimalSI)
	case 2, 3:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case 4, 5:
		return *resource.NewQuantity(v<<20, resource.BinarySI)
	case 6:
		return *resource.NewQuantity(-v, resource.DecimalSI)
	default:
		return *resource.NewQuantity(v*1_000_000, resource.DecimalExponent)
	}
}

// intOrString is a number, a percentage, a name such as a port has, or any text.
func intOrString(draw uint64) intstr.IntOrString {
	switch n, _ := small(draw); n % 6 {
	case 1:
		return intstr.FromString(strconv.Itoa(int(n/6%101)) + "%")
	case 3:
		return intstr.FromString("x" + word(int32(n/6%(26*26))))
	case 5:
		return intstr.FromString(generate.Text(draw))
	default:
		return intstr.FromInt32(int32(generate.Integer(draw, 32)))
	}
}

// fill returns a function, and one for pointers: if a type has a function, randfill never
// leaves a pointer to it nil.
func fill[T any](function func(v *T, c randfill.Continue)) []any {
	return []any{function, func(p **T, c randfill.Continue) {
		if *p = nil; c.Intn(4) > 0 {
			*p = new(T)
			c.Fill(*p) // by the user's function, if there is one
		}
	}}
}

// fillMetadata fills in what an API server may have stored.
func fillMetadata(m *metav1.ObjectMeta, gv schema.GroupVersion, c randfill.Continue) {
	text, err := json.Marshal(generate.Metadata("x"+word(c.Int31()), gv.String(), func() (x uint64, ok bool) {
		n := c.Int31()
		return uint64(n / 4), n%4 > 0
	}))
	if *m = (metav1.ObjectMeta{}); err == nil {
		err = json.Unmarshal(text, m)
	}
	if err != nil {
		panic(err) // it is made of what JSON has
	}
}

// word is n as letters, such as a DNS label may hold; none for zero.
func word(n int32) string {
	var b strings.Builder
	for ; n > 0; n /= 26 {
		b.WriteByte('a' + byte(n%26))
	}
	return b.String()
}

// text is JSON.
func (g *typeGenerator) text(c randfill.Continue) []byte {
	b, err := json.Marshal(g.anything(c, 3))
	if err != nil {
		panic(err) // it is made of what JSON has
	}
	return b
}

// anything is what JSON has, so deep.
func (g *typeGenerator) anything(c randfill.Continue, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch c.Intn(kinds) {
	case 0:
		return ""
	case 1:
		return generate.Text(c.Rand.Uint64())
	case 2:
		return c.Int63()
	case 3:
		return c.Intn(2) == 1
	case 4:
		return float64(c.Intn(1<<20)) / 1024
	case 5:
		list := []any{}
		for range c.Intn(3) {
			g.source.Part(func() { list = append(list, g.anything(c, depth-1)) })
		}
		return list
	default:
		m := map[string]any{}
		for range c.Intn(3) {
			g.source.Part(func() { m[word(c.Int31()%(26*26))] = g.anything(c, depth-1) })
		}
		return m
	}
}
