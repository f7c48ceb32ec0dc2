package inject

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestACallThatWasCutInTwoIsOneLineWhereItEnded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	written := `12    fsync(5</a>) = 0
12    fsync(6</b> <unfinished ...>
134   write(1, "x", 1) = 1
134   fsync(7</c> <unfinished ...>
12    <... fsync resumed>)              = 0
134   --- SIGURG {si_signo=SIGURG} ---
134   <... fsync resumed>)              = -1 EIO (Input/output error)
`
	if err := os.WriteFile(log, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"12    fsync(5</a>) = 0\n",
		"134   write(1, \"x\", 1) = 1\n",
		"12    fsync(6</b> )              = 0\n",
		"134   --- SIGURG {si_signo=SIGURG} ---\n",
		"134   fsync(7</c> )              = -1 EIO (Input/output error)\n",
	}
	if got, err := Calls(log); err != nil || !slices.Equal(got, want) {
		t.Errorf("the calls are %q, %v, want %q", got, err, want)
	}
}
