package load

import (
	"bytes"
	"fmt"
	"os/exec"
	"reflect"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// salvaged is what a dump has of a golden folder, but for the queue that no load takes, and the
// findings of a verification: its batches are of each shape, and not as a server makes them.
func salvaged(t *testing.T, format int, name string) (text []byte, findings []storage.Finding) {
	t.Helper()
	dir := t.TempDir()
	archive := fmt.Sprintf("../../storage/testdata/v%d/%s.tar.gz", format, name)
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	view, err := storage.OpenView(dir, storage.ViewOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	text, report := dumpOf(t, view, dump.Options{Salvage: true, Queues: []string{"jobs", "work", "string", "large", "hash", ""}})
	if report.Packets != 17 || report.Lost > 0 {
		t.Errorf("format %d, %s: report %+v, want 17 packets", format, name, report)
	}
	return text, verified(t, dir).Findings
}

// The golden folders of both formats have the same batches.
func TestSystemAFolderOfTheFormatBeforeIsDumpedLoadedAndVerified(t *testing.T) {
	for _, name := range []string{"closed", "killed"} {
		text, findings := salvaged(t, content.FormatBefore, name)
		want, known := salvaged(t, content.FormatVersion, name)
		if !bytes.Equal(text, want) || !reflect.DeepEqual(findings, known) {
			t.Errorf("%s: the dump is\n%s\nand verify finds %v, want\n%s\nand %v", name, text, findings, want, known)
		}
		dir := t.TempDir()
		load(t, dir, text, Options{})
		if again := folderDump(t, dir, dump.Options{}); !bytes.Equal(again, text) {
			t.Errorf("%s: once loaded it is dumped as\n%s\nwant\n%s", name, again, text)
		}
	}
}
