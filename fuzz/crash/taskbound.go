package crash

import (
	"fmt"
	"slices"
	"strings"
)

// The work queues with a bound. Pushes to the belt wait for room, and it is closed at times. The
// crate refuses what is too much in bytes. The shelf drops its worst tasks, and is paused at times.
// No task of theirs dies.
const (
	belt  = "belt"
	crate = "crate"
	shelf = "shelf"
	bound = 16
	// boundBytes is that of the crate. There are tasks that are larger.
	boundBytes = 1000
)

func bounded(queue string) bool { return queue == belt || queue == crate || queue == shelf }

// workQueues are those that tasks are pushed to.
func workQueues() []string { return []string{jobs, chores, belt, crate, shelf} }

// paused says whether the shelf is, by a value of its settings.
func paused(value int64) bool { return value%3 == 1 }

// settingsOf are the settings of a queue, as QSET takes them. Some of the shelf follow from value.
func settingsOf(queue string, value int64) []string {
	attempts := []string{"max-attempts", decimal(maxAttempts), "backoff-min", decimal(backoffMin), "backoff-max", decimal(firstValue)}
	enum := append([]string{"enum", "class"}, classes()...)
	limits := []string{"max-attempts", "0", "bound", decimal(bound)}
	switch queue {
	case deadJobs:
		return []string{"max-attempts", "0"}
	case jobs:
		return slices.Concat(attempts, []string{"dead-letter", deadJobs, "retain", "0"}, enum)
	case chores:
		return slices.Concat(attempts, []string{"dead-letter", "", "retain", decimal(retain)}, enum)
	case belt:
		return slices.Concat(limits, []string{"full", "block"}, enum)
	case crate:
		return slices.Concat(limits, []string{"bound-bytes", decimal(boundBytes), "full", "reject"}, enum)
	}
	pause := "no"
	if paused(value) {
		pause = "yes"
	}
	return slices.Concat(limits, []string{"full", "drop", "backoff-max", decimal(value), "pause-in", pause}, enum, []string{"v" + decimal(value)})
}

// shows says that QGET has found these settings.
func shows(found map[string]any, settings []string) bool {
	for i := 0; i < len(settings); i += 2 {
		if settings[i] == "enum" {
			return fmt.Sprint(found["enum"]) == fmt.Sprint([]any{settings[i+1], settings[i+2:]})
		}
		if fmt.Sprint(found[settings[i]]) != settings[i+1] {
			return false
		}
	}
	return true
}

// gates is what is known of the gates of the queues at a moment.
type gates struct {
	closed bool  // the belt surely was
	value  int64 // of the shelf's settings, or a later one
}

func (t *tasks) gates() gates {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := gates{closed: t.closed}
	if len(t.settings) > 0 {
		g.value = t.settings[0]
	}
	return g
}

// shut says whether the gate of a queue was shut all the time since then, or may have been some
// time.
func (t *tasks) shut(queue string, since gates) (surely, maybe bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch queue {
	case belt:
		return since.closed, t.closing
	case shelf:
		surely = true
		for v := since.value; v <= t.settings[len(t.settings)-1]; v++ {
			surely, maybe = surely && paused(v), maybe || paused(v)
		}
	}
	return surely, maybe
}

// leave notes that the ack of a task may be about to be sent. It returns false if that must not be,
// because its push is being repeated.
func (t *tasks) leave(of *task) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of.queue == belt && of.repeats > 0 {
		return false
	}
	if of.queue == belt && of.pushed && !of.leaving {
		t.sure--
	}
	of.leaving = true
	return true
}

// refuse notes that a push has added no task. It returns false if a client has claimed it.
func (t *tasks) refuse(id ID, of *task) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bounded(of.queue) || len(of.turns) > 1 {
		return false
	}
	delete(t.all, id)
	return true
}

// miss is a task that the shelf has dropped, or did not take.
type miss struct {
	id       ID
	priority int64
	since    int64 // this happened later
}

// missed notes that the shelf did not take a task.
func (t *tasks) missed(id ID, of *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.misses = append(t.misses, miss{id, of.priority, of.turns[0].asked})
}

// stayed is a task that was on the shelf, and nobody claimed it, from a moment to the restart.
type stayed struct {
	id       ID
	priority int64
	since    int64
}

// rested says that a task was surely not claimed since its last turn, which is its first, began.
func (t *task) rested(s *shownTask) bool {
	first := t.turns[0]
	return len(t.turns) == 1 && first.came != 0 && first.returned && !first.reasoned && first.returning == 0 &&
		s.token == 0 && s.attempt == first.attempt
}

// checkMissesLocked looks for tasks that were dropped in the place of worse ones.
func (r *run) checkMissesLocked(all []stayed) {
	for _, m := range r.tasks.misses {
		at := slices.IndexFunc(all, func(s stayed) bool { return s.priority > m.priority && s.since <= m.since })
		if at >= 0 {
			r.report(Dropped, "task %v of priority %d was dropped, and %v of %d was there and stayed", m.id, m.priority, all[at].id, all[at].priority)
		}
	}
	r.tasks.misses = nil
}

// checkBound compares the unfinished packets that a queue shows with its bound, and with what QSTAT
// and QLEN count.
func (r *run) checkBound(queue string, shown []shownTask, stat map[string]any, length any) {
	n, bytes := int64(0), int64(0)
	for i := range shown {
		if shown[i].state != "dead" && shown[i].state != "done" {
			n++
			bytes += shown[i].bytes
		}
	}
	counted := int64(0)
	for _, state := range []string{"ready", "hidden", "delayed", "claimed"} {
		of, _ := stat[state].(int64)
		counted += of
	}
	switch {
	case n > bound && bounded(queue) || bytes > boundBytes && queue == crate:
		r.report(Overfull, "%d packets with %d bytes are in %s, whose bound is %d", n, bytes, queue, bound)
	case bounded(queue) && (counted != n || length != n || stat["bytes"] != bytes):
		r.report(Counters, "%s has %d packets with %d bytes, QSTAT counts %d with %v and QLEN %v", queue, n, bytes, counted, stat["bytes"], length)
	}
}

// close closes the belt.
func (c *taskClient) close() {
	t := c.r.tasks
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	args := []string{"QCLOSE", belt}
	c.add(taskOp{args: args, answer: func(reply any) {
		if _, ok := reply.(int64); !ok {
			c.unexpected(args, reply)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.closed = true
	}})
}

// drained says that a reply to a claim tells that the belt is closed and empty.
func (c *taskClient) drained(queues []string, reply any) bool {
	text, _ := reply.(replyError)
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	others := slices.ContainsFunc(queues, func(queue string) bool { return queue != belt })
	if !strings.HasPrefix(string(text), "CLOSED ") || others || !t.closing {
		return false
	}
	if t.sure > 0 {
		c.r.report(Lost, "%s is said to be drained, and %d tasks are there", belt, t.sure)
	}
	return true
}

// reopen makes the belt again if it is closed. It is empty.
func (r *run) reopen(link *link) error {
	if !r.tasks.closed {
		return nil
	}
	replies, err := link.ask([][]string{{"QCLAIM", belt}, {"QDROP", belt}, append([]string{"QSET", belt}, settingsOf(belt, 0)...)})
	if err != nil {
		return err
	}
	if !strings.HasPrefix(replies[0], "-CLOSED ") || replies[1] != replyOK || replies[2] != replyOK {
		r.report(Open, "the replies to a claim of a closed queue, and to making it again, are %q", replies)
	}
	t := r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing, t.closed, t.sure = false, false, 0
	for name := range t.counters {
		if name.queue == belt {
			delete(t.counters, name)
		}
	}
	return nil
}
