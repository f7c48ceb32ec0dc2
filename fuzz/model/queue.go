package model

import "fmt"

// queue is what is known of a name besides its packets.
type queue struct {
	own bool // it has settings of its own, so it lasts
	settings
	counters [counters]int64
	atMost   bool // a crash has taken some of what was counted
	redated  bool // its retain-dead has changed in this turn
	shares   map[string]share
}

type settings struct {
	lease, maxAttempts       int64
	backoffMin, backoffMax   int64
	deadLetter               string
	retain, retainDead       int64
	pauseIn, pauseOut        bool
	pauseInUntil, pauseUntil int64 // 0: without end
	bound, boundBytes        int64 // 0: none
	full                     string
	closed                   bool
}

func defaults() settings {
	return settings{lease: 30_000, maxAttempts: 5, backoffMin: 1000, backoffMax: 600_000, full: "reject"}
}

// counter is a total of a queue.
type counter int

const (
	pushed counter = iota
	popped
	acked
	nacked
	expired
	died
	dropped
	cancelled
	counters
)

// totals are their names in QSTAT.
var totals = [counters]string{"pushed", "popped", "acked", "nacked", "expired", "died", "dropped", "cancelled"}

// count counts for a queue. It is made with its first packet, which may be a dead one of another.
func (s *Server) count(queue string, c counter) {
	s.make(queue).counters[c]++
}

// Counted tells what a server shows of a total after a crash.
func (s *Server) Counted(queue, total string, n int64) {
	for c, name := range totals {
		if q := s.queues[queue]; q != nil && name == total {
			q.counters[c] = n
		}
	}
}

// Exact says that Counted has told all totals of a queue.
func (s *Server) Exact(queue string) {
	if q := s.queues[queue]; q != nil {
		q.atMost = false
	}
}

// settings are those in force.
func (s *Server) settings(queue string) settings {
	if q := s.queues[queue]; q != nil && q.own {
		return q.settings
	}
	return defaults()
}

// make returns what is known of a name, and knows it then.
func (s *Server) make(name string) *queue {
	if s.queues[name] == nil {
		s.queues[name] = &queue{settings: defaults()}
	}
	return s.queues[name]
}

func (s *Server) exists(name string) bool {
	q := s.queues[name]
	return q != nil && q.own || len(s.all(name)) > 0
}

// endPauses ends the pauses that are over.
func (q *queue) endPauses(now int64) {
	if q.pauseInUntil != 0 && q.pauseInUntil <= now {
		q.pauseIn, q.pauseInUntil = false, 0
	}
	if q.pauseUntil != 0 && q.pauseUntil <= now {
		q.pauseOut, q.pauseUntil = false, 0
	}
}

// set gives a setting a value.
func (q *settings) set(name, value string) {
	var n int64
	_, _ = fmt.Sscan(value, &n)
	switch name {
	case "lease":
		q.lease = n
	case "max-attempts":
		q.maxAttempts = n
	case "backoff-min":
		q.backoffMin = n
	case "backoff-max":
		q.backoffMax = n
	case "bound":
		q.bound = n
	case "bound-bytes":
		q.boundBytes = n
	case "full":
		q.full = value
	case "dead-letter":
		q.deadLetter = value
	case "retain":
		q.retain = n
	case "retain-dead":
		q.retainDead = n
	case "pause-in":
		q.pauseIn, q.pauseInUntil = value == "yes", 0
	case "pause-out":
		q.pauseOut, q.pauseUntil = value == "yes", 0
	default:
		panic("no rule for the setting " + name)
	}
}
