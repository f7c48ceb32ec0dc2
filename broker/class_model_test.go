package broker_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// classModel drives a broker and a plain model of those who wait for packets, with a filter or
// without, with the same calls.
type classModel struct {
	*work
	packets  []*classPacket
	waiting  []*classWaiter // the longest waiting first
	settings map[string]*broker.Settings
	served   []*classWaiter
	made     int
	due      int64 // of the last delayed packet: no two are due together
}

type classPacket struct {
	id       broker.ID
	queue    string
	priority uint32
	seq      int
	tags     []content.Tag
	wide     bool
	payload  string
	due      int64 // 0: it is not delayed
	token    int64 // 0: it is not claimed
	claims   int
	key      string // empty: none
}

// classWaiter is a blocked claim.
type classWaiter struct {
	c      *broker.Conn
	box    *workbox
	queues []string
	s      broker.Selection
	want   []*classPacket // nil until it is served
	fill   int64          // how long it waits for s.Least packets once there is one
	end    int64          // of that time; 0: it has not begun
}

// claim is the request of a waiter that fills a batch.
func (w *classWaiter) claim(tx *broker.Tx) error {
	p := broker.Parking{Queues: [][]byte{[]byte(w.queues[0])}, Filter: w.s.Filter, Least: w.s.Least, Fill: w.fill, Claims: true}
	err := reply(w.c)(tx.Claim(p.Queues[0], broker.ClaimRequest{Selection: w.s, Lease: 1 << 40}))
	switch {
	case err == broker.ErrFilling:
		p.Filling, p.Until = true, tx.Steady()+w.fill
	case err != broker.ErrNothing && !errors.Is(err, broker.ErrNotInOrder): // an order came that its filter knows nothing of
		return err
	}
	return tx.Park(w.c, p)
}

// fillsLike says that two waiters fill like batches, one at a time.
func (w *classWaiter) fillsLike(other *classWaiter) bool {
	return w.queues[0] == other.queues[0] && w.fill == other.fill && w.s.Least == other.s.Least && w.s.Fits16 == other.s.Fits16 &&
		fmt.Sprint(w.s.Filter) == fmt.Sprint(other.s.Filter)
}

// begins lets a waiter wait for more than there is, unless one that fills a like batch does.
func (m *classModel) begins(w *classWaiter) {
	if !slices.ContainsFunc(m.waiting, func(o *classWaiter) bool { return o.end != 0 && o.fillsLike(w) }) {
		w.end = m.now.Load() + w.fill
	}
}

func (w *classWaiter) Ready(tx *broker.Tx, queue []byte) {
	if err := reply(w.c)(tx.Claim(queue, broker.ClaimRequest{Selection: w.s, Lease: 1 << 40})); err != nil {
		boxOf(w.c).say(err.Error())
	}
}

func (w *classWaiter) Expired(*broker.Tx) {}
func (w *classWaiter) Closed(*broker.Tx)  {}

var (
	classQueues = []string{"a", "b"}
	classTags   = []string{"", "t x", "t y", "t x u 1", "t y u 2", "u 12"}
	classOrders = []string{"", "x y", "y x", "x"}
)

func (m *classModel) orders(queue string) []content.Order {
	if s := m.settings[queue]; s != nil {
		return s.Orders
	}
	return nil
}

// refusal is the error of a call that brings tags to a queue.
func (m *classModel) refusal(queue string, tags []content.Tag) error {
	for _, o := range m.orders(queue) {
		for _, tag := range tags {
			if tag.Name == o.Tag && !slices.Contains(o.Values, tag.Value) {
				return broker.ErrNotInOrder
			}
		}
	}
	return nil
}

// isFirst says that a packet waits for no other of its key.
func (m *classModel) isFirst(p *classPacket) bool {
	s := m.settings[p.queue]
	return p.key == "" || s == nil || !s.Strict || !slices.ContainsFunc(m.packets, func(o *classPacket) bool {
		return o.queue == p.queue && o.key == p.key && (o.token != 0 || o.due != 0 && o.claims > 0 ||
			o.due == 0 && cmp.Or(cmp.Compare(o.priority, p.priority), cmp.Compare(o.seq, p.seq)) < 0)
	})
}

// takes returns what a selection takes from a queue now.
func (m *classModel) takes(queue string, s broker.Selection) (list []*classPacket) {
	if o := m.settings[queue]; o != nil && o.PauseOut {
		return nil
	}
	for _, p := range m.packets {
		if p.queue == queue && p.due == 0 && p.token == 0 && !(s.Fits16 && p.wide) && (s.Filter == nil || broker.Matches(*s.Filter, m.orders(queue), p.tags)) && m.isFirst(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *classPacket) int {
		if s.End == broker.Newest {
			return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.seq, a.seq))
		}
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.seq, b.seq))
	})
	if n := min(len(list), max(1, s.Count), m.room(queue)); n > 0 {
		return list[:n]
	}
	return nil
}

// room is how many more packets of a queue may be claimed.
func (m *classModel) room(queue string) int {
	s := m.settings[queue]
	if s == nil || s.MaxClaimed == 0 {
		return math.MaxInt
	}
	room := int(s.MaxClaimed)
	for _, p := range m.packets {
		if p.queue == queue && p.token != 0 {
			room--
		}
	}
	return max(0, room)
}

// deliver serves those who wait for a queue.
func (m *classModel) deliver(queue string) {
	for i := 0; i < len(m.waiting); i++ {
		w := m.waiting[i]
		if !slices.Contains(w.queues, queue) {
			continue
		}
		if w.want = m.takes(queue, w.s); w.want == nil {
			continue
		}
		if len(w.want) < w.s.Least {
			w.want = nil
			m.begins(w)
			continue
		}
		for _, p := range w.want {
			p.token = -1 // until the reply says it
		}
		m.waiting = slices.Delete(m.waiting, i, i+1)
		m.served = append(m.served, w)
		i = -1
	}
}

// compare looks at what those who wait got.
func (m *classModel) compare() {
	m.t.Helper()
	m.barrier()
	m.do(func(tx *broker.Tx) error { return tx.CheckNames() })
	for _, w := range m.served {
		if len(w.box.replies) != 1 || len(w.box.got) != 0 || w.c.Parked() {
			m.t.Fatalf("a waiter got %d replies, with errors %q, and still waits: %v", len(w.box.replies), w.box.got, w.c.Parked())
		}
		m.got(w.box.replies[0], w.want)
	}
	m.served = nil
	for _, w := range m.waiting {
		if len(w.box.replies)+len(w.box.got) > 0 || !w.c.Parked() {
			m.t.Fatalf("a waiter for %v with %+v got %d replies", w.queues, w.s.Filter, len(w.box.replies))
		}
	}
}

// got compares a reply, and notes its claims.
func (m *classModel) got(reply []job, want []*classPacket) {
	m.t.Helper()
	if len(reply) != len(want) {
		m.t.Fatalf("%d packets were taken, want %d", len(reply), len(want))
	}
	for i, p := range want {
		if reply[i].ID != p.id || short(reply[i].payload) != p.payload {
			m.t.Fatalf("packet %d was taken, want %d", reply[i].ID, p.id)
		}
		p.token = reply[i].Token
		p.claims++
	}
}

// short is a payload without what makes it wide.
func short(payload string) string { return strings.TrimLeft(payload, "w") }

func (m *classModel) expect(what string, got, want error) {
	m.t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		m.t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}

func (m *classModel) drawSelection(t *rapid.T) broker.Selection {
	s := broker.Selection{
		End:   rapid.SampledFrom([]broker.End{broker.Newest, broker.Oldest}).Draw(t, "end"),
		Count: rapid.IntRange(0, 3).Draw(t, "count"), Fits16: rapid.Bool().Draw(t, "narrow"), WithDetails: true,
	}
	s.Filter = filtered(rapid.SampledFrom([]string{"", "t eq x", "t eq y", "t ne x", "t ge y", "t lt y", "u ge 2", "t eq x u lt 2", "u eq +1", "u eq 02", "u gt 1 t eq y"}).Draw(t, "filter"))
	if len(s.Filter.Terms) == 0 {
		s.Filter = nil
	}
	return s
}

// wrong is the error of a take with a filter.
func (m *classModel) wrong(queue string, f *broker.Filter) error {
	if f != nil {
		for _, term := range f.Terms {
			if err := m.refusal(queue, []content.Tag{{Name: term.Tag, Value: term.Value}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *classModel) push(t *rapid.T, queue string) {
	n := rapid.IntRange(1, 4).Draw(t, "packets")
	requests := make([]broker.PushRequest, n)
	for i := range requests {
		m.made++
		requests[i] = broker.PushRequest{
			Queue: []byte(queue), Priority: rapid.Uint32Range(1, 2).Draw(t, "priority"), Payload: fmt.Append(nil, m.made),
			Tags: tagged(rapid.SampledFrom(classTags).Draw(t, "tags")),
		}
		if key := rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key"); key != "" {
			requests[i].Key = []byte(key)
		}
		if rapid.IntRange(0, 4).Draw(t, "wide") == 0 {
			requests[i].Payload = []byte(wide + string(requests[i].Payload))
		}
	}
	m.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error {
			for _, r := range requests {
				id, err := tx.Push(r)
				m.expect("push", err, m.refusal(queue, r.Tags))
				if err == nil {
					m.packets = append(m.packets, &classPacket{
						id: id, queue: queue, priority: r.Priority, seq: int(id), tags: r.Tags, wide: len(r.Payload) > broker.MaxNarrow, payload: short(string(r.Payload)), key: string(r.Key),
					})
				}
			}
			return nil
		})
	})
	m.deliver(queue)
}

// take claims, or waits if there is nothing.
func (m *classModel) take(t *rapid.T) {
	w := &classWaiter{box: &workbox{}, s: m.drawSelection(t), queues: classQueues}
	if n := rapid.IntRange(0, 2).Draw(t, "queues"); n < 2 {
		w.queues = classQueues[n : n+1]
	}
	w.c = m.b.Attach(w.box, broker.Selection{Fits16: w.s.Fits16})
	for _, queue := range w.queues {
		if m.wrong(queue, w.s.Filter) != nil {
			w.s.Filter = nil // the queue would refuse it
		}
	}
	if len(w.queues) == 1 && rapid.IntRange(0, 3).Draw(t, "fills") > 0 {
		m.fillBatch(t, w)
		return
	}
	m.do(func(tx *broker.Tx) error {
		var names [][]byte
		for _, queue := range w.queues {
			names = append(names, []byte(queue))
			n, err := tx.Takeable([]byte(queue), broker.Claiming(w.s, true))
			want := m.takes(queue, w.s)
			if (n > 0) != (len(want) > 0) || err != nil {
				m.t.Fatalf("Takeable of %s with %+v is %d, %v with %d packets to take", queue, w.s.Filter, n, err, len(want))
			}
			if n > 0 {
				w.want = want
				m.served = append(m.served, w)
				w.Ready(tx, []byte(queue))
				return nil
			}
		}
		m.waiting = append(m.waiting, w)
		return wait(tx, w.c, w, w.s, 0, names...)
	})
}

// fillBatch is take for a waiter that fills a batch.
func (m *classModel) fillBatch(t *rapid.T, w *classWaiter) {
	w.s.Count = rapid.SampledFrom([]int{2, 2, 3}).Draw(t, "batch")
	w.s.Least, w.s.MustFind, w.fill = w.s.Count, true, rapid.SampledFrom([]int64{2, 2, 1}).Draw(t, "fill")
	if rapid.Bool().Draw(t, "any packet") {
		w.s.Filter = nil
	}
	switch w.want = m.takes(w.queues[0], w.s); {
	case len(w.want) == w.s.Least:
		m.served = append(m.served, w)
	case len(w.want) > 0:
		w.want, w.end = nil, m.now.Load()+w.fill
		fallthrough
	default:
		m.waiting = append(m.waiting, w)
	}
	w.box.waits(func(tx *broker.Tx, _ bool) {
		if err := tx.Atomic(func() error { return w.claim(tx) }); err != nil {
			w.box.say(err.Error())
		}
	})
	m.do(w.claim)
}

// endFills lets those take what there is whose time to fill a batch is over. Which of several of
// one moment was first the claims tell.
func (m *classModel) endFills() {
	var over []*classWaiter
	for _, w := range m.waiting {
		if w.end != 0 && w.end <= m.now.Load() {
			over = append(over, w)
		}
	}
	token := func(w *classWaiter) int64 {
		if len(w.box.replies) == 0 || len(w.box.replies[0]) == 0 {
			return 1 << 62
		}
		return w.box.replies[0][0].Token
	}
	slices.SortStableFunc(over, func(a, b *classWaiter) int { return cmp.Compare(token(a), token(b)) })
	for _, w := range over {
		if w.end = 0; len(m.takes(w.queues[0], w.s)) == 0 {
			continue // it waits on
		}
		w.want = m.takes(w.queues[0], w.s)
		for _, p := range w.want {
			p.token = -1
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(x *classWaiter) bool { return x == w })
		m.served = append(m.served, w)
	}
}

// drawPacket draws one that is claimed, or not.
func (m *classModel) drawPacket(t *rapid.T, claimed bool) *classPacket {
	var list []*classPacket
	for _, p := range m.packets {
		if (p.token != 0) == claimed {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		t.Skip("no such packet")
	}
	return rapid.SampledFrom(list).Draw(t, "packet")
}

// answer ends a claim.
func (m *classModel) answer(t *rapid.T) {
	p := m.drawPacket(t, true)
	r := broker.Receipt{ID: p.id, Token: p.token}
	p.token = 0
	if rapid.IntRange(0, 3).Draw(t, "ack") == 0 || p.claims == 5 { // it would die
		m.packets = slices.DeleteFunc(m.packets, func(x *classPacket) bool { return x == p })
		m.do(func(tx *broker.Tx) error {
			_, err := tx.Ack([]byte(p.queue), []broker.Receipt{r})
			return err
		})
		m.deliver(p.queue)
		return
	}
	n := broker.Nack{}
	if rapid.Bool().Draw(t, "delay") {
		m.due = max(m.due, m.now.Load()) + 1
		p.due, n.Delay = m.due, m.due-m.now.Load()
	}
	m.do(func(tx *broker.Tx) error {
		_, err := tx.Nack([]byte(p.queue), r, n)
		return err
	})
	m.deliver(p.queue)
}

// reschedule has a packet be ready now, or at a moment.
func (m *classModel) reschedule(t *rapid.T) {
	p := m.drawPacket(t, false)
	if p.due = 0; rapid.Bool().Draw(t, "later") {
		m.due = max(m.due, m.now.Load()) + 1
		p.due = m.due
	}
	m.do(func(tx *broker.Tx) error {
		_, err := tx.Reschedule([]byte(p.queue), p.id, p.due)
		return err
	})
	m.deliver(p.queue)
}

// change moves a packet to another priority, or another queue.
func (m *classModel) change(t *rapid.T) {
	p := m.drawPacket(t, false)
	from := p.queue
	if rapid.Bool().Draw(t, "priority") {
		p.priority = rapid.Uint32Range(1, 2).Draw(t, "priority")
		m.do(func(tx *broker.Tx) error {
			_, err := tx.SetPriority([]byte(p.queue), p.id, p.priority)
			return err
		})
	} else {
		to := rapid.SampledFrom(classQueues).Draw(t, "to")
		m.do(func(tx *broker.Tx) error {
			want := error(nil)
			if to != p.queue {
				want = m.refusal(to, p.tags)
			}
			_, err := tx.MovePackets([]byte(p.queue), []broker.ID{p.id}, []byte(to))
			m.expect("move", err, want)
			if err == nil {
				p.queue = to
			}
			return nil
		})
	}
	m.deliver(from) // another one may be the first of its key
	m.deliver(p.queue)
}

// set declares orders and pauses a queue or lets it give again.
func (m *classModel) set(t *rapid.T, queue string) {
	s := broker.DefaultSettings()
	s.MaxAttempts, s.PauseOut = 0, rapid.Bool().Draw(t, "pause out")
	s.MaxClaimed = rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "max claimed")
	if values := rapid.SampledFrom(classOrders).Draw(t, "order"); values != "" {
		s.Orders = []content.Order{{Tag: "t", Values: strings.Fields(values)}}
	}
	s.Strict = rapid.Bool().Draw(t, "strict")
	m.do(func(tx *broker.Tx) error { return tx.SetSettings([]byte(queue), s) })
	m.settings[queue] = &s
	m.deliver(queue)
}

func (m *classModel) drop(queue string) {
	m.do(func(tx *broker.Tx) error {
		_, err := tx.Delete([]byte(queue))
		return err
	})
	m.forget(queue)
}

// flush deletes both queues, or lets them expire. Those who wait stay with the names.
func (m *classModel) flush(t *rapid.T) {
	if rapid.Bool().Draw(t, "expires") {
		for _, queue := range classQueues {
			m.do(func(tx *broker.Tx) error {
				_, err := tx.SetExpiry([]byte(queue), tx.Now()+1)
				return err
			})
		}
		defer m.tick()
	} else {
		m.do(func(tx *broker.Tx) error { return tx.Flush(rapid.Bool().Draw(t, "all")) })
	}
	for _, queue := range classQueues {
		m.forget(queue)
	}
}

func (m *classModel) forget(queue string) {
	m.packets = slices.DeleteFunc(m.packets, func(p *classPacket) bool { return p.queue == queue })
	delete(m.settings, queue)
}

// rename gives a queue with packets the name of the other.
func (m *classModel) rename(t *rapid.T, from string) {
	to := classQueues[1-slices.Index(classQueues, from)]
	if !slices.ContainsFunc(m.packets, func(p *classPacket) bool { return p.queue == from }) {
		t.Skip("the queue is empty")
	}
	m.do(func(tx *broker.Tx) error { tx.RenameQueue([]byte(from), []byte(to)); return nil })
	m.forget(to)
	for _, p := range m.packets {
		p.queue = to
	}
	if s := m.settings[from]; s != nil {
		m.settings[to] = s
	}
	delete(m.settings, from)
	m.deliver(to)
}

func (m *classModel) hangUp(t *rapid.T) {
	if len(m.waiting) == 0 {
		t.Skip("nobody waits")
	}
	i := rapid.IntRange(0, len(m.waiting)-1).Draw(t, "waiter")
	w := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.do(func(tx *broker.Tx) error { tx.Unpark(w.c); return nil })
	m.deliver(w.queues[0]) // another one may begin to fill a batch
}

// tick lets a millisecond pass: one delayed packet is due at most.
func (m *classModel) tick() {
	m.pass(time.Millisecond)
	m.barrier()
	for _, p := range m.packets {
		if p.due != 0 && p.due <= m.now.Load() {
			p.due = 0
		}
	}
	m.endFills()
	for _, queue := range classQueues {
		m.deliver(queue)
	}
}

func TestWhoWaitsWithAFilterGetsWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &classModel{work: newWork(t), settings: map[string]*broker.Settings{}}
		defer func() { _ = m.b.Close() }()
		queue := func(call func(*rapid.T, string)) func(*rapid.T) {
			return func(t *rapid.T) { call(t, rapid.SampledFrom(classQueues).Draw(t, "queue")) }
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": queue(m.push), "push more": queue(m.push), "take": m.take, "take more": m.take, "take even more": m.take,
			"answer": m.answer, "answer more": m.answer, "change": m.change, "reschedule": m.reschedule, "set": queue(m.set), "hang up": m.hangUp,
			"drop":   queue(func(_ *rapid.T, queue string) { m.drop(queue) }),
			"rename": queue(m.rename),
			"flush":  m.flush,
			"tick":   func(*rapid.T) { m.tick() },
			"":       func(*rapid.T) { m.compare() },
		})
	})
}
