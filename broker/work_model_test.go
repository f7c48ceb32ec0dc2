package broker_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// workModel drives a broker on a store in memory and a plain model of the work queue with the same
// calls.
type workModel struct {
	*work
	tasks    []*task
	lasting  map[string]*lasting
	next     int64 // the number of the next packet or claim
	low      int64 // that of the next packet at the oldest end
	receipts []receipt
	tx       *broker.Tx
	want     [][]job // the replies to c
	made     int
	expired  map[uint64]bool      // identities that a start dropped
	windows  map[[2]string]window // of unique pushes, by queue and id
	tailed   tailed
}

// task is a packet in the model. The details are those that it has in its state.
type task struct {
	job
	seq        int64
	key        *string
	unique     string
	lease      int64
	untilClaim bool // of unique
	meta       int  // bytes
	tags       []broker.PacketTag
	expiry     int64
	died       int64
	until      int64    // not-before or lease end, as the store has it: on the wall clock
	leaseEnd   int64    // on the steady clock
	tried      bool     // it has a delivery state
	origin     *lasting // where it died
}

// window is for how long a packet has its id.
type window struct {
	id    broker.ID
	until int64
}

// lasting is a queue with settings.
type lasting struct {
	name string
	broker.Settings
	counters *broker.Counters // nil until they are read
	most     *broker.Counters // after a crash: nothing is counted beyond these
}

// receipt is a claim that once was.
type receipt struct {
	queue string
	broker.Receipt
}

var workQueues = []string{"a", "b", "dead"}

func newWorkModel(t tester) *workModel {
	m := &workModel{work: newWork(t), next: 1, low: -1, lasting: map[string]*lasting{}, expired: map[uint64]bool{}, windows: map[[2]string]window{}}
	m.tailAll()
	return m
}

func drawQueue(t *rapid.T) string { return rapid.SampledFrom(workQueues).Draw(t, "queue") }

func (m *workModel) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("call failed: %v", err)
	}
}

func (m *workModel) same(what string, got, want any) {
	m.t.Helper()
	if !reflect.DeepEqual(got, want) {
		m.t.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

// sameError compares an error with the one wanted, and says whether the call was refused.
func (m *workModel) sameError(what string, got, want error) (refused bool) {
	m.t.Helper()
	if want == nil {
		m.check(got)
	} else if !errors.Is(got, want) {
		m.t.Fatalf("%s: error %v, want %v", what, got, want)
	}
	return want != nil
}

func (m *workModel) remove(k *task) {
	m.tasks = slices.DeleteFunc(m.tasks, func(x *task) bool { return x == k })
}

// in returns the tasks of a queue that fit, oldest first.
func (m *workModel) in(queue string, fits func(*task) bool) []*task {
	var out []*task
	for _, k := range m.tasks {
		if k.Queue == queue && (fits == nil || fits(k)) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *task) int { // by state, delayed ones by their moments
		if a.State != b.State || a.State == broker.Delayed {
			return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.until, b.until), cmp.Compare(a.seq, b.seq))
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.seq, b.seq))
	})
	return out
}

func selectable(k *task) bool { return k.State == broker.Ready && k.Priority != 0 }

func inState(s broker.State) func(*task) bool { return func(k *task) bool { return k.State == s } }

func (m *workModel) exists(queue string) bool {
	return m.lasting[queue] != nil || len(m.in(queue, nil)) > 0
}

func (m *workModel) settings(queue string) broker.Settings {
	if q := m.lasting[queue]; q != nil {
		if q.PauseInUntil != 0 && q.PauseInUntil <= m.now.Load() {
			q.PauseIn, q.PauseInUntil = false, 0
		}
		if q.PauseOutUntil != 0 && q.PauseOutUntil <= m.now.Load() {
			q.PauseOut, q.PauseOutUntil = false, 0
		}
		return q.Settings
	}
	return broker.DefaultSettings()
}

func (m *workModel) count(queue string, add broker.Counters) {
	q := m.lasting[queue]
	if q == nil {
		return
	}
	if c := cmp.Or(q.counters, q.most); c != nil {
		c.Pushed, c.Popped, c.Acked = c.Pushed+add.Pushed, c.Popped+add.Popped, c.Acked+add.Acked
		c.Nacked, c.Expired, c.Dead = c.Nacked+add.Nacked, c.Expired+add.Expired, c.Dead+add.Dead
		c.Dropped, c.Cancelled = c.Dropped+add.Dropped, c.Cancelled+add.Cancelled
	}
}

// shown is what a detailed reply says of a task.
func (m *workModel) shown(k *task) job {
	j := k.job
	if k.State == broker.Delayed {
		j.NotBefore = k.until
	}
	if k.State == broker.Dead {
		j.Died = k.died
		if keep := m.settings(k.Queue).RetainDead; keep > 0 {
			j.Gone = k.died + keep
		}
	}
	if k.State == broker.Claimed {
		j.LeaseEnd = k.leaseEnd - m.steady.Load() + m.now.Load()
	} else {
		j.Token = 0
	}
	if k.origin != nil && m.lasting[k.origin.name] == k.origin {
		j.Origin = k.origin.name
	}
	return j
}

func (m *workModel) reply(tasks []*task) {
	jobs := make([]job, len(tasks))
	for i, k := range tasks {
		jobs[i] = m.shown(k)
	}
	m.want = append(m.want, jobs)
}

// wait makes a task wait again, until a moment on the wall clock.
func (k *task) wait(until int64) {
	k.tried, k.until, k.State = true, until, broker.Ready
	if until > 0 {
		k.State = broker.Delayed
	}
}

// die ends the attempts for a task.
func (m *workModel) die(k *task, reason string) {
	m.count(k.Queue, broker.Counters{Dead: 1})
	k.Progress, k.Reason = nil, text(reason)
	q := m.lasting[k.Queue]
	if q == nil || len(q.DeadLetter) == 0 || m.shut(string(q.DeadLetter)) != nil {
		k.State, k.tried, k.died = broker.Dead, true, m.now.Load()
		return
	}
	k.Reason = fmt.Appendf(nil, "dead at attempt %d", k.Attempts)
	if len(reason) > 0 {
		k.Reason = fmt.Appendf(k.Reason, ": %s", reason)
	}
	k.Attempts, k.origin, k.Queue = 0, q, string(q.DeadLetter)
	k.wait(0)
}

func text(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func (m *workModel) tooOften(k *task) bool {
	most := m.settings(k.Queue).MaxAttempts
	return most != 0 && k.Attempts >= int(most)
}

// advance does what is due.
func (m *workModel) advance() {
	now, steady := m.now.Load(), m.steady.Load()
	maps.DeleteFunc(m.windows, func(_ [2]string, w window) bool { return w.until <= now })
	for _, k := range slices.Clone(m.tasks) {
		if k.State == broker.Claimed && k.leaseEnd > steady {
			continue
		}
		kept := m.settings(k.Queue).RetainDead
		if k.expiry != 0 && k.expiry <= now || k.State == broker.Dead && kept > 0 && k.died+kept <= now {
			if k.State != broker.Done {
				m.count(k.Queue, broker.Counters{Expired: 1})
			}
			m.remove(k)
			continue
		}
		if k.State == broker.Delayed && k.until <= now {
			k.State = broker.Ready
		}
		if k.State != broker.Claimed || m.cancelled(k) {
			continue
		}
		reason := fmt.Sprintf("lease ended: %s", k.Consumer)
		if k.Consumer == "" {
			reason = "lease ended"
		}
		if m.tooOften(k) {
			m.die(k, reason)
		} else {
			k.Reason, k.Progress = []byte(reason), nil
			k.wait(0)
		}
	}
}

// isFirst says that a task waits for no other of its key.
func (m *workModel) isFirst(k *task) bool {
	s := m.settings(k.Queue)
	return k.key == nil || !s.Strict || len(m.in(k.Queue, func(o *task) bool {
		switch {
		case o.key == nil || *o.key != *k.key:
			return false
		case o.State == broker.Ready:
			return o.Priority > 0 && cmp.Or(cmp.Compare(o.Priority, k.Priority), cmp.Compare(o.seq, k.seq)) < 0
		}
		return o.State == broker.Claimed || o.State == broker.Delayed && o.Token != 0 || o.State == broker.Dead && s.HoldsDead()
	})) == 0
}

// selected returns what a selection takes from a queue.
func (m *workModel) selected(queue string, s broker.Selection) []*task {
	line := m.matching(queue, s.Filter, m.in(queue, func(k *task) bool { return selectable(k) && m.isFirst(k) }))
	if s.End == broker.Newest {
		slices.SortFunc(line, func(a, b *task) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.seq, a.seq))
		})
	}
	if !s.Group || len(line) == 0 {
		return line[:min(len(line), max(1, s.Count))]
	}
	first := line[0]
	if first.key == nil {
		return line[:1]
	}
	rest := m.in(queue, func(k *task) bool {
		return k != first && k.State == broker.Ready && k.key != nil && *k.key == *first.key
	})
	slices.SortFunc(rest, func(a, b *task) int { // priority 0 comes last
		return cmp.Or(cmp.Compare(a.Priority-1, b.Priority-1), cmp.Compare(b.seq, a.seq))
	})
	return append([]*task{first}, rest...)
}

func drawSelection(t *rapid.T) broker.Selection {
	s := broker.Selection{End: rapid.SampledFrom([]broker.End{broker.Newest, broker.Oldest}).Draw(t, "end"), WithDetails: true}
	s.Filter = drawFilter(t)
	if s.Group = rapid.Bool().Draw(t, "group"); !s.Group {
		s.Count = rapid.IntRange(0, 3).Draw(t, "count")
	}
	return s
}

// step makes one call, and the same in the model.
func (m *workModel) step(t *rapid.T, op string) {
	m.advance()
	held := m.held()
	defer func() { m.keptBounds(held) }()
	switch queue := drawQueue(t); op {
	case "push":
		m.push(t, queue)
	case "values":
		m.values(t, queue)
	case "pop":
		s := drawSelection(t)
		took := m.taken(queue, s)
		m.reply(took)
		m.check(reply(m.c)(m.tx.Pop([]byte(queue), s)))
		m.took(queue, took)
	case "pop key":
		m.popKey(queue)
	case "claim":
		m.claim(t, queue)
	case "ack":
		m.ack(t)
	case "nack", "extend", "progress":
		m.answer(t, op)
	case "move end":
		m.moveEnd(t, queue)
	case "update":
		m.update(t, queue)
	case "settings":
		m.set(t, queue)
	case "pause":
		m.pause(t, queue)
	case "close":
		m.close(queue)
	case "delete", "cancel", "move", "priority", "run":
		m.change(t, op, queue)
	case "purge", "harvest", "redrive", "move many":
		m.bulk(t, op, queue)
	case "drop":
		existed, err := m.tx.Delete([]byte(queue))
		m.check(err)
		m.same("existed", existed, m.exists(queue))
		delete(m.lasting, queue)
		maps.DeleteFunc(m.windows, func(of [2]string, _ window) bool { return of[0] == queue })
		m.tasks = slices.DeleteFunc(m.tasks, func(k *task) bool { return k.Queue == queue })
	}
}

// took removes what was popped.
func (m *workModel) took(queue string, tasks []*task) {
	for _, k := range tasks {
		m.remove(k)
	}
	m.count(queue, broker.Counters{Popped: uint64(len(tasks))})
}

// add adds a packet at an end of a queue.
func (m *workModel) add(queue string, end broker.End, priority uint32, payload string) *task {
	id := m.next
	if end == broker.Oldest {
		id = m.low
		m.low--
	} else {
		m.next++
	}
	k := &task{seq: id, job: job{payload: payload, Detail: broker.Detail{
		ID: broker.ID(id), Queue: queue, Priority: priority, State: broker.Ready,
	}}}
	m.tasks = append(m.tasks, k)
	return k
}

// payload makes a payload that no other packet has.
func (m *workModel) payload(t *rapid.T) string {
	m.made++
	size := rapid.SampledFrom([]int{0, 0, 0, 0, 2000}).Draw(t, "size")
	return fmt.Sprint(m.made) + strings.Repeat(".", size)
}

func (m *workModel) push(t *rapid.T, queue string) {
	r := broker.PushRequest{
		Queue: []byte(queue), Priority: rapid.Uint32Range(0, 3).Draw(t, "priority"), Payload: []byte(m.payload(t)),
		Delay: max(0, rapid.Int64Range(-20, 20).Draw(t, "delay")),
		TTL:   time.Duration(max(0, rapid.IntRange(-40, 40).Draw(t, "ttl"))) * time.Millisecond,
		Tags:  drawTags(t),
		Lease: max(0, rapid.Int64Range(-60, 30).Draw(t, "lease")),
	}
	r.Meta = make([]byte, max(0, rapid.IntRange(-9, 3).Draw(t, "meta")))
	if n := rapid.IntRange(0, 4).Draw(t, "key"); n > 0 {
		r.Key = []byte(string("_kkl"[n-1]))
		if rapid.Bool().Draw(t, "bare") {
			r.Payload = nil
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "has unique") == 0 {
		r.Unique = []byte(rapid.SampledFrom(uniques).Draw(t, "unique"))
		r.Window = rapid.SampledFrom([]int64{0, 0, 1, 25}).Draw(t, "window")
		r.UntilClaim, r.Tell = rapid.Bool().Draw(t, "until claim"), rapid.Bool().Draw(t, "tell")
		if r.Replace = rapid.Bool().Draw(t, "replace"); r.Replace && rapid.Bool().Draw(t, "keeps its moment") {
			r.Delay, r.At = -1, -1
		}
	}
	first, there := m.first(r)
	if twin := m.waiting(queue, first); there && r.Replace && twin != nil {
		m.replace(twin, r)
		return
	}
	var want error
	if !there {
		want = m.admit(queue, 1, len(r.Key)+len(r.Payload)+len(r.Meta), r.Priority)
	}
	id, told, err := m.tx.PushTold(r)
	if m.sameError("push", err, want) {
		return
	}
	if there {
		m.same("first id", id, first)
		if r.Tell || r.Replace {
			m.same("told", told, m.stateOf(queue, first))
		}
		return
	}
	m.same("told", told, "new")
	k := m.add(queue, broker.Newest, r.Priority, string(r.Payload))
	m.same("id", id, k.ID)
	k.tags, k.lease, k.meta = r.Tags, r.Lease, len(r.Meta)
	if r.Window > 0 {
		m.windows[[2]string{queue, string(r.Unique)}] = window{id, m.now.Load() + r.Window}
	} else if len(r.Unique) > 0 {
		k.unique, k.Unique, k.untilClaim = string(r.Unique), r.Unique, r.UntilClaim
	}
	if r.Key != nil {
		key := string(r.Key)
		k.key = &key
	}
	if r.TTL > 0 {
		k.expiry = m.now.Load() + r.TTL.Milliseconds()
	}
	if r.Delay > 0 {
		k.State, k.until = broker.Delayed, m.now.Load()+r.Delay
	}
	m.count(queue, broker.Counters{Pushed: 1})
}

// waiting returns the task of a queue that has an id, nil if it does not wait.
func (m *workModel) waiting(queue string, id broker.ID) *task {
	for _, k := range m.in(queue, func(k *task) bool { return k.ID == id && k.State <= broker.Delayed }) {
		return k
	}
	return nil
}

// stateOf is the state of a packet of a queue, or gone.
func (m *workModel) stateOf(queue string, id broker.ID) string {
	for _, k := range m.in(queue, func(k *task) bool { return k.ID == id }) {
		return k.State.String()
	}
	return "gone"
}

// replace makes a push that replaces a task.
func (m *workModel) replace(k *task, r broker.PushRequest) {
	size := len(r.Payload) + len(r.Meta)
	if k.key != nil {
		size += len(*k.key)
	}
	want := m.admitInstead(k.Queue, 1, size, k.Priority, k)
	id, told, err := m.tx.PushTold(r)
	if m.sameError("replace", err, want) {
		return
	}
	m.same("replaced", id, k.ID)
	m.same("told", told, "replaced")
	k.payload, k.tags, k.lease, k.meta, k.expiry = string(r.Payload), r.Tags, r.Lease, len(r.Meta), 0
	if r.TTL > 0 {
		k.expiry = m.now.Load() + r.TTL.Milliseconds()
	}
	if r.Delay > 0 {
		k.State, k.until = broker.Delayed, m.now.Load()+r.Delay
	} else if r.Delay == 0 || k.State == broker.Ready {
		k.State, k.until = broker.Ready, 0
	}
}

// uniques are ids of unique pushes: one, the longest, and one that looks like another.
var uniques = []string{"u", strings.Repeat("u", broker.MaxUnique), "a:u"}

// first returns the packet that a unique push finds: the youngest that has the id and is not
// finished, or whose window is not over.
func (m *workModel) first(r broker.PushRequest) (id broker.ID, ok bool) {
	if w, there := m.windows[[2]string{string(r.Queue), string(r.Unique)}]; there {
		id, ok = w.id, true
	}
	for _, k := range m.in(string(r.Queue), unfinished) {
		if len(r.Unique) > 0 && k.unique == string(r.Unique) && (!ok || k.ID > id) {
			id, ok = k.ID, true
		}
	}
	return id, ok
}

func unfinished(k *task) bool { return k.State <= broker.Claimed }

// compareUniques makes the unique pushes that a queue answers with a packet it has.
func (m *workModel) compareUniques(queue string) {
	for _, unique := range uniques {
		for _, window := range []int64{0, 1} {
			r := broker.PushRequest{Queue: []byte(queue), Priority: 1, Unique: []byte(unique), Window: window}
			if first, there := m.first(r); there {
				id, err := m.tx.Push(r)
				m.check(err)
				m.same("first id", id, first)
			}
		}
	}
}

// values pushes a list's elements.
func (m *workModel) values(t *rapid.T, queue string) {
	end := rapid.SampledFrom([]broker.End{broker.Newest, broker.Oldest}).Draw(t, "end")
	values := [][]byte{[]byte(m.payload(t)), []byte(m.payload(t))}
	want := m.admit(queue, 2, len(values[0])+len(values[1]), broker.ListPriority)
	err := m.tx.Atomic(func() error {
		_, err := m.tx.PushEnd([]byte(queue), end, values)
		return err
	})
	if m.sameError("push of values", err, want) {
		return
	}
	for _, v := range values {
		m.add(queue, end, broker.ListPriority, string(v))
	}
	m.count(queue, broker.Counters{Pushed: 2})
}

func (m *workModel) popKey(queue string) {
	took := m.taken(queue, broker.Selection{End: broker.Oldest, Group: true})
	key, ok, err := m.tx.PopKey([]byte(queue), broker.Oldest, nil, nil)
	var want error
	if len(took) > 0 && took[0].key == nil {
		want = broker.ErrNoKey
	}
	if m.sameError("pop of a key", err, want) {
		return
	}
	m.same("a key", ok, len(took) > 0)
	if ok {
		m.same("key", string(key), *took[0].key)
	}
	m.took(queue, took)
}

func (m *workModel) claim(t *rapid.T, queue string) {
	r := broker.ClaimRequest{
		Selection: drawSelection(t), Lease: max(0, rapid.Int64Range(-10, 40).Draw(t, "lease")),
		Consumer: []byte(rapid.SampledFrom([]string{"", "w1", "w2"}).Draw(t, "consumer")),
	}
	m.check(reply(m.c)(m.tx.Claim([]byte(queue), r)))
	tasks := m.taken(queue, r.Selection)
	for _, k := range tasks {
		m.lend(k, r)
	}
	m.reply(tasks)
}

// lend claims a task.
func (m *workModel) lend(k *task, r broker.ClaimRequest) {
	lease := cmp.Or(r.Lease, k.lease, m.settings(k.Queue).Lease)
	k.State, k.tried, k.Consumer, k.Progress = broker.Claimed, true, string(r.Consumer), nil
	if k.untilClaim {
		k.unique, k.Unique = "", nil
	}
	k.Token = m.next
	m.next++
	k.Attempts++
	k.LastClaim = m.now.Load()
	if k.FirstClaim == 0 {
		k.FirstClaim = k.LastClaim
	}
	k.until, k.leaseEnd = m.now.Load()+lease, m.steady.Load()+lease
	m.receipts = append(m.receipts, receipt{k.Queue, broker.Receipt{ID: k.ID, Token: k.Token}})
}

// drawReceipt draws a claim that once was, mostly a late one, and sometimes one that never was.
func (m *workModel) drawReceipt(t *rapid.T) (queue string, r broker.Receipt) {
	if len(m.receipts) == 0 || rapid.IntRange(0, 19).Draw(t, "wrong") == 0 {
		return drawQueue(t), broker.Receipt{ID: broker.ID(rapid.Int64Range(-2, m.next).Draw(t, "id")), Token: rapid.Int64Range(0, m.next).Draw(t, "token")}
	}
	last := len(m.receipts) - 1
	at := last - min(last, rapid.IntRange(0, 5).Draw(t, "claim"))
	return m.receipts[at].queue, m.receipts[at].Receipt
}

// claimed returns the task of a claim, nil if that has ended, and the error of a call about it.
func (m *workModel) claimed(queue string, r broker.Receipt) (*task, error) {
	if !m.exists(queue) {
		return nil, broker.ErrUnknownQueue
	}
	for _, k := range m.tasks {
		if k.Queue == queue && k.ID == r.ID && k.State == broker.Claimed && k.Token == r.Token {
			return k, nil
		}
	}
	return nil, broker.ErrStale
}

func (m *workModel) ack(t *rapid.T) {
	queue, r := m.drawReceipt(t)
	receipts := []broker.Receipt{r}
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		_, r := m.drawReceipt(t)
		receipts = append(receipts, r)
	}
	_, want := m.claimed(queue, r)
	good, cancelled, retain := 0, 0, m.settings(queue).Retain
	for _, r := range receipts {
		k, _ := m.claimed(queue, r)
		if k == nil {
			continue
		}
		good, want = good+1, nil
		if m.cancelled(k) {
			cancelled++
		} else if retain == 0 {
			m.remove(k)
		} else {
			k.State, k.expiry = broker.Done, m.now.Load()+retain
		}
	}
	n, err := m.tx.Ack([]byte(queue), receipts)
	m.sameError("ack", err, want)
	m.same("good", n, good)
	m.count(queue, broker.Counters{Acked: uint64(good - cancelled)})
}

// answer makes a call about a claim that does not end it well.
func (m *workModel) answer(t *rapid.T, op string) {
	queue, r := m.drawReceipt(t)
	k, want := m.claimed(queue, r)
	name := []byte(queue)
	switch op {
	case "nack":
		m.nack(t, queue, r, k, want)
	case "extend":
		lease := rapid.Int64Range(1, 60).Draw(t, "lease")
		if k != nil && k.Cancelled {
			want = broker.ErrCancelled
		}
		end, err := m.tx.Extend(name, r, lease)
		if !m.sameError(op, err, want) {
			k.until, k.leaseEnd = m.now.Load()+lease, m.steady.Load()+lease
			m.same("lease end", end, k.until)
		}
	case "progress":
		percent, note := rapid.IntRange(0, 100).Draw(t, "percent"), rapid.SampledFrom([]string{"", "going"}).Draw(t, "note")
		if !m.sameError(op, m.tx.Progress(name, r, percent, []byte(note)), want) {
			k.Progress = append([]byte{byte(percent)}, note...)
		}
	}
}

// cancelled ends a task that was cancelled while it was claimed.
func (m *workModel) cancelled(k *task) bool {
	if k.Cancelled {
		m.cancel(k)
	}
	return k.Cancelled
}

func (m *workModel) cancel(k *task) {
	m.count(k.Queue, broker.Counters{Cancelled: 1})
	m.remove(k)
}

// expiredClaim ends a task whose time passed while it was claimed.
func (m *workModel) expiredClaim(k *task) bool {
	if k.expiry == 0 || k.expiry > m.now.Load() {
		return false
	}
	m.count(k.Queue, broker.Counters{Expired: 1})
	m.remove(k)
	return true
}

func (m *workModel) nack(t *rapid.T, queue string, r broker.Receipt, k *task, want error) {
	n := broker.Nack{
		Delay:  rapid.SampledFrom([]int64{-1, -1, 0, 7, 20}).Draw(t, "delay"),
		Reason: []byte(rapid.SampledFrom([]string{"", "boom"}).Draw(t, "reason")),
		Dead:   rapid.IntRange(0, 5).Draw(t, "dead") == 0,

		Uncounted: rapid.IntRange(0, 3).Draw(t, "uncounted") == 0,
		Hold:      rapid.SampledFrom([]int64{0, 0, 0, 0, 9, 25}).Draw(t, "hold"),
	}
	n.Dead = n.Dead && n.Hold == 0
	if m.settings(queue).BackoffMin > 9 {
		n.Delay = max(0, n.Delay) // the default backoff is drawn at random
	}
	state, err := m.tx.Nack([]byte(queue), r, n)
	if m.sameError("nack", err, want) {
		return
	}
	if n.Hold > 0 {
		n.Uncounted, n.Delay = true, max(0, n.Delay)
		if s := m.settings(queue); !s.PauseOut || s.PauseOutUntil != 0 && s.PauseOutUntil < m.now.Load()+n.Hold {
			s.PauseOut, s.PauseOutUntil = true, m.now.Load()+n.Hold
			m.keep(queue, s)
		}
	}
	if m.cancelled(k) {
		m.same("state", state, broker.Cancelled)
		return
	}
	m.count(queue, broker.Counters{Nacked: 1})
	if m.expiredClaim(k) {
		m.same("state", state, broker.Expired)
		return
	}
	if n.Dead || !n.Uncounted && m.tooOften(k) {
		m.die(k, string(n.Reason))
		m.same("state", state, broker.Dead)
		return
	}
	if n.Uncounted {
		k.Attempts--
	}
	delay, s := n.Delay, m.settings(queue)
	if delay < 0 {
		delay = min(s.BackoffMin<<max(0, k.Attempts-1), s.BackoffMax) // under 10: a tenth of it is nothing
	}
	k.Reason, k.Progress = text(string(n.Reason)), nil
	if delay > 0 {
		delay += m.now.Load()
	}
	k.wait(delay)
	m.same("state", state, k.State)
}

func (m *workModel) moveEnd(t *rapid.T, from string) {
	to := drawQueue(t)
	ends := rapid.SampledFrom([]broker.End{broker.Newest, broker.Oldest})
	fromEnd, toEnd := ends.Draw(t, "from end"), ends.Draw(t, "to end")
	var ok bool
	err := m.tx.Atomic(func() (err error) {
		ok, err = replyMoved(m.c)(m.tx.MoveEnd([]byte(from), fromEnd, []byte(to), toEnd))
		return err
	})
	took, want := m.taken(from, broker.Selection{End: fromEnd}), error(nil)
	if to != from {
		want = m.admit(to, len(took), sizes(took), 0)
	}
	if m.sameError("move of an end", err, want) {
		return
	}
	m.same("moved", ok, len(took) > 0)
	if !ok {
		return
	}
	k := took[0]
	m.want = append(m.want, []job{{}})
	if k.Queue, k.Priority = to, broker.ListPriority; toEnd == broker.Oldest {
		k.seq = m.low
		m.low--
	} else {
		k.seq = m.next
		m.next++
	}
}

// update is barbershop's update: of a priority, by key.
func (m *workModel) update(t *rapid.T, queue string) {
	key, priority := rapid.SampledFrom([]string{"_", "k", "l"}).Draw(t, "key"), rapid.Uint32Range(0, 3).Draw(t, "priority")
	group := m.in(queue, func(k *task) bool { return k.key != nil && *k.key == key && k.State != broker.Done })
	err := m.tx.UpdatePriority(broker.UpdatePriorityRequest{
		Queue: []byte(queue), Key: []byte(key), To: func(uint32, bool) uint32 { return priority },
	})
	switch len(group) {
	case 0:
		if m.sameError("update", err, m.admit(queue, 1, len(key), priority)) {
			return
		}
		m.add(queue, broker.Newest, priority, "").key = &key
		m.count(queue, broker.Counters{Pushed: 1})
	case 1:
		m.check(err)
		if k := group[0]; k.Priority != priority {
			if k.Priority, k.seq = priority, m.next; !k.tried && k.payload == "" && k.expiry == 0 && k.unique == "" && k.tags == nil && k.lease == 0 && k.meta == 0 { // it is put anew
				k.until = m.shown(k).NotBefore
			}
			m.next++
		}
	default:
		m.sameError("update", err, broker.ErrShared)
	}
}

func (m *workModel) set(t *rapid.T, queue string) {
	s := broker.Settings{
		MaxAttempts: rapid.Int64Range(0, 3).Draw(t, "max attempts"), Lease: rapid.Int64Range(1, 40).Draw(t, "lease"),
		BackoffMin: rapid.Int64Range(1, 9).Draw(t, "backoff"),
		DeadLetter: []byte(rapid.SampledFrom([]string{"", "", "dead", "b"}).Draw(t, "dead letter")),
		Retain:     max(0, rapid.Int64Range(-60, 60).Draw(t, "retain")),
		RetainDead: max(0, rapid.Int64Range(-60, 60).Draw(t, "retain dead")),
		Orders:     rapid.SampledFrom([][]broker.Order{nil, {{Tag: "of no packet", Values: []string{"low", "high"}}}}).Draw(t, "orders"),
	}
	s.BackoffMax = rapid.Int64Range(s.BackoffMin, 9).Draw(t, "most backoff")
	m.drawBound(t, queue, &s)
	m.drawGates(t, queue, &s)
	drawOrder(t, &s)
	s.Strict, s.OnDead = rapid.Bool().Draw(t, "strict"), broker.Choice(rapid.IntRange(0, 1).Draw(t, "on dead"))
	var want error
	if string(s.DeadLetter) == queue {
		want = broker.ErrOwnDeadLetter
	}
	if m.sameError("settings", m.tx.SetSettings([]byte(queue), s), want) {
		return
	}
	m.keep(queue, s)
}

// keep notes that a queue has settings of its own.
func (m *workModel) keep(queue string, s broker.Settings) {
	if m.lasting[queue] == nil {
		m.lasting[queue] = &lasting{name: queue}
	}
	m.lasting[queue].Settings = s
}

// drawID draws the id of a packet, mostly of one that is in the queue.
func (m *workModel) drawID(t *rapid.T, queue string) (broker.ID, *task) {
	id := broker.ID(rapid.Int64Range(-3, m.next).Draw(t, "id"))
	if tasks := m.in(queue, nil); len(tasks) > 0 && rapid.IntRange(0, 9).Draw(t, "wrong") > 0 {
		id = rapid.SampledFrom(tasks).Draw(t, "task").ID
	}
	for _, k := range m.in(queue, nil) {
		if k.ID == id {
			return id, k
		}
	}
	return id, nil
}

// change changes packets by their ids.
func (m *workModel) change(t *rapid.T, op, queue string) {
	id, k := m.drawID(t, queue)
	name, known := []byte(queue), map[bool]int{true: 1}[k != nil]
	switch op {
	case "delete":
		n, err := m.tx.DeletePackets(name, []broker.ID{id, id})
		m.check(err)
		m.same("deleted", n, known)
		m.remove(k)
	case "cancel":
		were, err := m.tx.Cancel(name, []broker.ID{id, id})
		m.check(err)
		want := make([]broker.State, 2)
		switch {
		case k == nil || !unfinished(k):
		case k.State == broker.Claimed:
			want[0], want[1] = broker.Claimed, broker.Claimed
			if !k.Cancelled { // it is written anew
				k.Cancelled, k.until = true, m.shown(k).LeaseEnd
			}
		default:
			want[0] = k.State
			m.cancel(k)
		}
		m.same("were", were, want)
	case "move":
		to := drawQueue(t)
		n, err := m.tx.MovePackets(name, []broker.ID{id, id}, []byte(to))
		if k != nil && k.State == broker.Claimed {
			k, known = nil, 0
		}
		var want error
		if k != nil {
			want = m.moveTo(k, to)
		}
		if m.sameError(op, err, want) {
			return
		}
		m.same("moved", n, known)
	case "priority":
		priority := rapid.Uint32Range(0, 3).Draw(t, "priority")
		ok, err := m.tx.SetPriority(name, id, priority)
		expired := k != nil && k.expiry != 0 && k.expiry <= m.now.Load()
		var want error
		switch {
		case !m.exists(queue):
			want = broker.ErrUnknownQueue
		case k != nil && !expired && k.key == nil && priority == 0 && k.Priority != 0:
			want = broker.ErrNoKey
		}
		if m.sameError(op, err, want) {
			return
		}
		m.same("there", ok, k != nil && !expired)
		if ok {
			k.Priority = priority
		}
	case "run":
		at := rapid.SampledFrom([]int64{0, m.now.Load(), m.now.Load() + 7, m.now.Load() + 20}).Draw(t, "at")
		ok, err := m.tx.Reschedule(name, id, at)
		var want error
		if !m.exists(queue) {
			want = broker.ErrUnknownQueue
		}
		if m.sameError(op, err, want) {
			return
		}
		waits := k != nil && (k.State == broker.Ready || k.State == broker.Delayed)
		m.same("there", ok, waits)
		switch later := at > m.now.Load(); {
		case waits && later:
			k.wait(at)
		case waits && k.State == broker.Delayed:
			k.wait(0)
		}
	}
}

// bulk makes a change to many packets, or a dry run of it.
func (m *workModel) bulk(t *rapid.T, op, queue string) {
	name, to, count := []byte(queue), []byte(drawQueue(t)), rapid.IntRange(0, 3).Draw(t, "count")
	states := []broker.State{rapid.SampledFrom(append([]broker.State{0}, workStates...)).Draw(t, "state")}
	var b *broker.Bulk
	var fits func(*task) bool // nil: all
	var change func(*task) error
	switch op {
	case "purge":
		b, count = broker.Purge(name, states[0]), 0
		change = func(k *task) error { m.remove(k); return nil }
	case "harvest":
		older := rapid.Int64Range(-10, 20).Draw(t, "older")
		b, states, count = broker.Harvest(name, older, ""), []broker.State{broker.Claimed}, 0
		fits = func(k *task) bool { return max(0, m.now.Load()-k.LastClaim) >= older }
		change = func(k *task) error { m.harvest(k); return nil }
	case "redrive":
		if rapid.Bool().Draw(t, "back") {
			to = nil
		}
		b, states = broker.Redrive(name, count, to), []broker.State{broker.Dead, broker.Delayed, broker.Ready}
		fits = func(k *task) bool { return k.State == broker.Dead || k.origin != nil }
		change = func(k *task) error { return m.redrive(k, to) }
	case "move many":
		b = broker.Move(name, states[0], count, to)
		fits = func(k *task) bool { return k.State != broker.Claimed }
		change = func(k *task) error { return m.moveTo(k, string(to)) }
	}
	b.Filter = drawFilter(t)
	list, want := m.matching(queue, b.Filter, m.bulkOf(queue, states, fits)), error(nil)
	stay := func(k *task) bool {
		return op == "redrive" && to == nil && k.origin != nil && m.lasting[k.origin.name] != k.origin
	}
	if moved := slices.DeleteFunc(slices.Clone(list), stay); len(moved) == 0 && len(list) > 0 {
		list, want = nil, broker.ErrNoOrigin
	} else {
		list = moved
	}
	if count > 0 {
		list = list[:min(len(list), count)]
	}
	b.DryRun = rapid.Bool().Draw(t, "dry run")
	if !b.DryRun {
		for i, k := range list {
			if want = change(k); want != nil {
				list = list[:i]
				break
			}
		}
	}
	more, err := true, error(nil)
	for more && err == nil {
		more, err = b.Slice(m.tx)
	}
	m.sameError(op, err, want)
	m.same(op, b.Done, len(list))
}

// bulkOf returns the tasks of a queue that fit, state by state; all states if the first is 0.
func (m *workModel) bulkOf(queue string, states []broker.State, fits func(*task) bool) (list []*task) {
	if states[0] == 0 {
		states = workStates
	}
	for _, s := range states {
		list = append(list, m.in(queue, func(k *task) bool { return k.State == s && (fits == nil || fits(k)) })...)
	}
	return list
}

func (m *workModel) harvest(k *task) {
	if !m.cancelled(k) && !m.expiredClaim(k) {
		k.Reason, k.Progress = []byte("harvested"), nil
		k.wait(0)
	}
}

func (m *workModel) redrive(k *task, to []byte) error {
	target := k.Queue
	switch {
	case to != nil:
		target = string(to)
	case k.origin != nil:
		target = k.origin.name
	}
	if target != k.Queue || k.State == broker.Dead {
		if err := m.admit(target, 1, k.size(), 0); err != nil {
			return err
		}
	}
	k.Attempts, k.origin, k.Queue = 0, nil, target
	k.wait(0)
	return nil
}

// moveTo moves a task to a queue that admits it.
func (m *workModel) moveTo(k *task, to string) error {
	err := error(nil)
	switch {
	case to == k.Queue:
	case unfinished(k):
		err = m.admit(to, 1, k.size(), 0)
	default: // it takes no place, but passes the gate
		err = m.shut(to)
	}
	if err != nil {
		return err
	}
	k.Queue = to
	return nil
}

// compare holds all that the broker shows against the model.
func (m *workModel) compare() {
	m.sameReplies()
	m.do(func(tx *broker.Tx) error {
		m.tx = tx
		m.advance()
		for _, queue := range workQueues {
			m.compareQueue(queue)
		}
		m.compareTailed()
		return tx.CheckNames()
	})
	m.sameReplies()
}

const waitsForKey = "waits for packet "

func (m *workModel) sameReplies() {
	m.t.Helper()
	for i, got := range m.box.replies {
		for k := range got {
			if strings.HasPrefix(got[k].HeldBack, waitsForKey) { // for one of those that hold it
				got[k].HeldBack = waitsForKey
			}
		}
		if i < len(m.want) && !slices.EqualFunc(got, m.want[i], func(a, b job) bool { return reflect.DeepEqual(a, b) }) {
			m.t.Fatalf("reply %d has %+v, want %+v", i, got, m.want[i])
		}
	}
	m.same("replies", len(m.box.replies), len(m.want))
	m.box.replies, m.want = nil, nil
}

var workStates = []broker.State{broker.Ready, broker.Delayed, broker.Claimed, broker.Dead, broker.Done}

func (m *workModel) compareQueue(queue string) {
	name := []byte(queue)
	for _, state := range workStates {
		m.compareList(queue, state, nil)
		m.compareList(queue, state, &broker.Filter{Terms: []broker.Term{{Tag: "class", Op: broker.LessOrEqual, Value: "low"}}})
	}
	m.check(reply(m.c)(m.tx.Peek(name, 3)))
	m.reply(m.selected(queue, broker.Selection{End: broker.Oldest, Count: 3}))
	m.compareOldest(name)
	m.compareStats(queue)
	m.compareWorkers(queue)
	m.compareUniques(queue)
	m.compareGates(queue)
	line := m.in(queue, selectable)
	for _, k := range m.in(queue, nil) {
		ok, err := replyMoved(m.c)(m.tx.Show(name, k.ID))
		m.check(err)
		m.same("there", ok, true)
		j := m.shown(k)
		j.Behind, j.Paused = slices.Index(line, k), m.settings(queue).PauseOut
		if selectable(k) && !m.isFirst(k) {
			j.HeldBack = waitsForKey
		}
		m.want = append(m.want, []job{j})
	}
}

// compareOldest wants the packet that was pushed first at one of the ends.
func (m *workModel) compareOldest(queue []byte) {
	m.t.Helper()
	f, err := m.tx.Oldest(queue)
	m.check(reply(m.c)(f, err))
	var first []*task
	for _, end := range []func(k *task) bool{func(k *task) bool { return k.seq >= 0 }, func(k *task) bool { return k.seq < 0 }} {
		pushed := m.in(string(queue), func(k *task) bool { return selectable(k) && end(k) })
		slices.SortFunc(pushed, func(a, b *task) int { return cmp.Compare(max(a.seq, -a.seq), max(b.seq, -b.seq)) })
		if pushed = pushed[:min(1, len(pushed))]; len(first) == 0 || len(pushed) == 1 && pushed[0].ID == f.Details[0].ID {
			first = pushed
		}
	}
	m.reply(first)
}

// compareList compares the pages of a list.
func (m *workModel) compareList(queue string, state broker.State, f *broker.Filter) {
	tasks, p := m.matching(queue, f, m.in(queue, inState(state))), broker.Page{State: state, Count: 2, Filter: f}
	for more := true; more; {
		end, err := listed(m.c)(m.tx.List([]byte(queue), p))
		m.check(err)
		m.same(fmt.Sprintf("%v packets of a page of %s", state, queue), end.Packets, min(len(tasks), p.Count))
		m.reply(tasks[:end.Packets])
		tasks, p.After, more = tasks[end.Packets:], end.Last, end.More
		if more != (len(tasks) > 0) && f == nil || !more && len(tasks) > 0 {
			m.t.Fatalf("after a page there are more: %v, want %d", more, len(tasks))
		}
	}
}

func (m *workModel) compareStats(queue string) {
	got, ok, err := m.tx.QueueStats([]byte(queue))
	m.check(err)
	m.same("queue exists", ok, m.exists(queue))
	of := func(s broker.State) int { return len(m.in(queue, inState(s))) }
	ready := len(m.in(queue, selectable))
	m.same("states", []int{got.Ready, got.Hidden, got.Delayed, got.Claimed, got.Dead, got.Done}, []int{
		ready, of(broker.Ready) - ready, of(broker.Delayed), of(broker.Claimed), of(broker.Dead), of(broker.Done),
	})
	n, err := m.tx.Unfinished([]byte(queue))
	m.check(err)
	m.same("unfinished", n, of(broker.Ready)+of(broker.Delayed)+of(broker.Claimed))
	q := m.lasting[queue]
	switch {
	case q == nil:
		return
	case q.counters == nil:
		if q.most != nil && (got.Pushed > q.most.Pushed || got.Acked > q.most.Acked || got.Counters.Dead > q.most.Dead) {
			m.t.Fatalf("%s counts %+v after a crash, and before it %+v", queue, got.Counters, *q.most)
		}
		q.counters, q.most = &got.Counters, nil
	default:
		m.same("counters", got.Counters, *q.counters)
	}
	s, _, err := m.tx.Settings([]byte(queue))
	m.check(err)
	m.same("settings", fmt.Sprint(s), fmt.Sprint(q.Settings))
}

// compareWorkers compares those that hold packets.
func (m *workModel) compareWorkers(queue string) {
	if !m.exists(queue) {
		return
	}
	list, err := allConsumers(m.tx, []byte(queue))
	m.check(err)
	got := map[string]broker.Consumer{}
	for _, w := range list {
		if w.Seen = 0; w.Claimed > 0 {
			got[w.Name] = w
		}
	}
	want := map[string]broker.Consumer{}
	for _, k := range m.in(queue, inState(broker.Claimed)) {
		if k.Consumer == "" {
			continue
		}
		w, known := want[k.Consumer]
		if !known || k.LastClaim < w.Since {
			w.Since = k.LastClaim
		}
		w.Name, w.Claimed, w.IDs = k.Consumer, w.Claimed+1, append(w.IDs, k.ID)
		want[k.Consumer] = w
	}
	m.same("workers", got, want)
}

// startsAgain does to the model what the time that a server is down does. The marks are those that
// the store has by then.
func (m *workModel) startsAgain(marks content.Marks) {
	next := max(1, int64(marks.NextSeq-1<<63)) // no packet and no claim has 0
	if last := len(m.receipts) - 1; last >= 0 && next <= m.receipts[last].Token {
		m.t.Fatalf("the next number is %d after a claim with the token %d", next, m.receipts[last].Token)
	}
	m.next, m.low = next, int64(marks.LowSeq-1<<63) // those of packets that came and went may return
	for _, k := range m.tasks {
		k.leaseEnd = k.until
		if whole := k.until - k.LastClaim; whole > 0 && k.until-m.now.Load() > 2*whole {
			k.leaseEnd = m.now.Load() + whole
		}
		if k.State == broker.Ready && k.until > m.now.Load() { // the clock was put back
			k.State = broker.Delayed
		}
	}
	m.advance()
}

// crash starts anew without what is called before the store has it.
func (m *workModel) crash(t *rapid.T) {
	m.killed(func(tx *broker.Tx) {
		queue := []byte(drawQueue(t))
		_, _ = tx.Push(broker.PushRequest{Queue: queue, Priority: 1, Payload: []byte("lost"), Unique: []byte("u")})
		_, _ = tx.Push(broker.PushRequest{Queue: queue, Priority: 1, Payload: []byte("lost"), Unique: []byte("u"), Window: 50})
		_ = reply(m.c)(tx.Claim(queue, broker.ClaimRequest{Selection: broker.Selection{Count: 2}}))
		name, r := m.drawReceipt(t)
		_, _ = tx.Ack([]byte(name), []broker.Receipt{r})
		name, r = m.drawReceipt(t)
		_, _ = tx.Nack([]byte(name), r, broker.Nack{Dead: true})
		if rapid.Bool().Draw(t, "drop") {
			_, _ = tx.Delete([]byte(drawQueue(t)))
		}
	})
}

// sameStore holds what the store has against the model.
func (m *workModel) sameStore() {
	stored, ids, tags := map[uint64]bool{}, map[uint64]string{}, map[uint64][]broker.PacketTag{}
	for id, record := range m.store.packets {
		var p content.Packet
		m.check(content.DecodeRecord(record, &p))
		identity := cmp.Or(p.Identity, id.Seq)
		stored[identity], tags[identity] = true, p.Tags
	}
	windows := 0
	m.check(m.store.Uniques(func(u *content.Unique) error {
		if u.Until != 0 {
			windows++
		} else {
			ids[u.Identity] += string(u.ID) // of two records it is no id
		}
		return nil
	}))
	if windows < len(m.windows) {
		m.t.Fatalf("%d windows are stored, want %d", windows, len(m.windows))
	}
	for _, k := range m.tasks {
		identity := uint64(k.ID) + 1<<63
		d, tried := m.store.states[identity]
		if !stored[identity] || tried != k.tried {
			m.t.Fatalf("packet %d is stored: %v, its delivery state: %v, want %v", k.ID, stored[identity], tried, k.tried)
		}
		m.same("stored id", ids[identity], k.unique)
		m.same("stored tags", tags[identity], k.tags)
		if tried && int(d.Attempts) != k.Attempts {
			m.t.Fatalf("packet %d has %d attempts in the store, want %d", k.ID, d.Attempts, k.Attempts)
		}
		m.same("stored as cancelled", d.Cancelled, k.Cancelled)
	}
	for identity := range m.store.states {
		if !stored[identity] && !m.expired[identity] {
			m.t.Fatalf("the delivery state of packet %d outlived it", int64(identity-1<<63))
		}
	}
}

// expire drops from the store what has expired, as the real one does.
func (m *workModel) expire() {
	maps.DeleteFunc(m.store.packets, func(id content.PacketID, record []byte) bool {
		var p content.Packet
		m.check(content.DecodeRecord(record, &p))
		identity := cmp.Or(p.Identity, id.Seq)
		expired := p.Expired(m.now.Load()) && !m.leased(m.store.states[identity])
		if expired {
			m.expired[identity] = true
		}
		return expired
	})
	m.tasks = slices.DeleteFunc(m.tasks, func(k *task) bool {
		return k.expiry != 0 && k.expiry <= m.now.Load() && (k.State != broker.Claimed || k.until <= m.now.Load())
	})
}

// leased says that somebody holds a packet with a delivery state, so that it does not expire.
func (m *workModel) leased(d content.Delivery) bool {
	return d.State == content.Claimed && d.Until > m.now.Load()
}

// restart starts the broker anew, on what the store has.
func (m *workModel) restart(crash bool, t *rapid.T) {
	m.compare()
	if crash {
		m.crash(t)
		for _, q := range m.lasting {
			q.most, q.counters = q.counters, nil
		}
	} else {
		m.check(m.b.Close())
	}
	m.sameStore()
	m.now.Add(rapid.SampledFrom([]int64{0, 0, 10, 50, -30}).Draw(t, "down"))
	m.expire()
	marks := m.store.control.Marks
	m.restarted()
	m.startsAgain(marks)
	m.tailAll()
}

func TestTheWorkQueueDoesWhatTheModelDoes(t *testing.T) {
	calls := strings.Split("push push push values claim claim claim ack ack nack nack nack extend progress pop "+
		"pop-key move-end update update settings pause close drop delete move cancel cancel cancel priority run run purge harvest redrive redrive move-many", " ")
	rapid.Check(t, func(t *rapid.T) {
		m := newWorkModel(t)
		defer func() { _ = m.b.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"calls": func(t *rapid.T) {
				m.do(func(tx *broker.Tx) error {
					m.tx = tx
					for range rapid.IntRange(1, 6).Draw(t, "n") {
						m.step(t, strings.ReplaceAll(rapid.SampledFrom(calls).Draw(t, "call"), "-", " "))
					}
					return nil
				})
			},
			"time passes": func(t *rapid.T) {
				m.pass(time.Duration(rapid.IntRange(1, 30).Draw(t, "ms")) * time.Millisecond)
			},
			"the clock is put": func(t *rapid.T) { m.now.Add(rapid.Int64Range(-40, 40).Draw(t, "ms")) },
			"restart":          func(t *rapid.T) { m.restart(false, t) },
			"crash":            func(t *rapid.T) { m.restart(true, t) },
			"":                 func(*rapid.T) { m.compare() },
		})
	})
}
