package tables

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// faultTemplate is a folder with some windows, which children change copies of.
func faultTemplate(t *testing.T) (template string) {
	t.Helper()
	template = t.TempDir()
	s := open(t, template)
	for range faultWindows {
		entries, _ := faultWindow(s.List().Window + 1)
		window(t, s, entries)
	}
	s.Close()
	if err := os.RemoveAll(filepath.Join(template, "build")); err != nil {
		t.Fatal(err)
	}
	return template
}

var (
	syncedFile  = regexp.MustCompile(`fsync\(\d+<(.*?)> ?\) += 0`)
	renamedFile = regexp.MustCompile(`renameat\(.*?"(.*?)", .*?"(.*?)"\) += 0`)
)

// What is named was synced before, and its name is before anything else needs it.
func TestSystemEachFileIsSyncedBeforeItsNameAndItsNameBeforeTheNext(t *testing.T) {
	strace := append(inject.Strace(t), "-y")
	log := filepath.Join(t.TempDir(), "log")
	root, out, err := faultChild(t, strace, faultTemplate(t), "fsync,renameat", ":delay_enter=0", log)
	calls, readErr := inject.Calls(log)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	db, synced, unsynced, tables, lists := filepath.Join(root, "db"), map[string]bool{}, 0, 0, 0
	for _, line := range calls {
		if m := syncedFile.FindStringSubmatch(line); m != nil {
			if synced[m[1]] = true; m[1] == db {
				unsynced = 0
			}
		}
		m := renamedFile.FindStringSubmatch(line)
		switch {
		case m == nil || filepath.Dir(m[2]) != db:
			continue
		case !synced[m[1]]:
			t.Errorf("it is named before it was synced: %s", line)
		case filepath.Ext(m[2]) == suffix:
			tables++
		default:
			if lists++; unsynced > 0 {
				t.Errorf("%d names are not synced before %s", unsynced, line)
			}
		}
		unsynced++
	}
	if tables < 2 || lists < 2 || unsynced > 0 {
		t.Errorf("%d tables and %d lists were named, %d are not synced", tables, lists, unsynced)
	}
}

// largeFolder names the folder in which a child makes a large table.
const largeFolder = "HOLDFAST_TABLES_LARGE"

func TestLargeTableChild(t *testing.T) {
	root := os.Getenv(largeFolder)
	if root == "" {
		t.Skip("runs as a child of another test")
	}
	if _, err := open(t, root).Build(0, tableSize, sorted([]Entry{{Key: key(1), Value: make([]byte, 8*disk.Piece+1), Version: 1}})); err != nil {
		t.Fatal(err)
	}
}

// Each piece is on the disk before the next one, so that a sync of the journal waits for one at
// most. What is read back says something about the disk only if the kernel's own copy is gone.
func TestSystemATableIsWrittenInPiecesAndReadBackFromTheDisk(t *testing.T) {
	root, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	args := append(inject.Strace(t, "-y", "-o", log, "-e", "trace=pwrite64,sync_file_range,fsync,fadvise64,mmap"), os.Args[0], "-test.run=^TestLargeTableChild$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), largeFolder+"="+root)
	out, err := cmd.CombinedOutput()
	calls, readErr := os.ReadFile(log)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	of, steps := regexp.MustCompile(`(\w+)\(.*?<`+regexp.QuoteMeta(root)+`/build/\w+\.sst>(.*)`), ""
	for _, m := range of.FindAllStringSubmatch(string(calls), -1) {
		if steps += m[1] + " "; m[1] == "sync_file_range" && !strings.Contains(m[2], "SYNC_FILE_RANGE_WAIT_AFTER") {
			t.Errorf("it does not wait: %s", m[0])
		}
	}
	if !regexp.MustCompile(`^(pwrite64 sync_file_range ){9,}fsync fadvise64 mmap $`).MatchString(steps) {
		t.Errorf("the calls are %s", steps)
	}
}

func TestSystemATableIsMadeWhereTheKernelDoesNotHaveEachCall(t *testing.T) {
	args := append(inject.Strace(t, "-e", "inject=sync_file_range,fadvise64:error=ENOSYS"), os.Args[0], "-test.run=^TestLargeTableChild$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), largeFolder+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A disk that says that it wrote a part, and did not, is found before a table is named.
func TestSystemATableThatIsNotWhatWasWrittenIsNeverNamed(t *testing.T) {
	strace, template := inject.Strace(t), faultTemplate(t)
	_, before := faultWindow(faultWindows)
	_, after := faultWindow(faultWindows + 1)
	for when := 1; when <= 3; when++ {
		root, out, err := faultChild(t, strace, template, "pwrite64,write", fmt.Sprintf(":retval=100:when=%d", when), os.DevNull)
		if bytes.Contains(out, []byte("--- FAIL")) || bytes.Contains(out, []byte("panic")) {
			t.Fatalf("write %d: %v\n%s", when, err, out)
		}
		s := open(t, root) // which compares the sums
		if got, err := contents(s); err != nil || !maps.Equal(got, after) && !maps.Equal(got, before) {
			t.Errorf("write %d: the tables show %d keys of %d, %v\n%s", when, len(got), len(after), err, out)
		}
		s.Close()
	}
}
