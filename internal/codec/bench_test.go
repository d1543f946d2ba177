package codec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/test/expect"
)

// topping is what the API objects of the benchmark are made of.
type topping struct {
	Name     string `json:"name"`
	Quantity *int32 `json:"quantity,omitempty"`
}

// pizza is a small API object.
type pizza struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		Toppings []string `json:"toppings,omitempty"`
	} `json:"spec,omitzero"`
	Status struct {
		Cost *float64 `json:"cost,omitempty"`
	} `json:"status,omitzero"`
}

// measured are the texts and types of the benchmarks.
func measured() []measurement {
	toppings := make([]string, 1000)
	for i := range toppings {
		toppings[i] = fmt.Sprintf(`{"name":"topping-%04d","quantity":%d}`, i, i%3+1)
	}
	return []measurement{
		{"list/1000", reflect.TypeFor[[]topping](), "[" + strings.Join(toppings, ",") + "]"},
		{"object", reflect.TypeFor[pizza](), `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{` +
			`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"restaurant.example.com/v1\",\"kind\":\"Pizza\",\"metadata\":{\"annotations\":{},\"name\":\"margherita\",\"namespace\":\"default\"},\"spec\":{\"toppings\":[\"mozzarella\",\"tomato\"]}}\n"},` +
			`"creationTimestamp":"2026-11-21T03:15:10Z","generation":1,"managedFields":[` +
			`{"apiVersion":"restaurant.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:cost":{}}},"manager":"pizza-operator","operation":"Update","subresource":"status","time":"2026-11-21T03:15:11Z"},` +
			`{"apiVersion":"restaurant.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:toppings":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-11-21T03:15:10Z"}],` +
			`"name":"margherita","namespace":"default","resourceVersion":"1001","uid":"a5b60485-5593-4916-99a6-000000001000"},` +
			`"spec":{"toppings":["mozzarella","tomato","mozzarella"]},"status":{"cost":2.7}}`},
	}
}

type measurement struct {
	name string
	t    reflect.Type
	text string
}

func BenchmarkDecode(b *testing.B) {
	for _, of := range measured() {
		b.Run(of.name, func(b *testing.B) {
			decode, a, text := New().Decoder(of.t), &Arena{}, []byte(of.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				c := rawjson.NewCursor(text)
				expect.NoError(b, decode(a, &c, reflect.New(of.t).Elem()))
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, of := range measured() {
		b.Run(of.name, func(b *testing.B) {
			codecs := New()
			encode, a, v := codecs.Encoder(of.t), &Arena{}, reflect.New(of.t).Elem()
			c := rawjson.NewCursor([]byte(of.text))
			expect.NoError(b, codecs.Decoder(of.t)(a, &c, v))
			b.SetBytes(int64(len(of.text)))
			b.ReportAllocs()
			var text []byte
			var err error
			for b.Loop() {
				if text, err = encode(a, text[:0], v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
