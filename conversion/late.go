package conversion

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// unreturned returns an error, and the kind of the first object, if an earlier conversion of the same objects
// has not returned.
func (h *handler) unreturned(objects []byte, to schema.GroupVersion) (failed schema.GroupVersionKind, err error) {
	if h.areLate.Load() > 0 {
		if h.addLate(objects, to, 0) > 0 {
			return h.lateError(objects, to)
		}
	}
	return failed, nil
}

// addLate adds n to the number of conversions of some objects that are late, and returns it.
func (h *handler) addLate(objects []byte, to schema.GroupVersion, n int) int {
	key := [2]any{maphash.Bytes(h.seed, objects), to}
	h.areLate.Add(int64(n))
	h.mutex.Lock()
	defer h.mutex.Unlock()
	late := h.late[key] + n
	if h.late[key] = late; late == 0 {
		delete(h.late, key)
	}
	return late
}

// watch watches the conversion of a request until end is called, which it returns. It logs one that is late by a second. Go
// cannot stop that, and the API server sends the same objects repeatedly: these fail.
func (h *handler) watch(ctx context.Context, objects []byte, to schema.GroupVersion) (end func()) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return func() {}
	}
	done := make(chan struct{})
	timer := time.AfterFunc(time.Until(deadline)+time.Second, func() {
		defer close(done)
		h.addLate(objects, to, 1)
		_, err := h.lateError(objects, to)
		klog.FromContext(ctx).Info("A conversion does not return", "err", logtext.Error(err))
	})
	return func() {
		if !timer.Stop() {
			<-done
			h.addLate(objects, to, -1)
		}
	}
}

// lateError returns an error that names the first of some objects, and its kind.
func (h *handler) lateError(objects []byte, to schema.GroupVersion) (schema.GroupVersionKind, error) {
	var first object
	cursor := rawjson.NewCursor(objects)
	cursor.Enter('[')
	cursor.Next('[')
	first.parse(&codec.Arena{}, h.registry.metadata, &cursor)
	others := ""
	if cursor.Next('[') {
		others = " and others"
	}
	return h.registry.graph.known(&first), fmt.Errorf("cannot convert %s%s from %s to %s: a conversion that was begun earlier has not returned", &first, others, first.apiVersion, to)
}
