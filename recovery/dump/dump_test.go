package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func dumpOf(t testing.TB, src Source, o Options) ([]byte, Report) {
	t.Helper()
	var out bytes.Buffer
	if o.Now == 0 {
		o.Now = recoverytest.Later
	}
	report, err := Dump(src, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Bytes != int64(out.Len()) {
		t.Fatalf("the report counts %d bytes of %d", report.Bytes, out.Len())
	}
	return out.Bytes(), report
}

// golden compares with a file in testdata; HOLDFAST_GOLDEN=write makes those that are missing.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && os.Getenv("HOLDFAST_GOLDEN") == "write" {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

func TestBytesOfADumpStayAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"auto.jsonl", Options{}},
		{"text.jsonl", Options{Payload: Text}},
		{"base64.jsonl", Options{Payload: Base64}},
		{"none.jsonl", Options{Payload: None}},
		{"auto.msgpack", Options{Format: Msgpack}},
		{"none.msgpack", Options{Format: Msgpack, Payload: None}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, report := dumpOf(t, recoverytest.OneOfEach(), c.o)
			golden(t, c.name, got)
			if report.Packets != 8 || report.Expired != 1 || report.Lost != 0 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestOnlyQueuesThatMatchAPatternAreDumped(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		packets  int64
		queues   int64
	}{
		{nil, 8, 6},
		{[]string{"jobs"}, 6, 1},
		{[]string{"j*", "?"}, 6, 1},
		{[]string{"\xff*", "jo[a-c]s"}, 7, 2},
		{[]string{""}, 1, 1},
		{[]string{"*"}, 8, 6},
		{[]string{"none such"}, 0, 0},
	} {
		_, report := dumpOf(t, recoverytest.OneOfEach(), Options{Queues: c.patterns})
		if report.Packets != c.packets || report.Queues != c.queues {
			t.Errorf("%q: %d packets of %d queues, want %d of %d", c.patterns, report.Packets, report.Queues, c.packets, c.queues)
		}
	}
	if _, err := Dump(recoverytest.OneOfEach(), io.Discard, Options{Queues: []string{"["}}); err == nil {
		t.Error("a pattern without end was taken")
	}
}

func TestLimitEndsADumpAtExactlySoManyPackets(t *testing.T) {
	src := recoverytest.Many(3 * 1024)
	whole, _ := dumpOf(t, src, Options{})
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	for _, limit := range []int64{1, 1024 - 1, 1024, 1024 + 1, 2*1024 + 700, 3 * 1024, 4 * 1024} {
		got, report := dumpOf(t, src, Options{Limit: limit})
		want := min(limit, 3*1024)
		if report.Packets != want {
			t.Fatalf("limit %d: %d packets", limit, report.Packets)
		}
		from := bytes.LastIndexByte(got[:len(got)-1], '\n') + 1
		n := bytes.Count(got[:from], []byte{'\n'})
		if !bytes.Equal(got[:from], bytes.Join(lines[:n], nil)) {
			t.Fatalf("limit %d: not the beginning of the whole dump", limit)
		}
		if end := fmt.Sprintf(`{"type":"end","packets":%d,"queues":%d,`, want, report.Queues); !strings.HasPrefix(string(got[from:]), end) {
			t.Fatalf("limit %d: ends in %s", limit, got[from:])
		}
		if again, _ := dumpOf(t, src, Options{Limit: limit}); !bytes.Equal(again, got) {
			t.Fatalf("limit %d: a second dump differs", limit)
		}
	}
}

func TestDumpEndsAtWhatItCannotReadUnlessItSalvages(t *testing.T) {
	damage := fmt.Errorf("%w: a block is gone", storage.ErrDamaged)
	for name, c := range map[string]struct {
		harm          func(s *recoverytest.Fake)
		want          string
		packets, lost int64
	}{
		"damaged packet":       {func(s *recoverytest.Fake) { s.Stored[2].Damage = damage }, "1/1/9223372036854775809", 7, 1},
		"record of other form": {func(s *recoverytest.Fake) { s.Stored[3].Rec = []byte{0x91} }, "1/2/9223372036854775810", 7, 1},
		"queue without a name": {func(s *recoverytest.Fake) { s.Defined = append(s.Defined[:2:2], s.Defined[4]) }, "5/3/9223372036854775813", 8, 0},
		"scan cut short":       {func(s *recoverytest.Fake) { s.Broken = damage }, "a block is gone", 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := recoverytest.OneOfEach()
			c.harm(s)
			var out bytes.Buffer
			if _, err := Dump(s, &out, Options{Now: recoverytest.Later}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
			if bytes.Contains(out.Bytes(), []byte(`"end"`)) {
				t.Error("a dump that failed has an end record")
			}
			_, report := dumpOf(t, s, Options{Salvage: true})
			if report.Packets != c.packets || report.Lost != c.lost {
				t.Errorf("salvage: %+v", report)
			}
			if found := fmt.Sprint(report.Findings); c.lost > 0 && !strings.Contains(found, c.want) {
				t.Errorf("findings: %s", found)
			}
		})
	}
}

func TestExpiredPacketsOfAQueueThatIsGoneEndNoDump(t *testing.T) {
	for _, salvage := range []bool{false, true} {
		s := recoverytest.OneOfEach()
		whole, before := dumpOf(t, s, Options{Salvage: salvage})
		s.Stored = append(s.Stored, recoverytest.Packet{
			ID: content.PacketID{Queue: 8, Priority: 1, Seq: 1<<63 + 20}, Packet: content.Packet{Expiry: recoverytest.Later},
		})
		s.Count()
		got, report := dumpOf(t, s, Options{Salvage: salvage})
		if !bytes.Equal(got, whole) || report.Expired != before.Expired+1 {
			t.Errorf("%+v, dumped %s, want %s", report, got, whole)
		}
	}
}

func TestSalvageGivesMarksThatHoldWhatItFound(t *testing.T) {
	s := recoverytest.OneOfEach()
	s.Counted = content.Control{Marks: content.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}}
	s.Defined = nil
	got, _ := dumpOf(t, s, Options{Salvage: true})
	want := `{"type":"holdfast","version":3,"next_sequence":"9223372036854775844","low_sequence":"9223372036854775807","next_queue":8}` + "\n"
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("got %.200s, want %s", got, want)
	}
	if !bytes.Contains(got, []byte(`"queue":"lost-queue-5"`)) {
		t.Error("packets of queue 5 have no name made up for them")
	}
}

// fullWriter takes so many bytes and no more.
type fullWriter int

func (w *fullWriter) Write(b []byte) (int, error) {
	if *w -= fullWriter(len(b)); *w < 0 {
		return 0, errors.New("no room")
	}
	return len(b), nil
}

func TestErrorOfTheWriterEndsADump(t *testing.T) {
	queues := recoverytest.Many(1)
	for len(queues.Defined) < 20*blockRecords {
		n := len(queues.Defined) + 1
		queues.Defined = append(queues.Defined, content.Queue{ID: uint32(n), Name: fmt.Append(nil, "queue ", n)})
	}
	queues.Counted.NextQueue = uint32(len(queues.Defined) + 1)
	for _, src := range []*recoverytest.Fake{recoverytest.Many(5 * 1024), queues} {
		for _, room := range []fullWriter{0, 100, 200_000} {
			w := room
			if _, err := Dump(src, &w, Options{Now: recoverytest.Later}); err == nil || !strings.Contains(err.Error(), "no room") {
				t.Errorf("room for %d bytes: got %v", room, err)
			}
		}
	}
}

func TestDumpTellsItsProgress(t *testing.T) {
	var told []int64
	dumpOf(t, recoverytest.Many(3*1024), Options{Progress: func(p Progress) { told = append(told, p.Packets) }})
	if len(told) == 0 || told[len(told)-1] != 3*1024 || !slices.IsSorted(told) {
		t.Errorf("progress %v", told)
	}
}
