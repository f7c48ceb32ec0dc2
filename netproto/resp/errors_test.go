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
		if got := worded(fmt.Errorf("%w: more", err)); !strings.HasPrefix(got, prefix+err.Error()) {
			t.Errorf("%v becomes %q, want %q before it", err, got, prefix)
		}
	}
}

func TestOnlyARefusalIsRecovered(t *testing.T) {
	panics := func(with any) *session {
		return &session{cmd: &command{run: func(*session, *broker.Tx, [][]byte) error { panic(with) }}}
	}
	if err := panics(failure(errSyntax)).call(); err != failure(errSyntax) {
		t.Errorf("a refusal is %v", err)
	}
	defer func() {
		if got := recover(); got != "broken" {
			t.Errorf("recovered %v, want what is no refusal", got)
		}
	}()
	t.Errorf("a broken handler returns %v", panics("broken").call())
}
