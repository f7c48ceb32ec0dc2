package storage

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
	"golang.org/x/sys/unix"
)

func TestFolderThatCannotBeOpenedSaysWhy(t *testing.T) {
	write := func(name, text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	made := func(then func(t *testing.T, dir string)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			s := smallStore(t, dir)
			if err := s.Apply(one(1, content.Packet{})); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			then(t, dir)
		}
	}
	rows := map[string]struct {
		corrupt func(t *testing.T, dir string)
		want    error
		says    string
	}{
		"somebody else's files": {write("notes.txt", "x"), ErrNotFolder, "notes.txt"},
		"a newer format":        {made(write(formatName, "8\n")), ErrFormat, "version 8"},
		"a format of nonsense":  {made(write(formatName, "what")), ErrDamaged, `"what"`},
		"an empty format":       {made(write(formatName, "")), ErrDamaged, formatName},
		"a format that is a link to nothing": {made(func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(filepath.Join(dir, formatName)), os.Symlink("nothing", filepath.Join(dir, formatName))); err != nil {
				t.Fatal(err)
			}
		}), ErrNotFolder, formatName},
		"a corrupt anchor": {made(write(anchorName, "HFAN")), ErrDamaged, "anchor"},
		"an anchor ahead of the store": {made(func(t *testing.T, dir string) { forget(t, dir, 9) }),
			ErrLoss, "batches 2 to 9 are lost"},
		"a node's": {made(func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, CellName, MemberName), 0o700); err != nil {
				t.Fatal(err)
			}
		}), ErrNode, "a node"},
		"a file in the way": {func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, nil, "cannot make the data folder"},
		"a table that is gone": {made(func(t *testing.T, dir string) {
			if err := os.Remove(tableFiles(t, dir)[0]); err != nil {
				t.Fatal(err)
			}
		}), ErrDamaged, "no such file or directory"},
		"a list of tables that is gone": {made(func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, dbName, manifestName)); err != nil {
				t.Fatal(err)
			}
		}), ErrDamaged, manifestName},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			row.corrupt(t, dir)
			s, err := Open(dir, Options{Window: minWindow})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if row.want != nil && !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			t.Log(err)
		})
	}
}

func TestAFolderOfAnotherFormatIsRefusedAndStaysAsItIs(t *testing.T) {
	for _, version := range []int{1, content.FormatBefore - 1, content.FormatVersion + 1} {
		refuseFormat(t, strconv.Itoa(version))
	}
}

func refuseFormat(t *testing.T, version string) {
	dir := t.TempDir()
	unpackFolder(t, filepath.Join(goldenFolder, "killed.tar.gz"), dir)
	if err := os.WriteFile(filepath.Join(dir, formatName), []byte(version+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, locked := range []bool{true, false} { // a copy may be without the lock
		if !locked {
			if err := os.RemoveAll(filepath.Join(dir, lockName)); err != nil {
				t.Fatal(err)
			}
		}
		before := state(t, dir)
		_, err := Open(dir, Options{Window: minWindow})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "has version "+version+" and this program reads version "+strconv.Itoa(content.FormatVersion)+"; use the program that wrote it") {
			t.Errorf("version %s, with a lock %v: %v", version, locked, err)
		}
		if !maps.Equal(before, state(t, dir)) {
			t.Errorf("version %s, with a lock %v: the files have changed", version, locked)
		}
	}
}

// All programs look at the file first, so its form is for ever.
func TestTheFormatIsANumberInAFile(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir)
	if text, err := os.ReadFile(filepath.Join(dir, "format")); err != nil || string(text) != strconv.Itoa(content.FormatVersion)+"\n" {
		t.Errorf("it is %q, %v", text, err)
	}
}

func TestUnwritableFolderIsRefused(t *testing.T) {
	if os.Getuid() == 0 {
		if _, err := Open("/proc/holdfast", Options{}); err == nil || !strings.Contains(err.Error(), "cannot make the data folder") {
			t.Error(err)
		}
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("it was opened")
	}
}

func TestFolderOfAFirstStartCutShortIsFinished(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{lockName, formatName + tmpSuffix} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	smallStore(t, dir)
}

// A load that stored nothing removes its lock, which somebody else may have opened before.
func TestALockThatIsRemovedBeforeItIsTakenIsNone(t *testing.T) {
	f, err := findFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, how := range []int{unix.LOCK_EX, unix.LOCK_SH} {
		lock, err := disk.OpenFile(f.name(lockName), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(f.name(lockName)); err != nil {
			t.Fatal(err)
		}
		if err := f.flock(lock, how); !errors.Is(err, ErrInUse) || f.lock != nil {
			t.Errorf("a lock without a name: %v", err)
		}
	}
}

func TestFolderIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	smallStore(t, dir)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%q has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLossIsOpenedWhenItIsAcceptedAndReportedOnce(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	if err := s.Apply(one(1, content.Packet{})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	forget(t, dir, 9)
	o := Options{Window: minWindow, AcceptLoss: true}
	s = openTest(t, dir, o)
	_, tally := scanned(t, s)
	if err := s.Verify(content.Tally{Live: tally.Live + 1, Hash: tally.Hash}); !errors.Is(err, ErrLoss) {
		t.Errorf("a mismatch gives %v", err)
	}
	if err := s.Verify(content.Tally{Live: tally.Live + 1, Hash: tally.Hash}); err != nil {
		t.Errorf("the accepted totals give %v", err)
	}
	// Killed right after that: the anchor and the control record are the new ones all the same.
	if err := smallStore(t, killed(t, s)).Verify(content.Tally{Live: tally.Live + 1, Hash: tally.Hash}); err != nil {
		t.Errorf("a start after it gives %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = smallStore(t, dir)
	if s.Control().Batch != 2 || s.epoch != 3 {
		t.Errorf("batch %d in epoch %d", s.Control().Batch, s.epoch)
	}
	if err := s.Verify(content.Tally{Live: tally.Live + 1, Hash: tally.Hash}); err != nil {
		t.Errorf("a start after closing gives %v", err)
	}
}

func TestEpochRisesWithEveryStart(t *testing.T) {
	dir := t.TempDir()
	for want := uint64(1); want <= 4; want++ {
		s := smallStore(t, dir)
		if s.epoch != want {
			t.Errorf("epoch %d, want %d", s.epoch, want)
		}
		if want%2 == 0 { // with and without a batch
			if err := s.Apply(one(want, content.Packet{})); err != nil {
				t.Fatal(err)
			}
			if got := s.Control().Epoch; got != want {
				t.Errorf("the control record has epoch %d, want %d", got, want)
			}
		} else if err := s.Verify(s.Control().Tally); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClosedStoreRefusesBatchesAndASecondCloseDoesNothing(t *testing.T) {
	s := smallStore(t, t.TempDir())
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply(one(1, content.Packet{})); !errors.Is(err, ErrClosed) {
		t.Errorf("Apply gives %v", err)
	}
}

func TestSyncModesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]SyncMode{
		"always": SyncAlways(), "never": SyncNever(),
		"interval:50ms": SyncInterval(50 * time.Millisecond), "interval:1m0s": SyncInterval(time.Minute),
	} {
		if got, err := ParseSync(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Always", "interval", "interval:", "interval:0s", "interval:-1s", "interval:2m", "interval:x"} {
		if got, err := ParseSync(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestALockThatNobodyCanLookAtIsNotRemoved(t *testing.T) {
	dir := t.TempDir()
	d, err := simulated.Mount(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Unmount()
	s := openTest(t, dir, Options{Stepped: func() {}}) // no goroutine sees the hook change
	applied(t, s, one(1, content.Packet{Identity: 1}))
	d.Hook = func(_ int64, c *disk.Call) error {
		if c.Op == disk.OpStat && c.File != nil {
			return unix.ENOMEM
		}
		return nil
	}
	s.look()
	d.Hook = nil
	applied(t, s, one(2, content.Packet{Identity: 2}))
}

func TestAFolderWhoseMakerWasKilledHasADurableName(t *testing.T) {
	root := t.TempDir()
	d, err := simulated.Mount(root, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Unmount()
	d.Hook = func(_ int64, c *disk.Call) error {
		if c.Op == disk.OpSync {
			d.Freeze()
		}
		return nil
	}
	dir := filepath.Join(root, "above", "data")
	if _, err := Open(dir, Options{Stepped: func() {}}); !errors.Is(err, simulated.ErrFrozen) {
		t.Fatalf("a killed process says %v", err)
	}
	d.Hook = nil
	if err := d.Thaw(false); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{Stepped: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	left := filepath.Join(t.TempDir(), "left")
	err = errors.Join(s.Apply(one(1, content.Packet{})), d.Leave(left, simulated.Nothing, rand.New(rand.NewPCG(1, 1))))
	if _, gone := os.Stat(filepath.Join(left, "above", "data", formatName)); gone != nil || err != nil {
		t.Errorf("behind a power cut the folder is gone: %v %v", gone, err)
	}
}

func TestTheFormatIsWrittenBehindTheNamesAlone(t *testing.T) {
	for fault, made := range map[error]bool{unix.EIO: false, unix.EINVAL: true} {
		root := t.TempDir()
		d, err := simulated.Mount(root, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Unmount()
		written := false
		d.Hook = func(_ int64, c *disk.Call) error {
			written = written || c.Op == disk.OpCreate && strings.HasPrefix(filepath.Base(c.Path), formatName)
			if c.Op == disk.OpSync && c.Path == root {
				return fault
			}
			return nil
		}
		f, err := openFolder(filepath.Join(root, "data"))
		if (err == nil) != made || written != made {
			t.Errorf("where the folder above cannot be synced, %v: the format is written: %t, %v", fault, written, err)
		}
		if err == nil {
			f.close()
		}
	}
}
