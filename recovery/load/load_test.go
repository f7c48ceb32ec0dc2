package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

// folderDump dumps a closed folder.
func folderDump(t testing.TB, dir string, o dump.Options) []byte {
	t.Helper()
	view, err := storage.OpenView(dir, storage.ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	out, _ := dumpOf(t, view.Snapshot, o)
	return out
}

func load(t testing.TB, dir string, text []byte, o Options) Report {
	t.Helper()
	if o.Now == 0 {
		o.Now = recoverytest.Later
	}
	report, err := Load(t.Context(), dir, bytes.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestDumpOfWhatWasLoadedIsTheSameByteForByte(t *testing.T) {
	for _, o := range []dump.Options{
		{}, {Payload: dump.Text}, {Payload: dump.Base64}, {Format: dump.Msgpack}, {Queues: []string{"jobs"}}, {Limit: 3},
	} {
		t.Run(fmt.Sprint(o.Format, o.Payload, o.Queues, o.Limit), func(t *testing.T) {
			text, made := dumpOf(t, recoverytest.OneOfEach(), o)
			dir := t.TempDir()
			report := load(t, dir, text, Options{batchBytes: 1, chunkBytes: 512})
			if report.Packets != made.Packets || report.Queues != made.Queues || report.Bytes != made.Bytes || report.Expired != 0 {
				t.Errorf("report %+v of dump %+v", report, made)
			}
			if again := folderDump(t, dir, dump.Options{Format: o.Format, Payload: o.Payload}); !bytes.Equal(again, text) {
				t.Errorf("got\n%s\nwant\n%s", again, text)
			}
		})
	}
}

func TestExpiredPacketsOfADumpAreNotStored(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{Now: recoverytest.Later - 1})
	want, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{Now: recoverytest.Later + 1})
	dir := t.TempDir()
	report := load(t, dir, text, Options{Now: recoverytest.Later + 1})
	if report.Expired != 2 || report.Packets != 7 {
		t.Errorf("report %+v, want 2 expired and 7 stored", report)
	}
	if got := folderDump(t, dir, dump.Options{Now: recoverytest.Later + 1}); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFolderThatHoldsSomethingIsNotLoadedInto(t *testing.T) {
	settings := &recoverytest.Fake{Counted: recoverytest.OneOfEach().Counted, Defined: recoverytest.OneOfEach().Defined}
	for name, c := range map[string]struct {
		src  *recoverytest.Fake
		says string
	}{
		"packets":  {recoverytest.Many(10), "holds 10 packets"},
		"settings": {settings, "not empty: queue"},
	} {
		text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{})
		dir := recoverytest.InFolder(t, c.src)
		before := folderDump(t, dir, dump.Options{})
		_, err := Load(t.Context(), dir, bytes.NewReader(text), Options{Now: recoverytest.Later})
		if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "merge") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrNotEmpty, %q and what to do", name, err, c.says)
		}
		if after := folderDump(t, dir, dump.Options{}); !bytes.Equal(before, after) {
			t.Errorf("%s: a refused load has changed the folder", name)
		}
	}
}

func TestFolderThatHasLostAPacketIsNotMergedInto(t *testing.T) {
	dir := recoverytest.InFolder(t, recoverytest.Many(10))
	recoverytest.Tamper(t, dir, func(b *storage.Batch) {
		b.Delete(storage.PacketID{Queue: 1, Priority: 1, Seq: 1 << 63}, storage.Removed{Expires: true})
	})
	text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{})
	_, err := Load(t.Context(), dir, bytes.NewReader(text), Options{Merge: true, Now: recoverytest.Later})
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
			&storage.Packet{Expiry: recoverytest.Later - 1, Payload: bytes.Repeat([]byte("x"), 2000)})
	}
	b.SetMarks(storage.Marks{NextSeq: 1<<63 + 1000, LowSeq: 1<<63 - 1, NextQueue: 30})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{})
	load(t, dir, text, Options{})
	if got := folderDump(t, dir, dump.Options{}); !bytes.Equal(got, text) {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
}

func TestLongestPacketsAreLoadedAmongOthers(t *testing.T) {
	for _, o := range []dump.Options{{Format: dump.Msgpack}} {
		src := recoverytest.Many(3000)
		for i := range src.Stored {
			switch {
			case i%1000 == 500:
				src.Stored[i].Packet.Payload = bytes.Repeat([]byte{byte(i)}, dump.MaxRecord-200)
			case i%100 == 7:
				src.Stored[i].Packet.Payload = bytes.Repeat([]byte{byte(i)}, 60_000)
			}
		}
		text, _ := dumpOf(t, src, o)
		dir := t.TempDir()
		load(t, dir, text, Options{})
		if got := folderDump(t, dir, o); !bytes.Equal(got, text) {
			t.Errorf("%v: %d bytes are dumped of %d", o.Format, len(got), len(text))
		}
	}
}

// lists are the payloads of each queue in the order of the keys, by the queue's name.
func lists(t testing.TB, dir string) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	_, err := dump.Read(t.Context(), bytes.NewReader(folderDump(t, dir, dump.Options{Now: 1})), dump.ReadOptions{
		Queue: func(q *storage.Queue) error { found[string(q.Name)] = nil; return nil },
		Packet: func(q *storage.Queue, id storage.PacketID, p *storage.Packet, _ *dump.Delivery) error {
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
	source := func(name string, queues ...string) *recoverytest.Fake {
		s := &recoverytest.Fake{Counted: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 50, LowSeq: 1<<63 - 50, NextQueue: 10}}}
		for i, q := range queues {
			id := uint32(i + 1)
			s.Defined = append(s.Defined, storage.Queue{ID: id, Name: []byte(q)})
			s.Put(id, 1, 1<<63-20, storage.Packet{Payload: []byte(name + " a")})
			s.Put(id, 1, 1<<63+20, storage.Packet{Payload: []byte(name + " b"), Expiry: 5 * recoverytest.Later})
			s.Put(id, 2, 1<<63, storage.Packet{Payload: []byte(name + " c")})
		}
		return s
	}
	for _, stream := range []bool{false, true} {
		dir := recoverytest.InFolder(t, source("old", "shared", "kept"))
		text, _ := dumpOf(t, source("new", "added", "shared"), dump.Options{})
		var in io.Reader = bytes.NewReader(text)
		if stream {
			in = io.MultiReader(in) // cannot go back
		}
		report, err := Load(t.Context(), dir, in, Options{Merge: true, Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
		if err != nil || report.Packets != 6 {
			t.Fatal(report, err)
		}
		one := func(name string) []string {
			return []string{"1 " + name + " a 0", fmt.Sprint("1 ", name, " b ", 5*recoverytest.Later), "2 " + name + " c 0"}
		}
		want := map[string][]string{
			"kept":   one("old"),
			"added":  one("new"),
			"shared": {"1 old a 0", fmt.Sprint("1 old b ", 5*recoverytest.Later), "1 new a 0", fmt.Sprint("1 new b ", 5*recoverytest.Later), "2 old c 0", "2 new c 0"},
		}
		if got := lists(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
}

func TestAQueueOfAnotherDatabaseIsAnotherQueueInAMerge(t *testing.T) {
	source := func(db uint8) *recoverytest.Fake {
		s := &recoverytest.Fake{Counted: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 50, LowSeq: 1<<63 - 50, NextQueue: 10}}}
		s.Defined = []storage.Queue{{ID: 1, Database: db, Name: []byte("q")}, {ID: 2, Database: db, Name: []byte("dead")}}
		s.Put(2, 1, 1<<63, storage.Packet{})
		s.Try(storage.Delivery{Identity: 1 << 63, Origin: 1})
		return s
	}
	dir := recoverytest.InFolder(t, source(0))
	for _, db := range []uint8{3, 3} {
		text, _ := dumpOf(t, source(db), dump.Options{})
		load(t, dir, text, Options{Merge: true})
	}
	var got []string
	_, err := dump.Read(t.Context(), bytes.NewReader(folderDump(t, dir, dump.Options{})), dump.ReadOptions{
		Packet: func(q *storage.Queue, _ storage.PacketID, _ *storage.Packet, d *dump.Delivery) error {
			got = append(got, fmt.Sprintf("%d:%s from %d", q.Database, q.Name, d.Origin))
			return nil
		},
	})
	if want := []string{"0:dead from 1", "3:dead from 10", "3:dead from 10"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestMergeOfABadDumpThatCanBeReadTwiceStoresNothing(t *testing.T) {
	dir := recoverytest.InFolder(t, recoverytest.OneOfEach())
	before := folderDump(t, dir, dump.Options{})
	text, _ := dumpOf(t, recoverytest.Many(200), dump.Options{})
	_, err := Load(t.Context(), dir, bytes.NewReader(text[:len(text)-2]), Options{Merge: true, Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
	if err == nil || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that nothing was stored", err)
	}
	if after := folderDump(t, dir, dump.Options{}); !bytes.Equal(before, after) {
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
			text, _ := dumpOf(t, recoverytest.Many(300), dump.Options{})
			want := t.TempDir()
			if merge {
				want = recoverytest.InFolder(t, recoverytest.OneOfEach())
			}
			load(t, want, text, Options{Merge: merge})
			dir := t.TempDir()
			if merge {
				dir = recoverytest.InFolder(t, recoverytest.OneOfEach())
			}
			stops, resumed := 0, int64(0)
			for at := len(text) / 8; ; at += len(text) / 8 {
				ctx, stop := context.WithCancel(t.Context())
				in := &stopper{bytes.NewReader(text), at, stop}
				report, err := Load(ctx, dir, in, Options{Merge: merge, Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
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
				if stops++; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a part of the dump is stored") {
					t.Fatalf("got %v, want what stopped it and how to go on", err)
				}
				if _, err := storage.Open(dir, storage.Options{}); !errors.Is(err, storage.ErrLoadUnfinished) {
					t.Fatalf("a server can open the folder: %v", err)
				}
			}
			if stops < 4 || resumed == 0 {
				t.Errorf("stopped %d times and resumed with %d packets: too few to prove anything", stops, resumed)
			}
			if got, want := folderDump(t, dir, dump.Options{}), folderDump(t, want, dump.Options{}); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// halfLoaded is a folder into which a dump was loaded in part.
func halfLoaded(t *testing.T, text []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Load(ctx, dir, &stopper{bytes.NewReader(text), len(text) / 2, stop}, Options{Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return dir
}

func TestUnfinishedLoadGoesOnWithNoOtherDump(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(300), dump.Options{})
	other, _ := dumpOf(t, recoverytest.Many(300), dump.Options{Payload: dump.Base64})
	inMsgpack, _ := dumpOf(t, recoverytest.Many(300), dump.Options{Format: dump.Msgpack})
	short, _ := dumpOf(t, recoverytest.Many(20), dump.Options{})
	flipped := bytes.Replace(text, []byte("payload 17"), []byte("payload 18"), 1)
	dir := halfLoaded(t, text)
	for name, in := range map[string][]byte{"other": other, "other format": inMsgpack, "shorter": short, "changed": flipped} {
		_, err := Load(t.Context(), dir, bytes.NewReader(in), Options{Now: recoverytest.Later})
		if !errors.Is(err, ErrOtherDump) {
			t.Errorf("%s: got %v, want ErrOtherDump", name, err)
		}
	}
	if _, err := Load(t.Context(), dir, bytes.NewReader(text), Options{Merge: true, Now: recoverytest.Later}); !errors.Is(err, ErrOtherDump) {
		t.Errorf("merge: got %v, want ErrOtherDump", err)
	}
	if report := load(t, dir, text, Options{}); report.Resumed == 0 || report.Packets != 300 {
		t.Errorf("report %+v", report)
	}
}

func TestAbandonedLoadKeepsWhatItStored(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(300), dump.Options{})
	dir := halfLoaded(t, text)
	if found := verified(t, dir).Findings; len(found) != 1 || !strings.Contains(found[0].What, "abandon the load to keep what is stored") {
		t.Errorf("findings %v, want the load and how to end it", found)
	}
	report, err := Abandon(dir)
	if err != nil || report.Packets == 0 || report.Packets >= 300 {
		t.Fatal(report, err)
	}
	got := folderDump(t, dir, dump.Options{})
	lines := bytes.Count(got, []byte{'\n'})
	if !bytes.HasPrefix(text, bytes.Join(bytes.SplitAfter(got, []byte{'\n'})[:lines-1], nil)) {
		t.Error("what was kept is not the beginning of the dump")
	}
	if n := int64(bytes.Count(got, []byte(`"packet"`))); n != report.Packets {
		t.Errorf("%d packets are kept, the report says %d", n, report.Packets)
	}
	if _, err := Abandon(dir); !errors.Is(err, ErrNothingToAbandon) {
		t.Errorf("a second time: got %v", err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Abandon(none); !errors.Is(err, ErrNothingToAbandon) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: got %v", err)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
}

func TestFolderIsNotMadeForWhatIsNoDump(t *testing.T) {
	csv, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{Format: dump.CSV})
	none, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{Payload: dump.None})
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
		_, err := Load(t.Context(), dir, strings.NewReader(c.in), Options{Now: recoverytest.Later})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error that says %q", name, err, c.want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a folder is there: %v", name, err)
		}
	}
}
