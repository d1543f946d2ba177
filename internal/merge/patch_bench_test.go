package merge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/test/expect"
)

// thousand returns an object with a list of 1,000, of which the elements have
// that member first.
func thousand(first string, change func([]string) []string) []byte {
	var l []string
	for i := range 1000 {
		if first == "name" {
			l = append(l, fmt.Sprintf(`{"name":"topping-%d","quantity":%d}`, i, i%7))
		} else {
			l = append(l, fmt.Sprintf(`{"quantity":%d,"name":"topping-%d"}`, i%7, i))
		}
	}
	if change != nil {
		l = change(l)
	}
	return []byte(`{"spec":{"toppings":[` + strings.Join(l, ",") + `]}}`)
}

// margherita is an object as kubectl and a controller leave it, of about 1.2 KB.
const margherita = `{"apiVersion":"example.com/v1alpha1","kind":"Pizza","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"example.com/v1alpha1\",\"kind\":\"Pizza\",\"metadata\":{\"annotations\":{},\"name\":\"margherita-00001\",\"namespace\":\"default\"},\"spec\":{\"toppings\":[\"mozzarella\",\"tomato\",\"mozzarella\"]}}\n"},"creationTimestamp":"2026-11-21T03:15:10Z","generation":1,"managedFields":[{"apiVersion":"example.com/v1beta1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:cost":{}}},"manager":"pizza-operator","operation":"Update","subresource":"status","time":"2026-11-21T03:15:11Z"},{"apiVersion":"example.com/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:spec":{".":{},"f:toppings":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-11-21T03:15:10Z"}],"name":"margherita-00001","namespace":"default","resourceVersion":"1001","uid":"a5b60485-5593-4916-99a6-000000000001"},"spec":{},"status":{"cost":2.7}}`

// The cases of a webhook: raw is an object as the API server sends it, with
// managedFields, which the Go value does not have.

func BenchmarkDefaultASmallObject(b *testing.B) {
	benchmarkWebhook(b, nil, func(s *pizzaSpec) { s.Toppings = []pizzaTopping{{"tomato", 1}, {"mozzarella", 1}, {"salami", 1}} })
}

func BenchmarkThousandInsertAtTheHead(b *testing.B) {
	benchmarkWebhook(b, toppings(1000), func(s *pizzaSpec) { s.Toppings = slices.Insert(s.Toppings, 0, pizzaTopping{"tomato", 1}) })
}

func BenchmarkThousandEditInTheMiddle(b *testing.B) {
	benchmarkWebhook(b, toppings(1000), func(s *pizzaSpec) { s.Toppings[500].Quantity = 9 })
}

func BenchmarkThousandRemoveInTheMiddle(b *testing.B) {
	benchmarkWebhook(b, toppings(1000), func(s *pizzaSpec) { s.Toppings = slices.Delete(s.Toppings, 500, 501) })
}

func BenchmarkThousandMoveToTheHead(b *testing.B) {
	benchmarkWebhook(b, toppings(1000), func(s *pizzaSpec) {
		last := s.Toppings[999]
		s.Toppings = slices.Insert(s.Toppings[:999], 0, last)
	})
}

func BenchmarkThousandEditTwo(b *testing.B) {
	benchmarkWebhook(b, toppings(1000), func(s *pizzaSpec) { s.Toppings[300].Quantity, s.Toppings[600].Quantity = 9, 9 })
}

func BenchmarkThousandEditAString(b *testing.B) {
	object := func(first, note string) []byte {
		return thousand(first, func(l []string) []string {
			l[500] = strings.TrimSuffix(l[500], "}") + `,"note":"` + note + `"}`
			return l
		})
	}
	benchmark(b, object("name", "old"), object("quantity", "old"), object("quantity", "new"))
}

type webhookPizza struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              pizzaSpec `json:"spec,omitempty"`
	Status            struct {
		Cost float64 `json:"cost,omitempty"`
	} `json:"status,omitempty"`
}

type pizzaSpec struct {
	Toppings []pizzaTopping `json:"toppings,omitempty"`
}

type pizzaTopping struct {
	Name     string `json:"name"`
	Quantity int    `json:"quantity"`
}

func toppings(n int) []pizzaTopping {
	var l []pizzaTopping
	for i := range n {
		l = append(l, pizzaTopping{fmt.Sprintf("topping-%04d", i), i%3 + 1})
	}
	return l
}

func benchmarkWebhook(b *testing.B, toppings []pizzaTopping, change func(*pizzaSpec)) {
	b.Helper()
	var p webhookPizza
	expect.NoError(b, json.Unmarshal([]byte(margherita), &p))
	p.Spec.Toppings = toppings
	encode := func() []byte {
		text, err := json.Marshal(p)
		expect.NoError(b, err)
		return text
	}
	var v any
	expect.NoError(b, json.Unmarshal(encode(), &v))
	raw, _ := json.Marshal(v) // the API server's own order of members
	p.ManagedFields = nil
	before := encode()
	change(&p.Spec)
	benchmark(b, raw, before, encode())
}

func benchmark(b *testing.B, raw, before, after []byte) {
	b.Helper()
	b.SetBytes(int64(len(raw) + len(before) + len(after)))
	b.ReportAllocs()
	for b.Loop() {
		p, _, err := Patch(raw, before, after, nil, false, true)
		if err != nil || p == nil {
			b.Fatal(string(p), err)
		}
	}
}
