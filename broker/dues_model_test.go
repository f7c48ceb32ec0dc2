package broker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// rateModel drives a queue whose shares have slow rates through starts, and keeps for each share a
// meter that no start touches. It counts takes alone: costs, and groups that took more than was
// asked for, may have a share wait longer.
type rateModel struct {
	*work
	r      *rand.Rand
	gap    time.Duration // of the shares
	burst  int64
	shares map[string]*ratedShare
	costly []job // that it gave
	calm   bool  // starts are rare
	trace  []string
}

var ratedNames = []string{"a", "b", "own", "costly", "grouped", "taken"}

// ratedShare is a share of the model. Times are in milliseconds.
type ratedShare struct {
	own   time.Duration // the gap of its own rate; 0: none
	due   int64         // when its next take is due, without the burst
	asked int64         // since when it has packets, and gives none though somebody asks; 0: it does not
}

func (m *rateModel) gapOf(s *ratedShare) int64 {
	if s.own > 0 {
		return s.own.Milliseconds()
	}
	return m.gap.Milliseconds()
}

// follow has a share go by another gap from now on.
func (m *rateModel) follow(s *ratedShare, was int64) {
	now, gap := m.now.Load(), m.gapOf(s)
	s.due = min(now+max(0, s.due-now)*gap/was, now+m.burst*gap)
	s.asked = 0
}

// took counts a take, which must have been due. A meter may be early by 10 ms, and one more is for
// what a gap of another rate is rounded to.
func (m *rateModel) took(name string) {
	now, s := m.now.Load(), m.shares[name]
	if open := s.due - (m.burst-1)*m.gapOf(s); now+11 < open {
		m.t.Fatalf("share %s gave %v too early, after\n%v", name, time.Duration(open-now)*time.Millisecond, m.trace)
	}
	s.due, s.asked = max(s.due, now)+m.gapOf(s), 0
	m.trace = append(m.trace, "took "+name)
}

// ask takes all that may be taken. A share that nothing else counts for waits for two gaps at most:
// one for its rate, and one for a start.
func (m *rateModel) ask() {
	lease := int64(1+m.r.IntN(24)) * time.Hour.Milliseconds()
	for _, j := range m.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 100}, Lease: lease}) {
		if m.took(j.payload); j.payload == "costly" {
			m.costly = append(m.costly, j)
		}
	}
	now := m.now.Load()
	for _, name := range []string{"a", "b", "own"} {
		s := m.shares[name]
		if s.asked == 0 {
			s.asked = now
		}
		if waits := now - s.asked; waits > 2*(m.gapOf(s)+time.Hour.Milliseconds()) && m.has(name) {
			m.t.Fatalf("share %s gives nothing for %v, after\n%v", name, time.Duration(waits)*time.Millisecond, m.trace)
		}
	}
}

// has says that a share has packets to give.
func (m *rateModel) has(name string) bool {
	if slices.ContainsFunc(m.list("q", broker.Ready, 1000), func(j job) bool { return j.payload == name }) {
		return true
	}
	m.shares[name].asked = 0
	return false
}

func (m *rateModel) set() {
	m.rated("tag:tenant", "", fmt.Sprintf("1/%dh", m.gap/time.Hour), m.burst)
}

// push gives each share two packets. Two shares have one key.
func (m *rateModel) push() {
	for _, name := range ratedNames {
		key := name
		if name == "grouped" || name == "taken" {
			key = "one"
		}
		for range 2 {
			m.add(broker.PushRequest{Key: []byte(key), Payload: []byte(name), Tags: []content.Tag{{Name: "tenant", Value: name}}})
		}
	}
}

// setRate gives a share a rate of its own, or none.
func (m *rateModel) setRate() (did string) {
	name := []string{"own", "costly"}[m.r.IntN(2)]
	s := m.shares[name]
	was, rate := m.gapOf(s), ""
	if s.own > 0 { // what it gave is no longer known, so a start has the others wait once more
		m.shares["a"].asked, m.shares["b"].asked = 0, 0
	}
	if s.own = 0; m.r.IntN(2) == 0 {
		s.own = time.Duration(1+m.r.IntN(60)) * time.Hour
		rate = fmt.Sprintf("1/%dh", s.own/time.Hour)
	}
	m.rateOf(name, rate)
	m.follow(s, was)
	return "rate of " + name + " " + rate
}

func (m *rateModel) step() (did string) {
	k := m.r.IntN(200)
	if m.calm && m.r.IntN(20) > 0 {
		k = max(k, 60)
	}
	switch {
	case k < 30:
		m.restart()
		return "restart"
	case k < 60:
		m.killed(func(*broker.Tx) {})
		m.restarted()
		return "kill"
	case k < 70:
		for m.b.round() {
		}
		return "work"
	case k < 80: // a group takes of shares that are shut
		m.claim("q", broker.ClaimRequest{Selection: broker.Selection{Group: true, Filter: &broker.Filter{Share: []byte("grouped")}}})
		return "group"
	case k < 95: // of a share that is open, or was when it gave
		if len(m.costly) == 0 {
			return ""
		}
		j := m.costly[0]
		j.cost, m.costly = int64(1+m.r.IntN(3)), m.costly[1:]
		if err := m.ack(j); err != nil {
			return "" // the claim has ended
		}
		return "cost"
	case k < 97:
		return m.setRate()
	case k < 98:
		was, burst := m.gap, m.burst
		if m.r.IntN(2) == 0 {
			m.burst = int64(1 + m.r.IntN(4))
		} else {
			m.gap = time.Duration(3+m.r.IntN(30)) * time.Hour
		}
		m.set()
		for _, s := range m.shares {
			if s.own == 0 || burst != m.burst {
				m.follow(s, map[bool]int64{true: was.Milliseconds(), false: s.own.Milliseconds()}[s.own == 0])
			}
		}
		return fmt.Sprintf("1/%v burst %d", m.gap, m.burst)
	}
	if m.r.IntN(40) == 0 { // all shares go, and come again
		m.bulk(broker.Purge([]byte("q"), 0))
		if did = "purge"; m.r.IntN(2) == 0 {
			m.restart()
			did += ", restart, " + m.setRate()
		}
		m.pass(time.Duration(m.r.Int64N(int64(m.gap))))
		m.push()
		for _, s := range m.shares {
			s.asked = 0
		}
		return did
	}
	d := time.Duration(m.r.Int64N(int64(time.Hour)))
	m.pass(d)
	return fmt.Sprint("pass ", d)
}

// However servers start, end, and change their rates, no share gives one take more, and none
// starves.
func TestNoStartGivesATakeMoreAndNoneStarves(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &rateModel{work: newWork(t), r: rand.New(rand.NewPCG(seed, 71)), gap: 12 * time.Hour, burst: 1, calm: seed%2 > 0, shares: map[string]*ratedShare{}}
			m.set()
			for _, name := range ratedNames {
				m.shares[name] = &ratedShare{}
			}
			m.push()
			for range 400 {
				if m.r.IntN(10) == 0 {
					m.push()
				}
				if did := m.step(); did != "" {
					m.trace = append(m.trace, did)
				}
				m.ask()
			}
		})
	}
}
