// Package rawjson reads and splices JSON without decoding it.
//
// Untouched values keep their exact text: numbers, order, spacing and unknown
// members. Everything is checked to be JSON on the way, and nothing else: as with the
// API server's own decoder, a duplicate member is taken, and the last one
// counts, and invalid UTF-8 passes.
//
// A [Cursor] passes over a text once, from left to right; [Members] and [Set]
// use it. Its Outline is for callers that come back to a value, and read it
// level by level. A jsontext.Decoder would be too slow: it takes as long as
// encoding/json.Valid for the tokens of a request alone, and a whole conversion of
// many objects takes about 1.4 times as long.
package rawjson
