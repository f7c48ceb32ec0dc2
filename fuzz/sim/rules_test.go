package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// drawRules draws what clients do of a seed whose queues have shares, limits, rates and strict
// order.
func (w *world) drawRules(r *rand.Rand) {
	for _, name := range []string{"QSET", "QSHARE", "QSHARES", "QPEEK", "QSHOW", "QPUSH", "QCLAIM", "QCLAIM", "QPOP"} {
		w.swarm.commands = append(w.swarm.commands, name, name, name, name)
	}
	for _, word := range []string{"SHARE", "HOLD", "COST", "RATE", "FORCE"} {
		w.swarm.options[word] = r.IntN(4) > 0
	}
	for _, word := range []string{"KEY", "TAG", "COUNT"} {
		w.swarm.options[word] = true
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) { // each has few of them, and so more of those
		if r.IntN(3) > 0 || name == "share-by" {
			w.swarm.settings = append(w.swarm.settings, name)
		}
	}
	if w.swarm.options["SHARE"] { // which is an error of a queue that is there, so who names several may get it or not
		w.swarm.options["OR"] = false
	}
	if w.swarm.waits { // who waits for a share that is none any more is told so some time later
		w.swarm.options["SHARE"] = false
	}
}

// kinds are the settings that are drawn, with their values.
var kinds = map[string][]string{
	"share-by": {"key", "key", "tag:kind", "tag:kind", "tag:kind", "no"}, "max-claimed": {"0", "1", "2", "5"}, "share-max-claimed": {"0", "1", "2"},
	"rate": rates, "share-rate": rates, "rate-burst": {"0", "1", "2", "5"}, "on-dead": {"go-on", "hold"}, "bound-share": {"0", "2", "8"},
	"strict": {"yes", "yes", "no"},
}

// rates are some that are slow, so that a start goes on with them, and some that are not.
var rates = []string{"no", "no", "100/1s", "10/1s", "2/1s", "1/4s", "2/1m", "1/20s", "1/1h"}

// ruled draws what only such seeds send, nil if it is as ever.
func (w *world) ruled(c *client, name string) []string {
	switch {
	case name == "QSET" && w.chance(3):
		return nil
	case name == "QSET":
		words := []string{name, pick(w, "q1", "q1", "q1", "q2")}
		for more := true; more; more = w.chance(3) {
			set := w.themed()
			if set == nil {
				set = w.setting()
			}
			if !slices.Contains(words, set[0]) {
				words = append(words, set...)
			}
		}
		if w.swarm.options["FORCE"] && w.chance(8) {
			words = append(words, "FORCE")
		}
		return words
	case name == "QPUSH":
		words := w.byRow(c, name)
		for _, more := range [][]string{{"KEY", pick(w, "k", "k", "l")}, {"TAG", "kind", pick(w, "a", "b", "9")}} {
			if len(words) > 2 && !slices.Contains(words, more[0]) && w.chance(2) {
				words = append(words, more...)
			}
		}
		return words
	case name == "QMOVE", name == "QREDRIVE":
		words := w.byRow(c, name)
		if slices.Contains(words, "COUNT") || len(words) > 2 && words[2] == "TO" || name == "QREDRIVE" && len(words) != 3 {
			return []string{"QPEEK", w.queue()} // which of them goes is for the server to choose, and nobody is told
		}
		return words
	}
	return nil
}

// setting draws the name and value of one.
func (w *world) setting() []string {
	name := pick(w, w.swarm.settings...)
	return []string{name, pick(w, kinds[name]...)}
}

// ruledValue is value of what has another one in such seeds, and else "-".
func (d *drawing) ruledValue(what string) string {
	_, word, _ := strings.Cut(what, " ")
	switch {
	case what == "SHARE name" || word == "share":
		return pick(d.world, "k", "l", "a", "b", "")
	case what == "RATE n/period":
		return pick(d.world, rates...)
	case what == "COST n":
		return pick(d.world, "1", "2", "3", "3", "1000000")
	case what == "HOLD ms":
		return pick(d.world, "0", "1500", "4000", "60000", fmt.Sprint(d.r.IntN(90_000_000)))
	case what == "KEY k":
		return pick(d.world, "k", "k", "l", strings.Repeat("k", 256))
	}
	return "-"
}
