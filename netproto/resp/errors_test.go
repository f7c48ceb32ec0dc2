package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestRefusalsOfAQueueSayTheirKind(t *testing.T) {
	for prefix, err := range map[string]error{
		"FULL ": broker.ErrFull, "PAUSED ": broker.ErrPaused, "CLOSED ": broker.ErrQueueClosed, "INUSE ": broker.ErrInUse, "ERR ": broker.ErrTooManyLanes,
	} {
		if got := words(fmt.Errorf("%w: more", err)); !strings.HasPrefix(got, prefix+err.Error()) {
			t.Errorf("%v becomes %q, want %q before it", err, got, prefix)
		}
	}
}
