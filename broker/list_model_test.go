package broker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// element is one of a list of the model. The slice of a list is the list from left to right.
type element struct {
	value    string
	priority uint32
	keyed    bool
	expiry   int64
	id       int // no other has it; another one after a move
	first    int // the one before all moves
}

// lists is the model: every list by its name, and what the consumer has to get.
type lists struct {
	byName map[string][]element
	want   [][]string
	now    int64
	ids    int
}

// run returns where the elements of a priority stand, or would.
func (m *lists) run(name string, priority uint32) (from, to int) {
	list := m.byName[name]
	for from < len(list) && list[from].priority < priority {
		from++
	}
	for to = from; to < len(list) && list[to].priority == priority; to++ {
	}
	return from, to
}

func (m *lists) push(name string, end broker.End, e element) {
	at, to := m.run(name, e.priority)
	if end == broker.Oldest {
		at = to
	}
	m.insert(name, at, e)
}

func (m *lists) insert(name string, at int, e element) {
	m.ids++
	if e.id = m.ids; e.first == 0 {
		e.first = e.id
	}
	m.byName[name] = slices.Insert(m.byName[name], at, e)
}

// at is the position of what a pop takes from an end; the list is not empty.
func (m *lists) at(name string, end broker.End) int {
	if end == broker.Newest {
		return 0
	}
	_, to := m.run(name, m.byName[name][0].priority)
	return to - 1
}

func (m *lists) take(name string, end broker.End) element {
	at := m.at(name, end)
	e := m.byName[name][at]
	m.byName[name] = slices.Delete(m.byName[name], at, at+1)
	return e
}

func (m *lists) expire() {
	for name, list := range m.byName {
		m.byName[name] = slices.DeleteFunc(list, func(e element) bool { return e.expiry != 0 && e.expiry <= m.now })
	}
}

// find returns the positions that Find must give.
func (m *lists) find(name, value string, end broker.End, max int) (at []int) {
	for i, e := range m.byName[name] {
		if e.value == value && !e.keyed {
			at = append(at, i)
		}
	}
	if end == broker.Oldest {
		slices.Reverse(at)
	}
	if max > 0 {
		at = at[:min(max, len(at))]
	}
	return at
}

// player makes the same random calls to a broker and the model.
type player struct {
	t     tester
	pick  func(n int) int // 0 to n-1
	m     lists
	box   *inbox
	c     *broker.Conn
	tx    *broker.Tx
	walk  *walk // nil: none
	trace []string
}

func (p *player) end() broker.End { return broker.End(p.pick(2)) }
func (p *player) name() string    { return string("ab"[p.pick(2)]) }

// value is one of a few: some have a record of their own, some are too long for the cache.
func (p *player) value() string {
	v := string("xyz"[p.pick(3)])
	switch p.pick(12) {
	case 0:
		return strings.Repeat(v, 1500)
	case 1:
		return strings.Repeat(v, 9000)
	}
	return v
}

func (p *player) failed(err error, what string, args ...any) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// step makes one call.
func (p *player) step() {
	p.t.Helper()
	name := p.name()
	steps := []func(string){
		p.push, p.push, p.pushPacket, p.pop, p.pop, p.move, p.move, p.move, p.look, p.set, p.insert, p.remove, p.find, p.trim, p.drop, p.rename,
		p.begin, p.goOn, p.goOn, p.goOn,
	}
	steps[p.pick(len(steps))](name)
	if n, err := p.tx.Len([]byte(name)); n != len(p.m.byName[name]) || err != nil {
		p.t.Fatalf("Len(%s) = %d %v, want %d, after %v", name, n, err, len(p.m.byName[name]), p.trace)
	}
}

func (p *player) note(format string, args ...any) {
	p.trace = append(p.trace, fmt.Sprintf(format, args...))
}

func (p *player) push(name string) {
	end, values := p.end(), [][]byte{}
	n := 1 + p.pick(4)
	if p.pick(6) == 0 {
		n = 150
	}
	for range n {
		if n > 4 {
			values = append(values, []byte(string("xyz"[p.pick(3)])))
		} else {
			values = append(values, []byte(p.value()))
		}
	}
	p.note("push %s %d %.10q", name, end, values[:min(4, n)])
	got, err := p.tx.PushEnd([]byte(name), end, values)
	p.failed(err, "PushEnd")
	for _, v := range values {
		p.m.push(name, end, element{value: string(v), priority: broker.ListPriority})
	}
	if got != len(p.m.byName[name]) {
		p.t.Fatalf("PushEnd gave the length %d, want %d", got, len(p.m.byName[name]))
	}
}

// pushPacket pushes as another protocol does: with a key, a time to live, another priority.
func (p *player) pushPacket(name string) {
	e := element{value: p.value(), priority: []uint32{5, 128, 128, 200}[p.pick(4)], keyed: p.pick(2) == 0}
	r := broker.PushRequest{Queue: []byte(name), Priority: e.priority, Payload: []byte(e.value)}
	if e.keyed {
		r.Key = []byte{'k'}
	}
	if p.pick(3) == 0 {
		r.TTL = time.Duration(1+p.pick(30)) * time.Millisecond
		e.expiry = p.m.now + r.TTL.Milliseconds()
	}
	p.note("push packet %s %.10v", name, e)
	p.failed(pushError(p.tx.Push(r)), "Push")
	p.m.push(name, broker.Newest, e)
}

func (p *player) pop(name string) {
	end, count := p.end(), 1
	if p.pick(3) == 0 {
		count = 1 + p.pick(200)
	}
	p.note("pop %s %d %d", name, end, count)
	p.failed(reply(p.c)(p.tx.Pop([]byte(name), broker.Selection{End: end, Count: count})), "Pop")
	out := []string{}
	for range min(count, len(p.m.byName[name])) {
		out = append(out, p.m.take(name, end).value)
	}
	p.m.want = append(p.m.want, out)
}

func (p *player) move(from string) {
	to, fromEnd, toEnd := p.name(), p.end(), p.end()
	p.note("move %s %d %s %d", from, fromEnd, to, toEnd)
	ok, err := replyMoved(p.c)(p.tx.MoveEnd([]byte(from), fromEnd, []byte(to), toEnd))
	p.failed(err, "MoveEnd")
	if ok != (len(p.m.byName[from]) > 0) {
		p.t.Fatalf("MoveEnd from %d elements: %v", len(p.m.byName[from]), ok)
	}
	if ok {
		e := p.m.take(from, fromEnd)
		p.m.want = append(p.m.want, []string{e.value})
		if e.priority = broker.ListPriority; p.walk != nil && to == p.walk.name && e.first <= p.walk.since {
			p.endWalk() // it may find what has moved, or not
		}
		p.m.push(to, toEnd, e)
	}
}

// look compares a range, or all of the list.
func (p *player) look(name string) {
	list := p.m.byName[name]
	from := p.pick(len(list) + 1)
	n := p.pick(len(list) - from + 1)
	p.note("range %s %d %d", name, from, n)
	p.failed(reply(p.c)(p.tx.Range([]byte(name), from, n)), "Range")
	out := []string{}
	for _, e := range list[from : from+n] {
		out = append(out, e.value)
	}
	p.m.want = append(p.m.want, out)
}

func (p *player) set(name string) {
	list := p.m.byName[name]
	at, value := p.pick(len(list)+1), p.value()
	p.note("set %s %d %.10q", name, at, value)
	ok, err := p.tx.SetAt([]byte(name), at, []byte(value))
	p.failed(err, "SetAt")
	if ok != (at < len(list)) {
		p.t.Fatalf("SetAt %d of %d: %v", at, len(list), ok)
	}
	if ok {
		p.endWalk() // the element may count as new, or not
		list[at].value, list[at].keyed = value, false
	}
}

func (p *player) insert(name string) {
	list := p.m.byName[name]
	at, e := p.pick(len(list)+1), element{value: p.value(), priority: broker.ListPriority}
	if len(list) > 0 {
		e.priority = list[min(at, len(list)-1)].priority
	}
	p.note("insert %s %d of %d %.10q", name, at, len(list), e.value)
	got, err := p.tx.InsertAt([]byte(name), at, []byte(e.value))
	p.failed(err, "InsertAt")
	p.m.insert(name, at, e)
	if got != len(list)+1 {
		p.t.Fatalf("InsertAt gave the length %d, want %d", got, len(list)+1)
	}
}

func (p *player) remove(name string) {
	value, end, max := p.value(), p.end(), p.pick(4)
	p.note("remove %s %.10q %d %d", name, value, end, max)
	got, err := p.tx.RemoveValue([]byte(name), []byte(value), end, max)
	p.failed(err, "RemoveValue")
	at := p.m.find(name, value, end, max)
	if got != len(at) {
		p.t.Fatalf("RemoveValue gave %d, want %d", got, len(at))
	}
	slices.Sort(at)
	for _, i := range slices.Backward(at) {
		p.m.byName[name] = slices.Delete(p.m.byName[name], i, i+1)
	}
}

func (p *player) find(name string) {
	value, end, skip, max := p.value(), p.end(), p.pick(3), p.pick(4)
	got, err := p.tx.Places([]byte(name), []byte(value), end, skip, max, 1+p.pick(4))
	want := p.m.find(name, value, end, 0)
	want = want[min(skip, len(want)):]
	if max > 0 {
		want = want[:min(max, len(want))]
	}
	if !slices.Equal(got, want) || err != nil {
		p.t.Fatalf("Find(%s %.10q %d %d %d) = %v %v, want %v, after %v", name, value, end, skip, max, got, err, want, p.trace)
	}
}

func (p *player) trim(name string) {
	list := p.m.byName[name]
	from := p.pick(len(list) + 1)
	n := p.pick(len(list) - from + 1)
	if p.pick(2) == 0 {
		n = min(n, p.pick(3))
	}
	p.note("trim %s of %d to %d %d", name, len(list), from, n)
	p.failed(p.tx.Trim([]byte(name), from, n), "Trim")
	p.m.byName[name] = slices.Clone(list[from : from+n])
}

func (p *player) drop(name string) {
	if len(p.m.byName[name]) > 0 {
		p.note("drop %s", name)
		p.tx.DropQueue([]byte(name))
		delete(p.m.byName, name)
	}
}

func (p *player) rename(name string) {
	if to := p.name(); len(p.m.byName[name]) > 0 && to != name {
		p.note("rename %s %s", name, to)
		p.tx.RenameQueue([]byte(name), []byte(to))
		p.m.byName[to] = p.m.byName[name]
		delete(p.m.byName, name)
	}
}

// play makes some calls as one.
func (p *player) play(h *harness) {
	p.t.Helper()
	n := 1 + p.pick(8)
	if h.b.LeavesWhatIsDue() { // the model does not
		h.b.commit()
	}
	err := atomicCall(h.b, func(tx *broker.Tx) error {
		p.tx = tx
		p.m.now = tx.Now()
		p.m.expire()
		for range n {
			p.step()
		}
		return nil
	})
	if err != nil {
		p.t.Fatalf("%v, after %v", err, p.trace)
	}
}

func (p *player) check(h *harness) {
	p.t.Helper()
	if !slices.EqualFunc(p.box.got, p.m.want, slices.Equal) {
		for i := range p.m.want {
			if i >= len(p.box.got) || !slices.Equal(p.box.got[i], p.m.want[i]) {
				p.t.Fatalf("reply %d is %.20q, want %.20q, after %v", i, p.box.got[min(i, len(p.box.got)):][:1], p.m.want[i], p.trace)
			}
		}
		p.t.Fatalf("%d replies, want %d", len(p.box.got), len(p.m.want))
	}
	p.box.got, p.m.want, p.trace = nil, nil, nil
}

func (p *player) attach(h *harness) {
	p.endWalk()
	p.box = &inbox{}
	p.c = h.b.Attach(p.box, broker.Selection{})
	p.m.want = nil
}

// smallBatches are limits under which the batches of a test fill up.
var smallBatches = content.Limits{MaxOps: 1500, MaxBytes: 262144}

func TestListsDoWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		defer func() { _ = h.b.Close() }()
		h.store.limits = smallBatches
		h.restart()
		p := &player{t: t, pick: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }}
		p.m.byName = map[string][]element{}
		p.attach(h)
		t.Repeat(map[string]func(*rapid.T){
			"calls":       func(*rapid.T) { p.play(h) },
			"time passes": func(*rapid.T) { h.now.Add(int64(1 + p.pick(20))) },
			"on disk":     func(*rapid.T) { p.check(h) },
			"restart": func(*rapid.T) {
				p.check(h)
				h.restart()
				p.attach(h)
			},
		})
		p.check(h)
	})
}

func TestListsOnDiskDoWhatTheModelDoes(t *testing.T) {
	dir := t.TempDir()
	chance := rand.New(rand.NewPCG(9, 9))
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	p := &player{t: t, pick: chance.IntN}
	p.m.byName = map[string][]element{}
	for range 12 {
		store, err := storage.Open(dir, storage.Options{Limits: smallBatches})
		if err != nil {
			t.Fatal(err)
		}
		state, err := recovery.Restore(store, recovery.Options{Now: now.Load()})
		if err != nil {
			t.Fatal(err)
		}
		h := &harness{t: t}
		h.b = newDriver(store, state, broker.Options{Cache: 1 << 16}, func() (int64, int64) { return now.Load(), now.Load() })
		p.attach(h)
		for range 60 {
			p.play(h)
			if chance.IntN(4) == 0 {
				p.check(h)
			}
			if chance.IntN(4) == 0 {
				now.Add(int64(chance.IntN(20)))
			}
		}
		p.check(h)
		if err := errors.Join(h.b.Close(), store.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
