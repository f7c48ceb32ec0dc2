package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4"

	"github.com/holdfast-queue/holdfast/storage/inject"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// The folders that are migrated are archives in testdata: those of each version, and in
// testdata/migrate what kills and failures left. The engine of format 5 made them, and noted in
// contents.txt what it shows of each: how many keys, and a sum over them. They are never made
// again.
const migrateFolder = "testdata/migrate"

// contents are all keys of a folder, each with its value and its native expiry. Of the control
// record only what no start changes is kept.
type contents map[string]string

func (c contents) add(key, value []byte, expires uint64) error {
	if string(key) == controlKey {
		var control Control
		if err := decodeControl(value, &control); err != nil {
			return err
		}
		value = fmt.Appendf(nil, "%+v %+v", control.Tally, control.Marks)
	}
	c[string(key)] = fmt.Sprintf("%d %s", expires, value)
	return nil
}

// ofBadger adds what a database shows.
func (c contents) ofBadger(db *badger.DB) error {
	return db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			err := it.Item().Value(func(value []byte) error { return c.add(it.Item().Key(), value, it.Item().ExpiresAt()) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// String is what contents.txt says of them.
func (c contents) String() string {
	sum := xxhash.New()
	for _, key := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(sum, "%q %q\n", key, c[key])
	}
	return fmt.Sprintf("%d keys %016x", len(c), sum.Sum64())
}

// archives are the folders to migrate, and what each holds.
func archives(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(migrateFolder, "contents.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = what
	}
	if len(all) < 22 {
		t.Fatalf("there are %d folders", len(all))
	}
	return all
}

// archived unpacks a folder.
func archived(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	unpackFolder(t, filepath.Join("testdata", name), dir)
	return dir
}

// migrated migrates a folder as a start does.
func migrated(dir string, o Options) error {
	o.fill()
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	return migrate(f, &o)
}

// showsOnly checks that a folder is a whole one of format 6, and what it holds.
func showsOnly(t *testing.T, dir, want string) {
	t.Helper()
	names, _ := fs.Glob(os.DirFS(dir), "*")
	below, _ := fs.Glob(os.DirFS(dir), "*/*")
	for _, name := range append(names, below...) {
		if !slices.Contains([]string{anchorName, buildName, dbName, formatName, journalName, lockName, "db/MANIFEST"}, name) && filepath.Ext(name) != ".sst" {
			t.Errorf("there is %s", name)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, formatName)); err != nil || string(text) != "6\n" {
		t.Errorf("the format is %q, %v", text, err)
	}
	db := filepath.Join(dir, dbName)
	list, err := tables.ReadList(db)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tables.Open(db, filepath.Join(dir, buildName), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	view := set.View()
	defer view.Close()
	got := contents{}
	err = view.Scan(nil, func(e tables.Entry) error {
		if e.Version > list.Window {
			t.Errorf("%s has version %d, the last window is %d", describeKey(e.Key), e.Version, list.Window)
		}
		if string(e.Key) == controlKey {
			var control Control
			if err := decodeControl(e.Value, &control); err != nil || control.Batch != list.Floor.Batch {
				t.Errorf("the floor is %+v, the control record %+v, %v", list.Floor, control, err)
			}
		}
		return got.add(e.Key, e.Value, e.Expires)
	})
	if err != nil {
		t.Error(err)
	}
	if got.String() != want {
		t.Errorf("there are %v, want %s", got, want)
	}
	if _, there := got[redoKey]; there {
		t.Error("the redo record is still there")
	}
}

func TestFoldersOfOlderFormatsBecomeFormat6(t *testing.T) {
	for name, want := range archives(t) {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a[1]*") // no name of a folder is a pattern
			if err := os.Rename(archived(t, name), dir); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time as after a kill right before the end
				format, err := os.ReadFile(filepath.Join(dir, formatName))
				var log bytes.Buffer
				if err == nil {
					err = migrated(dir, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				}
				if err != nil {
					t.Fatal(err)
				}
				if told := fmt.Sprintf("from=%s to=%d\n", bytes.TrimSpace(format), FormatVersion); strings.Count(log.String(), told) != 1 {
					t.Errorf("the log says\n%s\nwant one line with %q", &log, told)
				}
				showsOnly(t, dir, want)
				if err := os.WriteFile(filepath.Join(dir, formatName), format, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestIDsThatAreTakenOverAreABatch(t *testing.T) {
	dir := archived(t, "migrate/unique.tar.gz")
	if err := migrated(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if list, err := tables.ReadList(filepath.Join(dir, dbName)); err != nil || list.Floor.Batch != 2 {
		t.Errorf("the floor is %+v, %v; before it was batch 1", list.Floor, err)
	}
}

func TestAMigratedFolderIsADatabaseOfBadgers(t *testing.T) {
	const name = "migrate/redo.tar.gz"
	dir := archived(t, name)
	if err := migrated(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, dbName)).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := contents{}
	if err := errors.Join(got.ofBadger(db), db.Close()); err != nil || got.String() != archives(t)[name] {
		t.Errorf("Badger shows %v, want %s, %v", got, archives(t)[name], err)
	}
}

// files are the names and contents of all that is in a folder, but for its lock.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) == lockName {
			return err
		}
		if all[path] = e.Type().String(); e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			all[path] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refusedAsItWas says what a migration that is refused says. It must have changed nothing.
func refusedAsItWas(t *testing.T, dir string, o Options, want error) string {
	t.Helper()
	before := files(t, dir)
	err := migrated(dir, o)
	if !errors.Is(err, want) || errors.Is(err, ErrLoss) {
		t.Fatalf("the migration gives %v, want %v", err, want)
	}
	if after := files(t, dir); !maps.Equal(after, before) {
		t.Errorf("the files are %q, were %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
	return err.Error()
}

func TestAFolderStaysAsItIsWhereTheDiskHasNoRoom(t *testing.T) {
	const name = "migrate/redo.tar.gz"
	dir := archived(t, name)
	var o Options
	o.tune.stat = func(string) (free, total int64, err error) { return migratedRoom, 1 << 30, nil }
	refusedAsItWas(t, dir, o, ErrFull)
	if err := migrated(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	showsOnly(t, dir, archives(t)[name])
}

// firstFile is the first file of a database with some extension.
func firstFile(t *testing.T, dir, ext string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, dbName, "*"+ext))
	if err != nil || len(names) == 0 {
		t.Fatalf("files %q, %v", names, err)
	}
	return names[0]
}

// byBadger changes what the database of an older folder holds.
func byBadger(dir string, change func(txn *badger.Txn) error) error {
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, dbName)).WithLogger(nil).WithCompression(0))
	if err != nil {
		return err
	}
	return errors.Join(db.Update(change), db.Close())
}

func TestAFolderThatIsNotWholeStaysAsItIs(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string) error{
		"a log is gone":              func(t *testing.T, dir string) error { return os.Remove(firstFile(t, dir, ".mem")) },
		"a table is gone":            func(t *testing.T, dir string) error { return os.Remove(firstFile(t, dir, ".sst")) },
		"the list of tables is gone": func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, dbName, "MANIFEST")) },
		"a batch in the middle is damaged": func(t *testing.T, dir string) error {
			return overwrite(firstFile(t, dir, ".mem"), oldLogHeader+12, []byte{0xff})
		},
		"the anchor is damaged": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, anchorName), make([]byte, anchorSize), 0o600)
		},
		"the anchor is ahead": func(_ *testing.T, dir string) error {
			var b [anchorSize]byte
			encodeAnchor(b[:], anchorMark{epoch: 9, batch: 1000})
			return os.WriteFile(filepath.Join(dir, anchorName), b[:], 0o600)
		},
		"a packet is gone": func(_ *testing.T, dir string) error {
			return byBadger(dir, func(txn *badger.Txn) error { return txn.Delete(appendPacketKey(nil, PacketID{1, 1, 1<<63 + 300})) })
		},
		"a load was cut short": func(_ *testing.T, dir string) error {
			return byBadger(dir, func(txn *badger.Txn) error { return txn.Set([]byte(loadKey), []byte("so far")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive := "migrate/two-logs.tar.gz"
			if name == "a packet is gone" || name == "a load was cut short" { // the others have packets that expire, which nothing counts
				archive = "migrate/redo-in-tables.tar.gz"
			}
			dir := archived(t, archive)
			if err := change(t, dir); err != nil {
				t.Fatal(err)
			}
			if said := refusedAsItWas(t, dir, Options{}, ErrDamaged); !strings.Contains(said, "start it once with the version that wrote it") {
				t.Errorf("it says %s", said)
			}
		})
	}
}

func TestADamagedTableIsNeverMigrated(t *testing.T) {
	const name = "v5/closed.tar.gz"
	dir := archived(t, name)
	table := firstFile(t, dir, ".sst")
	whole, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		if at%step(31, 311) != 0 && (at < len(whole)-50 || at%step(1, 5) != 0) { // more of the footer
			continue
		}
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if err := os.WriteFile(table, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := migrated(dir, Options{}); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d of %d is flipped: %v", at, len(whole), err)
		}
	}
	if err := errors.Join(os.WriteFile(table, whole, 0o600), migrated(dir, Options{})); err != nil {
		t.Fatal(err)
	}
	showsOnly(t, dir, archives(t)[name])
}

// TestMigrationChild migrates the folder that the environment names, on one thread: strace counts
// the calls of each thread by itself.
func TestMigrationChild(t *testing.T) {
	dir := os.Getenv("HOLDFAST_MIGRATION_CHILD")
	if dir == "" {
		t.Skip("the child of another test")
	}
	runtime.LockOSThread()
	if err := migrated(dir, Options{}); err != nil {
		t.Fatal(err)
	}
}

// killedAt migrates a folder in a child that is killed at one call. It reports whether there was
// such a call.
func killedAt(t *testing.T, strace []string, dir, call string, n int) bool {
	t.Helper()
	args := append(slices.Clone(strace), "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n),
		os.Args[0], "-test.run=^TestMigrationChild$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOLDFAST_MIGRATION_CHILD="+dir, "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("call %d of %s: %v\n%s", n, call, err, out)
	}
	return true
}

// killedEverywhere migrates copies of a folder, each killed at another call that changes files, and
// calls left with what is left. done says that it is of format 6.
func killedEverywhere(t *testing.T, name string, left func(t *testing.T, dir, at string, done bool)) {
	t.Helper()
	strace := inject.Strace(t)
	kills, after := 0, 0
	for _, call := range []string{"mkdirat", "write", "pwrite64", "fsync", "renameat", "unlinkat"} {
		for n, stride := inject.Sample(t, 4); ; n += stride {
			dir := archived(t, name)
			if !killedAt(t, strace, dir, call, n) {
				break
			}
			kills++
			text, err := os.ReadFile(filepath.Join(dir, formatName))
			if err != nil {
				t.Fatal(err)
			}
			done := string(text) == "6\n"
			if done {
				after++
			}
			left(t, dir, fmt.Sprintf("killed at call %d of %s", n, call), done)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d kills, %d after the format had changed", kills, after)
	if inject.Every() && (kills < 15 || after == kills) {
		t.Error("the kills did not meet the migration")
	}
}

func TestAMigrationThatIsKilledAtAnyCallIsDoneAgain(t *testing.T) {
	all := archives(t)
	names := slices.Sorted(maps.Keys(all))
	if !inject.Every() {
		inject.Rand(t).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:5]
	}
	for _, name := range names {
		want := all[name]
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			t.Parallel()
			killedEverywhere(t, name, func(t *testing.T, dir, at string, done bool) {
				if !done {
					if err := migrated(dir, Options{}); err != nil {
						t.Fatalf("%s: again: %v", at, err)
					}
				}
				showsOnly(t, dir, want)
			})
		})
	}
}
