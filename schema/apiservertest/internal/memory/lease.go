package memory

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// lease implements what the storage uses of [clientv3.Lease]. Leases are granted, and not
// kept alive.
type lease struct {
	clientv3.Lease
	*store
}

// Grant returns a lease, at whose end its keys are deleted.
func (l lease) Grant(_ context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := int64(len(l.expiry) + 1)
	l.expiry = append(l.expiry, time.AfterFunc(time.Duration(seconds)*time.Second, func() { l.expire(id) }))
	return &clientv3.LeaseGrantResponse{ResponseHeader: l.header(), ID: clientv3.LeaseID(id), TTL: seconds}, nil
}

func (s *store) expire(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.sorted {
		if kv := s.at(key, s.revision); kv != nil && kv.Lease == id {
			s.delete(&pb.DeleteRangeRequest{Key: []byte(key)})
		}
	}
}
