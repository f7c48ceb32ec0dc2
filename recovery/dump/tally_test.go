package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestSalvageSaysHowItDiffersFromTheControlRecord(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(s *recoverytest.Fake) // of forty packets
		want string                     // in the one finding; "" for none
	}{
		"sound":      {func(*recoverytest.Fake) {}, ""},
		"unreadable": {func(s *recoverytest.Fake) { s.Stored[3].Rec = []byte{0x91} }, ""},
		"lost":       {func(s *recoverytest.Fake) { s.Stored = s.Stored[1:] }, "packets are missing: the control record counts 40"},
		"came back":  {func(s *recoverytest.Fake) { s.Put(7, 21, 1<<63+40, content.Packet{}) }, "packets came back: the control record counts 40"},
	} {
		for _, o := range []Options{{}, {Limit: 3}, {Queues: []string{"queue 1"}}} {
			t.Run(fmt.Sprint(name, o.Limit, o.Queues), func(t *testing.T) {
				s := recoverytest.Many(40)
				s.Counted.NextSeq++
				s.Count()
				c.harm(s)
				o.Salvage = true
				_, report := dumpOf(t, s, o)
				report.Findings = slices.DeleteFunc(report.Findings, func(f storage.Finding) bool { return f.Kind == storage.FindingRecord }) // what is left out
				switch found := fmt.Sprint(report.Findings); {
				case c.want == "" && len(report.Findings) > 0:
					t.Errorf("findings %s, want none", found)
				case c.want != "" && (len(report.Findings) != 1 || !strings.Contains(found, c.want)):
					t.Errorf("findings %s, want one with %q", found, c.want)
				}
			})
		}
	}
}
