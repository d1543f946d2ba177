package codec

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/test/expect"
)

// zeros has fields that are left out, each for another reason.
type zeros struct {
	Empty    struct{}   `json:"empty,omitempty"`
	Zero     struct{}   `json:"zero,omitzero"`
	Time     time.Time  `json:"time,omitzero"`
	Pointer  *time.Time `json:"pointer,omitzero"`
	Never    never      `json:"never,omitzero"`
	ByRef    byRef      `json:"byRef,omitzero"`
	Zeroer   zeroer     `json:"zeroer,omitzero"`
	Array    [0]int     `json:"array,omitempty"`
	Both     []string   `json:"both,omitempty,omitzero"`
	Any      any        `json:"any,omitempty"`
	Bool     bool       `json:"bool,omitempty"`
	Map      map[string]int
	Float    float64            `json:"float,omitempty"`
	Bytes    []byte             `json:"bytes"`
	Floats   map[string]float64 `json:"floats"`
	Uintptr  uintptr            `json:"uintptr"`
	Embedded `json:",inline"`
}

type zeroer interface{ IsZero() bool }

type never int

func (never) IsZero() bool { return false }

type byRef struct{ N int }

func (b *byRef) IsZero() bool { return b.N == 7 }

// same compares what the encoder and encoding/json make of a value.
func sameText(t *testing.T, a *Arena, encode Encoder, value any) {
	t.Helper()
	got, err := encode(a, nil, reflect.ValueOf(value).Elem())
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	wantErr := e.Encode(value)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%+v: got error %v, encoding/json says %v", value, err, wantErr)
	}
	if err != nil {
		return
	}
	var gotValue, wantValue any
	if err := json.Unmarshal(got, &gotValue); err != nil {
		t.Fatalf("%+v: %s: %v", value, got, err)
	}
	expect.NoError(t, json.Unmarshal(want.Bytes(), &wantValue))
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Errorf("%+v (-encoding/json +encoder):\n%s", value, diff)
	}
}

// An encoder writes what encoding/json writes.
func TestEncoder_LikeEncodingJSON(t *testing.T) {
	encode := New().Encoder(reflect.TypeFor[zeros]())
	now := time.Unix(1, 2).UTC()
	for _, value := range []zeros{
		{},
		{Time: now, Pointer: &now, Never: 1, ByRef: byRef{7}, Both: []string{}, Any: 0, Bool: true, Map: map[string]int{}, Float: 1e-7},
		{Pointer: new(time.Time), ByRef: byRef{1}, Both: []string{"a<b>&\u2028\x00\x7f\"\\é🍕", "\xff"}, Any: map[string]any{"<": nil}, Bytes: []byte("x")},
		{Floats: map[string]float64{"b": 1e21, "a": 1e20, "<": math.Copysign(0, -1), "c": math.MaxFloat64, "d": 123456789.125, "e": 5e-324, "f": 1e-6}},
		{Zeroer: (*byRef)(nil)}, {Zeroer: &byRef{7}}, {Zeroer: never(0)},
		{Float: math.NaN()},
		{Floats: map[string]float64{"x": math.Inf(-1)}},
	} {
		sameText(t, &Arena{}, encode, &value)
	}
}

// A value that has no JSON is an error, also if it is empty.
func TestEncoder_NoJSON(t *testing.T) {
	type strange struct {
		F func()     `json:"f,omitempty"`
		C chan int   `json:"c,omitempty"`
		X complex128 `json:"x,omitempty"`
	}
	sameText(t, &Arena{}, New().Encoder(reflect.TypeFor[strange]()), &strange{})
}

// An object that can be read can be written, however deep it is.
func TestEncoder_Deep(t *testing.T) {
	type node struct {
		Next *node `json:"next,omitempty"`
	}
	text := strings.Repeat(`{"next":`, 5000) + "{}" + strings.Repeat("}", 5000)
	c := rawjson.NewCursor([]byte(text))
	a, n := &Arena{}, &node{}
	expect.NoError(t, New().Decoder(reflect.TypeFor[node]())(a, &c, reflect.ValueOf(n).Elem()))
	if got, err := New().Encoder(reflect.TypeFor[node]())(a, nil, reflect.ValueOf(n).Elem()); err != nil || string(got) != text {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}

func TestEncoder_ObjectHoldsItself(t *testing.T) {
	type node struct{ Next *node }
	loop := &node{}
	loop.Next = loop
	a := &Arena{}
	_, err := New().Encoder(reflect.TypeFor[node]())(a, nil, reflect.ValueOf(loop).Elem())
	expect.ErrorContains(t, err, "contains itself")
}

// FuzzEncode checks the promise of an encoder with whatever can be decoded.
func FuzzEncode(f *testing.F) {
	for _, s := range everythings {
		f.Add([]byte(s))
	}
	encode := New().Encoder(reflect.TypeFor[everything]())
	f.Fuzz(func(t *testing.T, text []byte) {
		var value everything
		if Decode(text, &value) != nil {
			return
		}
		sameText(t, &Arena{}, encode, &value)
	})
}
