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

	"github.com/crdkit/crdkit/internal/rawjson"
)

// An Encoder appends a value to b as JSON, with the same value that encoding/json gives
// it, and without escapes for HTML: a < that came as a < goes as a <. For what it is not
// made for, it calls encoding/json.
type Encoder func(m *Memory, b []byte, v reflect.Value) ([]byte, error)

// encoders makes the encoders of types, each once: types may be recursive.
type encoders map[reflect.Type]*Encoder

// of returns the encoder of a type.
func (e encoders) of(t reflect.Type) Encoder {
	if made := e[t]; made != nil && *made != nil {
		return *made
	} else if made != nil { // t is recursive, and its encoder is being made
		// A value that holds itself has no end; encoding/json says so.
		return func(m *Memory, b []byte, v reflect.Value) ([]byte, error) {
			if m.depth++; m.depth > maxDepth {
				return b, errTooDeep
			}
			defer func() { m.depth-- }()
			return (*made)(m, b, v)
		}
	}
	made := new(Encoder)
	e[t] = made
	*made = e.make(t)
	return *made
}

// maxDepth is how deeply what we write may be nested: as deeply as what we read.
const maxDepth = 10_000

var errTooDeep = errors.New("the object is nested too deeply, or holds itself")

func (e encoders) make(t reflect.Type) Encoder {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return encodeTime
	case t.Kind() != reflect.Pointer && encodesItself(t):
		return encodeSlowly
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(_ *Memory, b []byte, v reflect.Value) ([]byte, error) {
			return strconv.AppendBool(b, v.Bool()), nil
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(_ *Memory, b []byte, v reflect.Value) ([]byte, error) {
			return strconv.AppendInt(b, v.Int(), 10), nil
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(_ *Memory, b []byte, v reflect.Value) ([]byte, error) {
			return strconv.AppendUint(b, v.Uint(), 10), nil
		}
	case reflect.Float64:
		return encodeFloat
	case reflect.String:
		if t != reflect.TypeFor[json.Number]() {
			return func(_ *Memory, b []byte, v reflect.Value) ([]byte, error) {
				return rawjson.AppendQuote(b, v.String()), nil
			}
		}
	case reflect.Pointer:
		return orNull(e.pointer(t))
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // that is base64
			return orNull(e.slice(t))
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !encodesItself(t.Key()) {
			return orNull(e.mapOf(t))
		}
	case reflect.Struct:
		return e.structOf(t)
	}
	return encodeSlowly
}

// encodeSlowly is for types which are strange, or have an encoder of their own.
func encodeSlowly(m *Memory, b []byte, v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	text, err := m.Encode(v.Interface())
	return append(b, text...), err
}

// orNull is for what may be nil.
func orNull(encode Encoder) Encoder {
	return func(m *Memory, b []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return encode(m, b, v)
	}
}

// encodeTime writes a timestamp as metav1.Time does.
func encodeTime(_ *Memory, b []byte, v reflect.Value) ([]byte, error) {
	t := v.Interface().(metav1.Time)
	if t.IsZero() {
		return append(b, "null"...), nil
	}
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339), '"'), nil
}

// encodeFloat writes a float as encoding/json and JavaScript do.
func encodeFloat(m *Memory, b []byte, v reflect.Value) ([]byte, error) {
	f := v.Float()
	if abs := math.Abs(f); !(abs < 1e21) || abs < 1e-6 && f != 0 {
		return encodeSlowly(m, b, v)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64), nil
}

func (e encoders) pointer(t reflect.Type) Encoder {
	elem := e.of(t.Elem())
	return func(m *Memory, b []byte, v reflect.Value) ([]byte, error) { return elem(m, b, v.Elem()) }
}

func (e encoders) slice(t reflect.Type) Encoder {
	elem := e.of(t.Elem())
	return func(m *Memory, b []byte, v reflect.Value) (_ []byte, err error) {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = elem(m, b, v.Index(i)); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
}

func (e encoders) mapOf(t reflect.Type) Encoder {
	if t == reflect.TypeFor[map[string]string]() {
		return encodeStringMap
	}
	elem := e.of(t.Elem())
	return func(m *Memory, b []byte, v reflect.Value) (_ []byte, err error) {
		values := make(map[string]reflect.Value, v.Len())
		for key, value := range v.Seq2() {
			values[key.String()] = value
		}
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(values)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(rawjson.AppendQuote(b, key), ':')
			if b, err = elem(m, b, values[key]); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	}
}

// encodeStringMap is mapOf for the most frequent type.
func encodeStringMap(m *Memory, b []byte, v reflect.Value) ([]byte, error) {
	strings := v.Interface().(map[string]string)
	m.keys = slices.AppendSeq(m.keys[:0], maps.Keys(strings))
	slices.Sort(m.keys)
	b = append(b, '{')
	for i, key := range m.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendQuote(b, key), ':')
		b = rawjson.AppendQuote(b, strings[key])
	}
	clear(m.keys) // they are somebody else's
	return append(b, '}'), nil
}

func (e encoders) structOf(t reflect.Type) Encoder {
	if fields, ok := fieldsOf(t); ok {
		return e.members(t, fields)
	}
	return encodeSlowly
}

// members makes an encoder of some fields of a struct.
func (e encoders) members(t reflect.Type, fields []structField) Encoder {
	names, encode := make([][]byte, len(fields)), make([]Encoder, len(fields))
	omit := make([]func(reflect.Value) bool, len(fields))
	for i, f := range fields {
		names[i] = append(rawjson.Quote(f.name), ':')
		fieldType := t.FieldByIndex(f.index).Type
		encode[i], omit[i] = e.of(fieldType), omission(fieldType, f.options)
	}
	return func(m *Memory, b []byte, v reflect.Value) (_ []byte, err error) {
		b = append(b, '{')
		begin := len(b)
		for i := range fields {
			value := fields[i].of(v)
			if omit[i](value) {
				continue
			}
			if len(b) > begin {
				b = append(b, ',')
			}
			if b, err = encode[i](m, append(b, names[i]...), value); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	}
}

// omission returns what says whether a field is left out.
func omission(t reflect.Type, options string) func(reflect.Value) bool {
	isZero := func(reflect.Value) bool { return false }
	if hasOption(options, "omitzero") {
		isZero = zeroOf(t)
	}
	if !hasOption(options, "omitempty") {
		return isZero
	}
	return func(v reflect.Value) bool {
		switch v.Kind() {
		case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
			return v.Len() == 0 || isZero(v)
		case reflect.Struct:
			return isZero(v)
		default:
			return v.IsZero() || isZero(v)
		}
	}
}

// zeroOf returns what says whether a value of a type is zero: its method, if it has one.
func zeroOf(t reflect.Type) func(reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	switch {
	case t.Implements(reflect.TypeFor[zeroer]()):
		return func(v reflect.Value) bool {
			if k := v.Kind(); k == reflect.Interface && (v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil()) || k == reflect.Pointer && v.IsNil() {
				return true
			}
			return v.Interface().(zeroer).IsZero()
		}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[zeroer]()):
		return func(v reflect.Value) bool {
			if v.CanAddr() {
				return v.Addr().Interface().(zeroer).IsZero()
			}
			p := reflect.New(t)
			p.Elem().Set(v)
			return p.Interface().(zeroer).IsZero()
		}
	default:
		return reflect.Value.IsZero
	}
}

// Encode encodes a value with encoding/json. The text is good until the next call.
func (m *Memory) Encode(value any) ([]byte, error) {
	m.encoded.Reset()
	e := json.NewEncoder(&m.encoded)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(m.encoded.Bytes(), []byte{'\n'}), err
}

// encodesItself says whether a type has an encoder of its own.
func encodesItself(t reflect.Type) bool {
	return has[json.Marshaler](t) || has[encoding.TextMarshaler](t)
}
