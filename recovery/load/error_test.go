package load

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

// loadError loads a dump from a pipe into a folder, in small steps, and returns why that failed.
func loadError(t *testing.T, dir string, r io.Reader) error {
	t.Helper()
	_, err := Load(t.Context(), dir, io.MultiReader(r), Options{Now: recoverytest.Later, batchBytes: 1})
	if err == nil {
		t.Fatal("the load went well")
	}
	return err
}

func TestFailedLoadSaysWhatIsStoredAndWhatToDo(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(300), dump.Options{})
	lines := bytes.SplitAfter(text, []byte{'\n'})
	at := func(n int) []byte { return bytes.Join(lines[:n], nil) }
	unfinished := storage.ErrLoadUnfinished.Error() + ": a part of the dump is stored"
	broken := append(at(200), "{}\n"...)
	for name, c := range map[string]struct {
		in        io.Reader
		want, not string
	}{
		"fault at the start":      {strings.NewReader(head + "{}\n"), "nothing was stored", "a part of the dump"},
		"fault behind some":       {bytes.NewReader(broken), "line 201: field \"type\" is missing: every record has it; " + unfinished, "nothing was stored"},
		"cut short":               {bytes.NewReader(at(250)), "the dump is cut short: after 243 packets of 6 queues it has no end record; " + unfinished, "nothing was stored"},
		"cannot be read":          {io.MultiReader(bytes.NewReader(at(250)), iotest.ErrReader(io.ErrClosedPipe)), "line 251: io: read/write on closed pipe; " + unfinished, "nothing was stored"},
		"cannot be read at first": {iotest.ErrReader(io.ErrClosedPipe), "cannot read the dump: io: read/write on closed pipe; nothing was stored", "a part of the dump"},
	} {
		err := loadError(t, t.TempDir(), c.in)
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: got %q, want %q and not %q", name, err, c.want, c.not)
		}
	}
}
