package storage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// refusedFolder names the folder that a child of the test opens as nobody.
const refusedFolder = "HOLDFAST_TEST_REFUSED"

func TestSystemFilesThatMayNotBeReadOrWrittenAreNotDamage(t *testing.T) {
	if dir, how, child := strings.Cut(os.Getenv(refusedFolder), "|"); child {
		var found []Finding
		var err error
		if how == "open" {
			var s *Store
			if s, err = Open(dir, Options{Window: minWindow}); err == nil {
				err = s.Verify(s.Control().Tally)
			}
		} else {
			var v *View
			if v, err = OpenView(dir, ViewOptions{Tolerant: how == "salvage"}); err == nil {
				found = v.Findings()
				v.Close()
			}
		}
		fmt.Printf("<%d %v %v %v>", len(found), errors.Is(err, ErrRefused), errors.Is(err, ErrDamaged), err)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: to open files as another user needs root")
	}
	f := newDamageFolder(t, true)
	all := []string{"open", "look", "salvage"}
	for name, row := range map[string]struct {
		file string
		mode os.FileMode
		how  []string
	}{
		"a table":                       {f.relative(t, tableFiles(t, f.dir)[0]), 0, all},
		"a segment of the journal":      {f.relative(t, logFiles(t, f.dir)[0]), 0, all},
		"the list of tables":            {filepath.Join(dbName, manifestName), 0, all},
		"the format":                    {formatName, 0, all},
		"the anchor":                    {anchorName, 0, all},
		"the database folder":           {dbName, 0, all},
		"the folder of the journal":     {journalName, 0, all},
		"the database folder, to write": {dbName, 0o500, []string{"open"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shared(t)
			copyFolder(t, f.dir, dir)
			chownAll(t, dir)
			if err := os.Chmod(filepath.Join(dir, row.file), row.mode); err != nil {
				t.Fatal(err)
			}
			for _, how := range row.how {
				out := asNobody(t, dir, how)
				if !strings.HasPrefix(out, "<0 true false ") || !strings.Contains(out, filepath.Join(dir, row.file)) {
					t.Errorf("to %s it gives %s", how, out)
				}
			}
		})
	}
}

const nobody = 65534

// shared makes a folder that every user can get to.
func shared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// chownAll gives everything in a folder to nobody.
func chownAll(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asNobody runs the test that calls it again, for one opening as nobody.
func asNobody(t *testing.T, dir, how string) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+name+"$")
	temp := shared(t)
	chownAll(t, temp)
	cmd.Env = append(os.Environ(), refusedFolder+"="+dir+"|"+how, "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EACCES) {
		t.Skipf("skipped: another user cannot run the test: %v", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := string(out)
	from, to := strings.Index(text, "<"), strings.LastIndex(text, ">")
	if from < 0 || to < from {
		t.Fatalf("it printed %s", text)
	}
	return text[from : to+1]
}

func TestWhatTheSystemRefusesIsToldWithTheFile(t *testing.T) {
	file := func(err error) error { return &os.PathError{Op: "open", Path: "/data/db/000001.sst", Err: err} }
	for name, row := range map[string]struct {
		err  error
		want error
		says string
	}{
		"files":                {file(unix.EMFILE), ErrTooManyFiles, "nothing was found wrong"},
		"rights":               {file(unix.EACCES), ErrRefused, "/data/db/000001.sst: permission denied; nothing was found wrong"},
		"a system call":        {file(unix.EPERM), ErrRefused, "operation not permitted"},
		"a read-only mount":    {file(unix.EROFS), ErrRefused, "read-only file system"},
		"memory, of a mapping": {fmt.Errorf("%w: table 7: %w", ErrDamaged, unix.ENOMEM), ErrRefused, "table 7: cannot allocate memory; nothing"},
		"the device":           {fmt.Errorf("%w: %w", ErrDamaged, file(unix.EIO)), ErrDamaged, "input/output error"},
		"room to map":          {fmt.Errorf("%w: table 7: %w", ErrDamaged, unix.ENOSPC), ErrFull, "table 7"},
		"a temporary folder":   {&os.PathError{Op: "mkdir", Path: os.TempDir() + "/" + scratchPrefix + "1", Err: unix.EACCES}, ErrTemporary, scratchPrefix},
	} {
		err := explainRefusal(row.err)
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
		if row.want != ErrDamaged && errors.Is(err, ErrDamaged) {
			t.Errorf("%s is called damage: %v", name, err)
		}
	}
}

func TestWhatNobodyKnowsIsNotTriedAgainAsAFullDisk(t *testing.T) {
	for _, unknown := range []error{tables.ErrUnknown, journal.ErrUnknown} {
		if isFull(fmt.Errorf("%w: %w", unknown, syscall.ENOSPC)) {
			t.Errorf("%v is tried again", unknown)
		}
	}
	if !isFull(fmt.Errorf("cannot write: %w", syscall.ENOSPC)) {
		t.Error("a full disk is not")
	}
}
