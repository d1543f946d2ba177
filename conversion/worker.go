package conversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/codec"
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

	memory  codec.Memory
	rest    []byte         // metadata that is decoded the slow way
	decoded []byte         // an apiVersion
	list    list           // that the worker is in charge of
	cursor  rawjson.Cursor // of the decoder
	vessels []*vessel      // by typed.id
	body    []byte         // what was encoded, less the metadata
	broken  bool           // by a panic: who knows in which state it is
	watcher watch.Watcher  // of this conversion alone; nil if nobody watches

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
	if w.broken || cap(w.object.body)+cap(w.rest)+cap(w.decoded)+cap(w.body)+w.memory.Size() > keep {
		return
	}
	r.workers.Put(w)
}
