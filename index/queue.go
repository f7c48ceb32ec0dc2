package index

import (
	"errors"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// QueueID is the number of a queue in an [Index]; 0 is none.
type QueueID uint32

// Counts says what a queue holds. An expired packet counts until Advance removes it.
type Counts struct {
	Ready        int   // packets that a selection can take
	Unselectable int   // ready packets of priority 0
	Delayed      int   // packets that wait for their not-before time
	Claimed      int   // packets that a consumer has claimed
	Dead         int   // packets that were tried too often
	Done         int   // packets that were acknowledged and are still kept
	Damaged      int   // packets whose records cannot be read
	Priorities   int   // distinct priorities of the Ready; one that two lanes have counts twice
	Bytes        int64 // sizes of all of them
	Ended        int64 // and of those that are Dead, Done or Damaged
	Strays       int   // packets with an origin that are neither Done nor Damaged
}

// Len is the number of packets in any state.
func (c Counts) Len() int {
	return c.Ready + c.Unselectable + c.Delayed + c.Claimed + c.Dead + c.Done + c.Damaged
}

// Unfinished is the number and the bytes of the packets that are Ready, Delayed or Claimed.
func (c Counts) Unfinished() (packets int, bytes int64) {
	return c.Ready + c.Unselectable + c.Delayed + c.Claimed, c.Bytes - c.Ended
}

// Errors of DropQueue.
var (
	ErrUnknownQueue = errors.New("index: no queue has this number: expected one that AddQueue returned and that was not dropped")
	ErrNotEmpty     = errors.New("index: the queue still holds packets or windows: remove them before it is dropped")
)

// queue is one ordered set of packets.
type queue struct {
	ready      int // as of Counts, and so on
	priorities int32
	strays     int32
	bytes      int64
	lanes                  // home is 0 while the slot is free
	byState    uint32      // 0 while all its packets can be selected; links free slots
	alarm      uint32      // a timer; 0: none
	wakeup     uint32      // a timer, see wakes.go; 0: none
	shape      uint32      // as of Shape
	values     *tree.Tree  // the selectable packets by hash; nil until a search wants it, and while none is ready
	fresh      *freshLanes // nil unless NoteFresh wants it
	shares     *sharing    // nil unless ShareBy wants it
	rules      *rules      // nil: none
}

func (u *queue) FreeLink() *uint32 { return &u.byState }

// rules are what only some queues have.
type rules struct {
	Limits
	gate             // but for claimed and rest
	told     int64   // when the rate is looked at again, in milliseconds of the steady clock; 0: never
	charged  bool    // it is in Index.charged
	keepDead int64   // as of KeepDead
	strict   *strict // nil: none
}

func (u *queue) keepDead() int64 {
	if u.rules == nil {
		return 0
	}
	return u.rules.keepDead
}

// setRules changes the rules of a queue. They stay while told has a moment to come.
func (u *queue) setRules(change func(r *rules)) {
	var r rules
	if u.rules != nil {
		r = *u.rules
	}
	if change(&r); r.Limits == (Limits{}) && r.keepDead == 0 && r.strict == nil && r.told == 0 {
		u.rules = nil
		return
	}
	u.rules = &r
}

// AddQueue makes an empty queue. The numbers of dropped queues are used again.
func (x *Index) AddQueue() QueueID {
	q, home := QueueID(x.queues.Alloc()), LaneID(x.lanes.Alloc())
	*x.lanes.At(uint32(home)) = lane{id: home, queue: q}
	x.queues.At(uint32(q)).home = home
	return q
}

// DropQueue removes a queue without packets and windows. ErrUnknownQueue, ErrNotEmpty.
func (x *Index) DropQueue(q QueueID) error {
	if !x.hasQueue(q) {
		return ErrUnknownQueue
	}
	u := x.queues.At(uint32(q))
	if u.ready > 0 || u.byState != 0 || x.HasWindow(q) {
		return ErrNotEmpty
	}
	x.SetAlarm(q, 0)
	x.SetLimits(q, Limits{})
	u.shares = nil
	x.scheduleWakes(u)
	x.dropTwin(u.home)
	x.lanes.Free(uint32(u.home))
	x.queues.Free(uint32(q))
	return nil
}

// Counts returns what a queue holds; nothing for an unknown one. O(1).
func (x *Index) Counts(q QueueID) Counts {
	if !x.hasQueue(q) {
		return Counts{}
	}
	u := x.queues.At(uint32(q))
	c := Counts{Ready: u.ready, Priorities: int(u.priorities), Bytes: u.bytes, Strays: int(u.strays)}
	if u.byState != 0 {
		a := x.byStates.At(u.byState)
		c.Unselectable, c.Delayed, c.Claimed = a.count(Ready), a.count(Delayed), a.count(Claimed)
		c.Dead, c.Done, c.Damaged, c.Ended = a.count(Dead), a.count(Done), a.count(Damaged), a.ended
	}
	return c
}

func (x *Index) hasQueue(q QueueID) bool {
	return x.queues.Has(uint32(q)) && x.queues.At(uint32(q)).home != 0
}
