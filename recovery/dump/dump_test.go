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

	"github.com/holdfast-queue/holdfast/storage"
)

// later is the time in these tests: so far off that no database drops what expires around it.
const later = 4_000_000_000_000

// dumpFake is a Source of what a test wrote down. Records come in the order of the list.
type dumpFake struct {
	control storage.Control
	queues  []storage.Queue
	packets []dumpPacket
	load    []byte
	broken  error // of Records, after the last packet
}

type dumpPacket struct {
	id     storage.PacketID
	packet storage.Packet
	damage error
	rec    []byte // in place of packet's
}

func (s *dumpFake) Control() storage.Control { return s.control }
func (s *dumpFake) Load() []byte             { return s.load }

func (s *dumpFake) Queues(fn func(storage.Queue) error) error {
	for _, q := range s.queues {
		if err := fn(q); err != nil {
			return err
		}
	}
	return nil
}

// Records hands the same bytes out again and again, as the store does.
func (s *dumpFake) Records(r storage.QueueRange, fn func(storage.PacketID, []byte, error) error) error {
	var buf []byte
	for _, p := range s.packets {
		if p.id.Queue < r.First || r.Last != 0 && p.id.Queue > r.Last {
			continue
		}
		var rec []byte
		if p.damage == nil {
			buf = storage.AppendRecord(buf[:0], &p.packet)
			if p.rec != nil {
				buf = append(buf[:0], p.rec...)
			}
			rec = buf
		}
		if err := fn(p.id, rec, p.damage); err != nil {
			return err
		}
		clear(buf)
	}
	return s.broken
}

// Packets leaves out what Records gives no packet of, but for payloads.
func (s *dumpFake) Packets(r storage.QueueRange, fn func(storage.PacketID, *storage.Meta) error) error {
	return s.Records(r, func(id storage.PacketID, rec []byte, _ error) error {
		var p storage.Packet
		if rec == nil || storage.DecodeRecord(rec, &p) != nil {
			return nil
		}
		return fn(id, &storage.Meta{Key: p.Key, Expiry: p.Expiry, NotBefore: p.NotBefore})
	})
}

func (s *dumpFake) Payloads(func(uint32, uint64, int64) error) error { return nil }

// counted makes the control record that of what is there now.
func (s *dumpFake) counted() {
	s.control.Epoch, s.control.Batch, s.control.Tally = 1, 1, storage.Tally{}
	for _, p := range s.packets {
		s.control.Add(p.id, p.packet.Expiry)
	}
}

func (s *dumpFake) put(queue, priority uint32, seq uint64, p storage.Packet) *dumpPacket {
	s.packets = append(s.packets, dumpPacket{id: storage.PacketID{Queue: queue, Priority: priority, Seq: seq}, packet: p})
	return &s.packets[len(s.packets)-1]
}

// anyDump has one packet of each shape.
func anyDump() *dumpFake {
	s := &dumpFake{
		control: storage.Control{Tally: storage.Tally{Live: 10}, Marks: storage.Marks{NextSeq: 1<<63 + 100, LowSeq: 1<<63 - 1, NextQueue: 10}},
		queues: []storage.Queue{
			{ID: 1, Name: []byte("jobs")},
			{ID: 2, Name: []byte("empty \"\n")},
			{ID: 5, Name: []byte{0xff, 0}, Rest: []byte{2, 0xc3, 3, 0xa1, 'x'}, RestFields: 2},
			{ID: 6, Name: []byte{}},
		},
	}
	const base = 1 << 63
	s.put(1, 0, base+7, storage.Packet{Key: []byte("k")})
	s.put(1, 1, base, storage.Packet{})
	s.put(1, 1, base+1, storage.Packet{Key: []byte{}, Payload: []byte("text, \"quoted\" \\ and\r\n\tmore é 😀 \ufffd")})
	s.put(1, 2, base+2, storage.Packet{Key: []byte{0xfe}, Payload: []byte{0, 1, 0xff}})
	s.put(1, 2, base+3, storage.Packet{Payload: []byte("bell \a"), NotBefore: later + 1, Expiry: later + 2, EnqueuedAt: later - 1})
	s.put(1, 1<<32-1, base+4, storage.Packet{
		Attempts: 3, Producer: "worker-1", NotBefore: -5,
		Tags: []storage.Tag{{Name: "a", Value: "b\""}, {Name: "c", Value: ""}},
	})
	s.put(5, 3, base+5, storage.Packet{Tags: []storage.Tag{{Name: "a", Value: "\xff"}, {Name: "a", Value: ""}}, Producer: "\xfd"})
	s.put(5, 3, base+6, storage.Packet{Expiry: later, Payload: []byte("expired")})
	s.put(6, 9, base+8, storage.Packet{Payload: bytes.Repeat([]byte("long "), 206), Expiry: later + 1})
	return s
}

func dumpOf(t testing.TB, src Source, o Options) ([]byte, Report) {
	t.Helper()
	var out bytes.Buffer
	if o.Now == 0 {
		o.Now = later
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
		{"hex.jsonl", Options{Payload: Hex}},
		{"none.jsonl", Options{Payload: None}},
		{"auto.msgpack", Options{Format: Msgpack}},
		{"none.msgpack", Options{Format: Msgpack, Payload: None}},
		{"auto.csv", Options{Format: CSV}},
		{"hex.csv", Options{Format: CSV, Payload: Hex}},
		{"none.csv", Options{Format: CSV, Payload: None}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, report := dumpOf(t, anyDump(), c.o)
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
		{nil, 8, 4},
		{[]string{"jobs"}, 6, 1},
		{[]string{"j*", "?"}, 6, 1},
		{[]string{"\xff*", "jo[a-c]s"}, 7, 2},
		{[]string{""}, 1, 1},
		{[]string{"*"}, 8, 4},
		{[]string{"none such"}, 0, 0},
	} {
		_, report := dumpOf(t, anyDump(), Options{Queues: c.patterns})
		if report.Packets != c.packets || report.Queues != c.queues {
			t.Errorf("%q: %d packets of %d queues, want %d of %d", c.patterns, report.Packets, report.Queues, c.packets, c.queues)
		}
	}
	if _, err := Dump(anyDump(), io.Discard, Options{Queues: []string{"["}}); err == nil {
		t.Error("a pattern without end was taken")
	}
}

// manyPackets fills several runs.
func manyPackets(n int) *dumpFake {
	s := &dumpFake{control: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + uint64(n), LowSeq: 1<<63 - 1, NextQueue: 8}}}
	for q := range uint32(7) {
		s.queues = append(s.queues, storage.Queue{ID: q + 1, Name: fmt.Append(nil, "queue ", q+1)})
	}
	for i := range n {
		s.put(uint32(1+i*7/n), uint32(1+i*21/n), 1<<63+uint64(i), storage.Packet{Key: fmt.Append(nil, i), Payload: fmt.Append(nil, "payload ", i)})
	}
	return s
}

func TestLimitEndsADumpAtExactlySoManyPackets(t *testing.T) {
	src := manyPackets(3 * runPackets)
	whole, _ := dumpOf(t, src, Options{})
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	for _, limit := range []int64{1, runPackets - 1, runPackets, runPackets + 1, 2*runPackets + 700, 3 * runPackets, 4 * runPackets} {
		got, report := dumpOf(t, src, Options{Limit: limit})
		want := min(limit, 3*runPackets)
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
		harm                    func(s *dumpFake)
		want                    string
		packets, lost, nameless int64
	}{
		"damaged packet":       {func(s *dumpFake) { s.packets[2].damage = damage }, "1/1/9223372036854775809", 7, 1, 0},
		"record of other form": {func(s *dumpFake) { s.packets[3].rec = []byte{0x91} }, "1/2/9223372036854775810", 7, 1, 0},
		"queue without a name": {func(s *dumpFake) { s.queues = s.queues[:2] }, "5/3/9223372036854775813", 8, 0, 2},
		"unfinished load":      {func(s *dumpFake) { s.load = []byte{1} }, storage.ErrLoadUnfinished.Error(), 8, 0, 0},
		"scan cut short":       {func(s *dumpFake) { s.broken = damage }, "a block is gone", 8, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := anyDump()
			c.harm(s)
			var out bytes.Buffer
			if _, err := Dump(s, &out, Options{Now: later}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
			if bytes.Contains(out.Bytes(), []byte(`"end"`)) {
				t.Error("a dump that failed has an end record")
			}
			_, report := dumpOf(t, s, Options{Salvage: true})
			if report.Packets != c.packets || report.Lost != c.lost || report.Nameless != c.nameless {
				t.Errorf("salvage: %+v", report)
			}
			if c.lost > 0 && (len(report.Unreadable) != 1 || !strings.Contains(report.Unreadable[0].Err.Error(), c.want)) {
				t.Errorf("unreadable: %v", report.Unreadable)
			}
		})
	}
}

func TestSalvageGivesMarksThatHoldWhatItFound(t *testing.T) {
	s := anyDump()
	s.control = storage.Control{Marks: storage.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}}
	s.queues = nil
	got, _ := dumpOf(t, s, Options{Salvage: true})
	want := `{"type":"holdfast","version":1,"next_sequence":"9223372036854775817","low_sequence":"9223372036854775807","next_queue":7}` + "\n"
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
	for _, room := range []fullWriter{0, 100, 300_000} {
		w := room
		if _, err := Dump(manyPackets(5*runPackets), &w, Options{Now: later}); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("room for %d bytes: got %v", room, err)
		}
	}
}

func TestDumpTellsItsProgress(t *testing.T) {
	var told []int64
	dumpOf(t, manyPackets(3*runPackets), Options{Progress: func(p Progress) { told = append(told, p.Packets) }})
	if len(told) == 0 || told[len(told)-1] != 3*runPackets || !slices.IsSorted(told) {
		t.Errorf("progress %v", told)
	}
}
