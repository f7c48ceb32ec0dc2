package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Audit logs what users manage and operate, as lines "audit", and remembers the newest. Beyond
// auditsAtOnce and auditsPerSecond it counts, and logs a line with how many times for each user,
// address and command every auditPause: nothing is left out without a word. A nil one logs nothing.
// Any goroutine may call its methods.
type Audit struct {
	log *slog.Logger

	mu      sync.Mutex
	lines   float64 // that may be logged
	at      time.Time
	counted map[Action]*tally // since the last pause
	timer   *time.Timer       // to its end; nil if none is under way
	recent  []Entry           // the newest, the oldest first
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

// Entry holds what a line of the audit says.
type Entry struct {
	Action
	At      int64 // Unix milliseconds
	Remote  string
	Queue   string
	Packets string // ids, with a space between
	Set     string // names and values of settings, with a space between
	Count   int64  // below 0: it does not say
	Times   int64  // how often it was done; where it is more than once, Queue and Packets are not known
}

// maxRecent is how many lines are remembered.
const maxRecent = 200

// Recent returns the newest lines, the oldest first.
func (a *Audit) Recent() []Entry {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.recent)
}

func (a *Audit) remember(e Entry) {
	if len(a.recent) >= maxRecent {
		a.recent = slices.Delete(a.recent, 0, 1)
	}
	a.recent = append(a.recent, e)
}

// tally is how often an action was done that was not logged by itself.
type tally struct{ times, count int64 }

const (
	auditsAtOnce    = 100
	auditsPerSecond = 1
	auditPause      = 10 * time.Second
	// maxCounted is how many actions are counted before they are logged early.
	maxCounted = 1000
	// maxAudited is how much of a queue's name is logged, in bytes, maxSet how much of what was set,
	// and maxPackets how many ids.
	maxAudited = 128
	maxSet     = 512
	maxPackets = 20
)

// NewAudit logs to log, which should pass on all lines.
func NewAudit(log *slog.Logger) *Audit {
	return &Audit{log: log, at: time.Now(), lines: auditsAtOnce, counted: make(map[Action]*tally)}
}

// Note notes an action. remote is the client's address with its port, queue what it was done to, or
// empty, and packets the ids that it named. count is how many things it changed; below 0 if it does
// not say. set is names and values of settings: no payload.
func (a *Audit) Note(x Action, remote fmt.Stringer, queue []byte, packets [][]byte, count int64, set ...[]byte) {
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
	e := Entry{Action: x, At: now.UnixMilli(), Remote: remote.String(), Queue: string(queue[:min(len(queue), maxAudited)]), Count: count, Times: 1}
	attributes := x.attributes(remote)
	if e.Queue != "" {
		attributes = append(attributes, "queue", e.Queue)
	}
	if len(packets) > 0 {
		e.Packets = string(bytes.Join(packets[:min(len(packets), maxPackets)], []byte(" ")))
		if more := len(packets) - maxPackets; more > 0 {
			e.Packets += fmt.Sprintf(" and %d more", more)
		}
		attributes = append(attributes, "packets", e.Packets)
	}
	if len(set) > 0 {
		all := bytes.Join(set, []byte(" "))
		e.Set = string(all[:min(len(all), maxSet)])
		attributes = append(attributes, "set", e.Set)
	}
	a.remember(e)
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
		a.remember(Entry{Action: x, At: time.Now().UnixMilli(), Remote: x.Host.String(), Count: t.count, Times: t.times})
	}
	clear(a.counted)
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
