package broker_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
)

// drawGates gives settings pauses. A queue that was closed stays so.
func (m *workModel) drawGates(t *rapid.T, queue string, s *broker.Settings) {
	sometimes := rapid.SampledFrom([]bool{false, false, true})
	s.PauseIn, s.PauseOut = sometimes.Draw(t, "pause in"), sometimes.Draw(t, "pause out")
	s.Closed = m.settings(queue).Closed
}

// shut returns the error that a queue has for all that comes.
func (m *workModel) shut(queue string) error {
	switch s := m.settings(queue); {
	case s.Closed:
		return broker.ErrQueueClosed
	case s.PauseIn:
		return broker.ErrPaused
	}
	return nil
}

// taken returns what a take takes from a queue.
func (m *workModel) taken(queue string, s broker.Selection) []*task {
	if m.settings(queue).PauseOut {
		return nil
	}
	return m.selected(queue, s)
}

func (m *workModel) close(queue string) {
	s := m.settings(queue)
	closed, err := m.tx.Close([]byte(queue))
	m.check(err)
	m.same("closed", closed, !s.Closed)
	if m.lasting[queue] == nil {
		m.lasting[queue] = &lasting{name: queue}
	}
	s.Closed = true
	m.lasting[queue].Settings = s
}

// pause pauses a queue until a moment.
func (m *workModel) pause(t *rapid.T, queue string) {
	s, in := m.settings(queue), rapid.Bool().Draw(t, "in")
	until := max(0, m.now.Load()+rapid.Int64Range(-3, 30).Draw(t, "until"))
	m.check(m.tx.Pause([]byte(queue), in, until))
	paused, end := until > m.now.Load(), until
	if !paused {
		end = 0
	}
	if was := s.PauseOut && !in || s.PauseIn && in; !was && !paused {
		return
	}
	if in {
		s.PauseIn, s.PauseInUntil = paused, end
	} else {
		s.PauseOut, s.PauseOutUntil = paused, end
	}
	if m.lasting[queue] == nil {
		m.lasting[queue] = &lasting{name: queue}
	}
	m.lasting[queue].Settings = s
}

func (m *workModel) compareGates(queue string) {
	drained := m.settings(queue).Closed && len(m.in(queue, unfinished)) == 0
	m.same("drained", m.tx.Drained([][]byte{[]byte(queue)}), drained)
}

// patient is a blocked pop, or a claim, of which the test knows how it ended.
type patient struct {
	c      *broker.Conn
	queues [][]byte
	takes  broker.Selection
	claims bool
	ends   []string
}

// takeable is Takeable for what it takes. Of a queue without shares it may wait for one.
func (p *patient) takeable(tx *broker.Tx, queue []byte) (int, error) {
	n, err := tx.Takeable(queue, broker.Claiming(p.takes, p.claims))
	if errors.Is(err, broker.ErrNoShares) && p.takes.Filter.Share != nil {
		return 0, nil
	}
	return n, err
}

// isRefused says that a queue with some packets has no shares, of which it waits for one.
func (p *patient) isRefused(tx *broker.Tx, some int) bool {
	return slices.ContainsFunc(p.queues, func(q []byte) bool {
		n, _ := tx.Takeable(q, broker.Selection{})
		_, err := tx.Takeable(q, p.takes)
		return errors.Is(err, broker.ErrNoShares) && n >= some
	})
}

func (p *patient) Ready(tx *broker.Tx, queue []byte) {
	if n, err := p.takeable(tx, queue); n == 0 || err != nil {
		p.ends = append(p.ends, "woken for nothing")
	}
	if p.claims {
		_ = reply(p.c)(tx.Claim(queue, broker.ClaimRequest{Selection: p.takes, Lease: 30}))
	} else {
		_ = reply(p.c)(tx.Pop(queue, p.takes))
	}
	p.ends = append(p.ends, "served")
}

func (p *patient) Expired(*broker.Tx) { p.ends = append(p.ends, "expired") }

func (p *patient) Closed(tx *broker.Tx) {
	if p.ends = append(p.ends, "told"); !tx.Drained(p.queues) && !p.isRefused(tx, 0) {
		p.ends = append(p.ends, "told too early")
	}
}

func drawTag(t *rapid.T) string { return rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "tag") }

// gateStep makes one call that may open or shut a gate, or bring or take a packet.
func (w *work) gateStep(t *rapid.T, tx *broker.Tx, queue string, claimed *[]job) error {
	name := []byte(queue)
	switch rapid.SampledFrom([]string{"push", "push", "ack", "nack", "delete", "pause", "pause", "pause until", "close", "drop", "trim", "move", "rename", "share", "share", "limit", "limit"}).Draw(t, "call") {
	case "push":
		r := broker.PushRequest{Queue: name, Priority: rapid.Uint32Range(0, 1).Draw(t, "priority"), Delay: max(0, rapid.Int64Range(-20, 20).Draw(t, "delay"))}
		r.Payload = []byte(wide[:rapid.SampledFrom([]int{0, 0, len(wide)}).Draw(t, "bytes")])
		if value := drawTag(t); value != "" {
			r.Tags = []broker.PacketTag{{Name: "tag", Value: value}}
		}
		if err := pushError(tx.Push(r)); err != nil && !errors.Is(err, broker.ErrQueueClosed) && !errors.Is(err, broker.ErrPaused) {
			return err
		}
	case "ack":
		if n := len(*claimed); n > 0 {
			j := (*claimed)[n-1]
			*claimed = (*claimed)[:n-1]
			_, _ = tx.Ack([]byte(j.Queue), []broker.Receipt{{ID: j.ID, Token: j.Token}})
		}
	case "nack":
		if n := len(*claimed); n > 0 {
			j := (*claimed)[n-1]
			*claimed = (*claimed)[:n-1]
			_, _ = tx.Nack([]byte(j.Queue), broker.Receipt{ID: j.ID, Token: j.Token}, broker.Nack{Delay: rapid.Int64Range(-1, 20).Draw(t, "delay")})
		}
	case "delete":
		_, err := broker.Purge(name, 0).Slice(tx)
		return err
	case "pause":
		return tryChange(tx, queue, func(s *broker.Settings) { s.PauseOut, s.PauseOutUntil = !s.PauseOut, 0 })
	case "pause until":
		return tx.Pause(name, rapid.Bool().Draw(t, "in"), w.now.Load()+rapid.Int64Range(0, 30).Draw(t, "until"))
	case "close":
		_, err := tx.Close(name)
		return err
	case "drop":
		_, err := tx.Delete(name)
		return err
	case "move":
		if _, err := broker.Move(name, 0, 0, []byte("b")).Slice(tx); err != nil && !errors.Is(err, broker.ErrQueueClosed) && !errors.Is(err, broker.ErrPaused) {
			return err
		}
	case "rename":
		_, err := tx.Rename(name, []byte("b"))
		return err
	case "trim":
		err := tx.Atomic(func() error { return tx.Trim(name, 0, 0) })
		if !errors.Is(err, broker.ErrByShares) {
			return err
		}
	case "share":
		by := rapid.SampledFrom([]string{"", "tag:tag", "tag:tag"}).Draw(t, "by")
		return tryChange(tx, queue, func(s *broker.Settings) { s.ShareBy = []byte(by) })
	case "limit":
		most := rapid.SampledFrom([]int64{0, 1, 2})
		return tryChange(tx, queue, func(s *broker.Settings) {
			s.MaxClaimed, s.ShareMaxClaimed = most.Draw(t, "claimed"), most.Draw(t, "of a share")
		})
	}
	return nil
}

func TestNobodyWaitsForWhatIsThereOrWillNeverCome(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b"})
	rapid.Check(t, func(t *rapid.T) {
		w := newWork(t)
		defer func() { _ = w.b.Close() }()
		var waiting []*patient
		var claimed []job
		t.Repeat(map[string]func(*rapid.T){
			"calls": func(t *rapid.T) {
				w.do(func(tx *broker.Tx) error {
					for range rapid.IntRange(1, 3).Draw(t, "n") {
						err := tx.Atomic(func() error { return w.gateStep(t, tx, names.Draw(t, "queue"), &claimed) })
						if err != nil {
							return err
						}
					}
					return nil
				})
			},
			"claim": func(t *rapid.T) {
				claimed = append(claimed, w.claim(names.Draw(t, "queue"), broker.ClaimRequest{Lease: 30})...)
			},
			"wait": func(t *rapid.T) {
				s := broker.Selection{Fits16: rapid.Bool().Draw(t, "narrow")}
				p := &patient{c: w.b.Attach(&inbox{}, s), takes: s, claims: rapid.Bool().Draw(t, "claims")}
				if value := drawTag(t); value != "" {
					p.takes.Filter = filtered("tag " + rapid.SampledFrom([]string{"eq", "eq", "ge"}).Draw(t, "op") + " " + value)
				}
				if rapid.IntRange(0, 2).Draw(t, "of a share") == 0 {
					p.takes.Filter = &broker.Filter{Share: []byte(drawTag(t))}
				}
				for _, q := range rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(t, "queues") {
					p.queues = append(p.queues, []byte(string(q)))
				}
				w.do(func(tx *broker.Tx) error {
					for _, q := range p.queues {
						if n, err := p.takeable(tx, q); n > 0 || err != nil {
							return err
						}
					}
					if tx.Drained(p.queues) || p.isRefused(tx, 0) {
						return nil
					}
					waiting = append(waiting, p)
					return wait(tx, p.c, p, p.takes, 0, p.queues...)
				})
			},
			"time passes": func(t *rapid.T) {
				w.pass(time.Duration(rapid.IntRange(1, 30).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				for w.barrier(); w.b.round(); { // until packets are in their shares
				}
				waiting = slices.DeleteFunc(waiting, func(p *patient) bool {
					if len(p.ends) > 1 || p.c.Parked() == (len(p.ends) == 1) {
						t.Fatalf("a wait for %q ended %q, and it waits: %v", p.queues, p.ends, p.c.Parked())
					}
					return !p.c.Parked()
				})
				w.do(func(tx *broker.Tx) error {
					for _, p := range waiting {
						for _, q := range p.queues {
							if n, err := p.takeable(tx, q); n > 0 || err != nil {
								t.Fatalf("somebody waits for %q, which has %d packets (%v)", q, n, err)
							}
						}
						if p.isRefused(tx, 1) {
							t.Fatalf("somebody waits for a share of %q, of which one has packets but no shares", p.queues)
						}
						if tx.Drained(p.queues) {
							t.Fatalf("somebody waits for %q, where nothing will come", p.queues)
						}
					}
					return nil
				})
			},
		})
	})
}
