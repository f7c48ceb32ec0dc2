package load

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

func packetsIn(t *testing.T, dir string) int {
	t.Helper()
	return bytes.Count(folderDump(t, dir, dump.Options{}), []byte(`"type":"packet"`))
}

func TestALoadThatHasStoredNothingSaysSo(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(1), dump.Options{})
	dir := t.TempDir()
	long := strings.Repeat(`\u0001`, 300_000) // as it is written more than a batch takes, as it is stored less
	cut := bytes.Replace(text, []byte(`"payload":"`), []byte(`"payload":"`+long), 1)
	cut = cut[:bytes.LastIndex(cut, []byte(`{"type":"end"`))]
	_, err := Load(t.Context(), dir, io.MultiReader(bytes.NewReader(cut)), Options{Now: recoverytest.Later})
	if err == nil || !strings.Contains(err.Error(), "cut short") || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that nothing was stored", err)
	}
	if s, err := storage.Open(dir, storage.Options{}); err != nil || s.Close() != nil {
		t.Errorf("a server cannot take the folder: %v", err)
	}
}
