package storage

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

// replaced puts another file behind the descriptors that this process has of one, until the
// function that it returns is called. A write to /dev/full finds no room; /dev/null takes it and
// cannot be synced.
func replaced(t *testing.T, path, by string) (restore func()) {
	t.Helper()
	other, err := os.OpenFile(by, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || links == nil {
		t.Skip("skipped: the system does not tell the open files")
	}
	was := make(map[int]int)
	for _, link := range links {
		if to, _ := os.Readlink(link); to == path {
			fd, err := strconv.Atoi(filepath.Base(link))
			if err != nil {
				t.Fatal(err)
			}
			was[fd] = 0
		}
	}
	if len(was) == 0 {
		t.Fatalf("%s is not open", path)
	}
	for fd := range was {
		if was[fd], err = unix.Dup(fd); err == nil {
			err = unix.Dup3(int(other.Fd()), fd, unix.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for fd, kept := range was {
			if err := errors.Join(unix.Dup3(kept, fd, unix.O_CLOEXEC), unix.Close(kept)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFailedSyncStopsTheStoreAndIsNotTriedAgain(t *testing.T) {
	for name, sync := range map[string]SyncMode{"always": SyncAlways(), "interval": SyncInterval(time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{Window: minWindow, Sync: sync})
			if err != nil {
				t.Fatal(err)
			}
			applied(t, s, one(1, content.Packet{}))
			restore := replaced(t, logFiles(t, dir)[0], "/dev/null")
			seq := uint64(2)
			for err = s.Apply(one(seq, content.Packet{})); err == nil && sync != SyncAlways(); seq++ {
				err = s.Apply(one(seq+1, content.Packet{}))
			}
			if !errors.Is(err, ErrUnknown) || !errors.Is(err, syscall.EINVAL) {
				t.Errorf("a batch that was not synced gives %v", err)
			}
			restore()
			if err := s.Apply(one(seq+2, content.Packet{})); !errors.Is(err, ErrUnknown) {
				t.Errorf("the batch after it gives %v", err)
			}
			if _, err := s.Snapshot(); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("a snapshot gives %v", err)
			}
			if err := s.Close(); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("Close gives %v", err)
			}
			s = smallStore(t, dir)
			ids, tally := scanned(t, s)
			if err := s.Verify(tally); err != nil || len(ids) != 1 {
				t.Errorf("after reopening: packets %v, %v", ids, err)
			}
		})
	}
}

func TestBatchThatFindsNoRoomIsWrittenLaterAtTheSamePlace(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	applied(t, s, one(1, content.Packet{}))
	restore := replaced(t, logFiles(t, dir)[0], "/dev/full")
	for range 3 {
		if err := s.Apply(one(2, content.Packet{})); !errors.Is(err, ErrFull) || errors.Is(err, ErrUnknown) {
			t.Errorf("without room a batch gives %v", err)
		}
	}
	restore()
	applied(t, s, one(3, content.Packet{}))
	if c := s.Control(); c.Batch != 2 || c.Live != 2 {
		t.Errorf("control record %+v", c)
	}
	s = smallStore(t, killed(t, s))
	if ids, tally := scanned(t, s); len(ids) != 2 || ids[1].Seq != 3 || s.Verify(tally) != nil {
		t.Errorf("%v are there", ids)
	}
}

func TestAcceptedLossThatCannotBeWrittenIsReportedAndLeftToTheNextBatch(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{Window: minWindow, AcceptLoss: true})
	applied(t, s, one(1, content.Packet{}))
	restore := replaced(t, logFiles(t, dir)[0], "/dev/full")
	var mismatch *content.MismatchError
	if err := s.Verify(content.Tally{Live: 5, Hash: 7}); !errors.As(err, &mismatch) || !errors.Is(err, ErrFull) {
		t.Errorf("on a full disk a mismatch gives %v", err)
	}
	restore()
	applied(t, s, one(2, content.Packet{}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c := smallStore(t, dir).Control(); c.Live != 6 {
		t.Errorf("control record %+v", c)
	}
}

func TestAnchorThatCannotBeSyncedStopsTheStore(t *testing.T) {
	dir, gone := t.TempDir(), unix.EINVAL // of a device that has nothing to sync
	s, err := Open(dir, Options{Window: minWindow})
	if err != nil {
		t.Fatal(err)
	}
	applied(t, s, one(1, content.Packet{}))
	replaced(t, filepath.Join(dir, anchorName), os.DevNull)
	applied(t, s, one(3, content.Packet{}))
	s.housekeeping()
	if err := s.Apply(one(2, content.Packet{})); !errors.Is(err, ErrUnknown) || !errors.Is(err, gone) {
		t.Errorf("a batch behind it gives %v", err)
	}
	if err := s.Close(); !errors.Is(err, gone) {
		t.Errorf("Close gives %v", err)
	}
}

func TestNativeExpiryIsSetWithSlack(t *testing.T) {
	s := smallStore(t, t.TempDir())
	const ms = 4_000_000_000_001 // far from now
	var b content.Batch
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Payload: []byte("x"), Expiry: ms})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 2}, &content.Packet{Payload: make([]byte, 3000), Expiry: ms})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 3}, &content.Packet{Payload: []byte("x")})
	applied(t, s, &b)
	v := settled(t, s).tables.View()
	defer v.Close()
	for key, expires := range map[string]uint64{
		string(content.AppendPacketKey(nil, content.PacketID{Queue: 1, Priority: 1, Seq: 1})):  4_000_000_301,
		string(content.AppendPacketKey(nil, content.PacketID{Queue: 1, Priority: 1, Seq: 2})):  4_000_000_301,
		string(content.AppendPayloadKey(nil, content.PacketID{Queue: 1, Priority: 1, Seq: 2})): 4_000_000_301,
		string(content.AppendPacketKey(nil, content.PacketID{Queue: 1, Priority: 1, Seq: 3})):  0,
		content.ControlKey: 0,
	} {
		if e, ok, err := v.Get([]byte(key)); err != nil || !ok || e.Expires != expires {
			t.Errorf("%q expires at %d, want %d; %v", key, e.Expires, expires, err)
		}
	}
	if s.Control().Live != 1 {
		t.Errorf("%d live packets without expiry, want 1", s.Control().Live)
	}
}

func TestAPacketThatHasExpiredIsThereUntilABatchDeletesIt(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var b content.Batch
	long := time.Now().Add(-10 * time.Minute).UnixMilli()
	just := time.Now().Add(-time.Second).UnixMilli()
	for i, expiry := range []int64{long, just, 0} {
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: uint64(i)}, &content.Packet{Expiry: expiry})
	}
	applied(t, s, &b)
	for _, where := range []string{"journal", "tables"} {
		s.Read([]content.PacketID{{Queue: 1, Priority: 1, Seq: 0}, {Queue: 1, Priority: 1, Seq: 1}, {Queue: 1, Priority: 1, Seq: 2}}, func(i int, rec []byte, _ error) {
			if rec == nil {
				t.Errorf("in the %s packet %d is not there", where, i)
			}
		})
		settled(t, s)
		if _, _, err := s.mergeOnce(s.ctx, true); err != nil {
			t.Fatal(err)
		}
	}
	ids, tally := scanned(t, s)
	if err := s.Verify(tally); err != nil || len(ids) != 3 {
		t.Errorf("a scan shows %v, %v", ids, err)
	}
}

func TestBatchOfAnySizeIsThereWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("many MB are written by one goroutine")
	}
	for name, p := range map[string]content.Packet{"longest record": {Payload: make([]byte, content.MaxRecord-20)}, "small records": {Payload: make([]byte, 100)}} {
		t.Run(name, func(t *testing.T) {
			s := smallStore(t, t.TempDir())
			var b content.Batch
			n := 0
			for ; b.Bytes() < 6<<20; n++ { // as much as six segments
				b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: uint64(n)}, &p)
			}
			b.Put(content.PacketID{Queue: 2, Priority: 1, Seq: 1}, &content.Packet{})
			applied(t, s, &b)
			applied(t, s, one(1<<40, content.Packet{}))
			for seq := range n {
				b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: uint64(seq)}, content.Removed{Large: content.IsLarge(len(p.Payload))})
			}
			before := killed(t, s)
			applied(t, s, &b)
			for dir, want := range map[string]int{before: n + 2, killed(t, s): 2} {
				left := smallStore(t, dir)
				ids, tally := scanned(t, left)
				if err := left.Verify(tally); err != nil || len(ids) != want {
					t.Errorf("%d packets are there, want %d; %v", len(ids), want, err)
				}
			}
		})
	}
}

func TestFlushThatFailsIsTriedAgainAndNothingIsLost(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	applied(t, s, one(1, content.Packet{}))
	settled(t, s)
	manifest := func() string {
		b, err := os.ReadFile(filepath.Join(dir, dbName, manifestName))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before, restore := manifest(), withoutBuild(t, dir)
	applied(t, s, one(2, content.Packet{}))
	applied(t, s, one(3, content.Packet{Payload: numbered(3, 20)}))
	if err := s.settle(); err == nil || !strings.Contains(err.Error(), "cannot write a window out") {
		t.Errorf("writing it out gives %v", err)
	}
	if manifest() != before {
		t.Error("the list of tables has changed")
	}
	both, again := []content.PacketID{{Queue: 1, Priority: 1, Seq: 2}, {Queue: 1, Priority: 1, Seq: 3}}, content.Batch{}
	again.Replace(both[0], &content.Packet{Payload: numbered(2, 20)}, content.Removed{})
	applied(t, s, &again)
	if err := s.settle(); err == nil || unread(t, s, both, 20) != nil {
		t.Errorf("packets cannot be read while two windows wait, %v", err)
	}
	restore()
	if ids, tally := scanned(t, s); len(ids) != 3 || s.Verify(tally) != nil {
		t.Errorf("%v are there", ids)
	}
}

func TestFullDiskLeavesTheAnchorBehindAndTheStoreGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	applied(t, s, one(1, content.Packet{}))
	anchored := func() uint64 {
		mark, err := readAnchor(s.folder)
		if err != nil {
			t.Fatal(err)
		}
		return mark.batch
	}
	restore := replaced(t, filepath.Join(dir, anchorName), "/dev/full")
	applied(t, s, one(2, content.Packet{}))
	restore()
	if batch := anchored(); batch != 1 {
		t.Errorf("the anchor has batch %d", batch)
	}
	applied(t, s, one(3, content.Packet{}))
	if batch := anchored(); batch != 3 {
		t.Errorf("with room again the anchor has batch %d", batch)
	}
}

// withoutBuild has no table made until the function that it returns is called.
func withoutBuild(t *testing.T, dir string) (restore func()) {
	t.Helper()
	build := filepath.Join(dir, buildName)
	if err := errors.Join(os.RemoveAll(build), os.WriteFile(build, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(build), os.Mkdir(build, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTroubleIsCountedAndLoggedWhenItBeginsAndWhenItIsOver(t *testing.T) {
	var log strings.Builder
	o := Options{Window: minWindow, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	dir := t.TempDir()
	s := openTest(t, dir, o)
	applied(t, s, one(1, content.Packet{}))
	restore := withoutBuild(t, dir)
	s.commitMu.Lock()
	s.freeze()
	s.commitMu.Unlock()
	eventually(t, "a failure is tried", func() bool { return s.Space().Failures > 0 })
	if space := s.Space(); space.Failures == 1 && space.Repeats != 0 {
		t.Errorf("one failure repeats: %+v", space)
	}
	eventually(t, "a failure is not tried again", func() bool { return s.Space().Failures > 2 })
	if space := s.Space(); space.Repeats != 1 || !strings.HasPrefix(space.Repeated, "cannot write windows out: ") {
		t.Errorf("three failures in a row are %+v", space)
	}
	restore()
	eventually(t, "it still fails", func() bool { return s.fails(flushing) == nil })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(said) != 2 || !strings.Contains(said[0], "not a directory") || !strings.Contains(said[1], "succeeds again") {
		t.Errorf("the log has %q", said)
	}
}

func TestNextSegmentIsPreparedWhenOneBegins(t *testing.T) {
	s := smallStore(t, t.TempDir())
	segment := make([]byte, s.sizes.segment/2)
	for seq := range uint64(3) { // less than a window of the journal
		applied(t, s, one(seq, content.Packet{Payload: segment}))
		eventually(t, "no segment is ready", func() bool {
			_, spare := s.journal.Size()
			return spare > 0
		})
	}
	if used, _ := s.journal.Size(); used < 2*s.sizes.segment || s.tables.List().Window > 0 {
		t.Errorf("%d bytes of the journal are used, and window %d is in tables", used, s.tables.List().Window)
	}
}

func TestFileOfTheJournalThatCannotBeRemovedFailsNoFlushAndIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	applied(t, s, one(1, content.Packet{Payload: make([]byte, 2*s.sizes.segment)})) // its file is not used again
	long := logFiles(t, dir)[0]
	if err := errors.Join(os.Remove(long), os.MkdirAll(filepath.Join(long, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	applied(t, s, one(2, content.Packet{}))
	if err := s.settle(); err != nil || s.fails(releasing) == nil || s.tables.List().Floor.Batch != 2 {
		t.Errorf("the flush gives %v, the removal %v, and batch %d is in tables", err, s.fails(releasing), s.tables.List().Floor.Batch)
	}
	if err := os.Remove(filepath.Join(long, "x")); err != nil {
		t.Fatal(err)
	}
	applied(t, s, one(3, content.Packet{}))
	err := s.settle()
	if _, gone := os.Stat(long); err != nil || s.fails(releasing) != nil || !errors.Is(gone, os.ErrNotExist) {
		t.Errorf("the next flush gives %v, the removal %v, and the file: %v", err, s.fails(releasing), gone)
	}
}

func TestCloseEndsWhileNoTableCanBeMadeAndTheNextStartHasEverything(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	applied(t, s, one(1, content.Packet{}))
	restore := withoutBuild(t, dir)
	s.commitMu.Lock()
	s.freeze()
	s.commitMu.Unlock()
	eventually(t, "the flush does not fail", func() bool { return s.fails(flushing) != nil })
	applied(t, s, one(2, content.Packet{}))
	if err := s.Close(); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), "cannot write a window out") {
		t.Errorf("Close gives %v", err)
	}
	restore()
	s = smallStore(t, dir)
	if ids, tally := scanned(t, s); len(ids) != 2 || s.Verify(tally) != nil {
		t.Errorf("%v are there", ids)
	}
}

func TestJournalThatCannotBeReadKeepsItsWindowAndIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	applied(t, s, one(1, content.Packet{Payload: make([]byte, 10_000)}))
	segment := logFiles(t, dir)[0]
	whole, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"a page cannot be read": func() error {
			return errors.Join(os.Truncate(segment, 4096), os.Truncate(segment, int64(len(whole))))
		},
		"the file is cut": func() error { return os.Truncate(segment, 8192) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		err := s.settle()
		if !errors.Is(err, journal.ErrDamage) || !strings.Contains(err.Error(), "segments 1 to 1: ") {
			t.Errorf("%s: writing it out gives %v", name, err)
		}
		if err := overwrite(segment, 0, whole); err != nil {
			t.Fatal(err)
		}
	}
	if ids, tally := scanned(t, s); len(ids) != 1 || s.Verify(tally) != nil {
		t.Errorf("%v are there", ids)
	}
}

func TestALevelThatIsNotOfTheRoomSaysWhy(t *testing.T) {
	s := smallStore(t, t.TempDir())
	s.guard.needs = func() (Level, error) { return NoPush, syscall.ENOTDIR }
	s.guard.refresh()
	if space := s.Space(); space.Level != NoPush || space.Why != syscall.ENOTDIR.Error() {
		t.Errorf("the space is %+v", space)
	}
}
