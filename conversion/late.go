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

// watch watches the conversion of a request until end is called, which it returns. It logs one that is late by a second. Go
// cannot stop that, and the API server sends the same objects repeatedly: for these, watch returns an error, and the
// kind of the first one.
func (h *handler) watch(ctx context.Context, asked *request, to schema.GroupVersion) (end func(), failed schema.GroupVersionKind, err error) {
	end = func() {}
	key := func() any { return [2]any{maphash.Bytes(h.seed, asked.text), to} }
	if h.areLate.Load() > 0 {
		if _, late := h.late.Load(key()); late {
			failed, err = h.lateError(asked, to)
		}
	}
	deadline, ok := ctx.Deadline()
	if !ok || err != nil {
		return end, failed, err
	}
	done := make(chan struct{})
	timer := time.AfterFunc(time.Until(deadline)+time.Second, func() {
		defer close(done)
		_, err := h.lateError(asked, to)
		klog.FromContext(ctx).Info("A conversion does not return", "err", logtext.Error(err))
		h.late.Store(key(), nil)
		h.areLate.Add(1)
	})
	end = func() {
		if !timer.Stop() {
			<-done
			h.areLate.Add(-1)
			h.late.Delete(key())
		}
	}
	return end, failed, nil
}

// lateError returns an error that names the first object, and its kind.
func (h *handler) lateError(asked *request, to schema.GroupVersion) (schema.GroupVersionKind, error) {
	var first object
	cursor := rawjson.NewCursor(asked.text)
	cursor.Enter('[')
	cursor.Next('[')
	h.registry.parseObject(&codec.Memory{}, &cursor, &first)
	others := ""
	if cursor.Next('[') {
		others = " and others"
	}
	return h.registry.knownKind(&first), fmt.Errorf("cannot convert %s%s from %s to %s: a conversion that was begun earlier has not returned", &first, others, first.apiVersion, to)
}
