package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/test/expect"
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
	Kinds    *kinds `json:"kinds"`
}

// kinds has a field of each kind that is decoded and encoded in its place, of types with
// a name and without, and some of other sizes between them.
type kinds struct {
	B         bool                 `json:"b,omitempty"`
	I         int                  `json:"i,omitempty"`
	I8        int8                 `json:"i8,omitempty"`
	I16       int16                `json:"i16,omitempty"`
	I64       int64                `json:"i64,omitempty"`
	U         uint                 `json:"u,omitempty"`
	U16       uint16               `json:"u16,omitempty"`
	U32       uint32               `json:"u32,omitempty"`
	F32       float32              `json:"f32,omitempty"`
	F64       float64              `json:"f64,omitzero"`
	Word      word                 `json:"word,omitempty"`
	Size      size                 `json:"size,omitzero"`
	PF        *float64             `json:"pf,omitempty"`
	PWord     *word                `json:"pWord,omitzero"`
	PStrings  *[]string            `json:"pStrings,omitempty"`
	PMap      *map[string]string   `json:"pMap,omitempty"`
	Toppings  []topping            `json:"toppings,omitempty"`
	Pointers  []*topping           `json:"pointers,omitzero"`
	Sizes     sizes                `json:"sizes,omitempty"`
	Bools     []bool               `json:"bools,omitempty"`
	Nothings  []struct{}           `json:"nothings,omitempty"`
	Names     names                `json:"names,omitempty"`
	Tags      tags                 `json:"tags,omitempty"`
	ByName    map[string]topping   `json:"byName,omitempty"`
	Nested    map[string][]kinds   `json:"nested,omitzero"`
	Zero      topping              `json:"zero,omitzero"`
	Inner     struct{ A, B inner } `json:"inner,omitzero"`
	Promoted  struct{ marshaled }  `json:"promoted,omitzero"`
	Marshaled marshaled            `json:"marshaled,omitzero"`
	Variable  variable             `json:"variable"`
	Variables map[string]variable  `json:"variables,omitempty"`
	Around    map[string]around    `json:"around,omitempty"`
	Quantity  *resource.Quantity   `json:"quantity,omitempty"`
	ByText    map[string]byText    `json:"byText,omitempty"`
	Micro     metav1.MicroTime     `json:"micro,omitempty"`
	Last      struct{}             `json:"last,omitzero"`
}

type (
	size  int32
	sizes []size
	names []string
	tags  map[string]string
)

// marshaled has its own text: an object with spaces, of one member.
type marshaled struct{ n int }

func (m marshaled) MarshalJSON() ([]byte, error) {
	if m.n == 13 {
		return nil, errors.New("13")
	}
	return fmt.Appendf(nil, `{ "n": %d }`, m.n), nil
}

func (m *marshaled) UnmarshalJSON(text []byte) error {
	var fields map[string]int
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	m.n = fields["n"] + 1 // for a null too
	return nil
}

// variable has its own text, but only where it has an address.
type variable struct{ N int }

func (v *variable) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%d"`, v.N), nil }

// around has one inside.
type around struct{ Variables [1]variable }

// byText is a number in a string.
type byText int

func (b byText) MarshalText() ([]byte, error) { return fmt.Append(nil, int(b)), nil }

func (b *byText) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	*b = byText(n)
	return err
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

// strange has features that are left to Decode.
type strange struct {
	*Embedded `json:",inline"`
	Quoted    int `json:"quoted,string"`
}

var everythings = []string{
	`{"s":"a","i":1,"l":9007199254740993,"u":255,"f":1e3,"b":null,"bytes":"aGk=","array":[1,2],"quoted":"7","list":[{"s":"x"},null],"map":{"a":null,"b":"c"},"ints":{"1":true}}`,
	`{"created":"2026-11-21T03:15:10+01:00","time":"2026-11-21T03:15:10,5Z","labels":{"b":"","a":null,"\\u0061":"x","a":"y"}}`, `{"created":null,"labels":{"a":1}}`, `{"pi":7,"ps":"x","small8":127,"l":-9}`, `{"small8":128}`, `{"pi":2147483648}`, `{"pi":"7"}`, `{"ps":7}`, `{"b":1}`, `{"pi":1.0}`, `{"ps":null,"pi":-0}`,
	`{"time":"2026-11-21T03:15:10Z","duration":"1m","quantity":"1.50","intOrString":8080,"nested":{"a":"b","A":"c"},"e":"f","Untagged":"g","Ignored":"h"}`,
	`{"S":"wrong case","s":"a","s":"b","list":[{"i":1}],"list":[{"s":"x"}],"map":{"a":"1"},"map":{"b":"2"},"unknown":{"x":[1.0]}}`,
	`{"kinds":{"b":true,"i":-7,"i8":-128,"i16":32767,"i64":-9223372036854775808,"u":18446744073709551615,"u16":65535,"u32":4294967295,"f32":0.1,"f64":-0.0,"word":"w","size":12,"pf":1e-7,"pWord":"","pStrings":["a"],"pMap":{"a":"b"}}}`,
	`{"kinds":{"toppings":[{"name":"a","quantity":1},{"name":"b"},{"quantity":3},{},null,{"name":"f","quantity":100000}],"pointers":[null,{"name":"é"}],"sizes":[1,-2,3],"bools":[true,false,null],"nothings":[{},{}],"names":["a"],"tags":{"a":"b"}}}`,
	`{"kinds":{"byName":{"b":{"name":"b","quantity":1},"a":{}},"nested":{"x":[{"i":1},{"nested":{"y":[]}}]},"zero":{"name":"z"},"inner":{"A":{"x":"1"},"B":{"x":"2"}},"marshaled":{"n":2},"variable":{"N":1},"variables":{"a":{"N":2}},"around":{"a":{"Variables":[{"N":3}]}},"quantity":"1Gi","byText":{"a":"12"},"micro":"2026-11-21T03:15:10.123456Z","last":{}}}`,
	`{"kinds":{"promoted":{"n":1}}}`, `{"kinds":{"promoted":null}}`, `{"kinds":{"marshaled":null,"quantity":null,"micro":null,"byText":{"a":null},"variables":{"a":null}}}`, `{"kinds":{"marshaled":{"n":12}}}`, `{"kinds":{"marshaled":{"n":"x"}}}`, `{"kinds":{"quantity":"x"}}`,
	`{"kinds":{"i8":-129}}`, `{"kinds":{"i16":32768}}`, `{"kinds":{"i64":9223372036854775808}}`, `{"kinds":{"u":-0}}`, `{"kinds":{"u":-1}}`, `{"kinds":{"u16":65536}}`, `{"kinds":{"u32":4294967296}}`, `{"kinds":{"size":2147483648}}`, `{"kinds":{"f32":"1"}}`, `{"kinds":{"i":1e2}}`, `{"kinds":{"b":"x"}}`,
	`{ "s" : "a" , "i" : 1 , "kinds" : { "toppings" : [ { "name" : "a" , "quantity" : 1 } , { "quantity" : 2 } ] } }`, `{"kinds":{"nothings":[],"pStrings":null,"word":"\"","i":0,"i64":1234567890123456789,"toppings":[{"name":"eight by","quantity":-1},{"name":"tab\tquote\"end"}]}}`,
	`{"inner":{"x":"a"}}`, `{"array":[1],"bytes":null,"f":-0,"i":1.0,"u":256}`, `{"array":[1,2,3]}`,
	`{"e":"x","named":{"n":true},"strange":{"quoted":"7","e":"y"},"any":{"a":[1,1.5,9007199254740993]},"raw":{ "x" : 1.0 },"strings":["a","",null,"\u00e9"],"words":["w"],"lists":[["a"],[],null],"byWord":{"\u0061":{"e":"z"}}}`,
	`{"number":12.50,"pointers":7,"unsigned":18446744073709551615,"small":1e39}`, `{"strings":["a","b","c","d","e","f"],"lists":[["1","2","3"],["4"]],"words":["1","2","3","4","5"]}`, `{"strings":[],"words":[],"list":[],"map":{},"byWord":{},"lists":[]}`, `{"list":{},"map":[]}`, "{\"s\":\"\xff\\ud800\"}", `null`, ``,
	`{"unknown":{},"raw":{ },"unknown":{},"kinds":{"u":10000000000000000001}}`,
}

// FuzzDecode checks that a decoder finds the same value as Decode, or the same error, perhaps with a path.
func FuzzDecode(f *testing.F) {
	for _, s := range everythings {
		f.Add([]byte(s))
	}
	decode := New().Decoder(reflect.TypeFor[everything]())
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		var quick, sure everything
		c := rawjson.NewCursor(text)
		err := decode(&Arena{}, &c, reflect.ValueOf(&quick).Elem())
		once := text // duplicates of members that the type does not have do not matter
		if duplicates, err := kjson.UnmarshalStrict(text, &everything{}, kjson.DisallowDuplicateFields); err != nil || len(duplicates) > 0 {
			once = dropDuplicates(text)
		}
		want := Decode(once, &sure)
		if (err == nil) != (want == nil) || !strings.HasSuffix(fmt.Sprint(err), fmt.Sprint(want)) {
			t.Fatalf("%q: the decoder says %v, Decode %v", text, err, want)
		}
		if c.End() != nil {
			t.Errorf("%q is left at %d", text, c.Offset())
		}
		if !reflect.DeepEqual(quick, sure) {
			t.Errorf("%q (-Decode +decoder):\n%s", text, cmp.Diff(sure, quick, cmp.AllowUnexported(everything{}), cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	})
}

// The error of a type with a decoder of its own has the path to the value.
func TestDecoder_NamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{"kinds":{"quantity":"x"}}`:                              "kinds.quantity: quantities must match",
		`{"list":[{"time":"2026-11-21T03:15:10Z"},{"time":"x"}]}`: "list[1].time: parsing time",
		`{"kinds":{"variables":{"a":{"N":"x"}}}}`:                 "json: cannot unmarshal string into Go struct field variable.kinds.variables.N of type int",
		`{"duration":"x"}`:                                        "duration: time: invalid duration",
		`{"i":"x"}`:                                               "json: cannot unmarshal string into Go struct field everything.i of type int",
	} {
		var v everything
		c := rawjson.NewCursor([]byte(text))
		err := New().Decoder(reflect.TypeFor[everything]())(&Arena{}, &c, reflect.ValueOf(&v).Elem())
		if !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// The types of API objects need no second decoder.
func TestDecoder_APIObjectsWithoutFallback(t *testing.T) {
	codecs := New()
	for _, of := range measured() {
		v, sure := reflect.New(of.t), reflect.New(of.t)
		c := rawjson.NewCursor([]byte(of.text))
		if err := codecs.decoders.of(of.t)(&Arena{}, &c, pointerTo(v.Elem(), of.t)); err != nil {
			t.Errorf("%s: %v", of.name, err)
		}
		expect.NoError(t, Decode([]byte(of.text), sure.Interface()))
		if diff := cmp.Diff(sure.Interface(), v.Interface()); diff != "" {
			t.Errorf("%s (-Decode +decoder):\n%s", of.name, diff)
		}
	}
}

func TestArena_NeverOverwritesWhatWasDecoded(t *testing.T) {
	decode, a := New().Decoder(reflect.TypeFor[kinds]()), &Arena{}
	text := func(i int) []byte {
		return fmt.Appendf(nil, `{"word":"w%[1]d","pf":%[1]d,"pWord":"p%[1]d","pStrings":["s%[1]d","t"],"pointers":[{"name":"n%[1]d","quantity":%[1]d},{"name":"o"}],"tags":{"a":"%[1]d"}}`, i)
	}
	decoded := make([]kinds, 1000)
	for i := range decoded {
		c := rawjson.NewCursor(text(i))
		expect.NoError(t, decode(a, &c, reflect.ValueOf(&decoded[i]).Elem()))
		if i%100 == 0 {
			runtime.GC() // what only the arena knew of would be gone
		}
	}
	for i := range decoded {
		var want kinds
		expect.NoError(t, Decode(text(i), &want))
		if diff := cmp.Diff(want, decoded[i], cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Fatalf("%d (-Decode +decoder):\n%s", i, diff)
		}
	}
}

// A long list of large structs takes no more memory than its elements.
func TestDecoder_AllocatesLongListAtOnce(t *testing.T) {
	type large struct {
		Name string    `json:"name"`
		More [50]int64 `json:"-"`
	}
	type list struct {
		Items []large `json:"items"`
	}
	decode := New().Decoder(reflect.TypeFor[list]())
	for _, n := range []int{0, 1, 4, 5, 63, 64, 65, 256, 257, 10_000} {
		text := `{"items":[` + strings.TrimSuffix(strings.Repeat(` {"name":"x"} ,`, n), ",") + `]}`
		var got list
		c := rawjson.NewCursor([]byte(text))
		if err := decode(&Arena{}, &c, reflect.ValueOf(&got).Elem()); err != nil || c.End() != nil || len(got.Items) != n {
			t.Fatalf("%d elements: got %d, %v", n, len(got.Items), err)
		}
		if n > 1000 && cap(got.Items) > n+n/8 {
			t.Errorf("%d elements have capacity %d", n, cap(got.Items))
		}
	}
}

func TestDecoder_OtherTypePanics(t *testing.T) {
	decode := New().Decoder(reflect.TypeFor[topping]())
	defer func() {
		if got, want := fmt.Sprint(recover()), "codec: a codec.pizza is given to what was made for codec.topping"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}()
	c := rawjson.NewCursor([]byte(`{}`))
	_ = decode(&Arena{}, &c, reflect.ValueOf(&pizza{}).Elem())
}
