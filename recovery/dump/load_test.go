package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// smallSteps makes a load of little data go through many chunks and batches.
func smallSteps() loadTuning { return loadTuning{chunk: 512, batch: 1} }

// folderDump dumps a closed folder.
func folderDump(t testing.TB, dir string, o Options) []byte {
	t.Helper()
	view, err := storage.OpenView(dir, storage.ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	out, _ := dumpOf(t, view.Snapshot, o)
	return out
}

func load(t testing.TB, dir string, dump []byte, o LoadOptions) LoadReport {
	t.Helper()
	if o.Now == 0 {
		o.Now = later
	}
	report, err := Load(t.Context(), dir, bytes.NewReader(dump), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// inFolder makes a folder of what a fake holds.
func inFolder(t testing.TB, src *dumpFake) (dir string) {
	t.Helper()
	dir = t.TempDir()
	dump, _ := dumpOf(t, src, Options{Format: Msgpack, Now: 1})
	load(t, dir, dump, LoadOptions{Now: 1})
	return dir
}

func TestDumpOfWhatWasLoadedIsTheSameByteForByte(t *testing.T) {
	for _, o := range []Options{
		{}, {Payload: Text}, {Payload: Base64}, {Payload: Hex}, {Format: Msgpack}, {Queues: []string{"jobs"}}, {Limit: 3},
	} {
		t.Run(fmt.Sprint(o.Format, o.Payload, o.Queues, o.Limit), func(t *testing.T) {
			dump, made := dumpOf(t, anyDump(), o)
			dir := t.TempDir()
			report := load(t, dir, dump, LoadOptions{tune: smallSteps()})
			if report.Packets != made.Packets || report.Queues != made.Queues || report.Bytes != made.Bytes || report.Expired != 0 {
				t.Errorf("report %+v of dump %+v", report, made)
			}
			if again := folderDump(t, dir, Options{Format: o.Format, Payload: o.Payload}); !bytes.Equal(again, dump) {
				t.Errorf("got\n%s\nwant\n%s", again, dump)
			}
		})
	}
}

func TestExpiredPacketsOfADumpAreNotStored(t *testing.T) {
	dump, _ := dumpOf(t, anyDump(), Options{Now: later - 1})
	want, _ := dumpOf(t, anyDump(), Options{Now: later + 1})
	dir := t.TempDir()
	report := load(t, dir, dump, LoadOptions{Now: later + 1})
	if report.Expired != 2 || report.Packets != 7 {
		t.Errorf("report %+v, want 2 expired and 7 stored", report)
	}
	if got := folderDump(t, dir, Options{Now: later + 1}); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFolderThatHoldsSomethingIsNotLoadedInto(t *testing.T) {
	settings := &dumpFake{control: anyDump().control, queues: anyDump().queues}
	for name, c := range map[string]struct {
		src  *dumpFake
		says string
	}{
		"packets":  {manyPackets(10), "holds 10 packets"},
		"settings": {settings, "not empty: queue"},
	} {
		dump, _ := dumpOf(t, anyDump(), Options{})
		dir := inFolder(t, c.src)
		before := folderDump(t, dir, Options{})
		_, err := Load(t.Context(), dir, bytes.NewReader(dump), LoadOptions{Now: later})
		if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "merge") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrNotEmpty, %q and what to do", name, err, c.says)
		}
		if after := folderDump(t, dir, Options{}); !bytes.Equal(before, after) {
			t.Errorf("%s: a refused load has changed the folder", name)
		}
	}
}

func TestFolderThatHasLostAPacketIsNotMergedInto(t *testing.T) {
	dir := inFolder(t, manyPackets(10))
	tamper(t, dir, func(b *storage.Batch) {
		b.Delete(storage.PacketID{Queue: 1, Priority: 1, Seq: 1 << 63}, storage.Removed{Expires: true})
	})
	dump, _ := dumpOf(t, anyDump(), Options{})
	_, err := Load(t.Context(), dir, bytes.NewReader(dump), LoadOptions{Merge: true, Now: later})
	if !errors.Is(err, storage.ErrLoss) || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want ErrLoss, and that nothing was stored", err)
	}
}

func TestEmptiedFolderTakesADumpAsANewOneDoes(t *testing.T) {
	dir := t.TempDir()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Batch
	for i := range uint32(20) { // numbers that the dump uses for other queues and packets
		b.PutQueue(storage.Queue{ID: i + 1, Name: fmt.Append(nil, "old ", i)})
		b.Put(storage.PacketID{Queue: i + 1, Priority: 1, Seq: 1<<63 + uint64(i)},
			&storage.Packet{Expiry: later - 1, Payload: bytes.Repeat([]byte("x"), 2000)})
	}
	b.SetMarks(storage.Marks{NextSeq: 1<<63 + 1000, LowSeq: 1<<63 - 1, NextQueue: 30})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dump, _ := dumpOf(t, anyDump(), Options{})
	load(t, dir, dump, LoadOptions{})
	if got := folderDump(t, dir, Options{}); !bytes.Equal(got, dump) {
		t.Errorf("got\n%s\nwant\n%s", got, dump)
	}
}

func TestLongestPacketsAreLoadedAmongOthers(t *testing.T) {
	for _, o := range []Options{{Payload: Hex}, {Format: Msgpack}} {
		src := manyPackets(3000)
		for i := range src.packets {
			switch {
			case i%1000 == 500:
				src.packets[i].packet.Payload = bytes.Repeat([]byte{byte(i)}, maxRecord-200)
			case i%100 == 7:
				src.packets[i].packet.Payload = bytes.Repeat([]byte{byte(i)}, 60_000)
			}
		}
		dump, _ := dumpOf(t, src, o)
		dir := t.TempDir()
		load(t, dir, dump, LoadOptions{})
		if got := folderDump(t, dir, o); !bytes.Equal(got, dump) {
			t.Errorf("%v: %d bytes are dumped of %d", o.Format, len(got), len(dump))
		}
	}
}

// lists are the payloads of each queue in the order of the keys, by the queue's name.
func lists(t testing.TB, dir string) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	_, err := Read(t.Context(), bytes.NewReader(folderDump(t, dir, Options{Now: 1})), ReadOptions{
		Queue: func(q *storage.Queue) error { found[string(q.Name)] = nil; return nil },
		Packet: func(q *storage.Queue, id storage.PacketID, p *storage.Packet) error {
			found[string(q.Name)] = append(found[string(q.Name)], fmt.Sprintf("%d %s %d", id.Priority, p.Payload, p.Expiry))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMergedPacketsFollowThoseOfTheSameQueueInTheirOrder(t *testing.T) {
	source := func(name string, queues ...string) *dumpFake {
		s := &dumpFake{control: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 50, LowSeq: 1<<63 - 50, NextQueue: 10}}}
		for i, q := range queues {
			id := uint32(i + 1)
			s.queues = append(s.queues, storage.Queue{ID: id, Name: []byte(q)})
			s.put(id, 1, 1<<63-20, storage.Packet{Payload: []byte(name + " a")})
			s.put(id, 1, 1<<63+20, storage.Packet{Payload: []byte(name + " b"), Expiry: 5 * later})
			s.put(id, 2, 1<<63, storage.Packet{Payload: []byte(name + " c")})
		}
		return s
	}
	for _, stream := range []bool{false, true} {
		dir := inFolder(t, source("old", "shared", "kept"))
		dump, _ := dumpOf(t, source("new", "added", "shared"), Options{})
		var in io.Reader = bytes.NewReader(dump)
		if stream {
			in = io.MultiReader(in) // cannot go back
		}
		report, err := Load(t.Context(), dir, in, LoadOptions{Merge: true, Now: later, tune: smallSteps()})
		if err != nil || report.Packets != 6 {
			t.Fatal(report, err)
		}
		one := func(name string) []string {
			return []string{"1 " + name + " a 0", fmt.Sprint("1 ", name, " b ", 5*later), "2 " + name + " c 0"}
		}
		want := map[string][]string{
			"kept":   one("old"),
			"added":  one("new"),
			"shared": {"1 old a 0", fmt.Sprint("1 old b ", 5*later), "1 new a 0", fmt.Sprint("1 new b ", 5*later), "2 old c 0", "2 new c 0"},
		}
		if got := lists(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
}

func TestMergeOfABadDumpThatCanBeReadTwiceStoresNothing(t *testing.T) {
	dir := inFolder(t, anyDump())
	before := folderDump(t, dir, Options{})
	dump, _ := dumpOf(t, manyPackets(200), Options{})
	_, err := Load(t.Context(), dir, bytes.NewReader(dump[:len(dump)-2]), LoadOptions{Merge: true, Now: later, tune: smallSteps()})
	if err == nil || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that nothing was stored", err)
	}
	if after := folderDump(t, dir, Options{}); !bytes.Equal(before, after) {
		t.Error("the folder has changed")
	}
}

// stopper ends a load once so many bytes were read.
type stopper struct {
	io.Reader
	left int
	stop context.CancelFunc
}

func (s *stopper) Read(b []byte) (int, error) {
	if s.left <= 0 {
		s.stop()
	}
	n, err := s.Reader.Read(b[:min(len(b), 200)])
	s.left -= n
	return n, err
}

func TestStoppedLoadGoesOnWhereItWas(t *testing.T) {
	for name, merge := range map[string]bool{"new folder": false, "merge": true} {
		t.Run(name, func(t *testing.T) {
			dump, _ := dumpOf(t, manyPackets(300), Options{})
			want := t.TempDir()
			if merge {
				want = inFolder(t, anyDump())
			}
			load(t, want, dump, LoadOptions{Merge: merge})
			dir := t.TempDir()
			if merge {
				dir = inFolder(t, anyDump())
			}
			stops, resumed := 0, int64(0)
			for at := len(dump) / 8; ; at += len(dump) / 8 {
				ctx, stop := context.WithCancel(t.Context())
				in := &stopper{bytes.NewReader(dump), at, stop}
				report, err := Load(ctx, dir, in, LoadOptions{Merge: merge, Now: later, tune: smallSteps()})
				stop()
				if report.Resumed < resumed {
					t.Fatalf("resumed with %d packets after %d", report.Resumed, resumed)
				}
				resumed = report.Resumed
				if err == nil {
					if report.Packets != 300 {
						t.Errorf("report %+v", report)
					}
					break
				}
				if stops++; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "go on where it stopped") {
					t.Fatalf("got %v, want what stopped it and how to go on", err)
				}
				if _, err := storage.Open(dir, storage.Options{}); !errors.Is(err, storage.ErrLoadUnfinished) {
					t.Fatalf("a server can open the folder: %v", err)
				}
			}
			if stops < 4 || resumed == 0 {
				t.Errorf("stopped %d times and resumed with %d packets: too few to prove anything", stops, resumed)
			}
			if got, want := folderDump(t, dir, Options{}), folderDump(t, want, Options{}); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// halfLoaded is a folder into which a dump was loaded in part.
func halfLoaded(t *testing.T, dump []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Load(ctx, dir, &stopper{bytes.NewReader(dump), len(dump) / 2, stop}, LoadOptions{Now: later, tune: smallSteps()})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return dir
}

func TestUnfinishedLoadGoesOnWithNoOtherDump(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(300), Options{})
	other, _ := dumpOf(t, manyPackets(300), Options{Payload: Hex})
	packed, _ := dumpOf(t, manyPackets(300), Options{Format: Msgpack})
	short, _ := dumpOf(t, manyPackets(20), Options{})
	flipped := bytes.Replace(dump, []byte("payload 17"), []byte("payload 18"), 1)
	dir := halfLoaded(t, dump)
	for name, in := range map[string][]byte{"other": other, "other format": packed, "shorter": short, "changed": flipped} {
		_, err := Load(t.Context(), dir, bytes.NewReader(in), LoadOptions{Now: later})
		if !errors.Is(err, ErrOtherDump) {
			t.Errorf("%s: got %v, want ErrOtherDump", name, err)
		}
	}
	if _, err := Load(t.Context(), dir, bytes.NewReader(dump), LoadOptions{Merge: true, Now: later}); !errors.Is(err, ErrOtherDump) {
		t.Errorf("merge: got %v, want ErrOtherDump", err)
	}
	if report := load(t, dir, dump, LoadOptions{}); report.Resumed == 0 || report.Packets != 300 {
		t.Errorf("report %+v", report)
	}
}

func TestAbandonedLoadKeepsWhatItStored(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(300), Options{})
	dir := halfLoaded(t, dump)
	if found := verified(t, dir).Findings; len(found) != 1 || !strings.Contains(found[0].What, "abandon the load to keep what is stored") {
		t.Errorf("findings %v, want the load and how to end it", found)
	}
	report, err := Load(t.Context(), dir, nil, LoadOptions{Abandon: true})
	if err != nil || report.Packets == 0 || report.Packets >= 300 {
		t.Fatal(report, err)
	}
	got := folderDump(t, dir, Options{})
	lines := bytes.Count(got, []byte{'\n'})
	if !bytes.HasPrefix(dump, bytes.Join(bytes.SplitAfter(got, []byte{'\n'})[:lines-1], nil)) {
		t.Error("what was kept is not the beginning of the dump")
	}
	if n := int64(bytes.Count(got, []byte(`"packet"`))); n != report.Packets {
		t.Errorf("%d packets are kept, the report says %d", n, report.Packets)
	}
	if _, err := Load(t.Context(), dir, nil, LoadOptions{Abandon: true}); !errors.Is(err, ErrNothingToAbandon) {
		t.Errorf("a second time: got %v", err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Load(t.Context(), none, nil, LoadOptions{Abandon: true}); !errors.Is(err, ErrNothingToAbandon) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: got %v", err)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
}

func TestFolderIsNotMadeForWhatIsNoDump(t *testing.T) {
	csv, _ := dumpOf(t, anyDump(), Options{Format: CSV})
	none, _ := dumpOf(t, anyDump(), Options{Payload: None})
	for name, c := range map[string]struct{ in, want string }{
		"nothing":          {"", "empty"},
		"text":             {"hello", "not a dump"},
		"csv":              {string(csv), "CSV"},
		"without payloads": {string(none), "without payloads"},
		"compressed":       {"\x1f\x8b\x08", "unpack"},
		"no header":        {`{"type":"queue","id":1,"queue":"a"}` + "\n", "header"},
		"half a header":    {`{"type":"holdfast","version":1`, "line 1"},
		"half a map":       {"\x85\xa4type", "record 1"},
	} {
		dir := t.TempDir() + "/new"
		_, err := Load(t.Context(), dir, strings.NewReader(c.in), LoadOptions{Now: later})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error that says %q", name, err, c.want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a folder is there: %v", name, err)
		}
	}
}
