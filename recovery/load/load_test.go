package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
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
		if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "load into a new folder") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrNotEmpty, %q and what to do", name, err, c.says)
		}
		if after := folderDump(t, dir, dump.Options{}); !bytes.Equal(before, after) {
			t.Errorf("%s: a refused load has changed the folder", name)
		}
	}
}

func TestLongestPacketsAreLoadedAmongOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("many MB are written by one goroutine")
	}
	every := make([]byte, 256) // every byte
	for i := range every {
		every[i] = byte(i)
	}
	for _, o := range []dump.Options{{Format: dump.Msgpack}, {Format: dump.JSONL}} {
		src := recoverytest.Many(3000)
		for i := range src.Stored {
			switch {
			case i == 500 && !testing.Short():
				src.Stored[i].Packet.Payload = bytes.Repeat(every, content.MaxPayload/256)
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

func TestWhatOnlyNewPacketsHaveIsLoaded(t *testing.T) {
	s := recoverytest.Many(1)
	s.Stored[0].Packet.Lease, s.Stored[0].Packet.Meta = 70_000, []byte("\xff meta")
	for _, o := range []dump.Options{{}, {Format: dump.Msgpack}} {
		text, _ := dumpOf(t, s, o)
		dir := t.TempDir()
		load(t, dir, text, Options{})
		if again := folderDump(t, dir, o); !bytes.Equal(again, text) || !bytes.Contains(text, []byte("lease")) {
			t.Errorf("got\n%s\nwant\n%s", again, text)
		}
	}
	s.Stored[0].Packet.Lease = -1
	if _, err := dump.Dump(s, io.Discard, dump.Options{Now: recoverytest.Later}); err == nil || !strings.Contains(err.Error(), "lease") {
		t.Error("a lease of less than nothing was dumped:", err)
	}
}
