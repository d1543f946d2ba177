package conversion

import (
	"bytes"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/watch"
)

// worker converts objects one after another, and keeps its memory in between.
type worker struct {
	registry *Registry
	object   object
	source   []byte             // the text of the object
	before   *metav1.ObjectMeta // what the functions must leave alone
	route    *route             // was taken by the last object

	labels, annotations map[string]string // of the object

	rest    []byte          // metadata that is decoded the slow way
	decoded []byte          // a string
	strings strings.Builder // a chunk that decoded strings are parts of
	words   []string        // memory of decoded lists of strings
	list    list            // that the worker is in charge of
	cursor  rawjson.Cursor  // of the decoder
	slabs   []slab          // by pointer type
	vessels []*vessel       // by typed.id
	encoded bytes.Buffer    // what encoding/json wrote
	body    []byte          // what was encoded, less the metadata
	depth   int             // of the value that is being encoded
	broken  bool            // by a panic: who knows in which state it is
	watcher watch.Watcher   // of this conversion alone; nil if nobody watches

	throughHub bool // an object that has the version already: see package watch
}

func (r *Registry) newWorker() *worker {
	w, _ := r.workers.Get().(*worker)
	if w == nil {
		w = &worker{registry: r}
	}
	return w
}

// release gives the worker back, and the memory of its results with it. That of
// its strings is not used again: a function may have kept them.
func (r *Registry) release(w *worker) {
	w.watcher, w.throughHub = nil, false
	w.source, w.object.metadata = nil, nil // they are somebody else's memory
	const keep = 4 << 20                   // one enormous object must not stay for ever
	if w.broken || cap(w.object.body)+cap(w.rest)+cap(w.decoded)+cap(w.body)+16*cap(w.words)+w.encoded.Cap() > keep {
		return
	}
	r.workers.Put(w)
}

// stringBytes is how much memory for strings is taken at a time.
const stringBytes = 16 << 10

// intern copies text into a string. Many strings share one allocation.
func (w *worker) intern(text []byte) string {
	if w.strings.Cap()-w.strings.Len() < len(text) {
		if len(text) > stringBytes/4 {
			return string(text)
		}
		w.strings = strings.Builder{}
		w.strings.Grow(stringBytes)
	}
	begin := w.strings.Len()
	w.strings.Write(text)
	return w.strings.String()[begin:]
}

// string decodes the string at the cursor; ok is false if there is none.
func (w *worker) string(c *rawjson.Cursor) (s string, ok bool) {
	w.decoded, ok = c.AppendString(w.decoded[:0])
	return w.intern(w.decoded), ok
}

// reset makes the memory of one object free for the next.
func (w *worker) reset() {
	w.words = w.words[:0]
	for i := range w.slabs {
		w.slabs[i].used = 0
	}
}

// name decodes the name that the cursor is at; ok is false if it is no Unicode.
func (w *worker) name(c *rawjson.Cursor) (s string, ok bool) {
	name := c.Name()
	return w.intern(name), utf8.Valid(name)
}
