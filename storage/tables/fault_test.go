package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/inject"
)

// A child opens the tables in the folder that this variable names, adopts a window and merges.
// Meanwhile strace lets one of its calls fail, or kills it there.
const faultFolder = "HOLDFAST_TABLES_FAULT"

const (
	faultKeys    = 300
	faultWindows = 3 // that the folder has before
)

// faultWindow makes the entries of the window with a number, and of those before it.
func faultWindow(number uint64) (entries []Entry, model map[string]string) {
	model = map[string]string{}
	r := rand.New(rand.NewPCG(8, 8))
	for range number {
		entries = random(model, r, faultKeys, faultKeys/2)
	}
	return entries, model
}

// scan calls fn with each entry of a view.
func scan(v *View, fn func(Entry)) error {
	it := v.Iterator(nil)
	defer it.Close()
	for it.Seek(nil); it.Valid(); it.Next() {
		fn(it.Entry())
	}
	return it.Err()
}

// contents is what the tables show.
func contents(s *Set) (map[string]string, error) {
	v := s.View()
	defer v.Close()
	got := map[string]string{}
	err := scan(v, func(e Entry) { got[string(e.Key)] = string(e.Value) })
	return got, err
}

func TestFaultChild(t *testing.T) {
	root := os.Getenv(faultFolder)
	if root == "" {
		t.Skip("runs as a child of another test")
	}
	s, err := Open(filepath.Join(root, "db"), filepath.Join(root, "build"), Options{})
	if err == nil {
		defer s.Close()
		err = s.Begin()
	}
	if err != nil {
		t.Log("the start was refused:", err)
		return
	}
	runtime.LockOSThread() // strace counts the calls of each thread by themselves
	entries, after := faultWindow(faultWindows + 1)
	_, before := faultWindow(faultWindows)
	for i := range entries {
		entries[i].Version = faultWindows + 1
	}
	for _, step := range []struct {
		name string
		want map[string]string // what the tables show as long as it has not happened
		do   func() error
	}{
		{"adopt", before, func() error {
			built, err := s.Build(0, 4*tableSize, sorted(entries))
			if err != nil {
				return err
			}
			return s.Adopt(Adoption{Add: built, Window: faultWindows + 1})
		}},
		{"merge", after, func() error {
			_, err := s.Merge(t.Context(), MergeOptions{Size: 2 * tableSize, Step: 1 << 30, All: true})
			return err
		}},
	} {
		for tries := 0; ; tries++ { // Badger's own threads count for themselves, so more than one call may fail
			list := s.List()
			manifest, _ := os.ReadFile(filepath.Join(root, "db", badger.ManifestFilename))
			err := step.do()
			if err == nil {
				break
			}
			t.Log(step.name, "failed:", err)
			if errors.Is(err, ErrUnknown) {
				return
			}
			now, _ := os.ReadFile(filepath.Join(root, "db", badger.ManifestFilename))
			if s.List() != list || !bytes.Equal(now, manifest) || tries > 9 {
				t.Fatalf("%s failed, and another list is in force, or it fails again and again", step.name)
			}
			if left, err := fs.Glob(os.DirFS(filepath.Join(root, "build")), "*"+suffix); err != nil || len(left) > 0 {
				t.Fatalf("%s failed and leaves %v, %v", step.name, left, err)
			}
			if got, err := contents(s); err != nil || !maps.Equal(got, step.want) {
				t.Fatalf("after %s failed the tables show %d keys of %d, %v", step.name, len(got), len(step.want), err)
			}
		}
	}
	if got, err := contents(s); err != nil || !maps.Equal(got, after) {
		t.Errorf("the tables show %d keys of %d, %v", len(got), len(after), err)
	}
}

// faultPaths are what a child opens, makes and renames.
func faultPaths(root string) (args []string) {
	names := []string{"db", "build", "build/view/MANIFEST", "db/MANIFEST"}
	for id := range uint64(40) {
		for _, dir := range []string{"db", "build"} {
			names = append(names, filepath.Join(dir, Table{ID: id}.Name()))
		}
	}
	for _, n := range names {
		args = append(args, "-P", filepath.Join(root, n))
	}
	return args
}

// faultChild runs a child in a copy of a folder. It returns the copy.
func faultChild(t *testing.T, strace []string, template, calls, what, log string) (root string, out []byte, err error) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.CopyFS(root, os.DirFS(template)), os.Mkdir(filepath.Join(root, "build"), 0o700)); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(strace), "-o", log, "-e", "trace="+calls, "-e", "inject="+calls+what)
	args = append(append(args, faultPaths(root)...), os.Args[0], "-test.run=^TestFaultChild$", "-test.v")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), faultFolder+"="+root)
	out, err = cmd.CombinedOutput()
	return root, out, err
}

func TestSystemOneFailingCallLeavesTheOldListOrAnUnknownOne(t *testing.T) { eachCall(t, "error=EIO") }

func TestSystemAKillAtAnyCallLeavesAWholeState(t *testing.T) { eachCall(t, "signal=KILL") }

// eachCall lets a system call fail in a child, and then another one in the next child.
func eachCall(t *testing.T, how string) {
	t.Parallel()
	strace := inject.Strace(t)
	template := faultTemplate(t)
	calls := []string{
		"openat", "pwrite64", "sync_file_range", "fadvise64", "fsync", "close", "mmap", "fstat", "newfstatat", "renameat", "unlinkat", "getdents64",
	}
	log := filepath.Join(t.TempDir(), "log")
	_, out, err := faultChild(t, strace, template, strings.Join(calls, ","), ":delay_enter=0", log)
	lines, logErr := os.ReadFile(log)
	if err := errors.Join(err, logErr); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, before := faultWindow(faultWindows)
	_, after := faultWindow(faultWindows + 1)
	hit := 0
	first, stride := inject.Sample(t, 6)
	for _, call := range calls {
		byThread, n := map[string]int{}, 0
		for line := range strings.Lines(string(lines)) {
			if thread, rest, _ := strings.Cut(line, " "); strings.HasPrefix(strings.TrimSpace(rest), call+"(") {
				byThread[thread]++
				n = max(n, byThread[thread])
			}
		}
		for i := first; i <= n; i += stride {
			name := fmt.Sprintf("%s %d", call, i)
			root, out, err := faultChild(t, strace, template, call, fmt.Sprintf(":%s:when=%d", how, i), os.DevNull)
			if bytes.Contains(out, []byte("--- FAIL")) || bytes.Contains(out, []byte("panic")) {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
			if err != nil || bytes.Contains(out, []byte("failed:")) {
				hit++
			}
			s := open(t, root)
			want := after
			if s.List().Window == faultWindows {
				want = before
			}
			if got, err := contents(s); err != nil || !maps.Equal(got, want) {
				t.Fatalf("%s: the tables show %d keys of %d, %v\n%s", name, len(got), len(want), err, out)
			}
			if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := contents(s); err != nil || !maps.Equal(got, want) {
				t.Fatalf("%s: after a merge the tables show %d keys of %d, %v", name, len(got), len(want), err)
			}
			s.Close()
		}
	}
	if hit == 0 {
		t.Error("no call failed")
	}
}

func TestAPageThatCannotBeReadLeavesNothingOfAMerge(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for w := range 2 {
		var entries []Entry
		for k := w; k < 4000; k += 2 {
			entries = append(entries, Entry{Key: key(k), Value: make([]byte, 200)})
		}
		window(t, s, entries)
		if w == 0 {
			if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := s.view.files // the last ones are those of the deepest level
	if err := unix.Mprotect(files[len(files)-3].data[:4096], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, Step: 1 << 30, All: true}); !errors.Is(err, ErrDamaged) {
		t.Errorf("the merge ends with %v", err)
	}
	left, err := os.ReadDir(filepath.Join(root, "build"))
	if len(left) > 0 || err != nil {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
