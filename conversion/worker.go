package conversion

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// worker converts objects one after another, and keeps its memory in between.
type worker struct {
	registry *Registry
	object   object

	// What the functions on the route make of the metadata.
	before              metav1.ObjectMeta // what they must leave alone
	labels, annotations map[string]string

	rest     []byte          // metadata that is decoded the slow way
	unquoted []byte          // a string with escapes
	strings  strings.Builder // a chunk that decoded strings are parts of
	batch    int             // how many objects of a type to allocate at a time
	slabs    map[*typed]*slab
	encoder  *json.Encoder // writes to encoded
	encoded  bytes.Buffer
	body     []byte // what was encoded, less the metadata
	counts   map[schema.GroupVersionKind]int
	broken   bool   // by a panic: who knows in which state it is
	out      []byte // holds results, until the worker is released
}

// newWorker returns a worker for that many objects, or more.
func (r *Registry) newWorker(objects int) *worker {
	w, _ := r.workers.Get().(*worker)
	if w == nil {
		w = &worker{registry: r, slabs: map[*typed]*slab{}}
		w.encoder = json.NewEncoder(&w.encoded)
		w.encoder.SetEscapeHTML(false) // a < that came as a < goes as a <
	}
	w.batch = min(max(1, objects), maxBatch)
	return w
}

// maxBatch is how many objects a worker takes at a time.
const maxBatch = 16

// release gives the worker back, and the memory of its results with it. That of
// its strings is not used again: a function may have kept them.
func (r *Registry) release(w *worker) {
	const keep = 4 << 20 // one enormous object must not stay for ever
	if w.broken || cap(w.object.body)+cap(w.rest)+cap(w.unquoted)+cap(w.body)+cap(w.out)+w.encoded.Cap() > keep {
		return
	}
	w.out = w.out[:0]
	clear(w.counts)
	r.workers.Put(w)
}

// chunk is how much memory for strings is taken at a time.
const chunk = 16 << 10

// intern copies text into a string. Many strings share one allocation.
func (w *worker) intern(text []byte) string {
	if w.strings.Cap()-w.strings.Len() < len(text) {
		if len(text) > chunk/4 {
			return string(text)
		}
		w.strings = strings.Builder{}
		w.strings.Grow(chunk)
	}
	begin := w.strings.Len()
	w.strings.Write(text)
	return w.strings.String()[begin:]
}

// string decodes a JSON string; ok is false if value is none.
func (w *worker) string(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if plain := value[1 : len(value)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return w.intern(plain), true
	}
	// The cursor has checked the string; what is no Unicode is replaced.
	w.unquoted, _ = jsontext.AppendUnquote(w.unquoted[:0], value)
	return w.intern(w.unquoted), true
}

// grow returns w.out with room for n bytes more. What was handed out of it before
// stays where it is, in the memory that w.out leaves behind.
func (w *worker) grow(n int) []byte {
	if cap(w.out)-len(w.out) < n {
		w.out = make([]byte, 0, max(n, 2*cap(w.out), chunk))
	}
	return w.out
}
