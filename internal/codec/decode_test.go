package codec

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/internal/rawjson"
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
	List            []everything       `json:"list"`
	Map             map[string]*string `json:"map"`
	Ints            map[int]bool       `json:"ints"`
	Time            *metav1.Time       `json:"time"`
	Created         metav1.Time        `json:"created,omitempty,omitzero"`
	Labels          map[string]string  `json:"labels"`
	Small8          int8               `json:"small8"`
	PI              *int32             `json:"pi"`
	PS              *string            `json:"ps"`
	Duration        metav1.Duration    `json:"duration"`
	Quantity        resource.Quantity  `json:"quantity"`
	IntOrString     intstr.IntOrString `json:"intOrString"`
	Nested          struct {
		A string `json:"a"`
		a string
	} `json:"nested"`
	Embedded `json:",inline"`
	Named    `json:"named"`
	Strange  strange           `json:"strange"`
	Any      any               `json:"any"`
	Raw      json.RawMessage   `json:"raw"`
	Strings  []string          `json:"strings"`
	Words    []word            `json:"words"`
	Lists    [][]string        `json:"lists"`
	ByWord   map[word]Embedded `json:"byWord"`
	Number   json.Number       `json:"number"`
	Pointers **int             `json:"pointers"`
	Unsigned uint64            `json:"unsigned"`
	Small    float32           `json:"small"`
	Untagged string
	Ignored  string `json:"-"`
}

type Embedded struct {
	E string `json:"e"`
}

type Named struct {
	N bool `json:"n"`
}

// inner is embedded under a name of its own, though it is not exported.
//
//lint:ignore U1000 encoding/json uses it
type inner struct {
	X string `json:"x"`
}

type word string

// strange has features that are left to Slow.
type strange struct {
	*Embedded `json:",inline"`
	Quoted    int `json:"quoted,string"`
}

var everythings = []string{
	`{"s":"a","i":1,"l":9007199254740993,"u":255,"f":1e3,"b":null,"bytes":"aGk=","array":[1,2],"quoted":"7","list":[{"s":"x"},null],"map":{"a":null,"b":"c"},"ints":{"1":true}}`,
	`{"created":"2026-11-21T03:15:10+01:00","time":"2026-11-21T03:15:10,5Z","labels":{"b":"","a":null,"\\u0061":"x","a":"y"}}`, `{"created":null,"labels":{"a":1}}`, `{"pi":7,"ps":"x","small8":127,"l":-9}`, `{"small8":128}`, `{"pi":2147483648}`, `{"pi":"7"}`, `{"ps":7}`, `{"b":1}`, `{"pi":1.0}`, `{"ps":null,"pi":-0}`,
	`{"time":"2026-11-21T03:15:10Z","duration":"1m","quantity":"1.50","intOrString":8080,"nested":{"a":"b","A":"c"},"e":"f","Untagged":"g","Ignored":"h"}`,
	`{"S":"wrong case","s":"a","s":"b","list":[{"i":1}],"list":[{"s":"x"}],"map":{"a":"1"},"map":{"b":"2"},"unknown":{"x":[1.0]}}`,
	`{"inner":{"x":"a"}}`, `{"array":[1],"bytes":null,"f":-0,"i":1.0,"u":256}`, `{"array":[1,2,3]}`,
	`{"e":"x","named":{"n":true},"strange":{"quoted":"7","e":"y"},"any":{"a":[1,1.5,9007199254740993]},"raw":{ "x" : 1.0 },"strings":["a","",null,"\u00e9"],"words":["w"],"lists":[["a"],[],null],"byWord":{"\u0061":{"e":"z"}}}`,
	`{"number":12.50,"pointers":7,"unsigned":18446744073709551615,"small":1e39}`, `{"strings":["a","b","c","d","e","f"],"lists":[["1","2","3"],["4"]],"words":["1","2","3","4","5"]}`, `{"strings":[],"words":[],"list":[],"map":{},"byWord":{},"lists":[]}`, `{"list":{},"map":[]}`, "{\"s\":\"\xff\\ud800\"}", `null`, ``,
}

// FuzzDecode checks the promise of a decoder: where it finds no error, Slow finds the
// same value.
func FuzzDecode(f *testing.F) {
	for _, s := range everythings {
		f.Add([]byte(s))
	}
	decode := New().Decoder(reflect.TypeFor[everything]())
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) { // the cursor has seen to that
			return
		}
		var quick, sure everything
		m := &Memory{}
		for range 2 { // what one value leaves in the memory must not end up in the next
			quick = everything{}
			c := rawjson.NewCursor(text)
			if decode(m, &c, reflect.ValueOf(&quick).Elem()) != nil {
				return
			}
		}
		if err := Slow(text, &sure); err != nil {
			t.Fatalf("%q: only the decoder takes it: %v", text, err)
		}
		if !reflect.DeepEqual(quick, sure) {
			t.Errorf("%q (-slow +decoder):\n%s", text, cmp.Diff(sure, quick, cmp.AllowUnexported(everything{}), cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	})
}
