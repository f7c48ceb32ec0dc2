package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The anchor is the proof that nothing is missing. Who cannot read it is not told to remove it, nor
// that the folder is damaged: the next try may read it.
func TestAnAnchorThatCannotBeReadIsNotCalledDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := smallStore(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	const noPage = "/proc/self/mem" // there is nothing at its beginning
	anchor := filepath.Join(dir, anchorName)
	if err := errors.Join(os.Remove(anchor), os.Symlink(noPage, anchor)); err != nil {
		t.Fatal(err)
	}
	_, start := Open(dir, Options{})
	_, look := OpenView(dir, ViewOptions{})
	for what, err := range map[string]error{"a start": start, "a look": look} {
		if !errors.Is(err, unix.EIO) {
			t.Skipf("skipped: %s cannot be read here: %v", noPage, err)
		}
		if errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "try again") || strings.Contains(err.Error(), "remove") {
			t.Errorf("%s: %v", what, err)
		}
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	if found := v.Findings(); len(found) != 1 || found[0].Kind != FindingAnchor {
		t.Errorf("a tolerant look found %v", found)
	}
}
