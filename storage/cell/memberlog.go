package cell

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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
