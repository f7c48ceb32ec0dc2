package cell

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc"
)

// reads is the way to etcd's keys in the process. Over a socket, etcd ends all calls before it
// closes its database. In the process it does not know of them, and a read of a closed database
// panics or hangs. So etcd is told of each read, and waits for it, also when a removal stops it.
type reads struct {
	etcdserverpb.KVClient
	etcd *etcdserver.EtcdServer
}

func newReads(s *etcdserver.EtcdServer) reads {
	return reads{adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(s)), s}
}

func (r reads) Range(ctx context.Context, in *etcdserverpb.RangeRequest, opts ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return attached(ctx, r.etcd, func(ctx context.Context) (*etcdserverpb.RangeResponse, error) {
		return r.KVClient.Range(ctx, in, opts...)
	})
}

func (r reads) Txn(ctx context.Context, in *etcdserverpb.TxnRequest, opts ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	if !txn.IsTxnReadonly(in) {
		return r.KVClient.Txn(ctx, in, opts...) // raft takes it to the goroutine that etcd stops first
	}
	return attached(ctx, r.etcd, func(ctx context.Context) (*etcdserverpb.TxnResponse, error) { return r.KVClient.Txn(ctx, in, opts...) })
}

// attached makes a call that etcd waits for. When etcd stops, the call's context ends, and the
// answer is that the server has stopped. An etcd that has failed may never answer, nor stop.
func attached[T any](ctx context.Context, s *etcdserver.EtcdServer, call func(context.Context) (T, error)) (none T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		answer T
		err    error
	}
	done := make(chan outcome, 1)
	s.GoAttach(func() {
		answer, err := call(ctx)
		done <- outcome{answer, err}
	})
	select {
	case o := <-done:
		return o.answer, o.err
	case <-s.StoppingNotify():
		return none, rpctypes.ErrGRPCStopped
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
