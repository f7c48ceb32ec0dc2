package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestARefusedPushGivesNoRole(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", func(s *broker.Settings) { s.ExclusiveProducer, s.Bound = true, 1 })
	h.push("q", 1, 0, "a", "a")
	if err := h.caller("first", "").push("q"); !errors.Is(err, broker.ErrFull) {
		t.Fatalf("a push gave %v, want ErrFull", err)
	}
	h.pop(h.b.Attach(&inbox{}, groups), "q")
	if err := h.caller("second", "").push("q"); err != nil {
		t.Errorf("a push gave %v after that of another was refused", err)
	}
}

// refusal draws a broker of queues, strings and hashes, in which much is refused.
type refusal struct {
	*harness
	t       *rapid.T
	callers []*broker.Conn
	tx      *broker.Tx
	c       *broker.Conn
}

func (m *refusal) name() []byte {
	return []byte(rapid.SampledFrom([]string{"a", "b", "c", "text", "hash", "none"}).Draw(m.t, "name"))
}

func (m *refusal) value() []byte {
	return make([]byte, rapid.SampledFrom([]int{0, 1, 30, 2000}).Draw(m.t, "size"))
}

func (m *refusal) ids() (ids []broker.ID) {
	for range rapid.IntRange(1, 3).Draw(m.t, "ids") {
		ids = append(ids, broker.ID(rapid.IntRange(0, 12).Draw(m.t, "id")))
	}
	return ids
}

// receipt is that of a claim, or a wrong one.
func (m *refusal) receipt(queue []byte) broker.Receipt {
	return rapid.SampledFrom(append(m.tx.Receipts(queue), broker.Receipt{ID: 1, Token: 1})).Draw(m.t, "receipt")
}

func (m *refusal) settings() broker.Settings {
	s, flag := broker.DefaultSettings(), func() bool { return rapid.IntRange(0, 4).Draw(m.t, "flag") == 0 }
	s.Bound, s.BoundBytes = rapid.Int64Range(0, 3).Draw(m.t, "bound"), rapid.SampledFrom([]int64{0, 0, 40}).Draw(m.t, "bytes")
	s.Full = broker.Full(rapid.IntRange(0, 2).Draw(m.t, "full"))
	s.ExclusiveProducer, s.ExclusiveConsumer, s.PauseIn, s.PauseOut, s.Closed = flag(), flag(), flag(), flag(), flag()
	s.DeadLetter = rapid.SampledFrom([][]byte{nil, []byte("c"), []byte("text")}).Draw(m.t, "dead")
	s.MaxAttempts = 1
	return s
}

func (m *refusal) push() broker.PushRequest {
	r := broker.PushRequest{Queue: m.name(), Priority: rapid.Uint32Range(1, 3).Draw(m.t, "priority"), Payload: m.value()}
	if rapid.Bool().Draw(m.t, "key") {
		r.Key = []byte(rapid.SampledFrom([]string{"x", "y"}).Draw(m.t, "key"))
	}
	return r
}

// refusedVerbs are the calls that change something, with drawn arguments.
var refusedVerbs = map[string]func(m *refusal) error{
	"push":     func(m *refusal) error { return pushError(m.tx.Push(m.push())) },
	"push all": func(m *refusal) error { return pushError(m.tx.PushAll(m.push(), [][]byte{m.value(), m.value()})) },
	"push end": func(m *refusal) error {
		_, err := m.tx.PushEnd(m.name(), broker.Oldest, [][]byte{m.value(), m.value()})
		return err
	},
	"wait to push": func(m *refusal) error {
		if m.c = m.b.Attach(&inbox{}, groups); rapid.Bool().Draw(m.t, "again") {
			m.c = m.callers[0]
		}
		r := m.push()
		r.Payload = nil
		return (&pusher{c: m.c}).wait(m.tx, r)
	},
	"wait": func(m *refusal) error {
		return wait(m.tx, m.c, &blocked{c: m.c}, broker.Selection{}, 0, m.name(), m.name())
	},
	"subscribe": func(m *refusal) error { return m.tx.Subscribe(m.c, m.name()) },
	"pop":       func(m *refusal) error { return reply(m.c)(m.tx.Pop(m.name(), groups)) },
	"pop key": func(m *refusal) error {
		_, _, err := m.tx.PopKey(m.name(), broker.Oldest, nil, nil)
		return err
	},
	"claim": func(m *refusal) error {
		return reply(m.c)(m.tx.Claim(m.name(), broker.ClaimRequest{Selection: broker.Selection{Count: 2}, Consumer: []byte("w")}))
	},
	"ack": func(m *refusal) error {
		queue := m.name()
		_, err := m.tx.Ack(queue, []broker.Receipt{m.receipt(queue)})
		return err
	},
	"nack": func(m *refusal) error {
		queue := m.name()
		_, err := m.tx.Nack(queue, m.receipt(queue), broker.Nack{Reason: m.value(), Delay: rapid.Int64Range(0, 5).Draw(m.t, "delay")})
		return err
	},
	"extend": func(m *refusal) error {
		queue := m.name()
		_, err := m.tx.Extend(queue, m.receipt(queue), 7)
		return err
	},
	"progress": func(m *refusal) error {
		queue := m.name()
		return m.tx.Progress(queue, m.receipt(queue), 7, m.value())
	},
	"move end": func(m *refusal) error {
		_, err := replyMoved(m.c)(m.tx.MoveEnd(m.name(), broker.Newest, m.name(), broker.Oldest))
		return err
	},
	"update": func(m *refusal) error {
		return m.tx.UpdatePriority(broker.UpdatePriorityRequest{Queue: m.name(), Key: []byte("x"), To: func(uint32, bool) uint32 { return 2 }})
	},
	"set at": func(m *refusal) error { _, err := m.tx.SetAt(m.name(), 0, m.value()); return err },
	"insert": func(m *refusal) error { _, err := m.tx.InsertAt(m.name(), 1, m.value()); return err },
	"trim":   func(m *refusal) error { return m.tx.Trim(m.name(), 1, 1) },
	"remove": func(m *refusal) error { _, err := m.tx.RemoveValue(m.name(), m.value(), broker.Oldest, 0); return err },
	"delete packets": func(m *refusal) error {
		_, err := m.tx.DeletePackets(m.name(), m.ids())
		return err
	},
	"move packets": func(m *refusal) error { _, err := m.tx.MovePackets(m.name(), m.ids(), m.name()); return err },
	"priority":     func(m *refusal) error { _, err := m.tx.SetPriority(m.name(), m.ids()[0], 9); return err },
	"run": func(m *refusal) error {
		_, err := m.tx.Reschedule(m.name(), m.ids()[0], startTime+rapid.SampledFrom([]int64{0, 1 << 40}).Draw(m.t, "at"))
		return err
	},
	"cancel":   func(m *refusal) error { _, err := m.tx.Cancel(m.name(), m.ids()); return err },
	"settings": func(m *refusal) error { return m.tx.SetSettings(m.name(), m.settings()) },
	"pause":    func(m *refusal) error { return m.tx.Pause(m.name(), false, startTime+1<<40) },
	"share": func(m *refusal) error {
		return m.tx.SetShare(m.name(), broker.Share{Name: m.value(), Weight: rapid.Uint32Range(0, 3).Draw(m.t, "weight")})
	},
	"close":  func(m *refusal) error { _, err := m.tx.Close(m.name()); return err },
	"delete": func(m *refusal) error { _, err := m.tx.Delete(m.name()); return err },
	"rename": func(m *refusal) error { _, err := m.tx.Rename(m.name(), m.name()); return err },
	"expire": func(m *refusal) error {
		_, err := m.tx.SetExpiry(m.name(), startTime+rapid.SampledFrom([]int64{-1, 1 << 40}).Draw(m.t, "at"))
		return err
	},
	"set":       func(m *refusal) error { return m.tx.SetString(m.name(), m.value(), 0) },
	"patch":     func(m *refusal) error { _, err := m.tx.PatchString(m.name(), 3, m.value()); return err },
	"set field": func(m *refusal) error { _, err := m.tx.SetField(m.name(), []byte("f"), m.value()); return err },
	"delete field": func(m *refusal) error {
		_, err := m.tx.DeleteField(m.name(), []byte("f"))
		return err
	},
	"flush": func(m *refusal) error { return m.tx.Flush(rapid.Bool().Draw(m.t, "all")) },
}

// step makes a call, and finds out what it changed if it was refused.
func (m *refusal) step(tx *broker.Tx) error {
	m.tx, m.c = tx, rapid.SampledFrom(m.callers).Draw(m.t, "caller")
	tx.As(m.c)
	if rapid.IntRange(0, 3).Draw(m.t, "full disk") == 0 {
		tx.SetSpace(rapid.SampledFrom([]storage.Level{storage.NoPush, storage.Stop}).Draw(m.t, "level"))
		defer tx.SetSpace(storage.Normal)
	}
	if rapid.IntRange(0, 3).Draw(m.t, "no more queues") == 0 {
		defer tx.FillNames()()
	}
	verb := rapid.SampledFrom(verbNames).Draw(m.t, "verb")
	before := tx.Everything()
	if err := refusedVerbs[verb](m); err != nil {
		if after := tx.Everything(); after != before {
			m.t.Fatalf("%s was refused: %v, but before it there was\n%s\nand after it\n%s", verb, err, before, after)
		}
	}
	return tx.CheckNames()
}

var verbNames = func() (names []string) {
	for name := range refusedVerbs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

func TestARefusedCallHasChangedNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		defer h.close()
		m := &refusal{harness: h, t: t}
		for i := range 2 {
			m.callers = append(m.callers, h.b.Attach(&inbox{address: fmt.Sprint(i)}, groups))
		}
		h.set("text", "text")
		h.setField("hash", "f", "x")
		for range rapid.SampledFrom([]int{10, 100, 400}).Draw(t, "calls") {
			h.do(func(tx *broker.Tx) error {
				return tx.Atomic(func() error { return m.step(tx) })
			})
		}
	})
}
