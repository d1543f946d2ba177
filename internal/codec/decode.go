package codec

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Slow decodes JSON with the API server's own decoder: case-sensitive, lenient
// otherwise, integers not by way of floats.
func Slow(text []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// A Decoder decodes the value at a cursor into a zero value of its type, just as
// [Slow] does. Where there is anything that it is not made for, it returns an error,
// and Slow has the last word: about what is an error, and what it says.
type Decoder func(m *Memory, c *rawjson.Cursor, v reflect.Value) error

var errSlow = errors.New("not for this decoder")

// decoders makes the decoders of types, each once: types may be recursive.
type decoders struct {
	made  map[reflect.Type]*Decoder
	slabs int // how many types have one
}

// of returns the decoder of a type.
func (d *decoders) of(t reflect.Type) Decoder {
	if made := d.made[t]; made != nil && *made != nil {
		return *made
	} else if made != nil { // t is recursive, and its decoder is being made
		return func(m *Memory, c *rawjson.Cursor, v reflect.Value) error { return (*made)(m, c, v) }
	}
	made := new(Decoder)
	d.made[t] = made
	*made = d.make(t)
	return *made
}

func (d *decoders) make(t reflect.Type) Decoder {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return decodeTime
	case t.Kind() != reflect.Pointer && DecodesItself(t):
		return decodeSlowly
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float32, reflect.Float64:
		return decodeFloat
	case reflect.String:
		if t != reflect.TypeFor[json.Number]() {
			return decodeString
		}
	case reflect.Pointer:
		return d.pointer(t)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // that is base64
			return d.slice(t)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !DecodesItself(t.Key()) {
			return d.mapOf(t)
		}
	case reflect.Struct:
		return d.structOf(t, nil)
	}
	return decodeSlowly
}

// decodeSlowly is for types which are strange, or have a decoder of their own.
func decodeSlowly(_ *Memory, c *rawjson.Cursor, v reflect.Value) error {
	return Slow(c.Value(), v.Addr().Interface())
}

// A null leaves the zero value, whatever the type.

func decodeBool(_ *Memory, c *rawjson.Cursor, v reflect.Value) error {
	switch c.Begins() {
	case 't':
		v.SetBool(true)
	case 'f', 'n':
	default:
		return errSlow
	}
	c.Value()
	return nil
}

func decodeInt(_ *Memory, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() == 'n' {
		c.Value()
		return nil
	}
	n, err := parseInt(c.Value(), v.Type().Bits())
	if err != nil {
		return errSlow
	}
	v.SetInt(n)
	return nil
}

// parseInt is strconv.ParseInt, and quick with small numbers.
func parseInt(text []byte, bits int) (int64, error) {
	if len(text) == 0 || len(text) > 4 {
		return strconv.ParseInt(string(text), 10, bits)
	}
	n := int64(0)
	for _, c := range text {
		if c < '0' || '9' < c {
			return strconv.ParseInt(string(text), 10, bits)
		}
		n = 10*n + int64(c-'0')
	}
	if bits == 8 && n > math.MaxInt8 {
		return 0, errSlow
	}
	return n, nil
}

func decodeUint(_ *Memory, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() == 'n' {
		c.Value()
		return nil
	}
	n, err := strconv.ParseUint(string(c.Value()), 10, v.Type().Bits())
	if err != nil {
		return errSlow
	}
	v.SetUint(n)
	return nil
}

func decodeFloat(_ *Memory, c *rawjson.Cursor, v reflect.Value) error {
	first := c.Begins()
	text := c.Value()
	if first == 'n' {
		return nil
	}
	f, err := strconv.ParseFloat(string(text), v.Type().Bits())
	if err != nil || first != '-' && (first < '0' || '9' < first) {
		return errSlow
	}
	v.SetFloat(f)
	return nil
}

func decodeString(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
	null := c.Begins() == 'n'
	s, ok := m.String(c)
	if !ok && !null {
		return errSlow
	}
	v.SetString(s)
	return nil
}

func (d *decoders) pointer(t reflect.Type) Decoder {
	switch t {
	case reflect.TypeFor[*int32]():
		return pointerTo(d, decodeInteger[int32])
	case reflect.TypeFor[*int64]():
		return pointerTo(d, decodeInteger[int64])
	case reflect.TypeFor[*bool]():
		return pointerTo(d, func(_ *Memory, c *rawjson.Cursor) (b, ok bool) {
			first := c.Begins()
			c.Value()
			return first == 't', first == 't' || first == 'f'
		})
	case reflect.TypeFor[*string]():
		return pointerTo(d, (*Memory).String)
	}
	elem, alloc := d.of(t.Elem()), d.allocator(t.Elem())
	return func(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() == 'n' {
			c.Value()
			return nil
		}
		v.Set(alloc(m).Convert(t))
		return elem(m, c, v.Elem())
	}
}

// pointerTo is pointer for the most frequent types.
func pointerTo[T any](d *decoders, decode func(m *Memory, c *rawjson.Cursor) (value T, ok bool)) Decoder {
	alloc := allocatorOf[T](d)
	return func(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() == 'n' {
			c.Value()
			return nil
		}
		value, ok := decode(m, c)
		if !ok {
			return errSlow
		}
		p := alloc(m)
		*p = value
		*v.Addr().Interface().(**T) = p
		return nil
	}
}

func decodeInteger[T int32 | int64](_ *Memory, c *rawjson.Cursor) (value T, ok bool) {
	n, err := parseInt(c.Value(), reflect.TypeFor[T]().Bits())
	return T(n), err == nil
}

func (d *decoders) slice(t reflect.Type) Decoder {
	if t == reflect.TypeFor[[]string]() {
		return decodeStrings
	}
	elem := d.of(t.Elem())
	return func(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() != '[' {
			return nullOrSlow(c)
		}
		n := 0
		for c.Enter('['); c.Next(); n++ {
			if n == v.Cap() {
				v.Grow(max(4, n))
			}
			v.SetLen(n + 1)
			if err := elem(m, c, v.Index(n)); err != nil {
				return err
			}
		}
		if n == 0 {
			v.Set(reflect.MakeSlice(t, 0, 0))
		}
		return nil
	}
}

// decodeStrings is slice for the most frequent type. Many lists share one allocation.
func decodeStrings(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() != '[' {
		return nullOrSlow(c)
	}
	list := m.words[len(m.words):]
	for c.Enter('['); c.Next(); {
		null := c.Begins() == 'n'
		s, ok := m.String(c)
		if !ok && !null {
			return errSlow
		}
		if len(list) == cap(list) {
			list = append(make([]string, 0, max(64, 2*len(list))), list...)
			m.words = list[:0]
		}
		list = append(list, s)
	}
	m.words = m.words[:len(m.words)+len(list)]
	if list == nil {
		list = []string{} // and not null
	}
	*v.Addr().Interface().(*[]string) = list[:len(list):len(list)]
	return nil
}

func (d *decoders) mapOf(t reflect.Type) Decoder {
	if t == reflect.TypeFor[map[string]string]() {
		return decodeStringMap
	}
	elem := d.of(t.Elem())
	return func(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() != '{' {
			return nullOrSlow(c)
		}
		v.Set(reflect.MakeMap(t))
		for c.Enter('{'); c.Next(); {
			name, ok := m.Name(c)
			if !ok {
				return errSlow
			}
			key := reflect.New(t.Key()).Elem()
			key.SetString(name)
			value := reflect.New(t.Elem()).Elem()
			if err := elem(m, c, value); err != nil {
				return err
			}
			v.SetMapIndex(key, value)
		}
		return nil
	}
}

// decodeStringMap is mapOf for the most frequent type.
func decodeStringMap(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() != '{' {
		return nullOrSlow(c)
	}
	decoded := map[string]string{}
	for c.Enter('{'); c.Next(); {
		name, ok := m.Name(c)
		null := c.Begins() == 'n'
		s, isString := m.String(c)
		if !ok || !isString && !null {
			return errSlow
		}
		decoded[name] = s
	}
	*v.Addr().Interface().(*map[string]string) = decoded
	return nil
}

// decodeTime decodes a timestamp as metav1.Time does.
func decodeTime(_ *Memory, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() != '"' {
		return nullOrSlow(c)
	}
	t, ok := Time(c.Value())
	if !ok {
		return errSlow
	}
	*v.Addr().Interface().(*metav1.Time) = t
	return nil
}

// Time decodes the text of a timestamp as metav1.Time does; ok is false where that has
// to be asked.
func Time(text []byte) (decoded metav1.Time, ok bool) {
	var t time.Time
	if len(text) < 2 || text[0] != '"' || t.UnmarshalText(text[1:len(text)-1]) != nil {
		return metav1.Time{}, false
	}
	return metav1.NewTime(t.Local()), true
}

// structOf returns the decoder of a struct, which passes over the members at those
// paths.
func (d *decoders) structOf(t reflect.Type, without []string) Decoder {
	fields, ok := fieldsOf(t)
	if !ok || len(fields) == 0 {
		return decodeSlowly
	}
	// The API server writes the members of custom objects in this order; so the next one
	// is easy to guess.
	slices.SortFunc(fields, func(a, b structField) int { return strings.Compare(a.name, b.name) })
	guesses, decode := make([][]byte, len(fields)), make([]Decoder, len(fields))
	for i, f := range fields {
		guesses[i] = append(rawjson.Quote(f.name), ':')
		fieldType := t.FieldByIndex(f.index).Type
		switch below, it := under(without, f.name); {
		case it:
			decode[i] = func(_ *Memory, c *rawjson.Cursor, _ reflect.Value) error { c.Value(); return nil }
		case below != nil && fieldType.Kind() == reflect.Struct && !DecodesItself(fieldType):
			decode[i] = d.structOf(fieldType, below)
		default:
			decode[i] = d.of(fieldType)
		}
	}
	return func(m *Memory, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() != '{' {
			return nullOrSlow(c)
		}
		var seen uint64
		guess := 0
		c.Enter('{')
		for {
			more, right := c.NextGuess(guesses[guess])
			if !more {
				return nil
			}
			i := guess
			if !right {
				name := c.Name()
				i = slices.IndexFunc(fields, func(f structField) bool { return f.name == string(name) })
			}
			if i < 0 {
				c.Value()
				continue
			}
			if seen&(1<<i) != 0 {
				return errSlow // it merges the two
			}
			seen |= 1 << i
			if guess = i + 1; guess == len(fields) {
				guess = 0
			}
			if err := decode[i](m, c, fields[i].of(v)); err != nil {
				return err
			}
		}
	}
}

// nullOrSlow passes over a null.
func nullOrSlow(c *rawjson.Cursor) error {
	if c.Begins() != 'n' {
		return errSlow
	}
	c.Value()
	return nil
}
