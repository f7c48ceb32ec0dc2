package load

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
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

func TestAFailedLoadSaysWhyAndThatNothingWasStored(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(300), dump.Options{})
	lines := bytes.SplitAfter(text, []byte{'\n'})
	at := func(n int) []byte { return bytes.Join(lines[:n], nil) }
	for name, c := range map[string]struct {
		in   io.Reader
		want string
	}{
		"fault at the start":      {strings.NewReader(head + "{}\n"), "line 2: field \"type\" is missing"},
		"fault behind some":       {bytes.NewReader(append(at(200), "{}\n"...)), "line 201: field \"type\" is missing: every record has it; nothing was stored"},
		"cut short":               {bytes.NewReader(at(250)), "the dump is cut short: after 243 packets of 6 queues it has no end record; nothing was stored"},
		"cannot be read":          {io.MultiReader(bytes.NewReader(at(250)), iotest.ErrReader(io.ErrClosedPipe)), "line 251: io: read/write on closed pipe; nothing was stored"},
		"cannot be read at first": {iotest.ErrReader(io.ErrClosedPipe), "cannot read the dump: io: read/write on closed pipe; nothing was stored"},
	} {
		if err := loadError(t, t.TempDir(), c.in); !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "; nothing was stored") {
			t.Errorf("%s: got %q, want %q", name, err, c.want)
		}
	}
}
