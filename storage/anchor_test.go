package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The anchor is the proof that nothing is missing: who cannot read it is not told to remove it.
func TestAnAnchorThatCannotBeReadIsNotCalledOneWithoutAValidSlot(t *testing.T) {
	file, err := os.OpenFile(filepath.Join(t.TempDir(), anchorName), os.O_CREATE|os.O_WRONLY, 0o600) // so that a read fails
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	err = (&anchor{file: file}).read()
	if err == nil || !strings.Contains(err.Error(), "try again") || strings.Contains(err.Error(), "remove") {
		t.Errorf("got %v", err)
	}
	reported(t, "it", err)
}
