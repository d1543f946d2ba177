package memory

import (
	"context"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// kv implements what the storage uses of [pb.KVClient].
type kv struct {
	pb.KVClient
	*store
}

func (k kv) Range(_ context.Context, in *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.get(in)
}

// RangeStream does not exist before etcd 3.7: the storage uses Range instead.
func (kv) RangeStream(context.Context, *pb.RangeRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	return nil, status.Error(codes.Unimplemented, "memory: no RangeStream")
}

func (k kv) Put(_ context.Context, in *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	if err := checkSize(in, &pb.InternalRaftRequest{Put: in}); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(in)
	return &pb.PutResponse{Header: k.header()}, nil
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
	if err := checkSize(in, &pb.InternalRaftRequest{Txn: in}); err != nil {
		return nil, err
	}
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

const (
	maxMessage = 2 << 20     // of a client (etcd/client/v3/options.go, defaultMaxCallSendMsgSize)
	maxRequest = 3 << 20 / 2 // of a server (etcd/server/v3/embed/config.go, DefaultMaxRequestBytes)
)

// checkSize returns the error of a client that does not send a request, or else the error of a
// server that does not propose it (etcd/server/v3/etcdserver/v3_server.go,
// processInternalRaftRequestOnce).
func checkSize(message proto.Message, request *pb.InternalRaftRequest) error {
	if size := proto.Size(message); size > maxMessage {
		return status.Errorf(codes.ResourceExhausted, "trying to send message larger than max (%d vs. %d)", size, maxMessage)
	}
	request.Header = &pb.RequestHeader{ID: math.MaxUint64}
	if proto.Size(request) > maxRequest {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
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
