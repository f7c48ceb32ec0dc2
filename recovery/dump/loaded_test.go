package dump

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

func packetsIn(t *testing.T, dir string) int {
	t.Helper()
	return bytes.Count(folderDump(t, dir, Options{}), []byte(`"type":"packet"`))
}

func TestSameDumpIsLoadedOnceUntilSomethingElseHappens(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(100), Options{})
	for name, stream := range map[string]bool{"file": false, "pipe": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			step := func(o LoadOptions, already bool, packets int) {
				t.Helper()
				var in io.Reader = bytes.NewReader(dump)
				if stream {
					in = io.MultiReader(in)
				}
				o.Now = later
				report, err := Load(t.Context(), dir, in, o)
				if err != nil || report.Already != already || report.Packets != 100 || report.Bytes != int64(len(dump)) {
					t.Fatalf("report %+v, %v, want %v", report, err, already)
				}
				if n := packetsIn(t, dir); n != packets {
					t.Fatalf("%d packets are in the folder, want %d", n, packets)
				}
			}
			step(LoadOptions{}, false, 100)
			step(LoadOptions{}, true, 100)
			step(LoadOptions{Merge: true}, false, 200) // is another way
			step(LoadOptions{Merge: true}, true, 200)
			step(LoadOptions{Merge: true, Again: true}, false, 300)
			step(LoadOptions{Merge: true}, true, 300)
			tamper(t, dir, func(b *storage.Batch) {
				b.PutQueue(storage.Queue{ID: 1000, Name: []byte("pushed")})
				b.SetMarks(storage.Marks{NextSeq: 1<<63 + 10_000, LowSeq: 1<<63 - 1, NextQueue: 1001})
			})
			step(LoadOptions{Merge: true}, false, 400)
		})
	}
}

func TestDumpThatBeginsLikeTheLastIsMergedFromAFileAndRefusedFromAPipe(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(100), Options{})
	at := bytes.LastIndex(dump, []byte("payload "))
	other := append(bytes.Clone(dump[:at]), bytes.Replace(dump[at:], []byte("payload "), []byte("another "), 1)...)
	other = append(other[:bytes.LastIndex(other, []byte(`{"type":"end"`))], endLine(100, 7)...)
	dir := t.TempDir()
	load(t, dir, dump, LoadOptions{Merge: true})
	_, err := Load(t.Context(), dir, io.MultiReader(bytes.NewReader(other)), LoadOptions{Merge: true, Now: later})
	if !errors.Is(err, ErrAlike) || packetsIn(t, dir) != 100 {
		t.Errorf("from a pipe: %v, and %d packets", err, packetsIn(t, dir))
	}
	if report := load(t, dir, other, LoadOptions{Merge: true}); report.Already || packetsIn(t, dir) != 200 {
		t.Errorf("from a file: %+v, and %d packets", report, packetsIn(t, dir))
	}
	different, _ := dumpOf(t, manyPackets(101), Options{})
	if _, err := Load(t.Context(), dir, io.MultiReader(bytes.NewReader(different)), LoadOptions{Merge: true, Now: later}); err != nil {
		t.Errorf("a dump that begins in another way, from a pipe: %v", err)
	}
}

func TestDumpsInTurnsAreEachLoaded(t *testing.T) {
	a, _ := dumpOf(t, manyPackets(100), Options{})
	b, _ := dumpOf(t, manyPackets(10), Options{})
	dir := t.TempDir()
	for i, c := range []struct {
		dump    []byte
		already bool
		packets int
	}{{a, false, 100}, {b, false, 110}, {a, false, 210}, {a, true, 210}, {b, false, 220}} {
		report := load(t, dir, c.dump, LoadOptions{Merge: true})
		if n := packetsIn(t, dir); report.Already != c.already || n != c.packets {
			t.Fatalf("step %d: report %+v and %d packets, want %d", i, report, n, c.packets)
		}
	}
}

func TestPoppedPacketsDoNotComeBackWithALoadThatIsRepeated(t *testing.T) {
	src := manyPackets(100)
	dump, _ := dumpOf(t, src, Options{})
	dir := t.TempDir()
	load(t, dir, dump, LoadOptions{})
	for _, p := range src.packets {
		if p.packet.Expiry == 0 {
			tamper(t, dir, func(b *storage.Batch) {
				b.Delete(p.id, storage.Removed{Large: storage.IsLarge(len(p.packet.Payload))})
			})
			break
		}
	}
	for _, again := range []bool{false, true} {
		_, err := Load(t.Context(), dir, bytes.NewReader(dump), LoadOptions{Again: again, Now: later})
		if n := packetsIn(t, dir); !errors.Is(err, ErrNotEmpty) || n != 99 {
			t.Errorf("again %v: got %v and %d packets, want ErrNotEmpty and 99", again, err, n)
		}
	}
}

func TestLoadedDumpWhosePacketsAreLostIsNotSaidToBeThere(t *testing.T) {
	src := manyPackets(100)
	dump, _ := dumpOf(t, src, Options{})
	dir := t.TempDir()
	load(t, dir, dump, LoadOptions{})
	rec := loadedRecord(t, dir)
	tamper(t, dir, func(b *storage.Batch) {
		b.Delete(storage.PacketID{Queue: 1, Priority: 1, Seq: 1 << 63}, storage.Removed{Expires: true}) // which it has not
		b.SetLoaded(rec)
	})
	_, err := Load(t.Context(), dir, bytes.NewReader(dump), LoadOptions{Now: later})
	if !errors.Is(err, storage.ErrLoss) || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want ErrLoss, and that nothing was stored", err)
	}
}

func loadedRecord(t *testing.T, dir string) []byte {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return bytes.Clone(s.Loaded())
}

func TestLoadedRecordThatCannotBeReadSaysWhatHelps(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(10), Options{})
	for name, rec := range map[string][]byte{"not a map": []byte("x"), "too long": make([]byte, maxLoadRecord+1)} {
		dir := t.TempDir()
		tamper(t, dir, func(b *storage.Batch) { b.SetLoaded(rec) })
		_, err := Load(t.Context(), dir, bytes.NewReader(dump), LoadOptions{Now: later})
		if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), "load it again") {
			t.Errorf("%s: got %v, want ErrDamaged, and to load it again", name, err)
		}
		load(t, dir, dump, LoadOptions{Again: true})
	}
}

// withRubbish is a folder of n expired packets and n queues.
func withRubbish(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b storage.Batch
	for i := range n {
		if i%1000 == 0 {
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
		b.PutQueue(storage.Queue{ID: uint32(i + 1), Name: []byte{byte(i), byte(i >> 8), 'x'}})
		b.Put(storage.PacketID{Queue: uint32(i + 1), Priority: 1, Seq: 1<<63 + uint64(i)}, &storage.Packet{Expiry: later - 1})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	return dir
}

// after is a context that ends once it was asked so often.
type after struct {
	context.Context
	calls int
}

func (a *after) Err() error {
	if a.calls--; a.calls < 0 {
		return context.Canceled
	}
	return nil
}

func TestStoppedClearingSaysWhatItRemoved(t *testing.T) {
	const packets = 6000 // one look at the context in each scan, and more than one batch
	dump, _ := dumpOf(t, anyDump(), Options{})
	const asItWas = "nothing was stored: the folder is as it was"
	for calls, want := range map[int]string{0: asItWas, 1: asItWas, 2: "only expired packets"} {
		dir := withRubbish(t, packets)
		_, err := Load(&after{t.Context(), calls}, dir, bytes.NewReader(dump), LoadOptions{Now: later})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
			t.Errorf("stopped after %d looks: got %v, want %q", calls, err, want)
		}
		load(t, dir, dump, LoadOptions{})
		if got := folderDump(t, dir, Options{}); !bytes.Equal(got, dump) {
			t.Errorf("stopped after %d looks: got\n%s\nwant\n%s", calls, got, dump)
		}
	}
}

func TestMergeThatHasStoredNothingSaysSo(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(1), Options{})
	dir := t.TempDir()
	load(t, dir, dump, LoadOptions{})
	long := strings.Repeat(`\u0001`, 300_000) // as it is written more than a batch takes, as it is stored less
	cut := bytes.Replace(dump, []byte(`"payload":"`), []byte(`"payload":"`+long), 1)
	cut = cut[:bytes.LastIndex(cut, []byte(`{"type":"end"`))]
	_, err := Load(t.Context(), dir, io.MultiReader(bytes.NewReader(cut)), LoadOptions{Merge: true, Now: later})
	if err == nil || !strings.Contains(err.Error(), "cut short") || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that nothing was stored", err)
	}
	if s, err := storage.Open(dir, storage.Options{}); err != nil || s.Close() != nil {
		t.Errorf("a server cannot take the folder: %v", err)
	}
}
