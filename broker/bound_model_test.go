package broker_test

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// drawBound gives settings a bound, unless packets die into the queue: which of several that die in
// one moment fit, the model does not know.
func (m *workModel) drawBound(t *rapid.T, queue string, s *broker.Settings) {
	if to := m.lasting[string(s.DeadLetter)]; to != nil && (to.Bound > 0 || to.BoundBytes > 0) {
		s.DeadLetter = nil
	}
	for _, q := range m.lasting {
		if string(q.DeadLetter) == queue {
			return
		}
	}
	s.Bound = max(0, rapid.Int64Range(-3, 5).Draw(t, "bound"))
	s.BoundBytes = max(0, rapid.Int64Range(-8000, 8000).Draw(t, "bound bytes"))
	s.Full = rapid.SampledFrom([]content.Full{content.FullReject, content.FullDrop}).Draw(t, "full")
}

// size is what a task counts for in a bound.
func (k *task) size() int {
	n := len(k.payload) + k.meta
	if k.key != nil {
		n += len(*k.key)
	}
	return n
}

func sizes(tasks []*task) (n int) {
	for _, k := range tasks {
		n += k.size()
	}
	return n
}

func (m *workModel) over(queue string, packets, bytes int) bool {
	s := m.settings(queue)
	return s.Bound > 0 && packets > int(s.Bound) || s.BoundBytes > 0 && bytes > int(s.BoundBytes)
}

// admit returns the error that a queue has for what comes. It drops what goes for that. Of priority
// 0 nothing is dropped for.
func (m *workModel) admit(queue string, packets, bytes int, priority uint32) error {
	return m.admitInstead(queue, packets, bytes, priority, nil)
}

// admitInstead is admit where a task goes for what comes, if it is not nil.
func (m *workModel) admitInstead(queue string, packets, bytes int, priority uint32, instead *task) error {
	if packets == 0 {
		return nil
	}
	if err := m.shut(queue); err != nil {
		return err
	}
	if instead != nil && bytes <= instead.size() {
		return nil
	}
	if m.over(queue, packets, bytes) {
		return broker.ErrTooLarge
	}
	held := m.in(queue, func(k *task) bool { return unfinished(k) && k != instead })
	packets, bytes = packets+len(held), bytes+sizes(held)
	if !m.over(queue, packets, bytes) || instead != nil && !m.over(queue, 0, bytes) { // or grows in its place
		return nil
	}
	if m.settings(queue).Full != content.FullDrop {
		return broker.ErrFull
	}
	worse := m.in(queue, func(k *task) bool { return k.State <= broker.Delayed && k.Priority-1 > priority-1 })
	slices.SortFunc(worse, func(a, b *task) int {
		return cmp.Or(cmp.Compare(b.Priority-1, a.Priority-1), cmp.Compare(b.seq, a.seq))
	})
	for i, k := range worse {
		if packets, bytes = packets-1, bytes-k.size(); !m.over(queue, packets, bytes) {
			for _, k := range worse[:i+1] {
				m.remove(k)
			}
			m.count(queue, broker.Counters{Dropped: uint64(i + 1)})
			return nil
		}
	}
	return broker.ErrDropped
}

// held is how much each queue holds that counts in its bound.
func (m *workModel) held() (held map[string][2]int) {
	held = map[string][2]int{}
	for _, queue := range workQueues {
		tasks := m.in(queue, unfinished)
		held[queue] = [2]int{len(tasks), sizes(tasks)}
	}
	return held
}

// keptBounds fails if a call has filled a queue beyond its bound.
func (m *workModel) keptBounds(before map[string][2]int) {
	m.t.Helper()
	for queue, now := range m.held() {
		was, s := before[queue], m.settings(queue)
		if s.Bound > 0 && now[0] > max(was[0], int(s.Bound)) || s.BoundBytes > 0 && now[1] > max(was[1], int(s.BoundBytes)) {
			m.t.Fatalf("%s holds %d packets with %d bytes, its bound is %d and %d", queue, now[0], now[1], s.Bound, s.BoundBytes)
		}
	}
}
