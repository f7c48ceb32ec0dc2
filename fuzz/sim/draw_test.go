package sim

import (
	"fmt"
	"strings"
)

// ends is a queue that is closed, and dropped. Nothing dies to or from there.
const ends = "ends"

var queues = []string{"q1", "q2", "graves", ends}

func (w *world) chance(of int) bool { return w.r.IntN(of) == 0 }

func pick[T any](w *world, all ...T) T { return all[w.r.IntN(len(all))] }

func (w *world) payload() string {
	w.payloads++
	p := fmt.Sprint("p", w.payloads) + strings.Repeat("x", pick(w, 0, 0, 0, 100, 1500, 9000))
	w.drawn[p] = true
	return p
}

// ms draws a time: mostly one that passes soon.
func (w *world) ms() string {
	return fmt.Sprint(1 + w.r.Int64N(pick(w, int64(100), 2000, 2000, 5000, 30_000, 7_200_000)))
}

// moment draws one, mostly to come.
func (w *world) moment() string { return fmt.Sprint(max(0, w.wall()-500+w.r.Int64N(5000))) }

// command draws a command, which may be of a claim that ends meanwhile.
func (w *world) command() []string {
	q := pick(w, queues[0], queues[0], queues[1], queues[2])
	switch {
	case w.chance(12):
		q = ends
	case w.chance(12):
		return w.value(pick(w, values...))
	}
	switch n := w.r.IntN(100); {
	case n < 26:
		return w.push(q)
	case n < 42:
		return w.take("QCLAIM", q)
	case n < 45:
		return w.take("QPOP", q)
	case n < 70:
		return w.answer(q)
	case n < 72:
		return w.named("QDEL", q)
	case n < 75:
		return w.named("QCANCEL", q)
	case n < 80:
		return w.redrive(q)
	case q == ends && n < 84:
		return []string{pick(w, "QCLOSE", "QDROP"), q}
	case n < 85:
		return w.set(q)
	case n < 88:
		c := []string{"QPAUSE", q}
		if w.chance(2) {
			c = append(c, "IN")
		}
		return append(c, "UNTIL", w.moment())
	case n < 90:
		return []string{"QLEN", q}
	case n < 92:
		return []string{"QSTAT", q}
	case n < 94:
		return []string{"QLIST", q, "COUNT", "1000"}
	case n < 96:
		return []string{"QPEEK", q, "COUNT", "3"}
	case n < 97:
		return []string{"QGET", q}
	case n < 98:
		return w.share(q)
	}
	return []string{"QSHOW", q, w.id(q)}
}

// values are the names of strings.
var values = []string{"s1", "s2", "s3"}

func (w *world) value(name string) []string {
	switch w.r.IntN(6) {
	case 0:
		return []string{"GET", name}
	case 1:
		return []string{"DEL", name}
	}
	return []string{"SET", name, w.payload()}
}

func (w *world) push(q string) []string {
	c := []string{"QPUSH", q, w.payload()}
	if w.chance(4) {
		c = append(c, "UNIQUE", pick(w, "u", "v"))
		switch w.r.IntN(4) {
		case 0, 1:
			c = append(c, "WINDOW", w.ms())
		case 2:
			c = append(c, "UNTIL", pick(w, "claim", "claim", "end"))
		}
		if w.chance(2) {
			c = append(c, "TELL")
		}
	} else if w.chance(8) {
		c = []string{"QMPUSH", q, "3", w.payload(), w.payload(), w.payload()}
	}
	if w.chance(2) {
		c = append(c, "PRIO", fmt.Sprint(1+w.r.IntN(3)))
	}
	if w.chance(4) {
		c = append(c, "KEY", pick(w, "k", "l"))
	}
	if w.chance(4) {
		c = append(c, "TAG", "kind", pick(w, "a", "b", "9"))
	}
	if w.chance(4) {
		c = append(c, "TAG", "size", fmt.Sprint(1+w.r.IntN(12)))
	}
	if w.chance(3) {
		c = append(c, "TTL", w.ms())
	}
	if w.chance(5) {
		c = append(c, "LEASE", w.ms())
	}
	switch w.r.IntN(8) {
	case 0, 1:
		c = append(c, "DELAY", w.ms())
	case 2:
		c = append(c, "AT", w.moment())
	}
	return c
}

func (w *world) take(word, q string) []string {
	c := []string{word, q}
	switch w.r.IntN(9) {
	case 0, 1, 2:
		c = append(c, "COUNT", fmt.Sprint(1+w.r.IntN(4)))
	case 3:
		c = append(c, "GROUP")
	}
	if w.chance(6) {
		op := func() string { return pick(w, "eq", "eq", "ne", "lt", "le", "gt", "ge") }
		if c = append(c, "FILTER", "kind", op(), pick(w, "a", "b", "10")); w.chance(2) {
			c = append(c, "FILTER", "size", op(), fmt.Sprint(1+w.r.IntN(12)), "MATCH")
			if c = append(c, pick(w, "ALL", "ANY")); c[len(c)-1] == "ANY" {
				c = append(c, "1")
			}
		}
	}
	if word == "QPOP" {
		return c
	}
	if w.chance(2) {
		c = append(c, "LEASE", w.ms())
	}
	if w.chance(3) {
		c = append(c, "CONSUMER", pick(w, "w1", "w2"))
	}
	return c
}

// id draws the id of a packet of a queue, or one that is none.
func (w *world) id(q string) string {
	if ids := w.model.IDs(q); len(ids) > 0 && !w.chance(12) {
		return pick(w, ids...)
	}
	return fmt.Sprint(w.r.Int64N(w.model.Next() + 2))
}

func (w *world) named(word, q string) []string {
	c := []string{word, q, w.id(q)}
	if w.chance(4) {
		c = append(c, w.id(q))
	}
	return c
}

// answer draws a command about a claim.
func (w *world) answer(q string) []string {
	claims := w.model.Claims()
	if len(claims) == 0 {
		return w.take("QCLAIM", q)
	}
	k := pick(w, claims...)
	c := []string{"QACK", k.Queue, k.ID, k.Token}
	switch n := w.r.IntN(10); {
	case n < 5:
		if o := pick(w, claims...); w.chance(4) && o != k {
			c = append(c, o.ID, o.Token)
		}
		return c
	case n < 7:
		c[0] = "QEXTEND"
		return append(c, w.ms())
	}
	c[0] = "QNACK"
	switch n := w.r.IntN(10); {
	case n < 2 && w.model.Backs(k.Queue):
	case n < 6:
		c = append(c, "DELAY", pick(w, "0", w.ms()))
	case n < 8:
		c = append(c, "AT", w.moment())
	default:
		c = append(c, "DEAD")
	}
	if w.chance(6) && c[len(c)-1] != "DEAD" {
		c = append(c, "UNCOUNTED")
	}
	if w.chance(2) {
		c = append(c, "REASON", pick(w, "boom", "ValueError: 7"))
	}
	return c
}

func (w *world) redrive(q string) []string {
	c := []string{"QREDRIVE", q}
	switch w.r.IntN(3) {
	case 0:
		return append(c, w.id(q))
	case 1:
		c = append(c, "COUNT", fmt.Sprint(1+w.r.IntN(3)))
	}
	if w.chance(3) {
		c = append(c, "TO", pick(w, queues...))
	}
	if len(c) == 2 {
		c = append(c, "COUNT", "1000")
	}
	return c
}

// share draws what a share has of its own. No queue is shared out yet.
func (w *world) share(q string) []string {
	c := []string{"QSHARE", q, pick(w, "k", "l")}
	switch w.r.IntN(4) {
	case 0:
		return append(c, "RESET")
	case 1:
		return append(c, "MAX-CLAIMED", fmt.Sprint(1+w.r.IntN(4)))
	}
	return append(c, "WEIGHT", fmt.Sprint(2+w.r.IntN(4)))
}

func (w *world) set(q string) []string {
	c := []string{"QSET", q}
	switch n := w.r.IntN(10); {
	case n == 0:
		return append(c, "lease", w.ms())
	case n < 3 || q == ends:
		return append(c, "max-attempts", pick(w, "0", "1", "2", "3"))
	case n == 3:
		return append(c, "dead-letter", pick(w, "", "graves", "graves", "q2"))
	case n == 4:
		return append(c, "retain", pick(w, "0", "2000", "3600000"))
	case n == 5:
		return append(c, "backoff-min", pick(w, "0", "4"), "backoff-max", "9")
	case n == 6:
		return append(c, pick(w, "pause-in", "pause-out"), pick(w, "yes", "no", "no"))
	}
	c[1] = queues[0] // of two queues the one or the other follows first, and packets die to the others in any order
	switch w.r.IntN(4) {
	case 0:
		return append(c, "bound", pick(w, "0", "3", "10", "40"))
	case 1:
		return append(c, "bound-bytes", pick(w, "0", "4000", "20000"), "full", pick(w, "reject", "drop"))
	case 2:
		return append(c, "full", pick(w, "reject", "drop", "drop"), "bound", pick(w, "0", "5", "20"))
	}
	return append(c, "retain-dead", pick(w, "0", "2000", "3600000"))
}
