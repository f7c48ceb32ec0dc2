package index

import "container/heap"

// alarm is the moment at which a key or a queue expires. Those that never do have none.
type alarm struct {
	at    int64 // Unix milliseconds
	pos   int   // place in the heap
	key   *Key
	queue QueueID
}

// moment is when the alarm goes off; 0 of none.
func (a *alarm) moment() int64 {
	if a == nil {
		return 0
	}
	return a.at
}

// alarms is a heap of alarms, the earliest first. They are few beside the packets' timers, and
// point to their keys.
type alarms struct{ heap alarmHeap }

// set makes what a points to the alarm that to describes; none if that has no moment.
func (s *alarms) set(a **alarm, to alarm) {
	old := *a
	switch {
	case old == nil && to.at == 0:
	case old == nil:
		added := to // to itself stays off the heap of Go
		*a = &added
		heap.Push(&s.heap, *a)
	case to.at == 0:
		heap.Remove(&s.heap, old.pos)
		*a = nil
	default:
		old.at = to.at
		heap.Fix(&s.heap, old.pos)
	}
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.pos = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}
