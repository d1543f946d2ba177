package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Codecs makes the decoders and encoders of types. Many goroutines may use them, but not while it
// makes more.
type Codecs struct {
	decoders decoders
	encoders encoders
	forms    map[reflect.Type]*Form
}

// New returns Codecs for any types.
func New() *Codecs {
	return &Codecs{decoders{made: map[reflect.Type]*decoder{}}, encoders{}, map[reflect.Type]*Form{}}
}

// Decoder returns the decoder of a type. That of a struct passes over the members at the
// paths, names joined by dots, and leaves their fields zero, if the type has no decoder of
// its own and the text has nothing unusual.
func (c *Codecs) Decoder(t reflect.Type, without ...string) Decoder {
	decode := c.decoders.of(t)
	if len(without) > 0 && t.Kind() == reflect.Struct && !jsontype.DecodesItself(t) {
		decode = c.decoders.structOf(t, without)
	}
	return func(a *Arena, c *rawjson.Cursor, v reflect.Value) error {
		begin := *c
		err := decode(a, c, pointerTo(v, t))
		if err == nil && c.Err() == nil {
			return nil
		}
		*c = begin
		text := c.Value()
		if err := c.Err(); err != nil {
			return err
		}
		v.SetZero() // the decoder may have set some of it
		return withPath(Decode(dropDuplicates(text), v.Addr().Interface()), err)
	}
}

// withPath adds the path of a refusal to the error of Decode, which has none if it is that of a type
// with a decoder of its own.
func withPath(err, found error) error {
	r, refused := found.(*refusal)
	typed, hasField := err.(*json.UnmarshalTypeError)
	if err == nil || !refused || len(r.path) == 0 || hasField && typed.Field != "" {
		return err
	}
	slices.Reverse(r.path)
	return fmt.Errorf("%s: %w", strings.TrimPrefix(strings.Join(r.path, ""), "."), err)
}

// Encoder returns the encoder of a type.
func (c *Codecs) Encoder(t reflect.Type) Encoder { return fromTheTop(t, c.encoders.of(t)) }

// fromTheTop returns an encoder of values that are not inside others.
func fromTheTop(t reflect.Type, encode encoder) Encoder {
	return func(a *Arena, b []byte, v reflect.Value) ([]byte, error) {
		a.depth = 0
		return encode(a, b, pointerTo(v, t))
	}
}

// fieldsOf returns the fields of a struct in JSON, which must not be changed; ok is false if something is unusual, such as
// two fields of one name.
func fieldsOf(t reflect.Type) (fields jsontype.Fields, ok bool) {
	fields = jsontype.AllFields(t)
	return fields, len(fields) <= 64 && !slices.ContainsFunc(fields, func(f jsontype.Field) bool {
		return f.Hidden || f.Indirect || !f.IsExported() || f.Has("string")
	})
}

// under returns the paths that lead below a member, without its name, and reports whether one is the
// member itself.
func under(paths []string, name string) (below []string, it bool) {
	for _, path := range paths {
		first, rest, deeper := strings.Cut(path, ".")
		switch {
		case first != name:
		case deeper:
			below = append(below, rest)
		default:
			it = true
		}
	}
	return below, it
}
