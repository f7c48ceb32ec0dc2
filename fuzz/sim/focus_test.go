package sim

import (
	"math/rand/v2"
	"strings"
	"time"
)

// theme is what some seeds do much more of: commands, options and settings that belong together.
type theme struct {
	commands string
	options  string
	settings []string // a name with some values: QSET draws of these
	few      bool     // lists have few values, so that some are equal
	waits    bool
	rules    bool
	orders   bool
}

// themes are all of them. What is found in products of two features needs both of them often.
var themes = []theme{
	{commands: "QPUSH QCLAIM QCLAIM QACK QACK QNACK QEXTEND QPROGRESS QCANCEL QLIST", options: "COUNT FILL LEASE CONSUMER DELAY AT DEAD UNCOUNTED REASON",
		settings: []string{"lease 50 2000 60000", "max-attempts 0 1 2 3", "retain 0 2000 3600000 3600000"}},
	{commands: "QPUSH QCLAIM QNACK QNACK QREDRIVE QREDRIVE QHARVEST QMOVE QSHOW QLIST", options: "COUNT DEAD TO STATE DRYRUN OLDER REASON",
		settings: []string{"max-attempts 1 2", "dead-letter graves graves q2", "retain-dead 0 2000 3600000", "retain 0 2000 3600000"}},
	{commands: "QPUSH QPUSH QMPUSH QMOVE QCLAIM QNACK LSET QSTAT", options: "PRIO TTL DELAY BLOCK COUNT",
		settings: []string{"bound 1 2 3 10", "bound-bytes 0 4000 9500", "full reject drop drop block", "retain-dead 0 2000"}, waits: true},
	{commands: "QPUSH QCLAIM QCLAIM QCLAIM BLPOP BLMOVE QPAUSE QACK RENAME", options: "BLOCK COUNT FILL OR FILTER MATCH GROUP KEY NEWEST OLDEST TAG", waits: true},
	{commands: "QPUSH QPUSH QPUSH QCLAIM QDEL QCANCEL QMOVE QPRIO QSHOW", options: "UNIQUE UNIQUE WINDOW UNTIL REPLACE TELL TTL DELAY",
		settings: []string{"max-attempts 1 2", "dead-letter graves q2"}},
	{commands: "QPUSH QPUSH QCLAIM QCLAIM QNACK QSHARES QSHARE QPEEK QSET", options: "KEY TAG COUNT WEIGHT", rules: true,
		settings: []string{"share-by key key tag:kind no", "strict yes yes no", "share-max-claimed 0 1 2", "on-dead go-on hold"}},
	{commands: "QPUSH QPUSH QCLAIM QCLAIM QACK QSHARE QPEEK QSHARES QSTAT", options: "KEY COUNT FILL MAX-CLAIMED", rules: true,
		settings: []string{"share-by key", "rate no 2/1s 1/4s 2/1m", "share-rate no 2/1s 1/4s 1/20s", "rate-burst 0 1 2 5", "max-claimed 0 1 2", "share-max-claimed 0 1"}},
	{commands: "LPUSH RPUSH RPUSH LREM LREM LTRIM LINSERT LSET LPOS LRANGE LMOVE LMPOP QPUSH", options: "PRIO COUNT", few: true,
		settings: []string{"bound 0 5 10", "full reject drop"}},
	{commands: "RENAME RENAME DEL EXPIRE PEXPIRE PEXPIREAT PERSIST SET GET MSET SETRANGE INCR HSET QPUSH QCLAIM QDROP TTL", options: "TTL"},
	{commands: "WATCH WATCH QPUSH SET LPUSH DEL QDEL EXPIRE QRUN", options: "DELAY TTL", few: true},
	{commands: "QPUSH QPUSH QCLAIM QPEEK QLIST QPOP", options: "TAG TAG FILTER FILTER MATCH KEY COUNT", orders: true},
	{commands: "QPUSH QMPUSH QPRIO QPRIO QRUN QPURGE QCLAIM QLIST QMOVE", options: "PRIO KEY GROUP TO STATE FILTER COUNT DELAY"},
}

// focus has half of the seeds do much more of a theme.
func (w *world) focus(r *rand.Rand) {
	if w.swarm.exact = r.IntN(3) == 0; r.IntN(2) == 0 {
		return
	}
	t := themes[r.IntN(len(themes))]
	w.swarm.theme = t
	w.swarm.waits, w.swarm.rules, w.swarm.orders = w.swarm.waits || t.waits, w.swarm.rules || t.rules, w.swarm.orders || t.orders
}

// bring adds what a theme has to what clients of the seed do.
func (s *swarm) bring() {
	for _, name := range strings.Fields(s.theme.commands) {
		for range 1 + len(s.commands)/24 {
			s.commands = append(s.commands, name)
		}
	}
	for word := range strings.FieldsSeq(s.theme.options) {
		s.options[word] = true
	}
}

// themed draws a setting of the theme, nil if it has none.
func (w *world) themed() []string {
	if len(w.swarm.theme.settings) == 0 || w.chance(3) {
		return nil
	}
	f := strings.Fields(pick(w, w.swarm.theme.settings...))
	return []string{f[0], pick(w, f[1:]...)}
}

// lapse has time pass until a moment at which something is due, to the millisecond, or until a
// millisecond before or after.
func (w *world) lapse() {
	due := w.model.Due()
	if len(due) == 0 {
		return
	}
	by := time.UnixMilli(pick(w, due[:min(len(due), 3)]...) - w.skew + pick(w, int64(0), 0, 0, -1, 1))
	if d := time.Until(by); d > 0 && d < 2*time.Hour {
		time.Sleep(d)
	}
}
