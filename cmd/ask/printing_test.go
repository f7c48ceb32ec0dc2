package ask

import (
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestNotesSayWhatMatters(t *testing.T) {
	now := time.UnixMilli(1e12)
	later := now.Add(time.Minute)
	for want, p := range map[string]*client.Packet{
		"ready in 1m":      {State: client.StateDelayed, NotBefore: later, Reason: "failed"},
		"w, 1m left":       {State: client.StateClaimed, Consumer: "w", LeaseEnd: later, Percent: -1},
		"w, 1m left, 40 %": {State: client.StateClaimed, Consumer: "w", LeaseEnd: later, Percent: 40},
		"gone in 1m":       {State: client.StateDone, Expires: later},
		"poison":           {State: client.StateDead, Reason: "poison", Expires: later},
		"expires in 1m":    {State: client.StateReady, Expires: later},
		"":                 {State: client.StateReady},
	} {
		if got := note(p, now); got != want {
			t.Errorf("a packet that is %s has the note %q, want %q", p.State, got, want)
		}
	}
}
