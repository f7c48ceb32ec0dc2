package dump

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// loadError loads a dump from a pipe into a folder, in small steps, and returns why that failed.
func loadError(t *testing.T, dir string, r io.Reader) error {
	t.Helper()
	_, err := Load(t.Context(), dir, io.MultiReader(r), LoadOptions{Now: later, tune: smallSteps()})
	if err == nil {
		t.Fatal("the load went well")
	}
	return err
}

func TestFailedLoadSaysWhatIsStoredAndWhatToDo(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(300), Options{})
	lines := bytes.SplitAfter(dump, []byte{'\n'})
	at := func(n int) []byte { return bytes.Join(lines[:n], nil) }
	broken := append(at(200), "{}\n"...)
	for name, c := range map[string]struct {
		in        io.Reader
		want, not string
	}{
		"fault at the start":      {strings.NewReader(head + "{}\n"), "nothing was stored: the folder is new and empty", "as it was"},
		"fault behind some":       {bytes.NewReader(broken), "a part of the dump is stored, and the folder cannot be served yet: mend the dump and load it again", "same dump"},
		"cut short":               {bytes.NewReader(at(250)), "mend the dump and load it again", "same dump"},
		"cannot be read":          {io.MultiReader(bytes.NewReader(at(250)), iotest.ErrReader(io.ErrClosedPipe)), "load the same dump again to go on where it stopped, or abandon the load with --abandon", "mend"},
		"cannot be read at first": {iotest.ErrReader(io.ErrClosedPipe), "cannot read the dump", "stored"},
	} {
		err := loadError(t, t.TempDir(), c.in)
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: got %q, want %q and not %q", name, err, c.want, c.not)
		}
	}
}

func TestFailedLoadTellsANewFolderFromOneThatIsAsItWas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, want := range []string{"the folder is new and empty", "the folder is as it was"} {
		if err := loadError(t, dir, strings.NewReader(head+"{}\n")); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestLoadRecordThatCannotBeReadLeavesOnlyAbandoning(t *testing.T) {
	newer, err := msgpack.Marshal(loadState{Version: loadVersion + 1})
	if err != nil {
		t.Fatal(err)
	}
	dump, _ := dumpOf(t, anyDump(), Options{})
	for name, rec := range map[string][]byte{"not a map": []byte("x"), "too long": make([]byte, maxLoadRecord+1), "newer": newer} {
		dir := t.TempDir()
		tamper(t, dir, func(b *storage.Batch) { b.SetLoad(rec) })
		err := loadError(t, dir, bytes.NewReader(dump))
		if !strings.Contains(err.Error(), "abandon the load with --abandon") || strings.Contains(err.Error(), "load the same dump again") {
			t.Errorf("%s: got %q, want that only abandoning helps", name, err)
		}
		if newer := errors.Is(err, storage.ErrNewerFormat); newer != (name == "newer") {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := Load(t.Context(), dir, nil, LoadOptions{Abandon: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		load(t, dir, dump, LoadOptions{})
	}
}
