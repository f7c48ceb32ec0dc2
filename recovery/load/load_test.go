package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
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
			report := load(t, dir, text, Options{batchBytes: 1})
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
		"packets":  {recoverytest.Many(10), "holds queues: 7; load"},
		"settings": {settings, "holds queues: 7; load"},
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

func TestLongestPacketsAreLoadedAmongOthers(t *testing.T) {
	every := make([]byte, 256) // every byte
	for i := range every {
		every[i] = byte(i)
	}
	for _, o := range []dump.Options{{Format: dump.Msgpack}, {Format: dump.JSONL}} {
		src := recoverytest.Many(3000)
		for i := range src.Stored {
			switch {
			case i == 500 && !testing.Short():
				src.Stored[i].Packet.Payload = bytes.Repeat(every, storage.MaxPayload/256)
			case i%1000 == 500:
				src.Stored[i].Packet.Payload = bytes.Repeat(every, 4096)
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
	_, err := dump.Read(t.Context(), bytes.NewReader(folderDump(t, dir, dump.Options{Now: 1})), func(r *dump.Record) error {
		switch name := string(r.Queue); r.Type {
		case dump.TypeQueue:
			found[name] = nil
		case dump.TypePacket:
			id, p, _ := r.Packet()
			found[name] = append(found[name], fmt.Sprintf("%d %s %d", id.Priority, p.Payload, p.Expiry))
		}
		return nil
	}, nil)
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
	for _, size := range []int{0, 1} {
		dir := recoverytest.InFolder(t, source("old", "shared", "kept"))
		text, _ := dumpOf(t, source("new", "added", "shared"), dump.Options{})
		if report := load(t, dir, text, Options{Merge: true, batchBytes: size}); report.Packets != 6 {
			t.Fatal(report)
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
	var db uint64
	_, err := dump.Read(t.Context(), bytes.NewReader(folderDump(t, dir, dump.Options{})), func(r *dump.Record) error {
		switch r.Type {
		case dump.TypeQueue:
			db = r.Database
		case dump.TypePacket:
			_, _, d := r.Packet()
			got = append(got, fmt.Sprintf("%d:%s from %d", db, r.Queue, d.Origin))
		}
		return nil
	}, nil)
	if want := []string{"0:dead from 1", "3:dead from 10", "3:dead from 10"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestFolderIsNotMadeForWhatIsNoDump(t *testing.T) {
	none, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{Payload: dump.None})
	for name, c := range map[string]struct{ in, want string }{
		"nothing":          {"", "empty"},
		"text":             {"hello", "not a dump"},
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
