package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
)

// swarm says what clients of one seed do: each seed leaves out much, and so does more of the rest.
type swarm struct {
	commands []string // one as often as it is to be drawn
	options  map[string]bool
	second   bool     // they use a second database
	waits    bool     // some of them wait
	orders   bool     // queues have orders of tags
	rules    bool     // queues have shares, limits, rates and strict order; not beside small protocols yet
	settings []string // of these, that are drawn
	theme    theme    // of which it does much more
	exact    bool     // time passes until something is due
}

// often says how often commands of the work queue are drawn.
var often = map[string]int{
	"QPUSH": 24, "QMPUSH": 3, "QCLAIM": 16, "QPOP": 3, "QACK": 13, "QNACK": 8, "QEXTEND": 5, "QDEL": 2, "QCANCEL": 3, "QREDRIVE": 5,
	"QSET": 6, "QPAUSE": 3, "QLEN": 1, "QUEUES": 1, "QSTAT": 2, "QLIST": 2, "QPEEK": 2, "QGET": 1, "QSHARE": 1, "QSHOW": 3, "QCLOSE": 1, "QDROP": 1,
	"QMOVE": 3, "QPRIO": 3, "QRUN": 3, "QPURGE": 1, "QHARVEST": 2, "QPROGRESS": 2,
}

// drawSwarm draws what clients of a seed do. Whoever adds a word changes the seeds by it.
func (w *world) drawSwarm() {
	r := rand.New(rand.NewPCG(w.Seed, 11))
	w.swarm = swarm{options: map[string]bool{}, second: r.IntN(4) == 0, waits: r.IntN(3) == 0, orders: r.IntN(3) == 0, rules: r.IntN(3) == 0}
	w.focus(r)
	factor := map[string]int{"queue": 1}
	for _, group := range []string{"string", "hash", "generic", "list"} {
		factor[group] = []int{0, 0, 1, 1, 3}[r.IntN(5)]
	}
	few := r.IntN(4) == 0 // commands of the work queue
	ruled := model.Rules()
	slices.Sort(ruled)
	for _, name := range ruled {
		d := rows[name]
		n := factor[d.group]
		if d.group == "queue" {
			if n = often[name]; few {
				n = (n + 5) / 6
			}
		} else if few {
			n *= 2
		}
		if name == "FLUSHALL" || name == "FLUSHDB" {
			n = min(n, r.IntN(3))
		}
		if strings.HasPrefix(name, "B") && !w.swarm.waits {
			n = 0
		} else if strings.HasPrefix(name, "B") {
			n *= 3
		}
		for range n {
			w.swarm.commands = append(w.swarm.commands, name)
		}
		for _, o := range d.row.Options() {
			w.swarm.options[o.Word] = true
		}
	}
	for _, word := range slices.Sorted(maps.Keys(w.swarm.options)) {
		w.swarm.options[word] = !unruled[word] && (word != "BLOCK" || w.swarm.waits) && r.IntN(4) > 0
	}
	w.swarm.bring()
	if w.swarm.rules = w.swarm.rules && !w.isSmall(); w.swarm.rules {
		w.drawRules(r)
	}
}

// unruled are options that the model has no rule for, and those that only some seeds have:
// seeds with rules, and FILL those of some themes.
var unruled = map[string]bool{
	"FILL": true, "SHARE": true, "HOLD": true, "COST": true, "RATE": true, "FORCE": true, "CURSOR": true, "AFTER": true,
}
