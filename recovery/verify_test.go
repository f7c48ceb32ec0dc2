package recovery

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

	"github.com/holdfast-queue/holdfast/storage"
)

func verify(t testing.TB, dir string, o VerifyOptions) VerifyReport {
	t.Helper()
	o.Now = later
	report, err := Verify(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// tamper changes a closed folder with batches.
func tamper(t testing.TB, dir string, fns ...func(b *storage.Batch)) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{Unfinished: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range fns {
		var b storage.Batch
		fn(&b)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSoundFolderHasNoFindingsAndIsCounted(t *testing.T) {
	dir := inFolder(t, anyDump())
	for _, deep := range []bool{false, true} {
		report := verify(t, dir, VerifyOptions{Deep: deep})
		if !report.Sound() || report.More != 0 {
			t.Errorf("deep %v: findings %v", deep, report.Findings)
		}
		if report.Packets != 8 || report.Expired != 1 || report.Bytes != 1080 {
			t.Errorf("deep %v: %d packets, %d expired, %d bytes", deep, report.Packets, report.Expired, report.Bytes)
		}
		want := []QueueCount{
			{ID: 1, Name: []byte("jobs"), Ready: 4, Delayed: 1, Unselectable: 1, Bytes: 50},
			{ID: 2, Name: []byte("empty \"\n")},
			{ID: 5, Name: []byte{0xff, 0}, Ready: 1, Expired: 1},
			{ID: 6, Name: []byte{}, Ready: 1, Bytes: 1030},
		}
		if got := fmt.Sprint(report.Queues); got != fmt.Sprint(want) {
			t.Errorf("deep %v: queues %v, want %v", deep, got, want)
		}
	}
}

func TestPacketsOfManyRunsAreCountedForTheirQueues(t *testing.T) {
	const each = 3 * runPackets
	report := verify(t, inFolder(t, manyPackets(7*each)), VerifyOptions{})
	if !report.Sound() || len(report.Queues) != 7 || report.Packets != 7*each {
		t.Errorf("findings %v, %d packets of %d queues", report.Findings, report.Packets, len(report.Queues))
	}
	for _, q := range report.Queues {
		if q.Ready != each {
			t.Errorf("queue %d: %d packets, want %d", q.ID, q.Ready, each)
		}
	}
}

// at is a packet of manyPackets.
func at(i int) storage.PacketID {
	const n = 2100
	return storage.PacketID{Queue: uint32(1 + i*7/n), Priority: uint32(1 + i*21/n), Seq: 1<<63 + uint64(i)}
}

func TestEachHarmIsAFinding(t *testing.T) {
	base := inFolder(t, manyPackets(2100))
	const seq = 1<<63 + 5000 // after all others
	large := &storage.Packet{Payload: bytes.Repeat([]byte("large"), 1000)}
	marks := func(b *storage.Batch) {
		b.SetMarks(storage.Marks{NextSeq: seq + 10, LowSeq: 1<<63 - 1, NextQueue: 8})
	}
	id := storage.PacketID{Queue: 2, Priority: 9, Seq: seq}
	// What expires is not counted, so nobody sees it go.
	behind, counted := storage.Removed{Expires: true}, storage.Removed{}
	type harm []func(b *storage.Batch)
	for name, c := range map[string]struct {
		harm harm
		want string // kind, key and the first words of the one finding
	}{
		"one lost": {
			harm{func(b *storage.Batch) { b.Delete(at(77), behind) }},
			"lost: packets: packets are missing: the control record counts 2100 without expiry, the scan found 2099",
		},
		"several lost": {
			harm{func(b *storage.Batch) { b.Delete(at(7), behind); b.Delete(at(9), behind) }},
			"lost: packets: packets are missing: the control record counts 2100 without expiry, the scan found 2098",
		},
		"one came back": {
			harm{func(b *storage.Batch) {
				b.Delete(at(77), counted)
				b.Delete(at(77), counted)
				b.Put(at(77), &storage.Packet{})
			}},
			"resurrected: packets: packets came back: the control record counts 2099 without expiry, the scan found 2100",
		},
		"one lost and one that nobody put": {
			harm{func(b *storage.Batch) {
				b.Delete(at(7), behind)
				b.Put(id, large)
				b.Delete(storage.PacketID{Queue: 1, Priority: 1, Seq: 5}, counted)
				marks(b)
			}},
			"lost: packets: packets are not the ones written: the control record and the scan both count 2100",
		},
		"payload without packet": {
			harm{func(b *storage.Batch) { b.Put(id, large); marks(b) }, func(b *storage.Batch) { b.Delete(id, counted) }},
			"owner: 2/*/9223372036854780808: a payload of 5000 bytes",
		},
		"packet without payload": {
			harm{func(b *storage.Batch) { b.Put(id, large); marks(b) }, func(b *storage.Batch) {
				b.Delete(storage.PacketID{Queue: 2, Priority: 1, Seq: seq}, storage.Removed{Expires: true, Large: true})
			}},
			"record: " + id.String() + ": the data folder is damaged: the payload",
		},
		"queue without name": {
			harm{func(b *storage.Batch) { b.DeleteQueue(3) }},
			"owner: queue 3: it has no definition, so nobody can ask for its 300 packets, of which the first is 3/7/",
		},
		"one name for two queues": {
			harm{func(b *storage.Batch) { b.PutQueue(storage.Queue{ID: 3, Name: []byte("queue 2")}) }},
			`queue: queue 3: it has the name "queue 2", and so has queue 2`,
		},
		"queue number not given out": {
			harm{func(b *storage.Batch) { b.PutQueue(storage.Queue{ID: 8, Name: []byte("x")}) }},
			"queue: queue 8: its number",
		},
		"sequence not given out": {
			harm{func(b *storage.Batch) { b.Put(id, &storage.Packet{}) }},
			"record: " + id.String() + ": its sequence",
		},
		"load cut short": {harm{func(b *storage.Batch) { b.SetLoad([]byte("x")) }}, "load: load: a load was cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, base)
			tamper(t, dir, c.harm...)
			report := verify(t, dir, VerifyOptions{})
			if len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].String(), c.want) {
				t.Fatalf("findings %v, want %s", report.Findings, c.want)
			}
		})
	}
}

func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestFlippedByteIsFoundWithTheKeyOfItsPacket(t *testing.T) {
	dir := inFolder(t, manyPackets(2100))
	harmTable(t, dir, "payload 1234", func(b []byte, at int) { b[at+3] ^= 0x10 })
	for _, deep := range []bool{false, true} {
		report := verify(t, dir, VerifyOptions{Deep: deep})
		named := slices.ContainsFunc(report.Findings, func(f storage.Finding) bool {
			return strings.Contains(f.Key+f.What, at(1234).String())
		})
		if !named {
			t.Errorf("deep %v: findings %v, want one that names %v", deep, report.Findings, at(1234))
		}
	}
}

func TestFolderThatCannotBeLookedAtIsAnError(t *testing.T) {
	if _, err := Verify(t.Context(), t.TempDir(), VerifyOptions{}); !errors.Is(err, storage.ErrNotFolder) {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Verify(t.Context(), dir, VerifyOptions{}); !errors.Is(err, storage.ErrInUse) {
		t.Errorf("a folder in use: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Verify(ctx, dir, VerifyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
