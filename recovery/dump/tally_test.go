package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// misfits are folders whose packets are not, or may not be, those that the control record counts,
// and what is said of the difference: nothing if want is empty.
var misfits = map[string]struct {
	harm func(s *dumpFake) // of forty packets, of which every second one expires
	want string
}{
	"sound":                      {func(*dumpFake) {}, ""},
	"unreadable, with expiry":    {func(s *dumpFake) { s.spoil(1) }, ""},
	"unreadable, without expiry": {func(s *dumpFake) { s.spoil(0) }, ""},
	"unreadable, of both kinds":  {func(s *dumpFake) { s.spoil(0, 1, 2, 3, 5, 7) }, ""},
	"nothing else is readable": {
		func(s *dumpFake) { s.packets = s.packets[1:2]; s.control.Live, s.control.Hash = 0, 0; s.spoil(0) }, "",
	},
	"many unreadable": {func(s *dumpFake) { s.spoil(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13) }, ""},
	"one lost":        {func(s *dumpFake) { s.drop(4, 1) }, "packets are missing: the control record counts 20 without expiry, the scan found 19"},
	"some lost":       {func(s *dumpFake) { s.drop(4, 3) }, "packets are missing: the control record counts 20 without expiry, the scan found 18"},
	"some came back": {
		func(s *dumpFake) { s.put(7, 9, 1<<63+50, storage.Packet{}); s.put(7, 9, 1<<63+51, storage.Packet{}) },
		"packets came back: the control record counts 20 without expiry, the scan found 22",
	},
	"one for another": {func(s *dumpFake) { s.packets[4].id.Seq += 100 }, "both count 20 without expiry, but the set hash is"},
	"one lost and one unreadable": {
		func(s *dumpFake) { s.spoil(1); s.drop(2, 1) }, "",
	},
	"two lost and one unreadable": {
		func(s *dumpFake) { s.spoil(6); s.drop(2, 1) },
		"packets are missing: the control record counts 20 without expiry, the scan found 18, and 1 records that cannot be read",
	},
	"one back and one unreadable": {
		func(s *dumpFake) { s.spoil(1); s.put(7, 9, 1<<63+50, storage.Packet{}) },
		"packets came back: the control record counts 20 without expiry, the scan found 21, and 1 records that cannot be read",
	},
}

// spoil makes records that nobody can read.
func (s *dumpFake) spoil(at ...int) {
	for _, i := range at {
		s.packets[i].rec = []byte{0x91}
	}
}

func (s *dumpFake) drop(from, n int) { s.packets = slices.Delete(s.packets, from, from+n) }

func misfit(harm func(s *dumpFake)) *dumpFake {
	s := manyPackets(40)
	for i := range s.packets {
		if i%2 == 1 {
			s.packets[i].packet.Expiry = later + 1
		}
	}
	s.control.NextSeq = 1<<63 + 200
	s.counted()
	harm(s)
	return s
}

func TestSalvageSaysHowItDiffersFromTheControlRecord(t *testing.T) {
	for name, c := range misfits {
		for _, o := range []Options{{}, {Limit: 3}, {Queues: []string{"queue 1"}}} {
			t.Run(fmt.Sprint(name, o.Limit, o.Queues), func(t *testing.T) {
				o.Salvage = true
				_, report := dumpOf(t, misfit(c.harm), o)
				if c.want == "" && len(report.Findings) == 0 {
					return
				}
				if c.want == "" || len(report.Findings) != 1 || !strings.Contains(fmt.Sprint(report.Findings), c.want) {
					t.Errorf("findings %v, want %q", report.Findings, c.want)
				}
			})
		}
	}
}
