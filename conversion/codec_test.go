package conversion

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// everything has a field of each sort that API types have.
type everything struct {
	metav1.TypeMeta `json:",inline"`
	S               string             `json:"s,omitempty"`
	I               int32              `json:"i"`
	L               *int64             `json:"l"`
	U               uint8              `json:"u"`
	F               float64            `json:"f"`
	B               *bool              `json:"b"`
	Bytes           []byte             `json:"bytes"`
	Array           [2]int             `json:"array"`
	Quoted          int                `json:"quoted,string"`
	List            []everything       `json:"list"`
	Map             map[string]*string `json:"map"`
	Ints            map[int]bool       `json:"ints"`
	Time            *metav1.Time       `json:"time"`
	Duration        metav1.Duration    `json:"duration"`
	Quantity        resource.Quantity  `json:"quantity"`
	IntOrString     intstr.IntOrString `json:"intOrString"`
	Nested          struct {
		A string `json:"a"`
		a string
	} `json:"nested"`
	*Embedded `json:",inline"`
	Untagged  string
	Ignored   string `json:"-"`
}

type Embedded struct {
	E string `json:"e"`
}

// FuzzDecode checks the promise of fast: where it finds no error, slow finds the
// same value.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"s":"a","i":1,"l":9007199254740993,"u":255,"f":1e3,"b":null,"bytes":"aGk=","array":[1,2],"quoted":"7","list":[{"s":"x"},null],"map":{"a":null,"b":"c"},"ints":{"1":true}}`,
		`{"time":"2026-11-21T03:15:10Z","duration":"1m","quantity":"1.50","intOrString":8080,"nested":{"a":"b","A":"c"},"e":"f","Untagged":"g","Ignored":"h"}`,
		`{"S":"wrong case","s":"a","s":"b","list":[{"i":1}],"list":[{"s":"x"}],"map":{"a":"1"},"map":{"b":"2"},"unknown":{"x":[1.0]}}`,
		`{"array":[1],"bytes":null,"f":-0,"i":1.0,"u":256}`, `{"array":[1,2,3]}`, `{"list":{},"map":[]}`, "{\"s\":\"\xff\\ud800\"}", `null`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var quick, sure everything
		if fast(text, &quick) != nil {
			return
		}
		if err := slow(text, &sure); err != nil {
			t.Fatalf("%q: only fast decodes it: %v", text, err)
		}
		if !reflect.DeepEqual(quick, sure) {
			t.Errorf("%q (-slow +fast):\n%s", text, cmp.Diff(sure, quick, cmp.AllowUnexported(everything{}), cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	})
}

func TestOnlyTypesWithInterfacesAreDynamic(t *testing.T) {
	type tree struct {
		Children []tree
		Value    map[string]any
	}
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[everything](): false,
		reflect.TypeFor[tree]():       true,
		reflect.TypeFor[[]any]():      true,
	} {
		if got := isDynamic(typ); got != want {
			t.Errorf("%v: got %v", typ, got)
		}
	}
}
