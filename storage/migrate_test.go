package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// contents are all keys of a folder, each with its value and its native expiry. Of the control
// record only what no start changes is kept.
type contents map[string]string

func (c contents) add(t testing.TB, key, value []byte, expires uint64) {
	if string(key) == controlKey {
		var control Control
		if err := decodeControl(value, &control); err != nil {
			t.Error(err)
		}
		value = fmt.Appendf(nil, "%+v %+v", control.Tally, control.Marks)
	}
	c[string(key)] = fmt.Sprintf("%d %s", expires, value)
}

// differs names some keys that two folders do not share.
func (c contents) differs(other contents) (keys []string) {
	for _, pair := range [][2]contents{{c, other}, {other, c}} {
		for key, value := range pair[0] {
			if v, ok := pair[1][key]; len(keys) < 5 && (!ok || v != value) {
				keys = append(keys, describeKey([]byte(key)))
			}
		}
	}
	return keys
}

// oldContents is what the engine of format 5 shows of a folder, which it opens in a copy.
func oldContents(t testing.TB, dir string) contents {
	t.Helper()
	c, err := oldContentsOf(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func oldContentsOf(t testing.TB, dir string) (contents, error) {
	at := t.TempDir()
	copyFolder(t, dir, at)
	s, err := Open(at, Options{MemTable: minMemTable})
	if err != nil {
		return nil, err
	}
	c := contents{}
	err = s.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			c.add(t, it.Item().Key(), value, it.Item().ExpiresAt())
		}
		return nil
	})
	return c, errors.Join(err, s.Close())
}

// newContents is what a folder of format 6 shows. It must be a whole one.
func newContents(t testing.TB, dir string) contents {
	t.Helper()
	db, build := filepath.Join(dir, dbName), filepath.Join(dir, buildName)
	names, _ := fs.Glob(os.DirFS(dir), "*/*")
	for _, name := range names {
		if name != "db/MANIFEST" && filepath.Ext(name) != tableSuffix {
			t.Errorf("there is %s", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{anchorName, buildName, dbName, formatName, journalName, lockName}, e.Name()) {
			t.Errorf("there is %s", e.Name())
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, formatName)); err != nil || string(text) != "6\n" {
		t.Errorf("the format is %q, %v", text, err)
	}
	before, err := tables.ReadList(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.Check(db, before, nil); err != nil {
		t.Error(err)
	}
	set, err := tables.Open(db, build)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	view := set.View()
	defer view.Close()
	c := contents{}
	seen, err := view.Scan(nil, nil, func(e tables.Entry) bool {
		if e.Version > view.List.Window {
			t.Errorf("%s has version %d, the last window is %d", describeKey(e.Key), e.Version, view.List.Window)
		}
		if !e.Deleted {
			c.add(t, e.Key, e.Value, e.Expires)
		}
		if string(e.Key) == controlKey {
			var control Control
			if err := decodeControl(e.Value, &control); err != nil || control.Batch != view.List.Floor.Batch {
				t.Errorf("the floor is %+v, the control record %+v, %v", view.List.Floor, control, err)
			}
		}
		return true
	})
	if err != nil || seen != view.List.Entries() {
		t.Errorf("%d entries are there of %d, %v", seen, view.List.Entries(), err)
	}
	return c
}

// migrated migrates a folder as a start does.
func migrated(dir string, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	return migrate(f, &o)
}

func showsTheSame(t *testing.T, dir string) {
	t.Helper()
	want := oldContents(t, dir)
	if err := migrated(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := newContents(t, dir); !maps.Equal(got, want) {
		t.Errorf("%d keys are there, want %d; others: %q", len(got), len(want), got.differs(want))
	}
}

// goldenFolders are all that earlier versions left.
func goldenFolders(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob("testdata/v[1-5]/*.tar.gz")
	if err != nil || len(folders) < 11 {
		t.Fatalf("folders %q, %v", folders, err)
	}
	return folders
}

func TestFoldersOfOlderFormatsBecomeFormat6(t *testing.T) {
	for _, folder := range goldenFolders(t) {
		t.Run(strings.ReplaceAll(folder, "/", " "), func(t *testing.T) {
			dir := t.TempDir()
			unpackFolder(t, folder, dir)
			showsTheSame(t, dir)
		})
	}
	t.Run("with nothing in it", func(t *testing.T) {
		dir := t.TempDir()
		if err := smallStore(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
		showsTheSame(t, dir)
	})
	t.Run("ids of unique pushes", func(t *testing.T) { showsTheSame(t, olderFolder(t, false)) })
	t.Run("ids of unique pushes that are there", func(t *testing.T) { showsTheSame(t, olderFolder(t, true)) })
}

func TestKilledFoldersBecomeFormat6(t *testing.T) {
	t.Run("tables and two logs", func(t *testing.T) {
		dir, _, _ := oldLogs(t)
		showsTheSame(t, dir)
	})
	t.Run("a log that a reader kept", func(t *testing.T) {
		dir, _, _ := heldLog(t, 0, SyncAlways())
		showsTheSame(t, dir)
	})
	t.Run("a log that a reader kept, of packets that expire", func(t *testing.T) {
		dir, _, _ := heldLog(t, time.Now().Add(time.Hour).UnixMilli(), SyncNever())
		showsTheSame(t, dir)
	})
	t.Run("a log that ends in pieces of a batch", func(t *testing.T) {
		dir, log, ends := killed(t, 3)
		forget(t, dir, 2)
		if err := os.Truncate(filepath.Join(dir, log), int64(ends[2]-3)); err != nil {
			t.Fatal(err)
		}
		showsTheSame(t, dir)
	})
}

// redoFolder is a folder that was left in the middle of a batch of many deletes, with packets that
// have an expiry, delivery states, heads, fields and ids: by a kill, or, if closed, by a store that
// failed and still wrote its logs out.
func redoFolder(t *testing.T, failAt int, closed bool) string {
	t.Helper()
	dir := t.TempDir()
	var cut powerCut
	o := Options{MemTable: 8 << 20} // all lies in one log
	o.tune.sync = cut.sync
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.PutQueue(Queue{ID: 1, Name: []byte("jobs"), New: true})
	for v, i := range goldenItems() {
		put(&b, v, i, 0, false, Mark{})
	}
	b.Put(PacketID{2, 1, 1<<63 - 1}, &Packet{Payload: make([]byte, 2000), Expiry: 4_000_000_000_123})
	applied(t, s, &b)
	const n = 300
	ids := fillStore(t, s, n)
	identity := fillStates(t, s, ids)
	b.Reset()
	for i, id := range ids[:n-1] {
		b.Delete(id, Removed{Large: i%7 == 0, Stored: StoredDelivery | StoredReason, Identity: identity(i)})
	}
	b.Put(PacketID{1, 9, 1<<63 + n}, &Packet{Payload: []byte("new"), Expiry: time.Now().Add(time.Hour).UnixMilli()})
	b.PutUnique(&Unique{UniqueID{1, 5}, []byte("a"), 0})
	s.limits.MaxOps = 200 // of one transaction
	cut.at(failAt)
	if err := s.Apply(&b); !errors.Is(err, ErrUnknown) {
		t.Fatalf("sync %d failed and Apply gave %v, want ErrUnknown", failAt, err)
	}
	cut.over()
	left := t.TempDir()
	copyFolder(t, dir, left)
	_ = s.Close()
	if closed {
		return dir
	}
	return left
}

func TestFoldersWithARedoRecordBecomeFormat6(t *testing.T) {
	for failAt := 2; failAt < 6; failAt++ {
		for _, closed := range []bool{false, true} {
			dir := redoFolder(t, failAt, closed)
			if logs, err := filepath.Glob(filepath.Join(dir, dbName, "*"+logSuffix)); err != nil || closed != (len(logs) == 0) {
				t.Fatalf("closed %v: logs %q, %v", closed, logs, err)
			}
			showsTheSame(t, dir)
			if _, there := newContents(t, dir)[redoKey]; there {
				t.Error("the redo record is still there")
			}
		}
	}
}

func TestADatabaseThatWasMigratedIsABadgerDatabase(t *testing.T) {
	dir := redoFolder(t, 3, false)
	want := oldContents(t, dir)
	if err := migrated(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, dbName)).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := contents{}
	err = db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			got.add(t, it.Item().Key(), value, it.Item().ExpiresAt())
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil || !maps.Equal(got, want) {
		t.Errorf("Badger shows %d keys, want %d, %v; others: %q", len(got), len(want), err, got.differs(want))
	}
}

func TestAMigrationOfManyTablesCanBeDoneAgain(t *testing.T) {
	live, dir := t.TempDir(), t.TempDir()
	s := openTest(t, live, Options{MemTable: 16 << 20})
	var b Batch
	for i := range uint64(5 * migratedTable / 4 / 1000) {
		b.Put(PacketID{1, 1, i}, &Packet{Payload: make([]byte, 1000)})
		if i%1000 == 0 {
			applied(t, s, &b)
		}
	}
	applied(t, s, &b)
	copyFolder(t, live, dir)
	want := oldContents(t, dir)
	for range 2 {
		if err := migrated(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := newContents(t, dir); !maps.Equal(got, want) {
			t.Errorf("%d keys are there, want %d; others: %q", len(got), len(want), got.differs(want))
		}
		if n := len(tableFiles(t, dir)); n < 2 {
			t.Errorf("there are %d tables", n)
		}
		// As a kill right before the end leaves it.
		if err := os.WriteFile(filepath.Join(dir, formatName), []byte("5\n"), 0o600); err != nil {
			t.Fatal(err)
		}
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
	dir := redoFolder(t, 3, false)
	var o Options
	o.tune.stat = func(string) (free, total int64, err error) { return migratedRoom, 1 << 30, nil }
	refusedAsItWas(t, dir, o, ErrFull)
	showsTheSame(t, dir)
}

func TestAFolderThatIsNotWholeStaysAsItIs(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir, older string){
		"a log is gone": func(t *testing.T, _, older string) {
			if err := os.Remove(older); err != nil {
				t.Fatal(err)
			}
		},
		"a batch in the middle is damaged": func(t *testing.T, _, older string) { flip(t, older, logHeader+12) },
		"a table is gone": func(t *testing.T, dir, _ string) {
			if err := os.Remove(tableFiles(t, dir)[0]); err != nil {
				t.Fatal(err)
			}
		},
		"the list of tables is gone": func(t *testing.T, dir, _ string) {
			if err := os.Remove(filepath.Join(dir, dbName, manifestName)); err != nil {
				t.Fatal(err)
			}
		},
		"the anchor is ahead": func(t *testing.T, dir, _ string) {
			var b [anchorSize]byte
			encodeAnchor(b[:], anchorMark{epoch: 9, batch: 1000})
			if err := os.WriteFile(filepath.Join(dir, anchorName), b[:], 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"the anchor is damaged": func(t *testing.T, dir, _ string) {
			if err := os.WriteFile(filepath.Join(dir, anchorName), make([]byte, anchorSize), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, older, _ := oldLogs(t)
			change(t, dir, older)
			if said := refusedAsItWas(t, dir, Options{}, ErrDamaged); !strings.Contains(said, "start it once with the version that wrote it") {
				t.Errorf("it says %s", said)
			}
		})
	}
	t.Run("a packet is gone", func(t *testing.T) {
		live, dir := t.TempDir(), t.TempDir()
		s := smallStore(t, live)
		ids := fillStore(t, s, 100)
		err := s.db.Update(func(txn *badger.Txn) error { return txn.Delete(appendPacketKey(nil, ids[50])) })
		if err != nil {
			t.Fatal(err)
		}
		copyFolder(t, live, dir)
		if said := refusedAsItWas(t, dir, Options{}, ErrDamaged); !strings.Contains(said, "packets are missing") {
			t.Errorf("it says %s", said)
		}
	})
}

func TestADamagedTableEndsNoMigrationBadly(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	fillStore(t, s, 300)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := tableFiles(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		if at%step(97, 997) != 0 && at < len(whole)-50 { // of the footer each
			continue
		}
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := migrated(dir, Options{}); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d of %d is flipped: %v", at, len(whole), err)
		}
	}
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	showsTheSame(t, dir)
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
func killedAt(t *testing.T, dir, call string, n int) bool {
	t.Helper()
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n),
		os.Args[0], "-test.run=^TestMigrationChild$")
	cmd.Env = append(os.Environ(), "HOLDFAST_MIGRATION_CHILD="+dir, "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	exit := (*exec.ExitError)(nil)
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !errors.As(err, &exit) || !ok || !status.Signaled() {
		t.Fatalf("call %d of %s: %v\n%s", n, call, err, out)
	}
	return true
}

func TestMigrationThatIsKilledAtAnyCallIsDoneAgain(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: nothing kills a migration at a call")
	}
	const noLogs = "a redo record in tables"
	origins := map[string]func(dir string){
		"a redo record": func(dir string) { copyFolder(t, redoFolder(t, 3, false), dir) },
		noLogs:          func(dir string) { copyFolder(t, redoFolder(t, 3, true), dir) },
	}
	if !testing.Short() {
		for _, folder := range goldenFolders(t) {
			origins[folder] = func(dir string) { unpackFolder(t, folder, dir) }
		}
		origins["ids of unique pushes"] = func(dir string) { copyFolder(t, olderFolder(t, false), dir) }
	}
	for name, unpack := range origins {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			origin := t.TempDir()
			unpack(origin)
			want := oldContents(t, origin)
			kills, before, after := 0, 0, 0
			for _, call := range []string{"mkdirat", "write", "pwrite64", "fsync", "renameat", "unlinkat"} {
				for n := 1; ; n++ {
					dir := t.TempDir()
					copyFolder(t, origin, dir)
					if !killedAt(t, dir, call, n) {
						break
					}
					kills++
					text, err := os.ReadFile(filepath.Join(dir, formatName))
					if err != nil {
						t.Fatal(err)
					}
					if string(text) == "6\n" {
						after++
					} else {
						before++
						got, err := oldContentsOf(t, dir)
						// Without logs the old engine misses the new table as long as no list names it.
						unnamed := name == noLogs && errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), "does not name table")
						if !unnamed && (err != nil || !maps.Equal(got, want)) {
							t.Errorf("killed at call %d of %s: the old engine shows %d keys, want %d, %v", n, call, len(got), len(want), err)
						}
						if err := migrated(dir, Options{}); err != nil {
							t.Fatalf("killed at call %d of %s: again: %v", n, call, err)
						}
					}
					if got := newContents(t, dir); !maps.Equal(got, want) {
						t.Errorf("killed at call %d of %s: %d keys, want %d; others: %q", n, call, len(got), len(want), got.differs(want))
					}
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Logf("%d kills, %d before the format changed, %d after it", kills, before, after)
			if before < 15 || after < 1 {
				t.Error("the kills did not meet the migration")
			}
		})
	}
}
