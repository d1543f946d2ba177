package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Decode decodes JSON with the API server's own decoder: case-sensitive, lenient
// otherwise, integers not by way of floats.
func Decode(text []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// dropDuplicates returns the text of an object with only the last of duplicate members. So the API
// server reads custom objects, because it decodes them into maps; [Decode] would merge the two.
// Text without duplicates is returned as it is.
func dropDuplicates(text []byte) []byte {
	var members map[string]any
	duplicates, err := kjson.UnmarshalStrict(text, &members, kjson.DisallowDuplicateFields)
	if err != nil || len(duplicates) == 0 {
		return text
	}
	once, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return once
}

// A Decoder decodes the value at a cursor into an addressable zero value of its type, as
// [Decode] does, with the last of duplicate members. The error is that of Decode, with
// the path to the value if a type has a decoder of its own; if the value is not JSON it is that of the cursor.
type Decoder func(a *Arena, c *rawjson.Cursor, v reflect.Value) error

// decoder decodes the value at a cursor to where p points. For anything unusual it returns an
// error, and Decode decodes the value.
type decoder func(a *Arena, c *rawjson.Cursor, p pointer) error

var errFallback = errors.New("not for this decoder")

// refusal is the error of a type with a decoder of its own, which does not know the path to the value.
type refusal struct {
	error
	path []string // the last step first, with a dot before names
}

// below adds the step before the path of a refusal.
func below(step string, err error) error {
	if r, ok := err.(*refusal); ok {
		r.path = append(r.path, step)
	}
	return err
}

// decoders makes the decoders of types, each once: types may be recursive.
type decoders struct {
	made  map[reflect.Type]*decoder
	slabs int // how many types have one
}

// of returns the decoder of a type.
func (d *decoders) of(t reflect.Type) decoder {
	made := d.made[t]
	if made == nil {
		made = new(decoder)
		d.made[t] = made
		*made = d.make(t)
	}
	if *made == nil { // t is recursive, and its decoder is being made
		return func(a *Arena, c *rawjson.Cursor, p pointer) error { return (*made)(a, c, p) }
	}
	return *made
}

func (d *decoders) make(t reflect.Type) decoder {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return decodeTime
	case t.Kind() != reflect.Pointer && jsontype.DecodesItself(t):
		return itself(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.Int:
		return decodeInt[int]
	case reflect.Int32:
		return decodeInt[int32]
	case reflect.Int64:
		return decodeInt[int64]
	case reflect.Float64:
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
		if t.Key().Kind() == reflect.String && !jsontype.DecodesItself(t.Key()) {
			return d.mapOf(t)
		}
	case reflect.Struct:
		return d.structOf(t, nil)
	}
	return byReference(t)
}

// byReference returns the decoder of the types that have no other one: API types have no unsigned or
// small numbers, by the API conventions.
func byReference(t reflect.Type) decoder {
	return func(_ *Arena, c *rawjson.Cursor, p pointer) error { return Decode(c.Value(), p.as(t)) }
}

// itself returns the decoder of a type that has its own.
func itself(t reflect.Type) decoder {
	if t.Name() == "" {
		// Decode does not find the methods that a struct without a name gets from what it
		// embeds, unless it begins there.
		return func(*Arena, *rawjson.Cursor, pointer) error { return errFallback }
	}
	if t.Kind() == reflect.Interface || !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return byReference(t)
	}
	return func(_ *Arena, c *rawjson.Cursor, p pointer) error {
		text := c.Value()
		if text == nil {
			return errFallback
		}
		if err := p.as(t).(json.Unmarshaler).UnmarshalJSON(text); err != nil {
			return &refusal{error: err}
		}
		return nil
	}
}

// A null leaves the zero value, whatever the type.

func decodeBool(_ *Arena, c *rawjson.Cursor, p pointer) error {
	switch first := c.Begins(); first {
	case 't', 'f':
		*at[bool](p) = first == 't'
	case 'n':
	default:
		return errFallback
	}
	c.Value()
	return nil
}

func decodeInt[T int | int32 | int64](_ *Arena, c *rawjson.Cursor, p pointer) error {
	null := c.Begins() == 'n'
	text := c.Value()
	if null {
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || int64(T(n)) != n {
		return errFallback
	}
	*at[T](p) = T(n)
	return nil
}

func decodeFloat(_ *Arena, c *rawjson.Cursor, p pointer) error {
	first := c.Begins()
	text := c.Value()
	if first == 'n' {
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || first != '-' && (first < '0' || '9' < first) {
		return errFallback
	}
	*at[float64](p) = f
	return nil
}

func decodeString(a *Arena, c *rawjson.Cursor, p pointer) error {
	if c.Begins() != '"' {
		return nullOrFallback(c)
	}
	s, ok := a.String(c)
	if !ok {
		return errFallback
	}
	*at[string](p) = s
	return nil
}

func (d *decoders) pointer(t reflect.Type) decoder {
	elem, alloc := d.of(t.Elem()), d.allocator(t.Elem())
	return func(a *Arena, c *rawjson.Cursor, p pointer) error {
		if c.Begins() == 'n' {
			c.Value()
			return nil
		}
		to := alloc(a)
		*at[pointer](p) = to
		return elem(a, c, to)
	}
}

func (d *decoders) slice(t reflect.Type) decoder {
	if t.Elem() == reflect.TypeFor[string]() {
		return decodeStrings
	}
	elem, size := d.of(t.Elem()), t.Elem().Size()
	return func(a *Arena, c *rawjson.Cursor, p pointer) error {
		if c.Begins() != '[' {
			return nullOrFallback(c)
		}
		l, n := at[list](p), 0
		for c.Enter('['); c.Next('['); n++ {
			if n == l.cap {
				l.len = n // which it copies
				more := max(4, 3*n)
				if n >= 64 { // rather than copy many large structs, and have room for more than there are
					more = left(*c)
				}
				p.value(t).Grow(more)
			}
			if err := elem(a, c, l.elem(n, size)); err != nil {
				return below(fmt.Sprintf("[%d]", n), err)
			}
		}
		if n == 0 {
			p.value(t).Set(reflect.MakeSlice(t, 0, 0))
		}
		l.len = n
		return nil
	}
}

// left returns how many elements a list has, from the one at the cursor on.
func left(c rawjson.Cursor) int {
	n := 1
	for c.Value(); c.Next('['); n++ {
		c.Value()
	}
	return n
}

// decodeStrings is slice for the most frequent type. Many lists share one allocation.
func decodeStrings(a *Arena, c *rawjson.Cursor, p pointer) error {
	if c.Begins() != '[' {
		return nullOrFallback(c)
	}
	list := a.words[len(a.words):]
	for c.Enter('['); c.Next('['); {
		null := c.Begins() == 'n'
		s, ok := a.String(c)
		if !ok && !null {
			return errFallback
		}
		if len(list) == cap(list) {
			list = append(make([]string, 0, max(64, 2*len(list))), list...)
			a.words = list[:0]
		}
		list = append(list, s)
	}
	a.words = a.words[:len(a.words)+len(list)]
	if list == nil {
		list = []string{} // and not null
	}
	*at[[]string](p) = list[:len(list):len(list)]
	return nil
}

func (d *decoders) mapOf(t reflect.Type) decoder {
	if t.Key() == reflect.TypeFor[string]() && t.Elem() == reflect.TypeFor[string]() {
		return decodeStringMap
	}
	elem := d.of(t.Elem())
	return func(a *Arena, c *rawjson.Cursor, p pointer) error {
		if c.Begins() != '{' {
			return nullOrFallback(c)
		}
		decoded := reflect.MakeMap(t)
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		there := pointerTo(value, t.Elem())
		for c.Enter('{'); c.Next('{'); {
			name, ok := a.Name(c)
			if !ok {
				return errFallback
			}
			key.SetString(name)
			value.SetZero()
			if err := elem(a, c, there); err != nil {
				return below("["+name+"]", err)
			}
			decoded.SetMapIndex(key, value)
		}
		p.value(t).Set(decoded)
		return nil
	}
}

// decodeStringMap is mapOf for the most frequent type.
func decodeStringMap(a *Arena, c *rawjson.Cursor, p pointer) error {
	if c.Begins() != '{' {
		return nullOrFallback(c)
	}
	decoded := map[string]string{}
	for c.Enter('{'); c.Next('{'); {
		name, ok := a.Name(c)
		null := c.Begins() == 'n'
		s, isString := a.String(c)
		if !ok || !isString && !null {
			return errFallback
		}
		decoded[name] = s
	}
	*at[map[string]string](p) = decoded
	return nil
}

// decodeTime decodes a timestamp as metav1.Time does.
func decodeTime(_ *Arena, c *rawjson.Cursor, p pointer) error {
	if c.Begins() != '"' {
		return nullOrFallback(c)
	}
	var t time.Time
	text := c.Value()
	if text == nil || t.UnmarshalText(text[1:len(text)-1]) != nil {
		return &refusal{error: errFallback}
	}
	*at[metav1.Time](p) = metav1.NewTime(t.Local())
	return nil
}

// memberDecoder decodes one member of a struct.
type memberDecoder struct {
	name   string
	guess  []byte // the name in quotation marks, and a colon
	offset uintptr
	decode decoder
}

// structOf returns the decoder of a struct, which passes over the members at those
// paths.
func (d *decoders) structOf(t reflect.Type, without []string) decoder {
	fields, ok := fieldsOf(t)
	if !ok || len(fields) == 0 {
		return byReference(t)
	}
	members := d.members(fields, without)
	return func(a *Arena, c *rawjson.Cursor, p pointer) error {
		if c.Begins() != '{' {
			return nullOrFallback(c)
		}
		var seen uint64
		guess := 0
		c.Enter('{')
		for {
			i := guess
			if !c.Guess(members[guess].guess) {
				if !c.Next('{') {
					return nil
				}
				if i = find(members, guess, c.Name()); i < 0 {
					c.Value()
					continue
				}
			}
			if seen&(1<<i) != 0 {
				return errFallback // a duplicate
			}
			seen |= 1 << i
			if guess = i + 1; guess == len(members) {
				guess = 0
			}
			if err := members[i].decode(a, c, p.inside(members[i].offset)); err != nil {
				return below("."+members[i].name, err)
			}
		}
	}
}

// members returns the decoders of fields by name. The API server writes the members of custom objects
// in this order; so the next one is easy to guess.
func (d *decoders) members(fields jsontype.Fields, without []string) []memberDecoder {
	fields = slices.Clone(fields)
	slices.SortFunc(fields, func(a, b jsontype.Field) int { return strings.Compare(a.JSON, b.JSON) })
	members := make([]memberDecoder, len(fields))
	for i, f := range fields {
		members[i] = memberDecoder{name: f.JSON, guess: append(rawjson.Quote(f.JSON), ':'), offset: f.Offset}
		switch below, it := under(without, f.JSON); {
		case it:
			members[i].decode = func(_ *Arena, c *rawjson.Cursor, _ pointer) error { c.Value(); return nil }
		case below != nil && f.Type.Kind() == reflect.Struct && !jsontype.DecodesItself(f.Type):
			members[i].decode = d.structOf(f.Type, below)
		default:
			members[i].decode = d.of(f.Type)
		}
	}
	return members
}

// find returns the index of the member of that name, or -1. It is probably after the one before.
func find(members []memberDecoder, from int, name []byte) int {
	for i := from; i < len(members); i++ {
		if members[i].name == string(name) {
			return i
		}
	}
	return slices.IndexFunc(members[:from], func(m memberDecoder) bool { return m.name == string(name) })
}

// nullOrFallback passes over a null.
func nullOrFallback(c *rawjson.Cursor) error {
	if c.Begins() != 'n' {
		return errFallback
	}
	c.Value()
	return nil
}
