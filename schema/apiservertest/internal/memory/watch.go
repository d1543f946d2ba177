package memory

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watcher implements [clientv3.Watcher].
type watcher struct{ *store }

var _ clientv3.Watcher = watcher{}

// Watch sends what happens to a key or a range, from a revision on.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	out := make(chan clientv3.WatchResponse)
	w.mu.Lock()
	w.progress[key] += 0 // it is watched
	next, progress := op.Rev(), w.asked(key)
	if next == 0 {
		next = w.revision + 1
	}
	w.mu.Unlock()
	go func() {
		defer close(out)
		for {
			r, changed := w.since(op, &next, &progress)
			if r == nil {
				select {
				case <-changed:
					continue
				case <-ctx.Done():
					return
				}
			}
			select {
			case out <- *r:
			case <-ctx.Done():
				return
			}
			if r.Canceled {
				return
			}
		}
	}()
	return out
}

// since returns what a watch has not been sent, or else the channel that is closed when there
// may be something.
func (w watcher) since(op clientv3.Op, next *int64, progress *int) (*clientv3.WatchResponse, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *next <= w.compacted {
		return &clientv3.WatchResponse{Header: w.header(), Canceled: true, CompactRevision: w.compacted, CancelReason: rpctypes.ErrCompacted.Error()}, nil
	}
	r := &clientv3.WatchResponse{Header: w.header()}
	if *next <= w.revision {
		for _, e := range w.events[max(0, *next-w.first()):] {
			if contains(op, e.Kv.Key) {
				r.Events = append(r.Events, e)
			}
		}
		*next = w.revision + 1
	}
	if len(r.Events) > 0 {
		return r, nil
	}
	if asked := w.asked(string(op.KeyBytes())); op.IsProgressNotify() && asked != *progress && w.revision < *next {
		*progress = asked
		return r, nil
	}
	return nil, w.changed
}

// watched reports whether there has been a watch of a prefix.
func (s *store) watched(prefix string) bool {
	_, ok := s.progress[prefix]
	return ok
}

// asked counts the requests for a notification of the watches of a prefix.
func (s *store) asked(prefix string) int { return s.progress[""] + s.progress[prefix] }

// contains reports whether an operation is about a key.
func contains(op clientv3.Op, key []byte) bool {
	from, end := op.KeyBytes(), op.RangeBytes()
	if end == nil {
		return slices.Equal(from, key)
	}
	return slices.Compare(from, key) <= 0 && slices.Compare(key, end) < 0
}

// RequestProgress has all watches send a progress notification that asked for them.
func (w watcher) RequestProgress(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress[""]++
	w.wake()
	return nil
}

// Close does nothing: a watch ends with its context.
func (watcher) Close() error { return nil }
