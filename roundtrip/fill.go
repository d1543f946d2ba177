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
// the least, and what is not a container takes one draw: so a value shrinks without the
// draws behind it becoming part of something else.
func fillers(gv schema.GroupVersion) []any {
	return slices.Concat(
		fill(func(m *metav1.ObjectMeta, c randfill.Continue) { fillMetadata(m, gv, c) }),
		fill(func(b *bool, c randfill.Continue) { *b = c.Intn(2) == 1 }),
		fill(func(s *string, c randfill.Continue) { *s = phrase(c) }),
		fill(func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(second(c.Int31())) }),
		fill(func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(second(0).Add(time.Duration(c.Int63()>>12) * time.Microsecond))
		}),
		fill(func(q *resource.Quantity, c randfill.Continue) { *q = quantity(c.Int31()) }),
		fill(func(v *intstr.IntOrString, c randfill.Continue) { *v = intOrString(c.Int31()) }),
		fill(func(d *metav1.Duration, c randfill.Continue) {
			*d = metav1.Duration{Duration: time.Duration(c.Int31()) * time.Millisecond}
		}),
		fill(func(v *any, c randfill.Continue) { *v = anything(c, 3) }),
		fill(func(j *json.RawMessage, c randfill.Continue) { *j = text(c) }),
		fill(func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = text(c) }),
		fill(func(j *runtime.RawExtension, c randfill.Continue) {
			*j = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Embedded","value":%s}`, text(c))}
		}),
		fill(func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) }),
	)
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

// intOrString is a number or a percentage.
func intOrString(n int32) intstr.IntOrString {
	if n%2 == 0 {
		return intstr.FromInt32(n / 2)
	}
	return intstr.FromString(strconv.Itoa(int(n/2%101)) + "%")
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

// second is the nth of this century: finer times than that are lost in JSON.
func second(n int32) time.Time {
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

// word is n as letters, such as a DNS label may hold; none for zero.
func word(n int32) string {
	var b strings.Builder
	for ; n > 0; n /= 26 {
		b.WriteByte('a' + byte(n%26))
	}
	return b.String()
}

// marks are characters that somebody may take for the end or the beginning of something.
const marks = "  /:,;.-_=*#@\"'`\\<>&%~0AZ\t"

// phrase is text of up to 19 characters: ASCII, many marks among it, letters of two bytes
// and of three. All of it comes from one draw.
func phrase(c randfill.Continue) string {
	n := c.Int31()
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	var b strings.Builder
	for range n % 20 {
		first, count := ' ', int32('~'-' ')+1
		switch rng.IntN(4) {
		case 0:
			first, count = '\u00a0', 0x210
		case 1:
			first, count = '\u4e00', 0x5200
		case 2:
			first, count = rune(marks[rng.IntN(len(marks))]), 1
		}
		b.WriteRune(first + rng.Int32N(count))
	}
	return b.String()
}

// text is JSON.
func text(c randfill.Continue) []byte {
	b, err := json.Marshal(anything(c, 3))
	if err != nil {
		panic(err) // it is made of what JSON has
	}
	return b
}

// anything is what JSON has, so deep.
func anything(c randfill.Continue, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch c.Intn(kinds) {
	case 0:
		return ""
	case 1:
		return phrase(c)
	case 2:
		return c.Int63()
	case 3:
		return c.Intn(2) == 1
	case 4:
		return float64(c.Intn(1<<20)) / 1024
	case 5:
		list := []any{}
		for range c.Intn(3) {
			list = append(list, anything(c, depth-1))
		}
		return list
	default:
		m := map[string]any{}
		for range c.Intn(3) {
			m[word(c.Int31()%(26*26))] = anything(c, depth-1)
		}
		return m
	}
}
