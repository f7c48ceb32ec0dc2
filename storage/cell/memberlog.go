package cell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
)

// gRPC writes errors to the standard error output, unless it is told before its first use.
func init() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// etcdLog takes etcd's own log into that of the node.
type etcdLog struct{ *Member }

// needless is what etcd warns of at each start, and nobody has to heed.
var needless = []byte("Running http and grpc server on single port")

// zap is etcd's logger. It has warnings and errors until the member ends, since a stop makes etcd
// warn of what is no trouble. What etcd would end the process with ends the member.
func (m *Member) zap() *zap.Logger {
	format := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "says", ConsoleSeparator: " ", EncodeDuration: zapcore.StringDurationEncoder})
	heeded := zap.LevelEnablerFunc(func(level zapcore.Level) bool {
		return level >= zapcore.WarnLevel && m.Err() == nil
	})
	return zap.New(zapcore.NewCore(format, etcdLog{m}, heeded), zap.WithFatalHook(failure{m}), zap.WithPanicHook(failure{m}))
}

func (l etcdLog) Write(line []byte) (int, error) {
	if !bytes.Contains(line, needless) {
		l.config.Logger.Warn("etcd warns", "line", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}

func (l etcdLog) Sync() error { return nil }

// failure stands in for a panic and an exit of etcd.
type failure struct{ *Member }

// OnWrite ends the member and never returns. The goroutine that failed stands still with its locks
// held: were it ended, what it had begun could be committed in part.
func (f failure) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	about := zapcore.NewMapObjectEncoder()
	for _, field := range fields {
		field.AddTo(about)
	}
	why := fmt.Errorf("%w: %s %v", ErrFailed, e.Message, about.Fields)
	if strings.Contains(e.Message, "tocommit(") {
		why = fmt.Errorf("%w (%w)", ErrOld, why)
	}
	f.end(why)
	select {}
}

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
