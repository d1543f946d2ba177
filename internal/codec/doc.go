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
//		err = codec.Slow(text, value.Addr().Interface())
//	}
//	text, err = encode(m, nil, value)
//
// For types that are strange, or that have methods of their own, it calls the decoder
// of the API server and encoding/json.
package codec
