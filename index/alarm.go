package index

// alarmTimer marks a timer that is the alarm of a queue, in place of a delivery: its entry is the
// queue.
const alarmTimer = ^uint32(0) - 1

// SetAlarm has Advance tell of a queue at a moment in Unix milliseconds, once, in place of what was
// set before; 0: never. Nothing for an unknown queue. O(log n).
func (x *Index) SetAlarm(q QueueID, at int64) {
	if !x.hasQueue(q) {
		return
	}
	u := x.queues.At(uint32(q))
	x.scheduleQueue(&u.alarm, u, alarmTimer, wall, at)
}

// scheduleQueue brings a timer of a queue, 0 while it has none, to a moment; at 0 it goes.
func (x *Index) scheduleQueue(timer *uint32, u *queue, kind uint32, c clock, at int64) {
	if *timer == 0 && at != 0 {
		*timer = x.timers.Alloc()
		t := x.timers.At(*timer)
		t.entry, t.delivery = uint32(x.lanes.At(uint32(u.home)).queue), kind
	}
	if *timer == 0 {
		return
	}
	if x.timers.schedule(*timer, c, at); at == 0 {
		x.timers.Free(*timer)
		*timer = 0
	}
}
