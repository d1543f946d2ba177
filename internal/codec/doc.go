// Package codec decodes and encodes the Go types of API objects, with the same result
// as the API server's decoder and encoding/json, and several times faster: what there
// is to know about a type is found out once.
//
//	codecs := codec.New()
//	decode, encode := codecs.Decoder(t), codecs.Encoder(t)
//
//	a := &codec.Arena{}
//	err := decode(a, &cursor, value)
//	text, err = encode(a, nil, value)
//
// A type that has methods of its own for JSON gets its text from them; unusual types are
// left to the API server's decoder and to encoding/json. Numbers, strings, bools, structs,
// pointers and slices are read and written where they are in memory: see pointer.go. Other
// values go by way of package reflect.
package codec
