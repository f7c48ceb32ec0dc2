package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
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

// command draws a command of a client, which may be of a claim that ends meanwhile.
func (w *world) command(c *client) []string {
	name := pick(w, w.swarm.commands...)
	if w.swarm.rules {
		if words := w.ruled(c, name); words != nil {
			return words
		}
	}
	switch name {
	case "QACK", "QNACK", "QEXTEND", "QPROGRESS":
		return w.answer(c, name)
	case "QSET":
		return w.set(w.queue())
	case "QPAUSE":
		words := []string{name, w.queue()}
		if w.chance(2) {
			words = append(words, "IN")
		}
		return append(words, "UNTIL", w.moment())
	case "QCLOSE", "QDROP":
		return []string{name, ends}
	default:
		return w.byRow(c, name)
	}
}

func (w *world) queue() string { return pick(w, queues[0], queues[0], queues[1], queues[2], ends) }

// strs and hashes are names of strings and hashes, mostly.
var (
	strs   = []string{"s1", "s2", "s3"}
	hashes = []string{"h1", "h2"}
)

// id draws the id of a packet of a queue, or one that is none.
func (d *drawing) id(q string) string {
	if ids := d.model.IDs(string(d.c.db) + q); len(ids) > 0 && !d.chance(12) {
		return pick(d.world, ids...)
	}
	return fmt.Sprint(d.r.Int64N(d.model.Next() + 2))
}

// answer draws a command about a claim.
func (w *world) answer(c *client, name string) []string {
	claims := slices.DeleteFunc(w.model.Claims(), func(k model.Claim) bool { return k.Queue[0] != c.db })
	if len(claims) == 0 {
		return w.byRow(c, "QCLAIM")
	}
	k := pick(w, claims...)
	d := *rows[name]
	d.world, d.c, d.words = w, c, []string{name, k.Queue[1:], k.ID, k.Token}
	switch o := pick(w, claims...); {
	case name == "QEXTEND":
		return append(d.words, w.ms())
	case name == "QPROGRESS":
		d.arguments("percent [text]")
	case name == "QACK" && w.chance(4) && o != k:
		d.words = append(d.words, o.ID, o.Token)
	}
	d.options()
	given := func(word string) bool { return slices.Contains(d.words, word) }
	if name == "QNACK" && !given("DELAY") && !given("AT") && !given("DEAD") && !w.model.Backs(k.Queue) {
		d.words = append(d.words, "DELAY", pick(w, "0", w.ms()))
	}
	return d.words
}

func (w *world) set(q string) []string {
	c := []string{"QSET", q}
	full := []string{"reject", "drop"}
	if w.swarm.waits {
		full = append(full, "block", "block")
	}
	if set := w.themed(); set != nil && q != ends && !w.swarm.rules && !w.swarm.theme.rules {
		return append([]string{"QSET", queues[0]}, set...)
	}
	switch n := w.r.IntN(10); {
	case n == 9 && w.swarm.orders && w.chance(2):
		return append(c, pick(w, []string{"enum", "kind", "b", "10", "a"}, []string{"enum", "kind", "a", "9"}, []string{"enum", "kind", ""}, []string{"enum", "size", "9", "3", "1", "2"})...)
	case n == 0:
		return append(c, "lease", w.ms())
	case n < 2 || q == ends:
		return append(c, "max-attempts", pick(w, "0", "1", "2", "3"))
	case n == 3:
		return append(c, "dead-letter", pick(w, "", "graves", "graves", "q2"))
	case n == 2, n == 4:
		return append(c, "retain", pick(w, "0", "2000", "3600000", "3600000", "3600000"))
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
		return append(c, "bound-bytes", pick(w, "0", "4000", "20000"), "full", pick(w, full...))
	case 2:
		return append(c, "full", pick(w, append(full, "drop")...), "bound", pick(w, "0", "5", "20"))
	}
	return append(c, "retain-dead", pick(w, "0", "2000", "3600000"))
}
