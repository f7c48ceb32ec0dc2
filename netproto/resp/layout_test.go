package resp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Redis does not have these, so nobody else says how many arguments they have and which are names:
// arity, first, last and step.
var places = map[string]string{
	"qack":       "-4 1 1 1",
	"qclaim":     "-2 0 0 0",
	"qclose":     "2 1 1 1",
	"qconsumers": "2 1 1 1",
	"qcancel":    "-3 1 1 1",
	"qproducers": "2 1 1 1",
	"qshare":     "-3 1 1 1",
	"qshares":    "-2 1 1 1",
	"qdel":       "-3 1 1 1",
	"qdrop":      "2 1 1 1",
	"qextend":    "5 1 1 1",
	"qget":       "2 1 1 1",
	"qharvest":   "-2 1 1 1",
	"qlen":       "2 1 1 1",
	"qlist":      "-2 1 1 1",
	"qload":      "-3 1 1 1",
	"qmove":      "-4 1 1 1",
	"qmpush":     "-4 1 1 1",
	"qnack":      "-4 1 1 1",
	"qpeek":      "-2 1 1 1",
	"qpop":       "-2 0 0 0",
	"qprio":      "4 1 1 1",
	"qprogress":  "-5 1 1 1",
	"qpause":     "-4 1 1 1",
	"qpurge":     "-2 1 1 1",
	"qrun":       "-3 1 1 1",
	"qpush":      "-3 1 1 1",
	"qredrive":   "-2 1 1 1",
	"qset":       "-4 1 1 1",
	"qshow":      "3 1 1 1",
	"qstat":      "2 1 1 1",
	"queues":     "-1 0 0 0",
}

func TestTheWorkQueueHasTheArityAndTheKeysThatAreListed(t *testing.T) {
	got, left := make(map[string]string), maps.Clone(places)
	for name, c := range newTable() {
		if strings.HasPrefix(name, "q") && name != "quit" {
			got[name] = fmt.Sprint(c.arity, c.first, c.last, c.step)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] != places[name] {
			t.Errorf("%q: %q,", name, got[name])
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("%v are no commands", left)
	}
}
