package crash

import (
	"fmt"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
)

const hour = "3600000" // longer than any trial

// of is the full name of one of the worker's own.
func (w *worker) of(name string) string { return w.name + ":" + name }

// chance is true once in so many times.
func (w *worker) chance(n int) bool { return w.rng.IntN(n) == 0 }

func (w *worker) pick(all ...string) string { return all[w.rng.IntN(len(all))] }

// value makes a value that no other is equal to.
func (w *worker) value() string {
	w.serial++
	return fmt.Sprint(w.serial, ":", strings.Repeat("x", w.rng.IntN(w.size)))
}

// id is that of some packet of a queue.
func (w *worker) id(queue string) string {
	if ids := w.model.IDs(model.Key(0, w.of(queue))); len(ids) > 0 {
		return w.pick(ids...)
	}
	return "1"
}

// draw makes a call.
func (w *worker) draw() call {
	jobs := w.of("jobs")
	full := len(w.model.IDs(model.Key(0, jobs))) > w.most
	switch n := w.rng.IntN(100); {
	case n < 25 && !full:
		return call{w.push("jobs")}
	case n < 30 && !full:
		return call{{"QMPUSH", jobs, "3", w.value(), w.value(), w.value(), "PRIO", w.pick("1", "2", "3")}}
	case n < 45:
		return call{{"QCLAIM", jobs, "COUNT", w.pick("1", "2", "4"), "LEASE", hour, "CONSUMER", w.pick("a", "b")}}
	case n < 60:
		return w.answer()
	case n < 70:
		return call{w.change()}
	case n < 80:
		return call{w.list()}
	case n < 94:
		return call{w.write()}
	}
	all := call{{"MULTI"}, w.push("other"), w.write(), w.write()}
	if len(w.claims) > 0 {
		all = append(all, append([]string{"QACK", jobs}, w.receipt()...))
	}
	return append(all, []string{"EXEC"})
}

// push makes a push. A unique id is taken for an hour, or until its packet is gone.
func (w *worker) push(queue string) []string {
	words := []string{"QPUSH", w.of(queue), w.value(), "PRIO", w.pick("1", "2", "3")}
	if queue != "jobs" {
		return words
	}
	if w.chance(4) {
		words = append(words, "KEY", w.pick("k", "l"))
	}
	if w.chance(4) {
		words = append(words, "TAG", "of", w.pick("red", "blue"))
	}
	if w.chance(5) {
		words = append(words, "DELAY", hour)
	}
	if w.chance(4) {
		if words = append(words, "UNIQUE", fmt.Sprint("u", w.rng.IntN(200))); w.chance(2) {
			words = append(words, "WINDOW", hour)
		}
	}
	return words
}

// receipt takes one of the claims.
func (w *worker) receipt() []string {
	i := w.rng.IntN(len(w.claims))
	c := w.claims[i]
	w.claims = append(w.claims[:i:i], w.claims[i+1:]...)
	return c
}

// answer makes a call about a claim.
func (w *worker) answer() call {
	jobs := w.of("jobs")
	if len(w.claims) == 0 {
		return call{{"QPOP", jobs}}
	}
	c := w.claims[w.rng.IntN(len(w.claims))]
	switch w.rng.IntN(12) {
	case 0:
		return call{{"QPROGRESS", jobs, c[0], c[1], "50", "half"}}
	case 1:
		return call{{"QACK", jobs, c[0], "1"}} // of no claim
	case 2, 3:
		return call{append(append([]string{"QNACK", jobs}, w.receipt()...), "DELAY", w.pick("0", hour), "REASON", "again")}
	case 4:
		return call{append(append([]string{"QNACK", jobs}, w.receipt()...), "DEAD")}
	}
	return call{append([]string{"QACK", jobs}, w.receipt()...)}
}

// change makes a command about a packet by its id, or a setting.
func (w *worker) change() []string {
	jobs, id := w.of("jobs"), w.id("jobs")
	switch w.rng.IntN(8) {
	case 0:
		return []string{"QCANCEL", jobs, id}
	case 1:
		return []string{"QPRIO", jobs, id, w.pick("1", "2", "3")}
	case 2:
		return []string{"QRUN", jobs, id}
	case 3:
		return []string{"QDEL", jobs, id}
	case 4:
		return []string{"QMOVE", jobs, id, "TO", w.of("other")}
	case 5:
		return [][]string{{"QSET", jobs, "max-attempts", w.pick("2", "9")}, {"QSET", jobs, "retain", w.pick("0", hour)}}[w.rng.IntN(2)]
	}
	return []string{"QPOP", w.of("other"), "COUNT", "2"}
}

func (w *worker) list() []string {
	list, next := w.of("list"), w.of("next")
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		return []string{w.pick("RPUSH", "LPUSH"), list, w.value(), w.value()}
	case 3:
		return []string{"RPOPLPUSH", list, next}
	case 4:
		return []string{"LTRIM", next, "0", "20"}
	case 5:
		return []string{"LSET", list, "0", w.value()}
	case 6:
		return []string{"RENAME", list, next}
	}
	return []string{w.pick("LPOP", "RPOP"), w.pick(list, next)}
}

// write makes a command about a string or a hash.
func (w *worker) write() []string {
	text, field := w.of("text"), fmt.Sprint("f", w.rng.IntN(20))
	switch w.rng.IntN(8) {
	case 0:
		return []string{"SET", text, w.value()}
	case 1:
		return []string{"APPEND", text, "more"}
	case 2, 3:
		return []string{"INCRBY", w.of("count"), w.pick("1", "7")}
	case 4:
		return []string{"HDEL", w.of("hash"), field}
	case 5:
		return []string{"DEL", w.pick(text, w.of("hash"), w.of("count"))}
	}
	return []string{"HSET", w.of("hash"), field, w.value()}
}
