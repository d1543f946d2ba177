// Package codec decodes and encodes the Go types of API objects, with the same result
// as the API server's decoder and encoding/json, and several times faster: what there
// is to know about a type is found out once, and memory is used again.
//
//	codecs := codec.New()
//	decode, encode := codecs.Decoder(t), codecs.Encoder(t)
//
//	m := &codec.Memory{}
//	if decode(m, &cursor, value) != nil {
//		value.SetZero()
//		err = codec.Slow(codec.Once(text), value.Addr().Interface())
//	}
//	text, err = encode(m, nil, value)
//
// A type that has methods of its own for JSON gets its text from them; for types that
// are strange, it calls the decoder of the API server and encoding/json. Numbers, strings,
// bools, structs, pointers and slices are read and written where they are in memory: see
// place.go. Other values go by way of package reflect.
package codec
