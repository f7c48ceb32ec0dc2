package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestADumpHasAnExpiredPacketWhoseLeaseRuns(t *testing.T) {
	s := recoverytest.OneOfEach()
	s.Tried[4].Until++
	_, report := dumpOf(t, s, Options{})
	if report.Packets != 9 || report.Expired != 0 {
		t.Errorf("report %+v, want all 9 packets", report)
	}
}

// QRUN leaves the moment of the push in the record of the packet. After a load under a clock that
// was ahead the packet must not wait for it again.
func TestADumpForgetsTheDelayOfWhatWasRunAlsoUnderAClockThatIsAhead(t *testing.T) {
	s := recoverytest.Many(1)
	s.Stored[0].Packet.NotBefore = recoverytest.Later - 1
	s.Try(content.Delivery{Identity: s.Stored[0].ID.Seq, State: content.Ready})
	if got, _ := dumpOf(t, s, Options{}); !bytes.Contains(got, []byte(`"state":"ready"`)) || bytes.Contains(got, []byte("not_before")) {
		t.Errorf("dump %s has the delay of the push", got)
	}
}

func TestADumpEndsAtADeliveryStateThatCannotBeLoadedUnlessItSalvages(t *testing.T) {
	const name = "9223372036854775809" // of a dead packet
	for what, c := range map[string]struct {
		harm func(s *recoverytest.Fake)
		want string
		left bool // the salvage has the delivery state
	}{
		"damaged":           {func(s *recoverytest.Fake) { s.Tried[1].Damage = storage.ErrDamaged }, storage.ErrDamaged.Error(), false},
		"token past marks":  {func(s *recoverytest.Fake) { s.Tried[1].Token = 1<<63 + 100 }, "the token 9223372036854775908", true},
		"token of no store": {func(s *recoverytest.Fake) { s.Tried[1].Token = 1<<64 - 1 }, "the token 18446744073709551615", false},
		"long reason":       {func(s *recoverytest.Fake) { s.Tried[1].Reason = strings.Repeat("x", maxText+1) }, `field "reason" has 65536 bytes`, false},
		"never expires":     {func(s *recoverytest.Fake) { s.Tried[1].State = content.Done }, "is done and never expires", false},
		"unknown state":     {func(s *recoverytest.Fake) { s.Tried[1].State = 9 }, `the state "state 9"`, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := recoverytest.OneOfEach()
			c.harm(s)
			if _, err := Dump(s, io.Discard, Options{Now: recoverytest.Later}); !errors.Is(err, storage.ErrDamaged) ||
				!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want that the delivery state cannot be dumped", err)
			}
			got, report := dumpOf(t, s, Options{Salvage: true})
			if report.Packets != 8 || bytes.Contains(got, []byte(`"state":"dead"`)) != c.left {
				t.Errorf("report %+v, dump %s", report, got)
			}
			if found := fmt.Sprint(report.Findings); !c.left && (!strings.Contains(found, "delivery state "+name) || !strings.Contains(found, c.want)) {
				t.Errorf("findings %s, want that it is left out", found)
			}
			if _, err := Read(t.Context(), bytes.NewReader(got), nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADumpHasNoOriginThatItHasNotGotItself(t *testing.T) {
	got, _ := dumpOf(t, recoverytest.OneOfEach(), Options{Queues: []string{"\xff*"}})
	if bytes.Contains(got, []byte("origin")) {
		t.Errorf("dump %s has the origin of a packet, which is another queue", got)
	}
}

func TestASalvageCountsDeliveryStates(t *testing.T) {
	s := recoverytest.OneOfEach()
	s.Count()
	if _, report := dumpOf(t, s, Options{Salvage: true}); len(report.Findings) > 0 {
		t.Errorf("findings %s of a sound folder", report.Findings)
	}
	s.Tried = s.Tried[1:]
	_, report := dumpOf(t, s, Options{Salvage: true})
	if found := fmt.Sprint(report.Findings); len(report.Findings) != 1 || !strings.Contains(found, "delivery states are missing") {
		t.Errorf("findings %s, want that one is missing", found)
	}
}

func TestAnIdentityThatNoStoreHasIsLeftOutOfASalvage(t *testing.T) {
	s := recoverytest.OneOfEach()
	s.Stored[6].Packet.Identity = 5
	s.Tried = nil
	if _, err := Dump(s, io.Discard, Options{Now: recoverytest.Later}); err == nil || !strings.Contains(err.Error(), "the identity 5") {
		t.Errorf("got %v, want the identity", err)
	}
	if got, report := dumpOf(t, s, Options{Salvage: true}); report.Packets != 8 || bytes.Contains(got, []byte(`"identity":"5"`)) {
		t.Errorf("report %+v, dump %s", report, got)
	}
}
