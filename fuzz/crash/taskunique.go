package crash

import "slices"

// window is longer than any run, in milliseconds.
const window = 3_600_000

// uniquePush is a unique push that has made a task, which any client may repeat: on the belt while
// the task is not finished, of chores within the window.
type uniquePush struct {
	of   *task
	args []string
}

// maxUnique is how many of them are known at most.
const maxUnique = 64

// repeatLocked notes a push that may be repeated, when it is known to have made a task.
func (t *tasks) repeatLocked(of *task) {
	if of.unique != nil && !slices.ContainsFunc(t.uniques, func(u uniquePush) bool { return u.of == of }) {
		t.uniques = append(t.uniques[max(0, len(t.uniques)+1-maxUnique):], uniquePush{of, of.unique})
	}
}

// pruneUniques forgets the pushes to the belt whose tasks are not there after a restart.
func (t *tasks) pruneUniques() {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := map[*task]bool{}
	for _, of := range t.all {
		there[of] = true
	}
	t.uniques = slices.DeleteFunc(t.uniques, func(u uniquePush) bool { return u.of.queue == belt && !there[u.of] })
}

// again adds a push that was made before. The reply must be the same id. It returns false if there
// is none.
func (c *taskClient) again() bool {
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.uniques) == 0 {
		return false
	}
	at := c.rng.IntN(len(t.uniques))
	push := t.uniques[at]
	if push.of.queue == belt && push.of.leaving {
		t.uniques = slices.Delete(t.uniques, at, at+1)
		return false
	}
	push.of.repeats++
	name := push.of.name
	op := taskOp{args: push.args, answer: func(reply any) {
		t.mu.Lock()
		defer t.mu.Unlock()
		push.of.repeats--
		if reply != name {
			c.r.report(Doubled, "a unique push to %s made %q, and %q when it was repeated", push.of.queue, name, reply)
		}
	}}
	c.link.addCommand(op.args...)
	c.ops = append(c.ops, op)
	return true
}
