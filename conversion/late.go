package conversion

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// unreturned returns an error, and the kind of the first object, if an earlier conversion of the same objects
// has not returned.
func (h *handler) unreturned(asked *request) (failed schema.GroupVersionKind, err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if slices.ContainsFunc(h.late, func(r *request) bool { return r.to == asked.to && bytes.Equal(r.text, asked.text) }) {
		return h.lateError(asked)
	}
	return failed, nil
}

// watch watches the conversion of a request until end is called, which it returns. It logs one that is late by a second. Go
// cannot stop that, and the API server sends the same objects repeatedly: these fail.
func (h *handler) watch(ctx context.Context, asked *request) (end func()) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return func() {}
	}
	done := make(chan struct{})
	timer := time.AfterFunc(time.Until(deadline)+time.Second, func() {
		defer close(done)
		h.mutex.Lock()
		h.late = append(h.late, asked)
		h.mutex.Unlock()
		_, err := h.lateError(asked)
		klog.FromContext(ctx).Info("A conversion does not return", "err", logtext.Error(err))
	})
	return func() {
		if !timer.Stop() {
			<-done
			h.mutex.Lock()
			defer h.mutex.Unlock()
			h.late = slices.DeleteFunc(h.late, func(r *request) bool { return r == asked })
		}
	}
}

// lateError returns an error that names the first object of a request, and its kind.
func (h *handler) lateError(asked *request) (schema.GroupVersionKind, error) {
	var first object
	cursor := rawjson.NewCursor(asked.text)
	cursor.Enter('[')
	cursor.Next('[')
	first.parse(&codec.Arena{}, h.registry.metadata, &cursor)
	others := ""
	if cursor.Next('[') {
		others = " and others"
	}
	return h.registry.graph.known(&first), fmt.Errorf("cannot convert %s%s from %s to %s: a conversion that was begun earlier has not returned", &first, others, first.apiVersion, asked.to)
}
