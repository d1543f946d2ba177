package conversion

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// slow decodes JSON with the API server's own decoder: case-sensitive, lenient
// otherwise, integers not by way of floats.
func slow(text []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// A decoder decodes the value at a cursor into a zero value of its type, just as
// [slow] does. It is made once for each type. Where there is anything that it is not
// made for, it returns errSlow, and slow has the last word: about what is an error,
// and what it says.
type decoder func(w *worker, c *rawjson.Cursor, v reflect.Value) error

var errSlow = errors.New("not for this decoder")

// decoders makes the decoders of types, each once: types may be recursive.
type decoders struct {
	made  map[reflect.Type]*decoder
	slabs int // how many types have one
}

func newDecoders() *decoders { return &decoders{made: map[reflect.Type]*decoder{}} }

// of returns the decoder of a type.
func (d *decoders) of(t reflect.Type) decoder {
	if made := d.made[t]; made != nil && *made != nil {
		return *made
	} else if made != nil { // t is recursive, and its decoder is being made
		return func(w *worker, c *rawjson.Cursor, v reflect.Value) error { return (*made)(w, c, v) }
	}
	made := new(decoder)
	d.made[t] = made
	*made = d.make(t)
	return *made
}

func (d *decoders) make(t reflect.Type) decoder {
	if t.Kind() != reflect.Pointer && decodesItself(t) {
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
		if t.Key().Kind() == reflect.String && !decodesItself(t.Key()) {
			return d.mapOf(t)
		}
	case reflect.Struct:
		return d.structOf(t)
	}
	return decodeSlowly
}

// decodeSlowly is for types which are strange, or have a decoder of their own.
func decodeSlowly(_ *worker, c *rawjson.Cursor, v reflect.Value) error {
	return slow(c.Value(), v.Addr().Interface())
}

// A null leaves the zero value, whatever the type.

func decodeBool(_ *worker, c *rawjson.Cursor, v reflect.Value) error {
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

func decodeInt(_ *worker, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() == 'n' {
		c.Value()
		return nil
	}
	n, err := strconv.ParseInt(string(c.Value()), 10, v.Type().Bits())
	if err != nil {
		return errSlow
	}
	v.SetInt(n)
	return nil
}

func decodeUint(_ *worker, c *rawjson.Cursor, v reflect.Value) error {
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

func decodeFloat(_ *worker, c *rawjson.Cursor, v reflect.Value) error {
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

func decodeString(w *worker, c *rawjson.Cursor, v reflect.Value) error {
	null := c.Begins() == 'n'
	s, ok := w.string(c)
	if !ok && !null {
		return errSlow
	}
	v.SetString(s)
	return nil
}

func (d *decoders) pointer(t reflect.Type) decoder {
	elem, alloc := d.of(t.Elem()), d.allocator(t.Elem())
	return func(w *worker, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() == 'n' {
			c.Value()
			return nil
		}
		v.Set(alloc(w).Convert(t))
		return elem(w, c, v.Elem())
	}
}

func (d *decoders) slice(t reflect.Type) decoder {
	if t == reflect.TypeFor[[]string]() {
		return decodeStrings
	}
	elem := d.of(t.Elem())
	return func(w *worker, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() != '[' {
			return nullOrSlow(c)
		}
		n := 0
		for c.Enter('['); c.Next(); n++ {
			if n == v.Cap() {
				v.Grow(max(4, n))
			}
			v.SetLen(n + 1)
			if err := elem(w, c, v.Index(n)); err != nil {
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
func decodeStrings(w *worker, c *rawjson.Cursor, v reflect.Value) error {
	if c.Begins() != '[' {
		return nullOrSlow(c)
	}
	list := w.words[len(w.words):]
	for c.Enter('['); c.Next(); {
		null := c.Begins() == 'n'
		s, ok := w.string(c)
		if !ok && !null {
			return errSlow
		}
		if len(list) == cap(list) {
			list = append(make([]string, 0, max(64, 2*len(list))), list...)
			w.words = list[:0]
		}
		list = append(list, s)
	}
	w.words = w.words[:len(w.words)+len(list)]
	if list == nil {
		list = []string{} // and not null
	}
	*v.Addr().Interface().(*[]string) = list[:len(list):len(list)]
	return nil
}

func (d *decoders) mapOf(t reflect.Type) decoder {
	elem := d.of(t.Elem())
	return func(w *worker, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() != '{' {
			return nullOrSlow(c)
		}
		v.Set(reflect.MakeMap(t))
		for c.Enter('{'); c.Next(); {
			name, ok := w.name(c)
			if !ok {
				return errSlow
			}
			key := reflect.New(t.Key()).Elem()
			key.SetString(name)
			value := reflect.New(t.Elem()).Elem()
			if err := elem(w, c, value); err != nil {
				return err
			}
			v.SetMapIndex(key, value)
		}
		return nil
	}
}

func (d *decoders) structOf(t reflect.Type) decoder {
	fields, ok := fieldsOf(t)
	if !ok {
		return decodeSlowly
	}
	decode := make([]decoder, len(fields))
	for i, f := range fields {
		decode[i] = d.of(t.FieldByIndex(f.index).Type)
	}
	return func(w *worker, c *rawjson.Cursor, v reflect.Value) error {
		if c.Begins() != '{' {
			return nullOrSlow(c)
		}
		var seen uint64
		for c.Enter('{'); c.Next(); {
			name := c.Name()
			i := slices.IndexFunc(fields, func(f structField) bool { return f.name == string(name) })
			if i < 0 {
				c.Value()
				continue
			}
			if seen&(1<<i) != 0 {
				return errSlow // it merges the two
			}
			seen |= 1 << i
			if err := decode[i](w, c, v.FieldByIndex(fields[i].index)); err != nil {
				return err
			}
		}
		return nil
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

// structField is a field of a struct, or of a struct that is embedded in it.
type structField struct {
	name    string // in JSON
	options string // in the tag
	index   []int
}

// fieldsOf returns the fields of a struct that JSON knows; ok is false if it has
// something strange, such as two fields of one name, of which either may win.
func fieldsOf(t reflect.Type) (fields []structField, ok bool) {
	seen := map[string]bool{}
	var walk func(t reflect.Type, index []int) bool
	walk = func(t reflect.Type, index []int) bool {
		for i := range t.NumField() {
			f, at := t.Field(i), append(slices.Clip(index), i)
			tag := f.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			switch {
			case f.Anonymous && !f.IsExported():
				return false // some of its fields count, and with a name it does itself
			case f.Anonymous && name == "":
				if f.Type.Kind() != reflect.Struct || !walk(f.Type, at) {
					return false
				}
				continue
			case !f.IsExported() || tag == "-":
				continue
			case name == "":
				name = f.Name
			}
			if seen[name] || !plainName(name) || hasOption(options, "string") {
				return false
			}
			seen[name] = true
			fields = append(fields, structField{name, options, at})
		}
		return true
	}
	ok = walk(t, nil) && len(fields) <= 64
	return fields, ok
}

// hasOption says whether a tag has an option.
func hasOption(options, option string) bool {
	return slices.Contains(strings.Split(options, ","), option)
}

// plainName says whether a name in a tag is one that is taken as it is.
func plainName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || '9' < r) && (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r)
	}) < 0
}

// decodesItself says whether a type has a decoder of its own.
func decodesItself(t reflect.Type) bool {
	return has[json.Unmarshaler](t) || has[encoding.TextUnmarshaler](t)
}

// has says whether a type or a pointer to it has the methods of I.
func has[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}
