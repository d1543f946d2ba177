package codec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// An Encoder appends an addressable value to b as JSON that is the same as that of encoding/json, but
// without escapes for HTML. It calls encoding/json for unusual types.
type Encoder func(a *Arena, b []byte, v reflect.Value) ([]byte, error)

// encoder is an Encoder of the value that p points to.
type encoder func(a *Arena, b []byte, p pointer) ([]byte, error)

// encoders makes the encoders of types, each once: types may be recursive.
type encoders map[reflect.Type]*encoder

// of returns the encoder of a type.
func (e encoders) of(t reflect.Type) encoder {
	made := e[t]
	if made == nil {
		made = new(encoder)
		e[t] = made
		*made = e.make(t)
	}
	if *made == nil { // t is recursive, and its encoder is being made
		// a value that holds itself has no end: encoding/json returns an error too
		return func(a *Arena, b []byte, p pointer) ([]byte, error) {
			if a.depth++; a.depth > maxDepth {
				return b, errTooDeep
			}
			defer func() { a.depth-- }()
			return (*made)(a, b, p)
		}
	}
	return *made
}

// maxDepth bounds the nesting of what is encoded, as rawjson bounds that of what is decoded.
const maxDepth = 10_000

var errTooDeep = errors.New("the object is nested too deeply, or contains itself")

func (e encoders) make(t reflect.Type) encoder {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return encodeTime
	case t.Kind() != reflect.Pointer && jsontype.EncodesItself(t):
		return e.itself(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(_ *Arena, b []byte, p pointer) ([]byte, error) {
			return strconv.AppendBool(b, *at[bool](p)), nil
		}
	case reflect.Int:
		return encodeInt[int]
	case reflect.Int32:
		return encodeInt[int32]
	case reflect.Int64:
		return encodeInt[int64]
	case reflect.Float64:
		return encodeFloat
	case reflect.String:
		if t != reflect.TypeFor[json.Number]() {
			return func(_ *Arena, b []byte, p pointer) ([]byte, error) {
				return rawjson.AppendQuote(b, *at[string](p)), nil
			}
		}
	case reflect.Pointer:
		return e.pointer(t)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // that is base64
			return e.slice(t)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !jsontype.EncodesItself(t.Key()) && !needsAddress(t.Elem()) {
			return e.mapOf(t)
		}
	case reflect.Struct:
		if fields, ok := fieldsOf(t); ok {
			return e.members(fields)
		}
	}
	return e.byEncodingJSON(t)
}

// byEncodingJSON returns the encoder of the types that have no other one.
func (e encoders) byEncodingJSON(t reflect.Type) encoder {
	return func(a *Arena, b []byte, p pointer) ([]byte, error) {
		text, err := a.Encode(p.as(t))
		return append(b, text...), err
	}
}

// itself returns the encoder of a type that has its own.
func (e encoders) itself(t reflect.Type) encoder {
	byEncodingJSON := e.byEncodingJSON(t)
	if t.Kind() == reflect.Interface || !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return byEncodingJSON
	}
	return func(a *Arena, b []byte, p pointer) ([]byte, error) {
		text, err := p.as(t).(json.Marshaler).MarshalJSON()
		if err != nil || !compact(text) {
			return byEncodingJSON(a, b, p)
		}
		return append(b, text...), nil
	}
}

// compact reports whether text is one JSON value without white space around its parts.
func compact(text []byte) bool {
	c := rawjson.NewCursor(text)
	if first := c.Begins(); (first == '{' || first == '[') && bytes.ContainsAny(text, " \t\r\n") {
		return false // or in a string
	}
	return len(text) > 0 && len(c.Value()) == len(text)
}

func encodeInt[T int | int32 | int64](_ *Arena, b []byte, p pointer) ([]byte, error) {
	return strconv.AppendInt(b, int64(*at[T](p)), 10), nil
}

// encodeTime writes a timestamp as metav1.Time does.
func encodeTime(_ *Arena, b []byte, p pointer) ([]byte, error) {
	t := at[metav1.Time](p)
	if t.IsZero() {
		return append(b, "null"...), nil
	}
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339), '"'), nil
}

// encodeFloat writes a float as encoding/json and JavaScript do.
func encodeFloat(a *Arena, b []byte, p pointer) ([]byte, error) {
	f := *at[float64](p)
	if abs := math.Abs(f); !(abs < 1e21) || abs < 1e-6 && f != 0 {
		text, err := a.Encode(f)
		return append(b, text...), err
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64), nil
}

func (e encoders) pointer(t reflect.Type) encoder {
	elem := e.of(t.Elem())
	return func(a *Arena, b []byte, p pointer) ([]byte, error) {
		to := *at[pointer](p)
		if to == (pointer{}) {
			return append(b, "null"...), nil
		}
		return elem(a, b, to)
	}
}

func (e encoders) slice(t reflect.Type) encoder {
	elem, size := e.of(t.Elem()), t.Elem().Size()
	return func(a *Arena, b []byte, p pointer) (_ []byte, err error) {
		l := at[list](p)
		if l.first == (pointer{}) {
			return append(b, "null"...), nil
		}
		b = append(b, '[')
		for i := range l.len {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = elem(a, b, l.elem(i, size)); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
}

func (e encoders) mapOf(t reflect.Type) encoder {
	if t.Key() == reflect.TypeFor[string]() && t.Elem() == reflect.TypeFor[string]() {
		return encodeStringMap
	}
	elem := e.of(t.Elem())
	return func(a *Arena, b []byte, p pointer) (_ []byte, err error) {
		v := p.value(t)
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		values := make(map[string]reflect.Value, v.Len())
		for key, value := range v.Seq2() {
			values[key.String()] = value
		}
		addressable := reflect.New(t.Elem()).Elem()
		there := pointerTo(addressable, t.Elem())
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(values)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(rawjson.AppendQuote(b, key), ':')
			addressable.Set(values[key])
			if b, err = elem(a, b, there); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	}
}

// needsAddress reports whether encoding/json may encode a value of a map otherwise than a variable:
// if only a pointer to it, or to something in it, has an encoder.
func needsAddress(t reflect.Type) bool {
	for _, encodes := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if reflect.PointerTo(t).Implements(encodes) && !t.Implements(encodes) {
			return true
		}
	}
	switch {
	case jsontype.EncodesItself(t):
		return false
	case t.Kind() == reflect.Array:
		return needsAddress(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if needsAddress(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// encodeStringMap is mapOf for the most frequent type.
func encodeStringMap(a *Arena, b []byte, p pointer) ([]byte, error) {
	strings := *at[map[string]string](p)
	if strings == nil {
		return append(b, "null"...), nil
	}
	a.keys = slices.AppendSeq(a.keys[:0], maps.Keys(strings))
	slices.Sort(a.keys)
	b = append(b, '{')
	for i, key := range a.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendQuote(b, key), ':')
		b = rawjson.AppendQuote(b, strings[key])
	}
	clear(a.keys) // the memory of the strings is not ours
	return append(b, '}'), nil
}

// memberEncoder encodes one member of a struct.
type memberEncoder struct {
	name   string // a comma, the name in quotation marks, and a colon
	offset uintptr
	omit   func(p pointer) bool // nil if it never is
	encode encoder
}

// members makes an encoder of some fields of a struct.
func (e encoders) members(fields jsontype.Fields) encoder {
	members := make([]memberEncoder, len(fields))
	for i, f := range fields {
		members[i] = memberEncoder{"," + string(rawjson.Quote(f.JSON)) + ":", f.Offset, omission(f), e.of(f.Type)}
	}
	return func(a *Arena, b []byte, p pointer) (_ []byte, err error) {
		begin := len(b)
		for i := range members {
			member := &members[i]
			field := p.inside(member.offset)
			if member.omit != nil && member.omit(field) {
				continue
			}
			if b, err = member.encode(a, append(b, member.name...), field); err != nil {
				return b, err
			}
		}
		if len(b) == begin {
			return append(b, "{}"...), nil
		}
		b[begin] = '{' // in the place of the first comma
		return append(b, '}'), nil
	}
}

// Encode encodes a value with encoding/json. The text is good until the next call.
func (a *Arena) Encode(value any) ([]byte, error) {
	a.encoded.Reset()
	e := json.NewEncoder(&a.encoded)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(a.encoded.Bytes(), []byte{'\n'}), err
}
