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
	if u.alarm == 0 && at != 0 {
		u.alarm = x.timers.Alloc()
		t := x.timers.At(u.alarm)
		t.entry, t.delivery = uint32(q), alarmTimer
	}
	if u.alarm == 0 {
		return
	}
	x.timers.schedule(u.alarm, wall, at)
	if at == 0 {
		x.timers.Free(u.alarm)
		u.alarm = 0
	}
}
