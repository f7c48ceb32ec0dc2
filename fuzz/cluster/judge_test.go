package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// judge collects what must not be.
type judge struct {
	t *testing.T

	mu   sync.Mutex
	said []string
}

func newJudge(t *testing.T) *judge { return &judge{t: t} }

// find notes a breach of the promise.
func (j *judge) find(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	if j.said = append(j.said, text); len(j.said) <= 20 {
		j.t.Log(text)
	}
}

// found returns what was found.
func (j *judge) found() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.said)
}

// told is how far a client knows that a command was done.
type told uint8

const (
	unsent   told = iota
	maybe         // it was sent, and not answered
	answered      // it was answered
)

// producer is what one client pushed into one queue: its commands, from 0 on.
type producer []told

// packet names what a producer pushed.
type packet struct{ producer, number int }

func (p packet) String() string { return fmt.Sprintf("%d-%d", p.producer, p.number) }

// payload is what is pushed: now and then more than one part of the log takes.
func (p packet) payload() string {
	if p.number%50 == 49 {
		return fmt.Sprintf("%v %0*d", p, 600<<10, 0)
	}
	return p.String()
}

func parsePacket(text string) (p packet, err error) {
	_, err = fmt.Sscanf(text, "%d-%d", &p.producer, &p.number)
	return p, err
}

// pop is a packet that came out of a queue in turn, and how many pops were unanswered before: each
// of them may have taken a packet.
type pop struct {
	packet
	unanswered int
}

// popped judges a queue with one client that pops. What is left comes behind the pops. Packets of
// one producer come in order, but for those whose push was not answered: these may come once, at
// any time.
func (j *judge) popped(l *lane) {
	place := make(map[packet]int)
	for i, p := range l.popped {
		if _, twice := place[p.packet]; twice {
			j.find("%s: packet %v is back", l.queue, p)
		}
		place[p.packet] = i
		if l.pushed(p.packet) == unsent {
			j.find("%s: packet %v was never pushed", l.queue, p)
			return
		}
	}
	missing := 0
	var next [producers]int
	through := func(to packet, at, unanswered int) {
		for p := (packet{to.producer, next[to.producer]}); p.number < to.number; p.number++ {
			if l.pushed(p) != answered {
				continue
			}
			later, there := place[p]
			if !there {
				missing++
			}
			if there && later > at {
				j.find("%s: packet %v comes behind %v", l.queue, p, to)
			}
			if missing > unanswered {
				j.find("%s: packet %v is lost: %d are missing before %v, and %d pops were not answered", l.queue, p, missing, to, unanswered)
				missing-- // the next one is found as well
			}
		}
		next[to.producer] = max(next[to.producer], to.number)
	}
	last := 0
	for i, p := range l.popped {
		if l.pushed(p.packet) == answered {
			through(p.packet, i, p.unanswered)
		}
		last = p.unanswered
	}
	for i, all := range l.pushes {
		through(packet{i, len(all)}, len(l.popped), last)
	}
}

// claimed judges a queue whose packets are claimed and acknowledged.
func (j *judge) claimed(l *lane, left []packet) {
	there := make(map[packet]bool)
	for _, p := range left {
		if there[p] {
			j.find("%s: packet %v is there twice", l.queue, p)
		}
		there[p] = true
		if l.pushed(p) == unsent {
			j.find("%s: packet %v was never pushed", l.queue, p)
		} else if l.acks[p] == answered {
			j.find("%s: packet %v is back: it was acknowledged", l.queue, p)
		}
	}
	for i, all := range l.pushes {
		for n, push := range all {
			if p := (packet{i, n}); push == answered && l.acks[p] == unsent && !there[p] {
				j.find("%s: packet %v is lost", l.queue, p)
			}
		}
	}
}

func TestTheJudgeFindsWhatMayNotBe(t *testing.T) {
	pops := func(unanswered int, numbers ...int) (all []pop) {
		for _, n := range numbers {
			all = append(all, pop{packet{0, n}, unanswered})
		}
		return all
	}
	popped := func(pops ...[]pop) func(j *judge) {
		l := &lane{pushes: [producers]producer{{answered, maybe, answered, answered}}, popped: slices.Concat(pops...)}
		return func(j *judge) { j.popped(l) }
	}
	claimed := func(left ...int) func(j *judge) {
		acks := map[packet]told{{0, 0}: answered, {0, 1}: maybe}
		l := &lane{pushes: [producers]producer{{answered, answered, answered}}, acks: acks}
		return func(j *judge) {
			var all []packet
			for _, p := range pops(0, left...) {
				all = append(all, p.packet)
			}
			j.claimed(l, all)
		}
	}
	for name, c := range map[string]struct {
		judged func(j *judge)
		want   string
	}{
		"all":                          {popped(pops(0, 0, 1, 2, 3)), ""},
		"a push that was not answered": {popped(pops(0, 0, 2, 3)), ""},
		"one that came later":          {popped(pops(0, 0, 2, 3, 1)), ""},
		"a pop that was not answered":  {popped(pops(1, 0, 1, 3)), ""},
		"lost":                         {popped(pops(0, 0, 1, 3)), "packet 0-2 is lost"},
		"lost at the end":              {popped(pops(0, 0, 1, 2)), "packet 0-3 is lost"},
		"lost before the pop":          {popped(pops(0, 0, 3), pops(1, 1)), "packet 0-2 is lost"},
		"two lost":                     {popped(pops(1, 0, 1)), "packet 0-3 is lost"},
		"back":                         {popped(pops(0, 0, 1, 2, 2, 3)), "packet 0-2 is back"},
		"out of order":                 {popped(pops(0, 0, 3, 2)), "packet 0-2 comes behind 0-3"},
		"never pushed":                 {popped(pops(0, 0, 2, 3, 4)), "packet 0-4 was never pushed"},
		"claims: all":                  {claimed(2), ""},
		"claims: an ack came late":     {claimed(1, 2), ""},
		"claims: lost":                 {claimed(1), "packet 0-2 is lost"},
		"claims: back":                 {claimed(0, 2), "packet 0-0 is back"},
		"claims: twice":                {claimed(2, 2), "packet 0-2 is there twice"},
		"claims: never pushed":         {claimed(2, 3), "packet 0-3 was never pushed"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(t)
			c.judged(j)
			all := j.found()
			if c.want == "" && len(all) > 0 || c.want != "" && (len(all) != 1 || !strings.Contains(all[0], c.want)) {
				t.Errorf("found %q, want what says %q alone, or nothing", all, c.want)
			}
		})
	}
}
