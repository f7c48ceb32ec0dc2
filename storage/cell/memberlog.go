package cell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

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

// etcdLog takes etcd's own log into that of the node, and stands in for its panics and exits.
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
	return zap.New(zapcore.NewCore(format, zapcore.AddSync(etcdLog{m}), heeded), zap.WithFatalHook(etcdLog{m}), zap.WithPanicHook(etcdLog{m}))
}

const (
	warnPause = 10 * time.Minute // for which what etcd says again is left out
	maxKinds  = 100              // of what it says
)

// numbered are words that are other ones each time, as addresses, times and keys are.
var numbered = regexp.MustCompile(`\S*[0-9]\S*`)

// warned is when what etcd says was told last, by its text without such words.
type warned struct {
	sync.Mutex
	told map[string]time.Time
}

// again says that a line of its kind was told a short time ago. While a node is down etcd says the
// same each second.
func (w *warned) again(line []byte, now time.Time) bool {
	text := numbered.ReplaceAll(line, nil)
	w.Lock()
	defer w.Unlock()
	if at, is := w.told[string(text)]; is && now.Sub(at) < warnPause {
		return true
	}
	if w.told == nil || len(w.told) >= maxKinds {
		w.told = make(map[string]time.Time)
	}
	w.told[string(text)] = now
	return false
}

func (l etcdLog) Write(line []byte) (int, error) {
	if !bytes.Contains(line, needless) && !l.warned.again(line, time.Now()) {
		l.config.Logger.Warn("etcd warns", "line", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}

// OnWrite ends the member and never returns. The goroutine that failed stands still with its locks
// held: were it ended, what it had begun could be committed in part.
func (l etcdLog) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	about := zapcore.NewMapObjectEncoder()
	for _, field := range fields {
		field.AddTo(about)
	}
	why := fmt.Errorf("%w: %s %v", ErrFailed, e.Message, about.Fields)
	if strings.Contains(e.Message, "tocommit(") {
		why = fmt.Errorf("%w (%w)", ErrOld, why)
	}
	l.end(why)
	select {}
}

// reads is the way to etcd's keys in the process. Over a socket, etcd ends all calls before it
// closes its database. In the process it does not know of them, and a read of a closed database
// panics or hangs. So etcd is told of each read, and waits for it, also when a removal stops it.
type reads struct {
	etcdserverpb.KVClient
	etcd *etcdserver.EtcdServer
}

// The quota holds where etcd applies what it was told. The server that also asks before it, which
// v3client has, knows only the database of the start: once a snapshot has replaced one that was
// full, each put would raise the alarm.
func newReads(s *etcdserver.EtcdServer) reads {
	return reads{adapter.KvServerToKvClient(v3rpc.NewKVServer(s)), s}
}

func (r reads) Range(ctx context.Context, in *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return attached(ctx, r.etcd, in, r.KVClient.Range)
}

func (r reads) Txn(ctx context.Context, in *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	if !txn.IsTxnReadonly(in) {
		return r.KVClient.Txn(ctx, in) // raft takes it to the goroutine that etcd stops first
	}
	return attached(ctx, r.etcd, in, r.KVClient.Txn)
}

// attached makes a call that etcd waits for. When etcd stops, the call's context ends, and the
// answer is that the server has stopped. An etcd that has failed may never answer, nor stop.
func attached[Q, A any](ctx context.Context, s *etcdserver.EtcdServer, in Q, call func(context.Context, Q, ...grpc.CallOption) (A, error)) (none A, _ error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answer A
	var err error
	done := make(chan struct{})
	s.GoAttach(func() {
		defer close(done)
		answer, err = call(ctx, in)
	})
	select {
	case <-done:
		return answer, err
	case <-s.StoppingNotify():
		return none, rpctypes.ErrGRPCStopped
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
