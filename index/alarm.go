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
	x.scheduleQueue(&x.queues.At(uint32(q)).alarm, q, alarmTimer, wall, at)
}
