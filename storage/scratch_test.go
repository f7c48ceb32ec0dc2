package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestViewRemovesTheTemporaryFoldersOfKilledCommandsAlone(t *testing.T) {
	temp, kept := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	file := func(path ...string) {
		t.Helper()
		name := filepath.Join(path...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file(kept, "table")
	f := newDamageFolder(t, false)
	live := openView(t, f.dir, ViewOptions{})

	want := []string{filepath.Base(live.scratch.path), "holdfast-view-c4", "holdfast-view-c5", "holdfast-view-c6x", "other"}
	link := func(to string, path ...string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(path...)); err != nil {
			t.Fatal(err)
		}
	}
	// Of killed commands: with a link to a table, and one without anything yet.
	file(temp, "holdfast-view-c1", manifestName)
	link(filepath.Join(kept, "table"), temp, "holdfast-view-c1", "000001.sst")
	if err := os.Mkdir(filepath.Join(temp, "holdfast-view-c2"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Of nobody: a link, a file, and with other names.
	link(kept, temp, "holdfast-view-c4")
	file(temp, "holdfast-view-c5")
	file(temp, "holdfast-view-c6x", manifestName)
	file(temp, "other", manifestName)
	if os.Geteuid() == 0 {
		const nobody = 65534
		file(temp, "holdfast-view-c7", manifestName)
		if err := os.Chown(filepath.Join(temp, "holdfast-view-c7"), nobody, nobody); err != nil {
			t.Fatal(err)
		}
		want = append(want, "holdfast-view-c7")
	}

	v := openView(t, f.dir, ViewOptions{})
	want = append(want, filepath.Base(v.scratch.path))
	if got := namesIn(t, temp); !sameNames(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	if got := viewed(t, live); len(got) != len(f.want) {
		t.Errorf("the view that was open shows %d packets of %d", len(got), len(f.want))
	}
	if got := namesIn(t, kept); len(got) != 1 {
		t.Errorf("of what links show %q is left", got)
	}
	gone := []string{filepath.Base(live.scratch.path), filepath.Base(v.scratch.path)}
	if err := errors.Join(v.Close(), live.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range namesIn(t, temp) {
		if slices.Contains(gone, name) {
			t.Errorf("%s is there after Close", name)
		}
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func sameNames(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// A folder that another process takes for one that was left goes away while it
// is being made; what is made at last is held and stays.
func TestViewsThatAreMadeAtATimeKeepTheirFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const makers, rounds = 4, 50
	ended := make(chan error, makers)
	for range makers {
		go func() { // ends after its rounds
			for range rounds {
				err := removeLeftScratch()
				f, merr := makeScratch()
				if err = errors.Join(err, merr); err == nil {
					if err = os.WriteFile(filepath.Join(f.path, manifestName), nil, 0o600); err == nil {
						err = removeLeftScratch()
					}
					if _, serr := os.Stat(filepath.Join(f.path, manifestName)); serr != nil {
						err = errors.Join(err, serr)
					}
					err = errors.Join(err, f.remove())
				}
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range makers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if left := namesIn(t, os.TempDir()); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
