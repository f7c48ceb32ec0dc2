package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// Audit logs what users manage and operate, as lines "audit". Beyond auditsAtOnce and
// auditsPerSecond it counts, and logs a line with how many times for each user, address and command
// every auditPause: nothing is left out without a word. A nil one logs nothing. Any goroutine may
// call its methods.
type Audit struct {
	log *slog.Logger

	mu      sync.Mutex
	lines   float64 // that may be logged
	at      time.Time
	counted map[Action]*tally // since the last pause
	timer   *time.Timer       // to its end; nil if none is under way
}

// Action is who did what.
type Action struct {
	Protocol, User string
	Host           netip.Addr // of the client
	Command        string     // in lower case
	Database       uint8
}

func (x *Action) attributes(remote fmt.Stringer) []any {
	a := []any{"protocol", x.Protocol, "user", x.User, "remote", remote.String(), "command", x.Command}
	if x.Database > 0 {
		a = append(a, "database", x.Database)
	}
	return a
}

// tally is how often an action was done that was not logged by itself.
type tally struct{ times, count int64 }

const (
	auditsAtOnce    = 100
	auditsPerSecond = 1
	auditPause      = 10 * time.Second
	// maxCounted is how many actions are counted before they are logged early.
	maxCounted = 1000
	// maxAudited is how much of a queue's name is logged, in bytes, and maxPackets how many ids.
	maxAudited = 128
	maxPackets = 20
)

// NewAudit logs to log, which should pass on all lines.
func NewAudit(log *slog.Logger) *Audit {
	return &Audit{log: log, at: time.Now(), lines: auditsAtOnce, counted: make(map[Action]*tally)}
}

// Note notes an action. remote is the client's address with its port, queue what it was done to, or
// empty, and packets the ids that it named. count is how many things it changed; below 0 if it does
// not say.
func (a *Audit) Note(x Action, remote fmt.Stringer, queue []byte, packets [][]byte, count int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.lines, a.at = min(auditsAtOnce, a.lines+auditsPerSecond*now.Sub(a.at).Seconds()), now
	if a.lines < 1 {
		a.tally(x, count)
		return
	}
	a.lines--
	attributes := x.attributes(remote)
	if len(queue) > 0 {
		attributes = append(attributes, "queue", string(queue[:min(len(queue), maxAudited)]))
	}
	if len(packets) > 0 {
		named := string(bytes.Join(packets[:min(len(packets), maxPackets)], []byte(" ")))
		if more := len(packets) - maxPackets; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		attributes = append(attributes, "packets", named)
	}
	if count >= 0 {
		attributes = append(attributes, "count", count)
	}
	a.log.Info("audit", attributes...)
}

func (a *Audit) tally(x Action, count int64) {
	t := a.counted[x]
	if t == nil {
		if len(a.counted) >= maxCounted {
			a.flushLocked()
		}
		t = new(tally)
		a.counted[x] = t
	}
	t.times++
	t.count += max(count, 0)
	if a.timer == nil {
		a.timer = time.AfterFunc(auditPause, a.Flush)
	}
}

// Flush logs what was counted.
func (a *Audit) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flushLocked()
}

func (a *Audit) flushLocked() {
	for x, t := range a.counted {
		a.log.Info("audit", append(x.attributes(x.Host), "times", t.times, "count", t.count)...)
	}
	clear(a.counted)
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
