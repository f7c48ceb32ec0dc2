package cell

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"
)

// gRPC writes errors to the standard error output, unless it is told before its first use.
func init() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// etcdLog is where a member's etcd writes: its warnings and errors go into the node's own log. With
// the member ends the log, since a stop makes etcd warn of what is no trouble.
type etcdLog struct {
	member *Member
	to     *slog.Logger
}

// needless are warnings of each start that nobody has to heed.
var needless = []string{
	"Running http and grpc server on single port. This is not recommended for production.",
}

// logger makes what etcd would end the process with an end of the member.
func (m *Member) logger() *zap.Logger {
	return zap.New(etcdLog{m, m.config.logger()}, zap.WithFatalHook(failure{m}), zap.WithPanicHook(failure{m}))
}

func (l etcdLog) Enabled(level zapcore.Level) bool {
	return level >= zapcore.WarnLevel && l.member.alive.Err() == nil
}

func (l etcdLog) With(fields []zapcore.Field) zapcore.Core {
	l.to = l.to.With(attributes(fields)...)
	return l
}

func (l etcdLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !l.Enabled(e.Level) || slices.Contains(needless, e.Message) {
		return to
	}
	return to.AddCore(e, l)
}

func (l etcdLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	about := append([]any{slog.String("says", e.Message)}, attributes(fields)...)
	if e.Level == zapcore.WarnLevel {
		l.to.Warn("etcd warns", about...)
	} else {
		l.to.Error("etcd tells of an error", about...)
	}
	return nil
}

func (l etcdLog) Sync() error { return nil }

// attributes are fields as slog takes them.
func attributes(fields []zapcore.Field) []any {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	var found []any
	for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
		found = append(found, slog.Any(key, values.Fields[key]))
	}
	return found
}

// failure is run in place of a panic or an exit of etcd.
type failure struct{ member *Member }

// OnWrite ends the member and never returns. The goroutine that failed stands still with its locks
// held: were it ended, what it had begun could be committed in part.
func (f failure) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	why := fmt.Errorf("%w: %s %v", ErrFailed, e.Message, attributes(fields))
	if strings.Contains(e.Message, "tocommit(") {
		why = fmt.Errorf("this folder is older than what the cell knows of it; delete it and start: the node joins anew (%w)", why)
	}
	f.member.end(why)
	select {}
}
