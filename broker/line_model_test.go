package broker_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
)

// lineModel drives a broker and a plain model of pushes that wait with the same calls.
type lineModel struct {
	*work
	queues map[string]*lineQueue
	got    map[string][]string // what each queue's waiters were told, in order
	want   map[string][]string
	made   int
}

type lineQueue struct {
	broker.Settings
	lasts   bool  // it has settings of its own
	expiry  int64 // 0: never
	packets []linePacket
	dead    []int64 // when each expires
	pushes  []*linePush
	takers  []*lineTaker
}

type linePacket struct {
	payload string
	expiry  int64
	receipt broker.Receipt // of its claim
}

// linePush is a push that waits.
type linePush struct {
	m        *lineModel
	c        *broker.Conn
	request  broker.PushRequest
	payloads [][]byte
	until    int64
}

// wait makes the push wait.
func (p *linePush) wait(tx *broker.Tx) error {
	name := string(p.request.Queue)
	return waitPush(tx, p.c, p.request.Queue, p.until,
		func(tx *broker.Tx) error { return pushError(tx.PushAll(p.request, p.payloads)) },
		func(err error, expired bool) {
			if expired {
				name = string(p.payloads[0]) // several may end in one moment
				p.m.got[name] = append(p.m.got[name], "expired")
				return
			}
			p.m.got[name] = append(p.m.got[name], p.said(err))
		})
}

func (p *linePush) said(err error) string {
	if errors.Is(err, broker.ErrTooLarge) {
		err = broker.ErrTooLarge
	}
	return fmt.Sprintf("%s: %v", p.payloads, err)
}

// lineTaker is a blocked pop.
type lineTaker struct {
	m *lineModel
	c *broker.Conn
}

func (k *lineTaker) Ready(tx *broker.Tx, queue []byte) {
	k.m.check(reply(k.c)(tx.Pop(queue, broker.Selection{End: broker.Oldest})))
	k.m.got[string(queue)] = append(k.m.got[string(queue)], "taken")
}

func (k *lineTaker) Expired(*broker.Tx) {}

func (k *lineTaker) Closed(*broker.Tx) {}

func (m *lineModel) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("call failed: %v", err)
	}
}

func (m *lineModel) say(queue, what string) { m.want[queue] = append(m.want[queue], what) }

func (q *lineQueue) fits(packets, bytes int) bool {
	for _, p := range q.packets {
		packets, bytes = packets+1, bytes+len(p.payload)
	}
	return (q.Bound == 0 || packets <= int(q.Bound)) && (q.BoundBytes == 0 || bytes <= int(q.BoundBytes))
}

// tooMany says that so much fits no bound of the queue.
func (q *lineQueue) tooMany(packets, bytes int) bool {
	return q.Bound > 0 && packets > int(q.Bound) || q.BoundBytes > 0 && bytes > int(q.BoundBytes)
}

func (q *lineQueue) add(payloads [][]byte, expiry int64) {
	for _, p := range payloads {
		q.packets = append(q.packets, linePacket{payload: string(p), expiry: expiry})
	}
}

// take removes the oldest packet that is ready.
func (q *lineQueue) take() bool {
	i := slices.IndexFunc(q.packets, func(p linePacket) bool { return p.receipt.Token == 0 })
	if i >= 0 {
		q.packets = slices.Delete(q.packets, i, i+1)
		q.emptied()
	}
	return i >= 0
}

// drop ends the queue. Those who wait stay with its name.
func (q *lineQueue) drop() { *q = lineQueue{pushes: q.pushes, takers: q.takers} }

func (q *lineQueue) exists() bool { return q.lasts || len(q.dead)+len(q.packets) > 0 }

// emptied ends the expiry of a queue that no longer exists.
func (q *lineQueue) emptied() {
	if !q.exists() {
		q.expiry = 0
	}
}

// deliver gives packets to those who wait to take.
func (m *lineModel) deliver(name string) {
	for q := m.queues[name]; len(q.takers) > 0 && q.take(); {
		q.takers = q.takers[1:]
		m.say(name, "taken")
	}
}

// settle lets those push whose turn has come.
func (m *lineModel) settle() {
	for name, q := range m.queues {
		m.deliver(name)
		for len(q.pushes) > 0 && !q.PauseIn {
			p := q.pushes[0]
			bytes := len(slices.Concat(p.payloads...))
			if tooMany := q.tooMany(len(p.payloads), bytes); tooMany {
				m.say(name, p.said(broker.ErrTooLarge))
			} else if q.fits(len(p.payloads), bytes) {
				m.say(name, p.said(nil))
				q.add(p.payloads, 0)
			} else {
				break
			}
			q.pushes = q.pushes[1:]
			m.deliver(name)
		}
	}
}

// advance ends what is due.
func (m *lineModel) advance() {
	now := m.now.Load()
	for _, q := range m.queues {
		q.pushes = slices.DeleteFunc(q.pushes, func(p *linePush) bool { // before the queue expires
			ended := p.until != 0 && p.until <= now
			if ended {
				m.say(string(p.payloads[0]), "expired")
			}
			return ended
		})
		if q.expiry != 0 && q.expiry <= now {
			q.drop()
		}
		q.packets = slices.DeleteFunc(q.packets, func(p linePacket) bool {
			return p.expiry != 0 && p.expiry <= now && p.receipt.Token == 0
		})
		q.dead = slices.DeleteFunc(q.dead, func(at int64) bool { return at != 0 && at <= now })
		q.emptied()
	}
}

// push pushes one or two packets, and may let them wait.
func (m *lineModel) push(t *rapid.T, tx *broker.Tx, name string) {
	q, waits := m.queues[name], rapid.Bool().Draw(t, "waits")
	p := &linePush{m: m, request: broker.PushRequest{Queue: []byte(name), Priority: 1, Block: waits}}
	for range rapid.IntRange(1, 2).Draw(t, "packets") {
		m.made++
		p.payloads = append(p.payloads, fmt.Appendf(nil, "%03d", m.made))
	}
	ttl := int64(0)
	if !waits {
		ttl = max(0, rapid.Int64Range(-20, 20).Draw(t, "ttl"))
		p.request.TTL = time.Duration(ttl) * time.Millisecond
	}
	_, err := tx.PushAll(p.request, p.payloads)
	var want error
	switch bytes := 3 * len(p.payloads); {
	case q.PauseIn:
		want = broker.ErrPaused
	case q.tooMany(len(p.payloads), bytes):
		want = broker.ErrTooLarge
	case len(q.pushes) > 0 || !q.fits(len(p.payloads), bytes):
		want = broker.ErrFull
	}
	if !errors.Is(err, want) {
		m.t.Fatalf("push of %s to %s: %v, want %v", p.payloads, name, err, want)
	}
	switch {
	case want == nil:
		if ttl > 0 {
			ttl += m.now.Load()
		}
		q.add(p.payloads, ttl)
		m.deliver(name)
	case waits && want != broker.ErrTooLarge:
		if wait := rapid.Int64Range(-20, 30).Draw(t, "wait"); wait > 0 {
			p.until = m.now.Load() + wait
		}
		p.c = m.b.Attach(&inbox{}, broker.Selection{})
		m.check(p.wait(tx))
		q.pushes = append(q.pushes, p)
	}
}

// claims takes part in the life of packets that are claimed.
func (m *lineModel) claims(t *rapid.T, tx *broker.Tx, name string) {
	q := m.queues[name]
	i := slices.IndexFunc(q.packets, func(p linePacket) bool { return p.receipt.Token != 0 })
	if i < 0 {
		return
	}
	r := q.packets[i].receipt
	if rapid.Bool().Draw(t, "ack") {
		_, err := tx.Ack([]byte(name), []broker.Receipt{r})
		m.check(err)
	} else {
		_, err := tx.Nack([]byte(name), r, broker.Nack{Dead: true})
		m.check(err)
		if at := q.packets[i].expiry; at == 0 || at > m.now.Load() {
			q.dead = append(q.dead, at)
		}
	}
	q.packets = slices.Delete(q.packets, i, i+1)
	q.emptied()
}

func (m *lineModel) step(t *rapid.T, tx *broker.Tx) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	q := m.queues[name]
	switch op := rapid.SampledFrom([]string{"push", "push", "push", "pop", "pop", "take", "end claim", "settings", "leave", "drop", "replace", "expire", "rename", "flush"}).Draw(t, "op"); op {
	case "push":
		m.push(t, tx, name)
	case "pop":
		m.check(reply(m.c)(tx.Pop([]byte(name), broker.Selection{End: broker.Oldest})))
		q.take()
	case "take":
		k := &lineTaker{m, m.b.Attach(&inbox{}, broker.Selection{})}
		if n, _ := tx.Len([]byte(name)); n == 0 {
			m.check(wait(tx, k.c, k, broker.Selection{}, 0, []byte(name)))
			q.takers = append(q.takers, k)
		}
	case "end claim":
		m.claims(t, tx, name)
	case "settings":
		s := broker.DefaultSettings()
		s.Bound, s.BoundBytes = rapid.Int64Range(0, 4).Draw(t, "bound"), 3*max(0, rapid.Int64Range(-4, 4).Draw(t, "bytes"))
		s.PauseIn = rapid.IntRange(0, 3).Draw(t, "pause") == 0
		m.check(tx.SetSettings([]byte(name), s))
		q.Settings, q.lasts = s, true
	case "leave":
		if len(q.pushes) > 0 {
			i := rapid.IntRange(0, len(q.pushes)-1).Draw(t, "who")
			if c := q.pushes[i].c; rapid.Bool().Draw(t, "hangs up") {
				tx.Detach(c)
			} else {
				tx.Unpark(c)
			}
			q.pushes = slices.Delete(q.pushes, i, i+1)
		}
	case "drop":
		_, err := tx.Delete([]byte(name))
		m.check(err)
		q.drop()
	case "replace":
		m.check(tx.SetString([]byte(name), []byte("value"), 0))
		_, err := tx.Delete([]byte(name))
		m.check(err)
		q.drop()
	case "expire":
		at := m.now.Load() + rapid.Int64Range(1, 20).Draw(t, "expiry")
		ok, err := tx.SetExpiry([]byte(name), at)
		m.check(err)
		if exists := q.exists(); ok != exists {
			t.Fatalf("%s is there: %v, want %v", name, ok, exists)
		}
		if ok {
			q.expiry = at
		}
	case "rename":
		m.rename(tx, name)
	case "flush":
		m.check(tx.Flush(true))
		for _, q := range m.queues {
			q.drop()
		}
	}
}

// rename renames a queue to the other one. Those who wait stay with the names.
func (m *lineModel) rename(tx *broker.Tx, name string) {
	to := map[string]string{"a": "b", "b": "a"}[name]
	var ok bool
	m.check(tx.Atomic(func() (err error) {
		ok, err = tx.Rename([]byte(name), []byte(to))
		return err
	}))
	q, o := m.queues[name], m.queues[to]
	if ok {
		o.Settings, o.packets, o.dead, o.lasts, o.expiry = q.Settings, q.packets, q.dead, q.lasts, q.expiry
		q.drop()
	}
	m.settle() // an Atomic has ended
}

// claim claims a packet, so that the model gets its token.
func (m *lineModel) claim(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	got := m.work.claim(name, broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest}, Lease: 1 << 40})
	if len(got) == 0 {
		return
	}
	for i, p := range m.queues[name].packets {
		if p.receipt.Token == 0 {
			if p.payload != got[0].payload {
				t.Fatalf("claimed %s, want %s", got[0].payload, p.payload)
			}
			m.queues[name].packets[i].receipt = broker.Receipt{ID: got[0].ID, Token: got[0].Token}
			return
		}
	}
	t.Fatalf("claimed %+v of a queue without packets", got)
}

// compare holds what the waiters were told, and the packets, against the model.
func (m *lineModel) compare() {
	m.t.Helper()
	if !reflect.DeepEqual(m.got, m.want) {
		m.t.Fatalf("the waiters were told %v, want %v", m.got, m.want)
	}
	m.do(func(tx *broker.Tx) error { return tx.CheckNames() })
	for name, q := range m.queues {
		var got, want []string
		for _, s := range []broker.State{broker.Claimed, broker.Ready} {
			for _, j := range m.list(name, s, 100) {
				got = append(got, j.payload)
			}
			for _, p := range q.packets {
				if (p.receipt.Token != 0) == (s == broker.Claimed) {
					want = append(want, p.payload)
				}
			}
		}
		if !slices.Equal(got, want) {
			m.t.Fatalf("%s holds %v, want %v", name, got, want)
		}
	}
}

func TestPushesWaitForRoomAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &lineModel{
			work: newWork(t), queues: map[string]*lineQueue{"a": {}, "b": {}},
			got: map[string][]string{}, want: map[string][]string{},
		}
		defer func() { _ = m.b.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"calls": func(t *rapid.T) {
				m.do(func(tx *broker.Tx) error {
					for range rapid.IntRange(1, 4).Draw(t, "n") {
						m.check(tx.Atomic(func() error { m.step(t, tx); return nil }))
						m.settle()
					}
					return nil
				})
			},
			"claim": m.claim,
			"time passes": func(t *rapid.T) {
				m.pass(time.Duration(rapid.IntRange(1, 15).Draw(t, "ms")) * time.Millisecond)
				m.barrier()
				m.advance()
				m.settle()
			},
			"": func(*rapid.T) { m.compare() },
		})
	})
}
