package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/fuzz/model"
)

// ruleless are the commands that the model has no rule for, by the reason why. A word stands for
// all commands that begin with it.
var ruleless = map[string]string{
	"about the connection or the program, not about what is stored": "HELLO AUTH ACL PING ECHO QUIT RESET TIME CLIENT INFO ROLE CONFIG COMMAND MEMORY OBJECT",
	"about channels, whose messages are not stored":                 "SUBSCRIBE PSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE PUBLISH PUBSUB",
	"not yet": "QLOAD QCONSUMERS QPRODUCERS",
}

func TestEachWordHasARuleOrAReason(t *testing.T) {
	ruled, without := model.Rules(), strings.Fields(strings.Join(slices.Collect(maps.Values(ruleless)), " "))
	used := map[string]bool{}
	for name, d := range rows {
		first := strings.Fields(name)[0]
		has, lacks := slices.Contains(ruled, name), slices.Contains(without, first)
		if has == lacks {
			t.Errorf("%s: a rule of the model: %v, a reason why it has none: %v; want one of them", name, has, lacks)
		}
		used[first] = true
		for _, o := range d.row.Options() {
			used[o.Word] = true
		}
	}
	for _, word := range append(without, slices.Collect(maps.Keys(unruled))...) {
		if !used[word] {
			t.Errorf("%s has no rule, and is no word", word)
		}
	}
}
