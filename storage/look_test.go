package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func openView(t testing.TB, dir string, o ViewOptions) *View {
	t.Helper()
	v, err := OpenView(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

// viewed returns the packets of a view and holds its scans against each other.
func viewed(t testing.TB, v *View) (ids []content.PacketID) {
	t.Helper()
	var records []content.PacketID
	err := errors.Join(
		v.Packets(func(id content.PacketID, _ *content.Meta) error { ids = append(ids, id); return nil }),
		v.Records(QueueRange{}, func(id content.PacketID, _ []byte, _ error) error { records = append(records, id); return nil }),
	)
	if err != nil || !slices.Equal(ids, records) || !slices.IsSortedFunc(ids, content.PacketID.Compare) {
		t.Fatalf("%d packets, %d records, %v", len(ids), len(records), err)
	}
	return ids
}

// state is every file of a folder: its contents, when it was written, and how.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sum := uint64(0)
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = xxhash.Sum64(b)
		}
		files[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// busyFolder is the copy of a folder that is being written to: with a table,
// a log that a killed process left, large payloads, and expiry.
func busyFolder(t *testing.T) (dir string, control content.Control, ids []content.PacketID) {
	t.Helper()
	live := t.TempDir()
	s := smallStore(t, live)
	var b content.Batch
	for i := range uint64(60) {
		b.Reset()
		b.PutQueue(content.Queue{ID: 1 + uint32(i%3), Name: fmt.Append(nil, "queue ", i%3)})
		for j := range uint64(40) {
			p := content.Packet{Key: fmt.Append(nil, i), Payload: bytes.Repeat([]byte{byte(j)}, 300)}
			if j == 7 {
				p.Payload = bytes.Repeat([]byte{byte(i)}, 4000)
			}
			if j == 9 {
				p.Expiry = time.Now().Add(time.Hour).UnixMilli()
			}
			id := content.PacketID{Queue: 1 + uint32(i%3), Priority: uint32(j % 4), Seq: i*40 + j}
			b.Put(id, &p)
			if j > 0 || i == 0 {
				ids = append(ids, id)
			}
		}
		if i > 0 { // the first of the batch before
			b.Delete(content.PacketID{Queue: 1 + uint32((i-1)%3), Priority: 0, Seq: (i - 1) * 40}, content.Removed{})
		}
		if i == 59 {
			ids = append(ids, content.PacketID{Queue: 1 + uint32(i%3), Priority: 0, Seq: i * 40})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if i == 35 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = smallStore(t, live)
		}
	}
	ids = slices.DeleteFunc(ids, func(id content.PacketID) bool { return id.Seq == 0 })
	slices.SortFunc(ids, content.PacketID.Compare)
	return killed(t, s), s.Control(), ids
}

func TestViewShowsWhatAStartWouldAndChangesNothing(t *testing.T) {
	dir, control, ids := busyFolder(t)
	clean := t.TempDir()
	copyFolder(t, dir, clean)
	if err := smallStore(t, clean).Close(); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"killed": dir, "stopped": clean} {
		for _, o := range []ViewOptions{{}, {Tolerant: true}} {
			t.Run(fmt.Sprint(name, o.Tolerant), func(t *testing.T) {
				before := state(t, folder)
				v := openView(t, folder, o)
				if c := v.Control(); c != control {
					t.Errorf("control record %+v, want %+v", c, control)
				}
				if got := viewed(t, v); !slices.Equal(got, ids) {
					t.Errorf("%d packets, want %d", len(got), len(ids))
				}
				queues := 0
				if err := v.Queues(func(q content.Queue) error { queues++; return nil }); err != nil || queues != 3 {
					t.Errorf("%d queues, %v", queues, err)
				}
				large := 0
				if err := v.Payloads(func(_ uint32, _ uint64, size int64) error {
					if large++; size != 4000 {
						t.Errorf("a payload of %d bytes", size)
					}
					return nil
				}); err != nil || large != 60 {
					t.Errorf("%d large payloads, %v", large, err)
				}
				if found := v.Findings(); len(found) != 0 {
					t.Errorf("findings: %v", found)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				if after := state(t, folder); !equalMaps(before, after) {
					t.Errorf("the folder changed: before\n%v\nafter\n%v", before, after)
				}
			})
		}
	}
}

func equalMaps(a, b map[string]string) bool {
	for name, state := range a {
		if b[name] != state {
			return false
		}
	}
	return len(a) == len(b)
}

func TestFolderThatIsLookedAtCannotBeServedAndTheOtherWayRound(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	me := fmt.Sprint("process ", os.Getpid())
	if _, err := OpenView(dir, ViewOptions{}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), me) {
		t.Errorf("looking at a folder that is served gives %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Whoever served last left its number there; it must not be blamed.
	if err := os.WriteFile(filepath.Join(dir, lockName), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := openView(t, dir, ViewOptions{}), openView(t, dir, ViewOptions{})
	for _, v := range []*View{first, second} {
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "processes that look at it") {
			t.Errorf("serving a folder that is looked at gives %v", err)
		}
		if err := errors.Join(v.Close(), v.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := smallStore(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoFolderIsNotLookedAtAndNotMade(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := os.MkdirAll(filepath.Join(foreign, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer")
	if err := errors.Join(os.Mkdir(newer, 0o700), os.WriteFile(filepath.Join(newer, formatName), []byte("8\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before := state(t, dir)
	for path, want := range map[string]error{
		file: ErrNotFolder, foreign: ErrNotFolder, filepath.Join(dir, "missing"): fs.ErrNotExist, newer: ErrFormat,
	} {
		for _, o := range []ViewOptions{{}, {Tolerant: true}} {
			if _, err := OpenView(path, o); !errors.Is(err, want) {
				t.Errorf("%s gives %v, want %v", filepath.Base(path), err, want)
			}
		}
	}
	if !equalMaps(before, state(t, dir)) {
		t.Error("something was made")
	}
}

func TestViewLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	f := newDamageFolder(t, true)
	bad := f.copied(t, filepath.Join(dbName, manifestName), func(b []byte) []byte { b[20]++; return b })
	if _, err := OpenView(bad, ViewOptions{}); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	v := openView(t, f.dir, ViewOptions{})
	if left, _ := filepath.Glob(filepath.Join(temp, "*view*")); len(left) != 1 {
		t.Errorf("while a view is open %v is there", left)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*view*")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestQueueRangesSelectByIdentity(t *testing.T) {
	f := newDamageFolder(t, true)
	v := openView(t, f.dir, ViewOptions{})
	all := viewed(t, v)
	for _, r := range []QueueRange{{}, {1, 1}, {2, 2}, {1, 2}, {2, 0}, {0, 1}, {3, 9}, {2, 1<<32 - 1}} {
		want := slices.DeleteFunc(slices.Clone(all), func(id content.PacketID) bool {
			return id.Queue < r.First || r.Last != 0 && id.Queue > r.Last
		})
		var records []content.PacketID
		err := v.Records(r, func(id content.PacketID, _ []byte, _ error) error { records = append(records, id); return nil })
		if err != nil || !slices.Equal(records, want) {
			t.Errorf("%v: %d records of %d, %v", r, len(records), len(want), err)
		}
	}
}

func TestSnapshotStaysAsItWasWhileBatchesAreApplied(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var b content.Batch
	for i := range uint64(10) {
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: i}, &content.Packet{Payload: make([]byte, 2000)})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	want := s.Control()
	for i := range uint64(10) {
		b.Reset()
		b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: i}, content.Removed{Large: true})
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 100 + i}, &content.Packet{})
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if n.Control() != want {
		t.Errorf("control record %+v, want %+v", n.Control(), want)
	}
	got := 0
	err = n.Records(QueueRange{}, func(id content.PacketID, rec []byte, damage error) error {
		var p content.Packet
		if got++; damage != nil || content.DecodeRecord(rec, &p) != nil || len(p.Payload) != 2000 || id.Seq > 9 {
			t.Errorf("packet %v: %v", id, damage)
		}
		return nil
	})
	if err != nil || got != 10 {
		t.Errorf("%d packets, %v", got, err)
	}
}

// Root may write anywhere, so the looking is done by somebody else.
func TestSystemFolderOfSomebodyElseCanBeLookedAt(t *testing.T) {
	if dir := os.Getenv("HOLDFAST_TEST_VIEW"); dir != "" {
		v := openView(t, dir, ViewOptions{})
		fmt.Println("seen:", len(viewed(t, v)))
		return
	}
	f := newDamageFolder(t, true)
	base := filepath.Dir(filepath.Dir(f.dir))
	program := filepath.Join(f.dir, "..", "program")
	if err := copyFile(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	for path, mode := range map[string]os.FileMode{program: 0o755, base: 0o755, filepath.Dir(f.dir): 0o755, temp: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		mode := os.FileMode(0o444)
		if entry.IsDir() {
			mode = 0o555
		}
		return errors.Join(err, os.Chmod(path, mode))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that it can be removed
		_ = os.Chmod(f.dir, 0o700)
		_ = os.Chmod(filepath.Join(f.dir, dbName), 0o700)
	})
	before := state(t, f.dir)
	run := exec.Command(program, "-test.run", "^TestSystemFolderOfSomebodyElseCanBeLookedAt$")
	run.Env = append(os.Environ(), "HOLDFAST_TEST_VIEW="+f.dir, "TMPDIR="+temp)
	run.Dir = "/"
	if os.Getuid() == 0 {
		const nobody = 65534
		run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := run.CombinedOutput()
	if want := fmt.Sprint("seen: ", len(f.want)); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
	if !equalMaps(before, state(t, f.dir)) {
		t.Error("looking changed the folder")
	}
}

func TestFolderOfAFirstStartCutShortIsLookedAtAsEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, formatName), []byte(strconv.Itoa(content.FormatVersion)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := state(t, dir)
	for _, o := range []ViewOptions{{}, {Tolerant: true}} {
		v := openView(t, dir, o)
		if ids := viewed(t, v); len(ids) > 0 || len(v.Findings()) > 0 || v.Control() != (content.Control{Marks: content.FirstMarks()}) {
			t.Errorf("%v, %v, %+v", ids, v.Findings(), v.Control())
		}
	}
	if !equalMaps(before, state(t, dir)) {
		t.Error("looking changed the folder")
	}
}

func TestSnapshotsAgreeWithTheirControlRecordsWhileBatchesAreApplied(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { // ends when stop is closed, or with the first error
		var b content.Batch
		for seq := uint64(0); ; seq += 20 {
			b.Reset()
			for i := range uint64(20) {
				b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq + i}, &content.Packet{Payload: make([]byte, 100+1200*(i&1))})
				if seq >= 400 && i%4 != 0 {
					b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: seq + i - 400}, content.Removed{Large: i&1 == 1})
				}
			}
			if err := s.Apply(&b); err != nil {
				done <- err
				return
			}
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
		}
	}()
	for batch := uint64(0); batch < 600; {
		n, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		large := 0
		err = errors.Join(
			n.Records(QueueRange{}, func(id content.PacketID, rec []byte, damage error) error { return damage }),
			n.Packets(func(_ content.PacketID, m *content.Meta) error {
				if m.Large {
					large++
				}
				return nil
			}),
			n.Payloads(func(uint32, uint64, int64) error { large--; return nil }))
		if err != nil || large != 0 {
			t.Fatalf("after batch %d: %v, %d payloads too many or too few", n.Control().Batch, err, large)
		}
		batch = n.Control().Batch
		n.Close()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestSystemKilledFolderIsLookedAtOnAReadOnlyMount(t *testing.T) {
	dir, control, ids := busyFolder(t)
	_, at := mountImage(t, 32, "")
	data := filepath.Join(at, "data")
	copyFolder(t, dir, data)
	if out, err := exec.Command("mount", "-o", "remount,ro", at).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot mount it read-only: %v %s", err, out)
	}
	for _, o := range []ViewOptions{{}, {Tolerant: true}} {
		v := openView(t, data, o)
		if got := viewed(t, v); !slices.Equal(got, ids) || v.Control() != control || len(v.Findings()) > 0 {
			t.Errorf("%d packets of %d, %v", len(got), len(ids), v.Findings())
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(data, Options{}); !errors.Is(err, ErrRefused) {
		t.Errorf("to serve it gives %v", err)
	}
}
