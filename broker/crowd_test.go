package broker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A crowd makes random calls in long runs, so that batches fill and deliveries are deferred. Takes
// and pushes wait, while settings change and queues come and go. Once all is delivered nobody may
// wait in vain, and no packet may have gone to two.
type crowd struct {
	t      *testing.T
	r      *rand.Rand
	h      *harness
	steady int64
	made   int                  // payloads
	takers map[*crowdTaker]bool // that wait
	pushes []*crowdPush         // that wait, in order of arrival
	woken  int

	taken  map[string]int // by payload
	claims []crowdClaim
}

type crowdClaim struct {
	queue   string
	receipt broker.Receipt
}

// popped notes what was taken for good.
func (m *crowd) popped(f broker.Found, err error) error {
	for _, p := range f.Packets {
		m.taken[string(p.Payload)]++
	}
	return err
}

// claimed notes what was claimed.
func (m *crowd) claimed(f broker.Found, err error) error {
	for _, d := range f.Details {
		m.claims = append(m.claims, crowdClaim{d.Queue, broker.Receipt{ID: d.ID, Token: d.Token}})
	}
	return err
}

// crowdTaker is a take that waits.
type crowdTaker struct {
	m         *crowd
	c         *broker.Conn
	queues    [][]byte
	selection broker.Selection
	kind      int
}

func (k *crowdTaker) Ready(tx *broker.Tx, queue []byte) {
	m := k.m
	delete(m.takers, k)
	m.woken++
	if n, err := tx.Takeable(queue, k.selection); n == 0 || err != nil {
		m.t.Fatalf("a taker is woken by queue %s with %d packets to take, %v", queue, n, err)
	}
	var err error
	switch k.kind {
	case 0:
		err = m.popped(tx.Pop(queue, k.selection))
	case 1:
		err = m.claimed(tx.Claim(queue, broker.ClaimRequest{Selection: k.selection, Lease: 50}))
	default: // the other list may refuse it
		_, _ = tx.MoveEnd(queue, broker.Oldest, []byte("b"), broker.Newest)
	}
	if err != nil {
		m.t.Fatalf("a take that waited: %v", err)
	}
}

func (k *crowdTaker) Expired(*broker.Tx) { delete(k.m.takers, k) }
func (k *crowdTaker) Closed(*broker.Tx)  { delete(k.m.takers, k) }

// crowdPush is a push that waits.
type crowdPush struct {
	m        *crowd
	c        *broker.Conn
	request  broker.PushRequest
	payloads [][]byte
}

func (p *crowdPush) make(tx *broker.Tx) error {
	if len(p.payloads) > 1 {
		_, err := tx.PushAll(p.request, p.payloads)
		return err
	}
	r := p.request
	r.Payload = p.payloads[0]
	return pushError(tx.Push(r))
}

// wait makes the push wait.
func (p *crowdPush) wait(tx *broker.Tx, until int64) error {
	return waitPush(tx, p.c, p.request.Queue, until, p.make, func(err error, expired bool) {
		p.m.leave(p)
		if expired {
			return
		}
		p.m.woken++
		for _, expected := range []error{nil, broker.ErrTooLarge, broker.ErrQueueClosed, broker.ErrTooManyLanes} {
			if errors.Is(err, expected) {
				return
			}
		}
		p.m.t.Fatalf("a push at its turn: %v", err)
	})
}

func (m *crowd) leave(p *crowdPush) {
	m.pushes = slices.DeleteFunc(m.pushes, func(o *crowdPush) bool { return o == p })
}

var crowdQueues = []string{"a", "b", "c"}

func (m *crowd) name() []byte { return []byte(crowdQueues[m.r.IntN(len(crowdQueues))]) }

// one says, once in n, that something happens.
func (m *crowd) one(n int) bool { return m.r.IntN(n) == 0 }

func (m *crowd) payload() []byte {
	m.made++
	p := fmt.Appendf(nil, "%06d", m.made)
	if m.one(10) {
		p = append(p, make([]byte, m.r.IntN(3000))...)
	}
	return p
}

// until is the deadline of half of the waits.
func (m *crowd) until(tx *broker.Tx) int64 {
	if m.one(2) {
		return 0
	}
	return tx.Now() + int64(1+m.r.IntN(100))
}

// crowdCalls are the calls, each as often as it is to be drawn.
var crowdCalls = slices.Concat(
	slices.Repeat([]func(*crowd, *broker.Tx, []byte) error{(*crowd).push}, 7),
	slices.Repeat([]func(*crowd, *broker.Tx, []byte) error{(*crowd).take}, 5),
	slices.Repeat([]func(*crowd, *broker.Tx, []byte) error{(*crowd).pop}, 3),
	slices.Repeat([]func(*crowd, *broker.Tx, []byte) error{(*crowd).claim, (*crowd).change}, 2),
	[]func(*crowd, *broker.Tx, []byte) error{(*crowd).endClaim, (*crowd).reshape, (*crowd).move, (*crowd).giveUp, (*crowd).together, (*crowd).pass},
)

func (m *crowd) push(tx *broker.Tx, name []byte) error {
	p := &crowdPush{m: m, request: broker.PushRequest{Queue: name, Priority: uint32(1 + m.r.IntN(3)), Block: m.one(2)}}
	r := &p.request
	if n := m.r.IntN(4); n > 0 {
		r.Tags = tagged("t " + strconv.Itoa(n))
	}
	switch m.r.IntN(8) {
	case 0:
		r.TTL = time.Duration(1+m.r.IntN(40)) * time.Millisecond
	case 1:
		r.Delay = int64(1 + m.r.IntN(40))
	case 2:
		r.Priority, r.Key = 0, []byte("k")
	case 3:
		r.Key = []byte("k")
	}
	for range 1 + m.r.IntN(3) {
		p.payloads = append(p.payloads, m.payload())
	}
	if len(p.payloads) == 1 && m.one(3) {
		r.Unique = []byte(strconv.Itoa(m.r.IntN(5)))
		if m.one(3) {
			r.Window = int64(1 + m.r.IntN(30))
		}
	}
	err := p.make(tx)
	if !r.Block || !errors.Is(err, broker.ErrFull) && !errors.Is(err, broker.ErrPaused) {
		return err
	}
	p.c = m.h.b.Attach(&inbox{}, broker.Selection{})
	err = p.wait(tx, m.until(tx))
	if err == nil {
		m.pushes = append(m.pushes, p)
	}
	return err
}

// take lets a take wait where there is nothing.
func (m *crowd) take(tx *broker.Tx, name []byte) error {
	k := &crowdTaker{m: m, kind: m.r.IntN(3), queues: [][]byte{name}, selection: broker.Selection{End: broker.Oldest, WithDetails: true}}
	if k.kind < 2 && m.one(2) {
		k.selection.Filter = filtered("t eq " + strconv.Itoa(1+m.r.IntN(3)))
	}
	if m.one(2) {
		k.queues = append(k.queues, m.name())
	}
	for _, q := range k.queues {
		if n, err := tx.Takeable(q, k.selection); n > 0 || err != nil {
			return err
		}
	}
	k.c = m.h.b.Attach(&inbox{}, broker.Selection{})
	err := wait(tx, k.c, k, k.selection, m.until(tx), k.queues...)
	if err == nil {
		m.takers[k] = true
	}
	return err
}

func (m *crowd) pop(tx *broker.Tx, name []byte) error {
	return m.popped(tx.Pop(name, broker.Selection{End: broker.Oldest, Count: m.r.IntN(3)}))
}

func (m *crowd) claim(tx *broker.Tx, name []byte) error {
	r := broker.ClaimRequest{Selection: broker.Selection{Count: 1 + m.r.IntN(3)}, Lease: int64(1 + m.r.IntN(60))}
	return m.claimed(tx.Claim(name, r))
}

func (m *crowd) endClaim(tx *broker.Tx, _ []byte) error {
	last := len(m.claims) - 1
	if last < 0 {
		return nil
	}
	k := m.claims[last]
	m.claims = m.claims[:last]
	var err error
	if m.one(2) {
		_, err = tx.Ack([]byte(k.queue), []broker.Receipt{k.receipt})
	} else {
		_, err = tx.Nack([]byte(k.queue), k.receipt, broker.Nack{Delay: int64(m.r.IntN(20)), Dead: m.one(2)})
	}
	return err
}

func (m *crowd) change(tx *broker.Tx, name []byte) error {
	s, _, err := tx.Settings(name)
	if err != nil {
		return err
	}
	switch m.r.IntN(6) {
	case 0, 1:
		s.Bound, s.BoundBytes = int64(m.r.IntN(12)), int64(m.r.IntN(3))*3000
		s.Full = content.Full(m.r.IntN(3))
	case 2:
		s.PauseIn = !s.PauseIn
	case 3:
		s.PauseOut = !s.PauseOut
	case 4:
		s.MaxAttempts, s.DeadLetter = 2, nil
		if m.one(2) && string(name) != "c" {
			s.DeadLetter = []byte("c")
		}
		if m.one(3) {
			s.Retain = 20
		}
	case 5:
		s.Closed = s.Closed || m.one(4)
	}
	return tx.SetSettings(name, s)
}

// reshape ends a queue, renames it or loses much of it.
func (m *crowd) reshape(tx *broker.Tx, name []byte) (err error) {
	switch m.r.IntN(6) {
	case 0:
		_, err = tx.Delete(name)
	case 1:
		_, err = tx.Rename(name, m.name())
	case 2:
		err = tx.Atomic(func() error { return tx.Trim(name, 0, 1) })
	case 3:
		if m.one(4) {
			err = tx.Flush(true)
		}
	case 4:
		purge := broker.Purge(name, 0)
		purge.Filter = filtered("t ge 2")
		_, err = purge.Slice(tx)
	case 5:
		_, err = broker.Redrive(name, 0, nil).Slice(tx)
	}
	return err
}

func (m *crowd) move(tx *broker.Tx, name []byte) error {
	_, err := broker.Move(name, 0, m.r.IntN(3), m.name()).Slice(tx)
	return err
}

// giveUp ends the wait of a push.
func (m *crowd) giveUp(tx *broker.Tx, _ []byte) error {
	if len(m.pushes) == 0 {
		return nil
	}
	p := m.pushes[m.r.IntN(len(m.pushes))]
	m.leave(p)
	if m.one(2) {
		tx.Detach(p.c)
	} else {
		tx.Unpark(p.c)
	}
	return nil
}

// together makes several calls in one Atomic. Any of them may be refused.
func (m *crowd) together(tx *broker.Tx, _ []byte) error {
	return tx.Atomic(func() error {
		for range 1 + m.r.IntN(5) {
			switch m.r.IntN(3) {
			case 0:
				_ = m.popped(tx.Pop(m.name(), broker.Selection{End: broker.Oldest}))
			case 1:
				_, _ = tx.PushEnd(m.name(), broker.Newest, [][]byte{m.payload()})
			case 2:
				_, _ = tx.MoveEnd(m.name(), broker.Oldest, m.name(), broker.Newest)
			}
		}
		return nil
	})
}

func (m *crowd) pass(*broker.Tx, []byte) error {
	m.h.now.Add(int64(m.r.IntN(30)))
	m.steady += int64(m.r.IntN(30))
	return nil
}

// run makes so many calls in one run.
func (m *crowd) run(calls int) {
	_ = m.h.b.Do(func(tx *broker.Tx) error {
		for range calls {
			err := tx.Atomic(func() error { return crowdCalls[m.r.IntN(len(crowdCalls))](m, tx, m.name()) })
			if errors.Is(err, broker.ErrClosed) {
				m.t.Fatalf("a call: %v", err)
			}
		}
		return nil
	})
}

// settle waits until what was deferred is delivered.
func (m *crowd) settle() {
	for n, was, woken := 0, -1, 0; n < 6 || was != woken; n++ {
		m.h.barrier()
		was = woken
		m.h.do(func(*broker.Tx) error { woken = m.woken; return nil })
	}
}

// check looks for those who wait in vain, and for packets that were taken twice.
func (m *crowd) check() {
	m.h.do(func(tx *broker.Tx) error {
		for k := range m.takers {
			m.checkTaker(tx, k)
		}
		for _, name := range crowdQueues {
			if i := slices.IndexFunc(m.pushes, func(p *crowdPush) bool { return string(p.request.Queue) == name }); i >= 0 {
				m.checkPush(tx, m.pushes[i])
			}
		}
		return nil
	})
	for payload, n := range m.taken {
		if n > 1 {
			m.t.Fatalf("packet %s was taken %d times", payload[:6], n)
		}
	}
}

func (m *crowd) checkTaker(tx *broker.Tx, k *crowdTaker) {
	for _, q := range k.queues {
		if n, err := tx.Takeable(q, k.selection); n > 0 || err != nil {
			m.t.Fatalf("a taker of %q waits though queue %s has %d packets to take, %v", k.queues, q, n, err)
		}
	}
	if !k.c.Parked() || tx.Drained(k.queues) {
		m.t.Fatalf("a taker of %q was forgotten, or waits for drained queues", k.queues)
	}
}

// checkPush looks at the first push of a line.
func (m *crowd) checkPush(tx *broker.Tx, p *crowdPush) {
	s, _, err := tx.Settings(p.request.Queue)
	if err != nil {
		m.t.Fatal(err)
	}
	stats, _, err := tx.QueueStats(p.request.Queue)
	if err != nil {
		m.t.Fatal(err)
	}
	packets, bytes := stats.Ready+stats.Hidden+stats.Delayed+stats.Claimed+len(p.payloads), stats.Bytes
	for _, payload := range p.payloads {
		bytes += int64(len(payload) + len(p.request.Key))
	}
	known := s.BoundBytes == 0 || stats.Dead+stats.Done == 0 // else their bytes are not
	fits := (s.Bound == 0 || int64(packets) <= s.Bound) && (s.BoundBytes == 0 || bytes <= s.BoundBytes)
	if s.Closed || !s.PauseIn && known && fits {
		m.t.Fatalf("a push waits in %s, where it makes %d packets with %d bytes, with %+v", p.request.Queue, packets, bytes, s)
	}
}

func TestNobodyWaitsInVainWhileBatchesFill(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			h := &harness{t: t, store: newMemStore()}
			h.store.limits = content.Limits{MaxOps: (80 + r.IntN(300)) / 2, MaxBytes: (24<<10 + r.IntN(64<<10)) / 4}
			h.now.Store(startTime)
			m := &crowd{t: t, r: r, h: h, taken: map[string]int{}, takers: map[*crowdTaker]bool{}}
			state, err := recovery.Restore(h.store, recovery.Options{Now: startTime})
			if err != nil {
				t.Fatal(err)
			}
			h.b = newDriver(h.store, state, broker.Options{Cache: 1 << 14}, func() (now, steady int64) { return h.now.Load(), m.steady })
			for range 60 {
				m.run(1 + r.IntN(400)) // the last ones may find the batch full
				m.settle()
				m.check()
			}
			h.close()
			if _, err := recovery.Restore(h.store, recovery.Options{Now: h.now.Load()}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
