package storage

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

// restored makes a folder of files.
func restored(dir string, f *Files) error {
	r, err := Restore(dir, 0)
	if err != nil {
		return err
	}
	for _, file := range f.List {
		if err := r.Add(file.Name, file.Content); err != nil {
			r.Discard()
			return err
		}
	}
	return r.Keep()
}

func TestFilesAreThoseOfTheirMomentWhileTheJournalGoesOn(t *testing.T) {
	s := smallStore(t, t.TempDir())
	applied(t, s, one(1, content.Packet{Identity: 1, Payload: []byte("in a table")}))
	settled(t, s)
	applied(t, s, one(2, content.Packet{Identity: 2, Payload: []byte("in the same segment")}))
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	payload := bytes.Repeat([]byte("x"), 200_000)
	for seq := range uint64(60) { // more than the segments that there are
		applied(t, s, one(3+seq, content.Packet{Identity: 3 + seq, Payload: payload}))
		if seq%10 == 0 {
			settled(t, s)
		}
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if err := restored(dir, f); err != nil {
		t.Fatal(err)
	}
	ids, _ := scanned(t, openTest(t, dir, Options{}))
	if len(ids) != 2 {
		t.Errorf("the folder has %d packets, want the two of the moment", len(ids))
	}
}

func TestSegmentsAreUsedAgainOnceNobodyHoldsThem(t *testing.T) {
	s := smallStore(t, t.TempDir())
	names := map[string]bool{}
	payload := bytes.Repeat([]byte("x"), 200_000)
	for seq := range uint64(100) {
		applied(t, s, one(1+seq, content.Packet{Identity: 1 + seq, Payload: payload}))
		f, err := s.Files()
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if seq%10 == 0 {
			settled(t, s)
		}
		for _, name := range logFiles(t, s.folder.path) {
			names[name] = true
		}
	}
	if len(names) > 10 {
		t.Errorf("20 MB went through %d segments of 1 MiB: they are not used again", len(names))
	}
}

func TestFilesOfADamagedTableEndInAnError(t *testing.T) {
	s := smallStore(t, t.TempDir())
	applied(t, s, one(1, content.Packet{Identity: 1, Payload: []byte("payload")}))
	settled(t, s)
	if err := overwrite(tableFiles(t, s.folder.path)[0], 10, []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "restored")
	if err := restored(dir, f); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestFilesOfADamagedJournalAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		at   int // of the damage, in the first segment
		want error
	}{
		"the header":             {20, ErrDamaged},
		"a record in tables":     {4096 + 60, nil},
		"the head of a record":   {2*4096 + 3, ErrDamaged},
		"the middle of a record": {10 * 4096, ErrDamaged},
		"the last record there":  {700_000, ErrDamaged},
		"what no record has":     {1<<20 - 60, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := smallStore(t, t.TempDir())
			applied(t, s, one(1, content.Packet{Identity: 1, Payload: []byte("in a table")}))
			settled(t, s)
			segment := logFiles(t, s.folder.path)[0]
			for seq := range uint64(3) { // the last one in another segment
				applied(t, s, one(2+seq, content.Packet{Identity: 2 + seq, Payload: make([]byte, 400_000)}))
			}
			whole, err := os.ReadFile(segment)
			if err != nil {
				t.Fatal(err)
			}
			if err := overwrite(segment, c.at, []byte{^whole[c.at]}); err != nil {
				t.Fatal(err)
			}
			f, err := s.Files()
			if err == nil {
				f.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err := overwrite(segment, 0, whole); err != nil { // or the store could not close
				t.Fatal(err)
			}
		})
	}
}

func TestAStoppedStoreHasNoFiles(t *testing.T) {
	s := smallStore(t, t.TempDir())
	applied(t, s, one(1, content.Packet{Identity: 1}))
	s.fail(journal.ErrUnknown)
	if _, err := s.Files(); !errors.Is(err, journal.ErrUnknown) {
		t.Errorf("got %v, want why the store stopped", err)
	}
	s.mu.Lock()
	s.failed = nil
	s.mu.Unlock()
}

func namesBelow(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestARestoreTakesOnlyAnEmptyFolder(t *testing.T) {
	folder := func(t *testing.T, names ...string) string {
		dir := t.TempDir()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	served := t.TempDir()
	smallStore(t, served)
	for name, c := range map[string]struct {
		dir  string
		need int64
		want error
	}{
		"nothing there":      {filepath.Join(t.TempDir(), "new"), 0, nil},
		"empty":              {t.TempDir(), 0, nil},
		"a new file system":  {folder(t, "lost+found"), 0, nil},
		"a file":             {folder(t, "mine"), 0, ErrNotEmpty},
		"a killed restore":   {folder(t, restoringName), 0, ErrNotFolder},
		"a data folder":      {served, 0, ErrNotEmpty},
		"not enough room":    {filepath.Join(t.TempDir(), "new"), 1 << 60, ErrFull},
		"a folder as a file": {filepath.Join(folder(t, "file"), "file"), 0, ErrNotFolder},
	} {
		t.Run(name, func(t *testing.T) {
			above := filepath.Dir(c.dir)
			before := namesBelow(t, above)
			r, err := Restore(c.dir, c.need)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				r.Discard()
			}
			if after := namesBelow(t, above); !slices.Equal(before, after) {
				t.Errorf("there is %v, want %v as before", after, before)
			}
		})
	}
}

func TestWhatAKilledRestoreLeavesIsNotServed(t *testing.T) {
	s := smallStore(t, t.TempDir())
	applied(t, s, one(1, content.Packet{Identity: 1}))
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "restored")
	r, err := Restore(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) && !errors.Is(err, ErrNotFolder) {
		t.Errorf("a server during it: %v, want a refusal", err)
	}
	for _, file := range f.List {
		if err := r.Add(file.Name, file.Content); err != nil {
			t.Fatal(err)
		}
	}
	killed := t.TempDir()
	copyFolder(t, dir, killed)
	for _, name := range []string{"", anchorName, journalName, dbName} { // moved one after the other
		if name != "" {
			if err := os.Rename(filepath.Join(killed, restoringName, name), filepath.Join(killed, name)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(killed, Options{}); !errors.Is(err, ErrNotFolder) {
			t.Errorf("a server after a kill behind %q: %v, want ErrNotFolder", name, err)
		}
	}
	if err := r.Keep(); err != nil {
		t.Fatal(err)
	}
	ids, _ := scanned(t, openTest(t, dir, Options{}))
	if len(ids) != 1 {
		t.Errorf("%d packets, want 1", len(ids))
	}
}

func TestARestoreThatCannotTidyUpSaysThatTheFolderIsThere(t *testing.T) {
	s := smallStore(t, t.TempDir())
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "data")
	r, err := Restore(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range f.List {
		if err := r.Add(file.Name, file.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(r.path("stranger"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Keep(); !errors.Is(err, ErrKept) {
		t.Errorf("got %v, want ErrKept", err)
	}
	openTest(t, dir, Options{})
}

func TestAFileOfTheFolderHasOneOfItsNames(t *testing.T) {
	for name, want := range map[string]bool{
		"format": true, "anchor": true, "db/MANIFEST": true, "db/000001.sst": true, "journal/0000000000000001.log": true,
		"": false, "/format": false, "../format": false, "db/../format": false, "db/": false, "lock": false, "db/LOCK": false,
		"db//MANIFEST": false, "journal/x.log": false, "format\n": false, "db/000001.sst/x": false, "./format": false,
		strings.Repeat("db/", 100): false, "db/1000000.sst": true, "db/0000001.sst": false, "journal/00000000000000001.log": false,
	} {
		if IsFile(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}

func TestACopyTakesThePlaceOfAFolderAlsoAfterAKillAtAnyStep(t *testing.T) {
	source := openTest(t, t.TempDir(), Options{})
	applied(t, source, one(7, content.Packet{}))
	for step := range 8 { // the calls that change a name: what each did before the kill
		dir := t.TempDir()
		old := openTest(t, dir, Options{})
		applied(t, old, one(1, content.Packet{}))
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(dir, CellName, "copy")
		if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
			t.Fatal(err)
		}
		files, err := source.Files()
		if err == nil {
			err = restored(from, files)
			files.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{formatName, buildName, anchorName, journalName, dbName, formatName} {
			if i >= step {
				break
			}
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if i > 1 {
				if err := os.Rename(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := Replace(dir, from); err != nil {
			t.Fatalf("after step %d: %v", step, err)
		}
		if ids, _ := scanned(t, openTest(t, dir, Options{})); len(ids) != 1 || ids[0].Seq != 7 {
			t.Errorf("after step %d the folder has %v", step, ids)
		}
		if _, err := os.Stat(from); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after step %d something is left of the copy", step)
		}
	}
}

func TestACopyThatIsNotWholeGoesAndTheFolderStays(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	applied(t, s, one(1, content.Packet{}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(dir, CellName, "copy")
	if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(from, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.folder.close() // as a kill does
	if err := Replace(dir, from); err != nil {
		t.Fatal(err)
	}
	if ids, _ := scanned(t, openTest(t, dir, Options{})); len(ids) != 1 {
		t.Errorf("the folder has %v", ids)
	}
}

func TestACopyIsNotTouchedWhileAnotherProcessHasTheFolder(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{})
	from := filepath.Join(dir, CellName, "copy")
	if err := Replace(dir, from); err != nil {
		t.Errorf("without a copy: %v", err)
	}
	for _, whole := range []bool{false, true} {
		name := filepath.Join(from, formatName)
		err := errors.Join(os.RemoveAll(from), os.MkdirAll(from, 0o700))
		if whole {
			err = errors.Join(err, os.WriteFile(name, nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := Replace(dir, from); !errors.Is(err, ErrInUse) {
			t.Errorf("whole %v: %v, want ErrInUse", whole, err)
		}
		if _, err := os.Stat(from); err != nil || IsEmpty(from) == whole || IsEmpty(dir) {
			t.Errorf("whole %v: something is done with the copy or the folder, %v", whole, err)
		}
	}
}
