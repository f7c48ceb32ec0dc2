package storage

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// advised returns how many mapped logs below a folder the kernel was told to
// expect random access to, by the kernel's own account.
func advised(t *testing.T, folder string) (n int) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, inside := bufio.NewScanner(file), false
	for lines.Scan() {
		line := lines.Text()
		if first, _, _ := strings.Cut(line, " "); strings.Contains(first, "-") {
			inside = strings.Contains(line, " "+folder+"/") && strings.HasSuffix(line, logSuffix)
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside && strings.Contains(flags+" ", " rr ") {
			n++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLogsAreAdvisedWhateverTheFolderIsCalled(t *testing.T) {
	for name, row := range map[string]struct{ link, open string }{
		"relative":            {"", "data"},
		"relative with dots":  {"", "./x/../data/"},
		"a link":              {"link", "link"},
		"through a link":      {"link", "link/below"},
		"absolute and a link": {"link", "/link/below"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			for _, folder := range []string{"x", "data"} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if row.link != "" {
				if err := os.Symlink("data", row.link); err != nil {
					t.Fatal(err)
				}
			}
			open := row.open
			if filepath.IsAbs(open) {
				open = filepath.Join(dir, open)
			}
			smallStore(t, open)
			if n := advised(t, filepath.Join(dir, "data")); n == 0 {
				t.Error("no log was advised")
			}
		})
	}
}

func TestMappingsOfAFolderAreNotThoseOfOneWithALongerName(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	smallStore(t, filepath.Join(dir, "data-2"))
	for name, want := range map[string]bool{"data": false, "data-2": true} {
		found, err := mappings(filepath.Join(dir, name), logSuffix)
		if err != nil || len(found) > 0 != want {
			t.Errorf("%s: %d mappings, %v", name, len(found), err)
		}
	}
}
