package barbershop

import (
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// The list is written by hand: whoever adds a command decides what it needs.
func TestEachCommandNeedsTheRightOfTheList(t *testing.T) {
	want := map[string]access.Right{
		"update": access.Push, "next": access.Take, "stats": access.Look,
		"UPDATE": access.Push, "NEXT": access.Take, "PEEK": access.Look, "SCORE": access.Look, "INFO": access.Look,
	}
	for name, c := range commands {
		if right, listed := want[name]; !listed || c.needs != right {
			t.Errorf("%s needs %v, the list says %v", name, c.needs, right)
		}
	}
	if len(want) != len(commands) {
		t.Errorf("%d commands are listed, there are %d", len(want), len(commands))
	}
}
