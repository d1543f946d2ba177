// Package memory is etcd in memory, as far as the storage of an API server uses it
// (k8s.io/apiserver/pkg/storage/etcd3): keys with revisions, transactions, watches with
// progress notifications, leases and compaction. It has no durability and no authentication.
package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// Version is the release of etcd that the endpoint claims to be. API servers ask for
// progress notifications from 3.5.13 on.
const Version = "3.6.0"

// NewClient returns a client of a new, empty store. Its watches and leases end with the
// context.
func NewClient(ctx context.Context) *kubernetes.Client {
	s := &store{revision: 1, keys: map[string][]*mvccpb.KeyValue{}, progress: map[string]int{}, changed: make(chan struct{})}
	c := clientv3.NewCtxClient(ctx)
	c.KV, c.Watcher, c.Lease = clientv3.NewKVFromKVClient(kv{store: s}, c), watcher{s}, lease{store: s}
	context.AfterFunc(ctx, s.close)
	client := &kubernetes.Client{Client: c}
	client.Kubernetes = client
	return client
}

// store holds all revisions of all keys since the last compaction.
type store struct {
	mu       sync.Mutex
	revision int64
	// compacted is the oldest revision that can be read.
	compacted int64
	// sorted has every key of keys.
	sorted []string
	// keys has the revisions of each key, oldest first. A deletion has no CreateRevision.
	keys map[string][]*mvccpb.KeyValue
	// events has one event for each revision from first on.
	events []*clientv3.Event
	// progress counts the requests for a progress notification: for each prefix that is watched,
	// and under "" those for all.
	progress map[string]int
	// changed is closed, and replaced, when there is a new event or progress is requested.
	changed chan struct{}
	// expiry has a timer for each lease.
	expiry []*time.Timer
}

func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.expiry {
		t.Stop()
	}
}

// wake wakes all watches. The caller holds the lock.
func (s *store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: s.revision} }

// at returns the value that a key had at a revision, or nil.
func (s *store) at(key string, revision int64) *mvccpb.KeyValue {
	revisions := s.keys[key]
	for _, kv := range slices.Backward(revisions) {
		if kv.ModRevision <= revision {
			if kv.CreateRevision == 0 {
				return nil
			}
			return kv
		}
	}
	return nil
}

// between returns the keys that an operation names: one, or a range.
func (s *store) between(key, end []byte) []string {
	if end == nil {
		return []string{string(key)}
	}
	from, _ := slices.BinarySearch(s.sorted, string(key))
	to, _ := slices.BinarySearch(s.sorted, string(end))
	return s.sorted[from:max(from, to)]
}

// write makes one revision of a key; kv has no CreateRevision if it deletes the key.
func (s *store) write(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	event := &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv, PrevKv: s.at(key, s.revision)}
	if kv.CreateRevision == 0 {
		event.Type = clientv3.EventTypeDelete
	}
	s.revision++
	kv.ModRevision = s.revision
	if _, known := s.keys[key]; !known {
		i, _ := slices.BinarySearch(s.sorted, key)
		s.sorted = slices.Insert(s.sorted, i, key)
	}
	s.keys[key] = append(s.keys[key], kv)
	s.events = append(s.events, event)
	s.wake()
}

func (s *store) put(in *pb.PutRequest) {
	kv := &mvccpb.KeyValue{Key: in.Key, Value: in.Value, CreateRevision: s.revision + 1, Version: 1, Lease: in.Lease}
	if before := s.at(string(in.Key), s.revision); before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	s.write(kv)
}

// delete returns how many keys it has deleted.
func (s *store) delete(in *pb.DeleteRangeRequest) (n int64) {
	for _, key := range slices.Clone(s.between(in.Key, in.RangeEnd)) {
		if s.at(key, s.revision) != nil {
			s.write(&mvccpb.KeyValue{Key: []byte(key)})
			n++
		}
	}
	return n
}

func (s *store) get(in *pb.RangeRequest) (*pb.RangeResponse, error) {
	revision := in.Revision
	switch {
	case revision == 0:
		revision = s.revision
	case revision > s.revision:
		return nil, rpctypes.ErrGRPCFutureRev
	case revision < s.compacted:
		return nil, rpctypes.ErrGRPCCompacted
	}
	if prefix := string(in.Key) + "/"; in.RangeEnd == nil && s.watched(prefix) {
		// The API server asks for the current revision so, and then waits until its watch has
		// it. It would ask for that only at intervals.
		s.progress[prefix]++
		s.wake()
	}
	out := &pb.RangeResponse{Header: s.header()}
	for _, key := range s.between(in.Key, in.RangeEnd) {
		kv := s.at(key, revision)
		if kv == nil {
			continue
		}
		out.Count++
		switch {
		case in.CountOnly:
		case in.Limit > 0 && int64(len(out.Kvs)) == in.Limit:
			out.More = true
		case in.KeysOnly:
			out.Kvs = append(out.Kvs, &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version})
		default:
			out.Kvs = append(out.Kvs, kv)
		}
	}
	return out, nil
}

// compact forgets what cannot be read at the revision or later.
func (s *store) compact(revision int64) error {
	switch {
	case revision > s.revision:
		return rpctypes.ErrGRPCFutureRev
	case revision <= s.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	// The event of the revision itself goes too: what was there before is forgotten.
	s.events = slices.Clone(s.events[revision-s.first()+1:])
	s.compacted = revision
	s.sorted = slices.DeleteFunc(s.sorted, func(key string) bool {
		revisions := s.keys[key]
		keep := 0
		for i, kv := range revisions {
			if kv.ModRevision <= revision {
				keep = i
			}
		}
		if last := revisions[len(revisions)-1]; last.CreateRevision == 0 && last.ModRevision <= revision {
			delete(s.keys, key)
			return true
		}
		s.keys[key] = slices.Clone(revisions[keep:])
		return false
	})
	s.wake()
	return nil
}

// first is the revision of the first event, or of the next one if there is none.
func (s *store) first() int64 { return s.revision - int64(len(s.events)) + 1 }

var errUnsupported = errors.New("memory: the storage of an API server does not use this operation")
