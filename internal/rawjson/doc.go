// Package rawjson reads and splices JSON without decoding it.
//
// What is not touched keeps its exact text: numbers, order, spacing and unknown
// members. The tokenizer is jsontext; its two strict checks are off, because
// the API server's own decoder is lenient there too: a duplicate member is
// taken, and the last one counts, and invalid UTF-8 passes.
package rawjson
