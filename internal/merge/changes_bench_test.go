package merge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/test/expect"
)

// pizza returns an object of about 1 KB. As a B it is poorer.
func pizza(poorer bool) []byte {
	pick := func(b, h string) string {
		if poorer {
			return b
		}
		return h
	}
	return []byte(`{"apiVersion":"example.com/v1","kind":"Pizza","metadata":{"annotations":{"example.com/menu":"` + strings.Repeat("delicious ", 40) + `"},"generation":3,"labels":{"app.kubernetes.io/name":"quattro"},"name":"quattro","namespace":"default","uid":"7c8e1c5e-6c0f-4f1e-9a54-0d6b1f0c3c11"},` +
		`"spec":{"size":"` + pick("Large", "ExtraLarge") + `","oven":{"celsius":250` + pick("", `,"fan":true`) + `},"toppings":[{"name":"mozzarella","quantity":2},{"name":"ham","quantity":1` + pick("", `,"organic":true`) + `},{"name":"artichoke","quantity":1}` + pick("", `,{"name":"basil","quantity":3}`) + `]},"status":{"phase":"Baked"}}`)
}

// long returns an object with a list of n elements. As a B its elements are poorer.
func long(name string, n int, poorer bool) []byte {
	var l []string
	for i := range n {
		more := fmt.Sprintf(`,"organic":%d`, i)
		if poorer || i%10 > 0 {
			more = ""
		}
		l = append(l, fmt.Sprintf(`{"name":"topping-%d","quantity":%d,"from":{"country":"Italy"}%s}`, i, i%7, more))
	}
	return []byte(`{"spec":{"` + name + `":[` + strings.Join(l, ",") + `]}}`)
}

func BenchmarkOneKilobyte(b *testing.B) { benchmark(b, pizza(true), pizza(false)) }

func BenchmarkTenThousandWithKeys(b *testing.B) {
	benchmark(b, long("toppings", 10_000, true), long("toppings", 10_000, false))
}

func BenchmarkTenThousandWithoutKeys(b *testing.B) {
	benchmark(b, long("list", 10_000, true), long("list", 10_000, false))
}

func benchmark(b *testing.B, before, after []byte) {
	changes := diff(b, before, after)
	b.Run("Diff", func(b *testing.B) {
		b.SetBytes(int64(len(before) + len(after)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := merge.Diff(before, after, testTree); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Apply", func(b *testing.B) {
		b.SetBytes(int64(len(before)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := changes.ApplyUnedited(before, testTree); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Long lists take linear time.
func TestApply_LinearTime(t *testing.T) {
	const n = 20_000
	repeat := func(change string) merge.Changes {
		changes, err := merge.Parse([]byte(`[` + strings.Repeat(change+",", n) + change + `]`))
		expect.NoError(t, err)
		return changes
	}
	numbers := func(from, step int) []byte {
		var l []string
		for i := range n {
			l = append(l, fmt.Sprint(from+step*i))
		}
		return []byte(`{"list":[` + strings.Join(l, ",") + `]}`)
	}
	members := func() []byte {
		var l []string
		for i := range n {
			l = append(l, fmt.Sprintf(`"m%d":{"x":%d}`, i, i))
		}
		return []byte(`{"a":{` + strings.Join(l, ",") + `}}`)
	}
	b := long("toppings", n, true)
	key := `{"key":{"name":"topping-1"}}`
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"nothing in common", func() { apply(t, diff(t, numbers(0, 1), numbers(n, 2)), numbers(0, 3)) }},
		{"another order", func() { apply(t, diff(t, numbers(0, 1), numbers(n, -1)), numbers(0, 1)) }},
		{"objects with nothing in common", func() {
			diff(t, long("list", n, true), []byte(strings.ReplaceAll(string(long("list", n, true)), "Italy", "France")))
		}},
		{"everything new", func() { apply(t, diff(t, []byte(`{"list":[]}`), numbers(0, 1)), []byte(`{"list":[]}`)) }},
		{"many members", func() { apply(t, diff(t, []byte(`{"a":{}}`), members()), members()) }},
		{"one element again and again", func() { apply(t, repeat(`{"path":["spec","toppings",`+key+`,"x"],"value":1}`), b) }},
		{"one insert again and again", func() { apply(t, repeat(`{"path":["spec","toppings"],"insert":1,"after":`+key+`}`), b) }},
		{"one list merged again and again", func() { apply(t, repeat(`{"path":["spec","toppings"],"value":[{"name":"new"}]}`), b) }},
		{"one order again and again", func() {
			apply(t, repeat(`{"path":["spec","toppings"],"order":[{"key":{"name":"topping-2"}},`+key+`],"from":[1,0]}`), b)
		}},
		{"one hash again and again", func() { apply(t, repeat(`{"path":["spec"],"was":"AAAAAAAAAAA"}`), b) }},
		{"deep lists merged", func() {
			deep := []byte(strings.Repeat(`{"toppings":[{"name":1,"toppings":[`, 1000) + strings.Repeat(`]}]}`, 1000))
			apply(t, diff(t, []byte(`{}`), deep), deep)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			c.run()
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}
