package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	linesAtOnce    = 20
	linesPerSecond = 10
)

// Braked makes a logger for what clients cause. Beyond linesAtOnce it logs linesPerSecond, and one
// line a second that counts the rest. Errors always pass: they are the server's own.
func Braked(log *slog.Logger) *slog.Logger {
	return slog.New(brake{log.Handler(), &quota{log: log, lines: rate.NewLimiter(linesPerSecond, linesAtOnce)}})
}

type brake struct {
	slog.Handler
	quota *quota // of all that are made of one
}

// Handle implements slog.Handler, as the two below do.
func (b brake) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelError && !b.quota.take(r.Time) {
		return nil
	}
	return b.Handler.Handle(ctx, r)
}

func (b brake) WithAttrs(a []slog.Attr) slog.Handler { return brake{b.Handler.WithAttrs(a), b.quota} }
func (b brake) WithGroup(name string) slog.Handler   { return brake{b.Handler.WithGroup(name), b.quota} }

// quota is how many lines may be logged.
type quota struct {
	log     *slog.Logger
	lines   *rate.Limiter
	mu      sync.Mutex
	dropped int // lines that were not counted yet
}

func (q *quota) take(now time.Time) bool {
	if q.lines.AllowN(now, 1) {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped++; q.dropped == 1 {
		time.AfterFunc(time.Second, q.report)
	}
	return false
}

func (q *quota) report() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.log.Warn("lines that clients caused were left out", "lines", q.dropped)
	q.dropped = 0
}
