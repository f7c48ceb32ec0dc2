package model

import (
	"cmp"
	"fmt"
	"maps"
)

// queue is what is known of a name besides its packets.
type queue struct {
	own bool // it has settings of its own, so it lasts
	settings
	counters [counters]int64
	atMost   bool // a crash has taken some of what was counted
	redated  bool // its retain-dead has changed in this turn
	shares   map[string]share
	gate     // of its own rate
	turns
	keeps  keeps
	number int64 // no other queue had it
	expiry int64 // of the name; 0: never
	stale  bool  // that ended when the queue was emptied: the disk has it until it is defined anew
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
	orders                   map[string][]string // of the values of tags; nobody changes it
	closed                   bool
	shareBy, rate, shareRate string
	maxClaimed, shareMax     int64 // 0: any number
	boundShare, rateBurst    int64
	strict                   bool
	onDead                   string
}

func defaults() settings {
	return settings{lease: 30_000, maxAttempts: 5, backoffMin: 1000, backoffMax: 600_000, full: "reject", shareBy: none, rate: none, shareRate: none, onDead: "go-on"}
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
		s.numbers++
		s.queues[name] = &queue{settings: defaults(), number: s.numbers}
	}
	return s.queues[name]
}

func (s *Server) exists(name string) bool {
	q := s.queues[name]
	return q != nil && q.own || len(s.all(name)) > 0
}

// define makes a queue, or what the disk has of it anew.
func (s *Server) define(name string) *queue {
	q := s.make(name)
	if q.stale {
		q.expiry, q.stale = 0, false
	}
	return q
}

// emptied ends the expiries of queues that are there no more, and shares that are not.
func (s *Server) emptied() {
	for name, q := range s.queues {
		q.stale = q.stale || q.expiry != 0 && !s.exists(name)
		if q.shareBy != none {
			q.settle(s, name)
		}
	}
}

// nameOf is the queue with a number, "" if that is gone.
func (s *Server) nameOf(number int64) string {
	for name, q := range s.queues {
		if q.number == number && q.own {
			return name
		}
	}
	return ""
}

// endPauses ends the pauses that are over, and says whether there were any.
func (q *queue) endPauses(now int64) (ended bool) {
	was := *q
	if q.pauseInUntil != 0 && q.pauseInUntil <= now {
		q.pauseIn, q.pauseInUntil = false, 0
	}
	if q.pauseUntil != 0 && q.pauseUntil <= now {
		q.pauseOut, q.pauseUntil = false, 0
	}
	return was.pauseIn != q.pauseIn || was.pauseOut != q.pauseOut
}

// order gives the values of a tag an order, or with one that is empty takes it away.
func (q *settings) order(tag string, values []string) {
	if q.orders = maps.Clone(q.orders); q.orders == nil {
		q.orders = map[string][]string{}
	}
	if q.orders[tag] = values; len(values) == 1 && values[0] == "" {
		delete(q.orders, tag)
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
	case "share-by":
		q.shareBy = cmp.Or(value, none)
	case "rate":
		q.rate = cmp.Or(value, none)
		gapOf(q.rate)
	case "share-rate":
		q.shareRate = cmp.Or(value, none)
		gapOf(q.shareRate)
	case "rate-burst":
		q.rateBurst = n
	case "max-claimed":
		q.maxClaimed = n
	case "share-max-claimed":
		q.shareMax = n
	case "bound-share":
		q.boundShare = n
	case "strict":
		q.strict = value == "yes"
	case "on-dead":
		q.onDead = value
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
