package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// find returns the finding of a check.
func find(t *testing.T, findings []Finding, name string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no finding %s in %+v", name, findings)
	return Finding{}
}

// check holds a finding against what is wanted. What is not ok says what to do.
func check(t *testing.T, name string, f Finding, verdict Verdict, want string) {
	t.Helper()
	if f.Verdict != verdict || !strings.Contains(f.Seen+"; "+f.Do, want) || f.Seen == "" || (f.Do == "") != (verdict == OK) {
		t.Errorf("%s: %+v, want %s and %q", name, f, verdict, want)
	}
}

func TestFindingsAreAsBadAsWhatIsSeen(t *testing.T) {
	now := time.Now()
	const gib = 1 << 30
	for name, row := range map[string]struct {
		finding Finding
		verdict Verdict
		want    string
	}{
		"files that suffice":       {filesFor(131072, 10_000), OK, "10000 of 10000"},
		"files that just suffice":  {filesFor(80128, 10_000), OK, "10000 of 10000"},
		"one file too few":         {filesFor(80126, 10_000), Warn, "ulimit -n 80128"},
		"far too few files":        {filesFor(256, 10), Bad, "does not start"},
		"files without a limit":    {filesFor(1<<64-1, 10_000), OK, "10000 of 10000"},
		"a disk":                   {syncOf(300 * time.Microsecond), OK, "300µs"},
		"a disk that lies":         {syncOf(time.Microsecond), Warn, "power cut"},
		"a slow disk":              {syncOf(50 * time.Millisecond), Warn, "faster disk"},
		"a disk that hardly moves": {syncOf(time.Second), Bad, "another disk"},
		"much space":               {spaceFor(50*gib, 100*gib, 10*gib), OK, "50 GiB of 100 GiB"},
		"no space for as much":     {spaceFor(5*gib, 100*gib, 10*gib), Warn, "have 10 GiB free"},
		"no space to push":         {spaceFor(gib/4, 100*gib, 0), Bad, "free 128 MiB more"},
		"a folder of before":       {timesOf(now.Add(-time.Hour), now), OK, "1h0m0s old"},
		"a folder in use":          {timesOf(now.Add(time.Second), now), OK, "0s old"},
		"a folder of the future":   {timesOf(now.Add(time.Hour), now), Bad, "1h0m0s behind"},
	} {
		check(t, name, row.finding, row.verdict, row.want)
	}
	if f := filesFor(256, 10); strings.Contains(f.Do, "does not start") {
		t.Errorf("what is seen stands in what helps: %+v", f)
	}
}

func TestAFolderIsExaminedAlsoBesideAServerAndBeforeIt(t *testing.T) {
	dir := t.TempDir()
	used, open, missing, file := filepath.Join(dir, "used"), filepath.Join(dir, "open"), filepath.Join(dir, "a", "b"), filepath.Join(dir, "file")
	store, err := storage.Open(used, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		path    string
		verdict Verdict
		want    string
	}{
		"in use":       {used, OK, "its owner's alone"},
		"for others":   {open, Warn, "chmod 700"},
		"missing":      {missing, OK, "does not exist yet"},
		"a file":       {file, Bad, "is not a folder"},
		"below a file": {filepath.Join(file, "x"), Bad, "cannot be read"},
	} {
		before := names(t, row.path)
		findings := Examine(row.path, 1)
		check(t, name, find(t, findings, "folder"), row.verdict, row.want)
		if row.verdict == Bad {
			continue
		}
		if f := find(t, findings, "sync"); !strings.Contains(f.Seen, "a sync of 4 KiB takes") {
			t.Errorf("%s: %+v", name, f)
		}
		if f := find(t, findings, "space"); strings.HasSuffix(f.Seen, "takes 0 B") != (row.path != used) {
			t.Errorf("%s: %+v", name, f)
		}
		if after := names(t, row.path); after != before {
			t.Errorf("%s: the folder holds %s, and held %s", name, after, before)
		}
	}
	check(t, "in use", find(t, Examine(used, 1), "times"), OK, "old")
}

// names are those of the files of a folder.
func names(t *testing.T, path string) string {
	t.Helper()
	var all []string
	_ = filepath.WalkDir(path, func(path string, _ os.DirEntry, _ error) error {
		all = append(all, path)
		return nil
	})
	return strings.Join(all, " ")
}
