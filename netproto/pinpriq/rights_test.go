package pinpriq

import (
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// The list is written by hand: whoever adds a request decides what it needs.
func TestEachRequestNeedsTheRightOfTheList(t *testing.T) {
	want := map[Op]access.Right{
		OpPush: access.Push, OpPop: access.Take, OpSubscribe: access.Take, OpUnsubscribe: access.None, OpReady: access.None,
	}
	for op := range Op(255) {
		right, listed := want[op]
		r := Request{Op: op}
		if _, err := r.Append(nil); (err == nil) != listed {
			t.Errorf("op %#x is listed: %v, and a request: %v", op, listed, err == nil)
		}
		if needs[op] != right {
			t.Errorf("op %#x needs %v, want %v", op, needs[op], right)
		}
	}
}
