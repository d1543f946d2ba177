package memory

import (
	"context"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// kv implements [pb.KVClient].
type kv struct{ *store }

var _ pb.KVClient = kv{}

func (k kv) Range(_ context.Context, in *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.get(in)
}

func (k kv) RangeStream(ctx context.Context, in *pb.RangeRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	r, err := k.Range(ctx, in)
	if err != nil {
		return nil, err
	}
	return &stream{rest: []*pb.RangeStreamResponse{{RangeResponse: r}}}, nil
}

// stream has all of a range in one response.
type stream struct {
	grpc.ClientStream
	rest []*pb.RangeStreamResponse
}

func (s *stream) Recv() (*pb.RangeStreamResponse, error) {
	if len(s.rest) == 0 {
		return nil, io.EOF
	}
	r := s.rest[0]
	s.rest = nil
	return r, nil
}

func (k kv) Put(_ context.Context, in *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(in)
	return &pb.PutResponse{Header: k.header()}, nil
}

func (k kv) DeleteRange(_ context.Context, in *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &pb.DeleteRangeResponse{Deleted: k.delete(in), Header: k.header()}, nil
}

func (k kv) Compact(_ context.Context, in *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.compact(in.Revision); err != nil {
		return nil, err
	}
	return &pb.CompactionResponse{Header: k.header()}, nil
}

func (k kv) Txn(_ context.Context, in *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := &pb.TxnResponse{Succeeded: true}
	for _, c := range in.Compare {
		ok, err := k.holds(c)
		if err != nil {
			return nil, err
		}
		out.Succeeded = out.Succeeded && ok
	}
	ops := in.Success
	if !out.Succeeded {
		ops = in.Failure
	}
	for _, op := range ops {
		r, err := k.do(op)
		if err != nil {
			return nil, err
		}
		out.Responses = append(out.Responses, r)
	}
	out.Header = k.header()
	return out, nil
}

// do executes one operation of a transaction.
func (s *store) do(op *pb.RequestOp) (*pb.ResponseOp, error) {
	switch in := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		s.put(in.RequestPut)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}, nil
	case *pb.RequestOp_RequestDeleteRange:
		n := s.delete(in.RequestDeleteRange)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{Deleted: n}}}, nil
	case *pb.RequestOp_RequestRange:
		r, err := s.get(in.RequestRange)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: r}}, err
	}
	return nil, errUnsupported
}

// holds reports whether a key has the revision or the version that is expected; both are 0 for
// a key that is not there.
func (s *store) holds(c *pb.Compare) (bool, error) {
	now := s.at(string(c.Key), s.revision)
	if now == nil {
		now = &mvccpb.KeyValue{}
	}
	switch {
	case c.Result != pb.Compare_EQUAL:
		return false, errUnsupported
	case c.Target == pb.Compare_MOD:
		return now.ModRevision == c.GetModRevision(), nil
	case c.Target == pb.Compare_VERSION:
		return now.Version == c.GetVersion(), nil
	}
	return false, errUnsupported
}
