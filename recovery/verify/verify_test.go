package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func verified(t testing.TB, dir string) Report {
	t.Helper()
	report, err := Folder(t.Context(), dir, Options{Now: later})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestSoundFolderHasNoFindingsAndIsCounted(t *testing.T) {
	queues := []content.Queue{
		{ID: 1, Name: []byte("jobs")},
		{ID: 2, Name: []byte("empty \"\n")},
		{ID: 5, Name: []byte{0xff, 0}, Rest: content.Rest{Bytes: "\x16\xc3\x17\xa1x", Fields: 2}},
		{ID: 6, Name: []byte{}},
	}
	packets := []struct {
		queue, priority uint32
		packet          content.Packet
	}{
		{1, 0, content.Packet{Key: []byte("k")}},
		{1, 1, content.Packet{Key: []byte{}, Payload: []byte("text")}},
		{1, 2, content.Packet{Key: []byte{0xfe}, Payload: []byte{0, 1, 0xff}}},
		{1, 2, content.Packet{Payload: []byte("delayed"), NotBefore: later + 1, Expiry: later + 2, EnqueuedAt: later - 1}},
		{1, 1<<32 - 1, content.Packet{Attempts: 3, Producer: "worker-1", NotBefore: -5, Tags: []content.Tag{{Name: "a", Value: "b"}}}},
		{5, 3, content.Packet{Tags: []content.Tag{{Name: "a", Value: "\xff"}, {Name: "a", Value: ""}}, Producer: "\xfd"}},
		{5, 3, content.Packet{Expiry: later, Payload: []byte("expired")}},
		{6, 9, content.Packet{Payload: bytes.Repeat([]byte("large "), 200), Expiry: later + 1}},
	}
	dir := fill(t, queues, len(packets), func(i int) (content.PacketID, content.Packet) {
		p := &packets[i]
		return content.PacketID{Queue: p.queue, Priority: p.priority, Seq: first + uint64(i)}, p.packet
	})
	report := verified(t, dir)
	if !report.Sound() || report.More != 0 {
		t.Errorf("findings %v", report.Findings)
	}
	if report.Packets != 7 || report.Expired != 1 || report.Bytes != 1216 {
		t.Errorf("%d packets, %d expired, %d bytes", report.Packets, report.Expired, report.Bytes)
	}
	want := []QueueCount{
		{ID: 1, Name: []byte("jobs"), Counts: Counts{1, 3, 1}, Bytes: 16},
		{ID: 2, Name: []byte("empty \"\n")},
		{ID: 5, Name: []byte{0xff, 0}, Counts: Counts{0, 1}, Expired: 1},
		{ID: 6, Name: []byte{}, Counts: Counts{0, 1}, Bytes: 1200},
	}
	if got := fmt.Sprint(report.Queues); got != fmt.Sprint(want) {
		t.Errorf("queues %v, want %v", got, want)
	}
}

// A power cut may take any of the records that were not synced. A start ends before the first one
// that is missing, whatever is behind it.
func TestTheJournalEndsWhereAStartEndsIt(t *testing.T) {
	dir := t.TempDir()
	s, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		var b content.Batch
		b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: i == 0})
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: first + i}, &content.Packet{})
		b.SetMarks(content.Marks{NextSeq: first + i + 1, LowSeq: first - 1, NextQueue: 2})
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	left := recoverytest.CopyOf(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(left, "anchor")); err != nil { // the device had none
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(left, "journal", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, log := range logs { // the third record goes: each has a page, behind that of the header
		if f, err := os.OpenFile(log, os.O_WRONLY, 0); err != nil {
			t.Fatal(err)
		} else if _, err := f.WriteAt(make([]byte, 4096), 3*4096); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	report := verified(t, left)
	if !report.Sound() || report.Packets != 2 {
		t.Errorf("findings %v, %d packets", report.Findings, report.Packets)
	}
	if s, err = storage.Open(left, storage.Options{}); err != nil {
		t.Fatal(err)
	}
	if batch := s.Control().Batch; batch != 2 {
		t.Errorf("a start ends at batch %d", batch)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestExpiredPacketsOfAQueueThatIsGoneAreNoFinding(t *testing.T) {
	// A start leaves expired packets to the database, and their queue ends when it is empty.
	dir := recoverytest.InFolder(t, recoverytest.Many(7))
	recoverytest.Tamper(t, dir, func(b *content.Batch) {
		b.Put(content.PacketID{Queue: 6, Priority: 2, Seq: first - 2}, &content.Packet{Expiry: later})
		b.Put(content.PacketID{Queue: 7, Priority: 2, Seq: first - 1}, &content.Packet{Expiry: later})
		b.SetMarks(content.Marks{NextSeq: first + 7, LowSeq: first - 3, NextQueue: 8})
		b.DeleteQueue(6)
		b.Delete(at(5, 7), content.Removed{})
		b.DeleteQueue(7)
	})
	report := verified(t, dir)
	want := fmt.Sprintf("owner: queue 7: it has no definition, so no client can reach its packets: there are 1, the first is %v", at(6, 7))
	if fmt.Sprint(report.Findings) != "["+want+"]" || report.Expired != 2 {
		t.Errorf("findings %v, %d expired, want %s", report.Findings, report.Expired, want)
	}
}

func TestPacketsOfManyRunsAreCountedForTheirQueues(t *testing.T) {
	const each = 3 * 1024
	report := verified(t, recoverytest.InFolder(t, recoverytest.Many(7*each)))
	if !report.Sound() || len(report.Queues) != 7 || report.Packets != 7*each {
		t.Errorf("findings %v, %d packets of %d queues", report.Findings, report.Packets, len(report.Queues))
	}
	for _, q := range report.Queues {
		if q.Counts[content.Ready] != each {
			t.Errorf("queue %d: %d packets, want %d", q.ID, q.Counts[content.Ready], each)
		}
	}
}

func TestEachHarmIsAFinding(t *testing.T) {
	const n = 2100
	base := recoverytest.InFolder(t, recoverytest.Many(n))
	const seq = first + 5000 // after all others
	large := &content.Packet{Payload: bytes.Repeat([]byte("large"), 1000)}
	marks := func(b *content.Batch) {
		b.SetMarks(content.Marks{NextSeq: seq + 10, LowSeq: first - 1, NextQueue: 8})
	}
	id := content.PacketID{Queue: 2, Priority: 9, Seq: seq}
	// The control record does not count packets that expire, so a delete of one leaves it as it is.
	behind, counted := content.Removed{Expires: true}, content.Removed{}
	keys := func(b *content.Batch) {
		putKeys(b)
		b.SetMarks(content.Marks{NextSeq: first + n, LowSeq: first - 1, NextQueue: 8, LastKey: 6})
	}
	type harm []func(b *content.Batch)
	for name, c := range map[string]struct {
		harm harm
		want string // kind, key and the first words of the one finding
	}{
		"one lost": {
			harm{func(b *content.Batch) { b.Delete(at(77, n), behind) }},
			"lost: packets: packets are missing: the control record counts 2100 without expiry, the scan found 2099",
		},
		"several lost": {
			harm{func(b *content.Batch) { b.Delete(at(7, n), behind); b.Delete(at(9, n), behind) }},
			"lost: packets: packets are missing: the control record counts 2100 without expiry, the scan found 2098",
		},
		"one came back": {
			harm{func(b *content.Batch) {
				b.Delete(at(77, n), counted)
				b.Delete(at(77, n), counted)
				b.Put(at(77, n), &content.Packet{})
			}},
			"resurrected: packets: packets came back: the control record counts 2099 without expiry, the scan found 2100",
		},
		"one lost, another that nobody put": {
			harm{func(b *content.Batch) {
				b.Delete(at(7, n), behind)
				b.Put(id, large)
				b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: 5}, counted)
				marks(b)
			}},
			"lost: packets: packets are not the ones written: the control record and the scan both count 2100",
		},
		"payload without packet": {
			harm{func(b *content.Batch) { b.Put(id, large); marks(b) }, func(b *content.Batch) { b.Delete(id, counted) }},
			"owner: 2/*/9223372036854780808: a payload of 5000 bytes",
		},
		"two packets with one payload": {
			harm{func(b *content.Batch) {
				other := id
				other.Priority++
				b.Put(id, large)
				b.Put(other, large)
				marks(b)
			}},
			"owner: 2/10/9223372036854780808: it has the sequence or the identity of another packet",
		},
		"packet without payload": {
			harm{func(b *content.Batch) { b.Put(id, large); marks(b) }, func(b *content.Batch) {
				b.Delete(content.PacketID{Queue: 2, Priority: 1, Seq: seq}, content.Removed{Expires: true, Large: true})
			}},
			"record: " + id.String() + ": the record cannot be read: the payload",
		},
		"queue without name": {
			harm{func(b *content.Batch) { b.DeleteQueue(3) }},
			"owner: queue 3: it has no definition, so no client can reach its packets: there are 300, the first is 3/7/",
		},
		"one name for two queues": {
			harm{func(b *content.Batch) { b.PutQueue(content.Queue{ID: 3, Name: []byte("queue 2")}) }},
			`queue: queue 3: it has the name "queue 2", and so has queue 2`,
		},
		"queue number not given out": {
			harm{func(b *content.Batch) { b.PutQueue(content.Queue{ID: 8, Name: []byte("x")}) }},
			"queue: queue 8: its number",
		},
		"sequence not given out": {
			harm{func(b *content.Batch) { b.Put(id, &content.Packet{}) }},
			"record: " + id.String() + ": its sequence",
		},
		"identity not given out": {
			harm{func(b *content.Batch) { b.Put(id, &content.Packet{Identity: seq + 10}); marks(b) }},
			"record: " + id.String() + ": its identity 9223372036854780818 is not between 9223372036854775807 and 9223372036854780818",
		},
		"two fields of one name": {
			harm{keys, func(b *content.Batch) {
				b.PutField(&content.Field{Hash: 2, ID: 6, Name: []byte("f"), Version: 6}, content.Mark{})
			}},
			`owner: field 6 of hash 2: it has the name "f", and so has another field`,
		},
		"a field that is lost": {
			harm{keys, func(b *content.Batch) { b.DeleteField(2, 3, content.Mark{Version: 99, Large: true}) }},
			"lost: keys: keys are not the ones written: the control record and the scan both count 2",
		},
		"a value that is lost": {
			harm{keys, func(b *content.Batch) {
				b.PutHead(&content.Head{ID: 4, Kind: content.String, Name: []byte("large"), Version: 5, Size: 2000, KeepValue: true}, content.Mark{})
			}},
			"record: head 4: the value cannot be read: the value of head 4 is missing",
		},
		"one name for two keys": {
			harm{keys, func(b *content.Batch) {
				b.PutHead(&content.Head{ID: 6, Kind: content.String, Name: []byte("hash"), Version: 6}, content.Mark{})
			}},
			`owner: head 6: it has the name "hash", and so has head 2`,
		},
		"one name for a key and a queue": {
			harm{keys, func(b *content.Batch) {
				b.PutHead(&content.Head{ID: 6, Kind: content.String, Name: []byte("queue 2"), Version: 6}, content.Mark{})
			}},
			`owner: head 6: it has the name "queue 2", and so has a queue`,
		},
		"one name for a key and a queue with settings": {
			harm{keys, func(b *content.Batch) {
				b.SetMarks(content.Marks{NextSeq: first + n, LowSeq: first - 1, NextQueue: 9, LastKey: 6})
				b.PutQueue(content.Queue{ID: 8, Name: []byte("empty"), Settings: &content.Settings{}})
				b.PutHead(&content.Head{ID: 6, Kind: content.String, Name: []byte("empty"), Version: 6}, content.Mark{})
			}},
			`owner: head 6: it has the name "empty", and so has a queue that is not empty or has settings`,
		},
		"number not given out": {
			harm{keys, func(b *content.Batch) {
				b.PutHead(&content.Head{ID: 6, Kind: content.String, Name: []byte("new"), Version: 7}, content.Mark{})
			}},
			"record: head 6: its number 6 or its version 7 is above 6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := recoverytest.CopyOf(t, base)
			recoverytest.Tamper(t, dir, c.harm...)
			report := verified(t, dir)
			if len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].String(), c.want) {
				t.Fatalf("findings %v, want %s", report.Findings, c.want)
			}
		})
	}
}

// putKeys makes a string, and a hash with a field.
func putKeys(b *content.Batch) {
	b.PutHead(&content.Head{ID: 1, Kind: content.String, Name: []byte("string"), Version: 1, Value: []byte("text")}, content.Mark{})
	b.PutHead(&content.Head{ID: 2, Kind: content.Hash, Name: []byte("hash"), Version: 2}, content.Mark{})
	b.PutField(&content.Field{Hash: 2, ID: 3, Name: []byte("f"), Version: 3, Value: make([]byte, 5000)}, content.Mark{})
}

func TestWhatNobodyCanReachIsCountedAndNoFinding(t *testing.T) {
	dir := recoverytest.InFolder(t, recoverytest.Many(70))
	recoverytest.Tamper(t, dir, func(b *content.Batch) {
		putKeys(b)
		b.SetFlush(content.Flush{{Keys: 2, Queues: 2}})
		b.PutQueue(content.Queue{ID: 3, Name: []byte("queue 7"), Dropped: true})
		b.PutQueue(content.Queue{ID: 4, Name: []byte("queue 4"), Expiry: later})
		b.PutHead(&content.Head{ID: 5, Kind: content.Hash, Name: []byte("hash"), Version: 5, Expiry: later}, content.Mark{})
		for _, hash := range []uint64{5, 6} {
			b.PutField(&content.Field{Hash: hash, ID: 7, Name: []byte("f"), Version: 7}, content.Mark{})
		}
		b.SetMarks(content.Marks{NextSeq: first + 70, LowSeq: first - 1, NextQueue: 8, LastKey: 7})
	})
	report := verified(t, dir)
	if !report.Sound() || report.Packets != 40 || len(report.Queues) != 4 || report.Keys != 1 || report.LeftOver != 30+1+3 {
		t.Errorf("findings %v, %d packets of %d queues, %d keys, %d left over",
			report.Findings, report.Packets, len(report.Queues), report.Keys, report.LeftOver)
	}
}

// spoiled is a source in which the records of some packets cannot be decoded.
type spoiled struct {
	source
	bad []content.PacketID
}

func (s *spoiled) Walk(v storage.Visitor) error {
	if packet := v.Packet; packet != nil {
		v.Packet = func(id content.PacketID, m *content.Meta, rec []byte, damage error) error {
			if slices.Contains(s.bad, id) {
				rec = []byte{0x91}
			}
			return packet(id, m, rec, damage)
		}
	}
	return s.source.Walk(v)
}

func TestRecordsThatCannotBeReadAreNotCalledLost(t *testing.T) {
	const n = 2100
	view, err := storage.OpenView(recoverytest.InFolder(t, recoverytest.Many(n)), storage.ViewOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	bad := []content.PacketID{at(5, n), at(6, n), at(2000, n)}
	o := Options{Now: later, Progress: func(string, int64, int64) {}}
	v := newVerifier(&spoiled{view, bad}, o)
	if err := v.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, f := range v.report.Findings {
		named = append(named, f.Kind+" "+f.Key)
	}
	if want := fmt.Sprintf("[record %v record %v record %v]", bad[0], bad[1], bad[2]); fmt.Sprint(named) != want {
		t.Errorf("findings %v, want %s", named, want)
	}
}

// uncounted is a source without a control record.
type uncounted struct{ source }

func (s *uncounted) Control() content.Control {
	return content.Control{Marks: content.Marks{NextSeq: 5, LowSeq: 4, NextQueue: 1}}
}

func TestWithoutAControlRecordNothingIsHeldAgainstIt(t *testing.T) {
	dir := recoverytest.InFolder(t, recoverytest.Many(70))
	recoverytest.Tamper(t, dir, putKeys)
	view, err := storage.OpenView(dir, storage.ViewOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	v := newVerifier(&uncounted{view}, Options{Now: later, Progress: func(string, int64, int64) {}})
	if err := v.run(t.Context()); err != nil || !v.report.Sound() || v.report.Packets != 70 {
		t.Errorf("%v, findings %v, %d packets", err, v.report.Findings, v.report.Packets)
	}
}

func TestFlippedByteIsFoundWithThePacketsAroundIt(t *testing.T) {
	const n = 2100
	dir := recoverytest.InFolder(t, recoverytest.Many(n))
	flip(t, dir, "payload 1234", 3)
	report := verified(t, dir)
	between := slices.ContainsFunc(report.Findings, func(f storage.Finding) bool {
		var from, to content.PacketID
		_, where, _ := strings.Cut(f.What, "from packet ")
		_, err := fmt.Sscanf(where, "%d/%d/%d to before packet %d/%d/%d", &from.Queue, &from.Priority, &from.Seq, &to.Queue, &to.Priority, &to.Seq)
		return err == nil && from.Compare(at(1234, n)) <= 0 && at(1234, n).Compare(to) < 0
	})
	if !between {
		t.Errorf("findings %v, want a block that begins before %v and ends behind it", report.Findings, at(1234, n))
	}
}

func TestFolderThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := Folder(t.Context(), t.TempDir(), Options{}); !errors.Is(err, storage.ErrNotFolder) {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Folder(t.Context(), dir, Options{}); !errors.Is(err, storage.ErrInUse) {
		t.Errorf("a folder in use: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Folder(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
