package patch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pizza is an object of about 1.5 KB as the API server sends it.
const pizza = `{"apiVersion":"example.com/v1beta1","kind":"Pizza","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"example.com/v1beta1\",\"kind\":\"Pizza\",\"metadata\":{\"annotations\":{},\"labels\":{\"app.kubernetes.io/name\":\"quattro\"},\"name\":\"quattro\",\"namespace\":\"default\"},\"spec\":{\"size\":\"Large\",\"toppings\":[{\"name\":\"mozzarella\",\"quantity\":2},{\"name\":\"ham\",\"quantity\":1},{\"name\":\"artichoke\",\"quantity\":1}]}}\n"},"creationTimestamp":"2026-01-05T10:11:12Z","generation":3,"labels":{"app.kubernetes.io/name":"quattro"},"managedFields":[{"apiVersion":"example.com/v1beta1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},"f:spec":{".":{},"f:size":{},"f:toppings":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-01-05T10:11:12Z"},{"apiVersion":"example.com/v1beta1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:phase":{}}},"manager":"oven","operation":"Update","subresource":"status","time":"2026-01-05T10:14:00Z"}],"name":"quattro","namespace":"default","resourceVersion":"184467","uid":"7c8e1c5e-6c0f-4f1e-9a54-0d6b1f0c3c11"},"spec":{"size":"Large","toppings":[{"name":"mozzarella","quantity":2},{"name":"ham","quantity":1},{"name":"artichoke","quantity":1}]},"status":{"phase":"Baked"}}`

// The Go type of the pizza. Its encoding has another order than the raw text.
type pizzaType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size     string    `json:"size,omitempty"`
		Toppings []topping `json:"toppings,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status,omitempty"`
}

type topping struct {
	Quantity int    `json:"quantity"`
	Name     string `json:"name"`
}

func BenchmarkOneChangedField(b *testing.B) {
	benchmarkPizza(b, func(p *pizzaType) { p.Spec.Size = "Small" })
}

func BenchmarkOneChangedElement(b *testing.B) {
	benchmarkPizza(b, func(p *pizzaType) { p.Spec.Toppings[1].Quantity = 2 })
}

func benchmarkPizza(b *testing.B, change func(*pizzaType)) {
	b.Helper()
	var p pizzaType
	if err := json.Unmarshal([]byte(pizza), &p); err != nil {
		b.Fatal(err)
	}
	before, _ := json.Marshal(p)
	change(&p)
	after, _ := json.Marshal(p)
	benchmark(b, []byte(pizza), before, after)
}

func BenchmarkInsertIntoThousand(b *testing.B) {
	benchmark(b, thousand("name", nil), thousand("quantity", nil), thousand("quantity", func(l []string) []string {
		return slices.Insert(l, 500, `{"quantity":1,"name":"new"}`)
	}))
}

func BenchmarkEditOneOfThousand(b *testing.B) {
	benchmark(b, thousand("name", nil), thousand("quantity", nil), thousand("quantity", func(l []string) []string {
		l[500] = `{"quantity":9,"name":"topping-500"}`
		return l
	}))
}

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

func benchmark(b *testing.B, raw, before, after []byte) {
	b.Helper()
	b.SetBytes(int64(len(raw) + len(before) + len(after)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := Make(raw, before, after)
		if err != nil || p == nil {
			b.Fatal(string(p), err)
		}
	}
}
