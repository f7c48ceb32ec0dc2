package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"golang.org/x/sys/unix"
)

// mountImage makes a file of mib MiB, an ext4 file system in it, and mounts it.
func mountImage(t *testing.T, mib int, options string) (image, at string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: mounting a file system needs root")
	}
	dir := t.TempDir()
	image, at = filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, int64(mib)<<20), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot make a file system here: %v %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop"+options, image, at).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot mount a file system here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return image, at
}

// pusher fills a store with packets of 1,000 bytes and remembers them.
type pusher struct {
	t     *testing.T
	s     *Store
	batch content.Batch
	next  uint64
	live  map[content.PacketID]bool
}

func newPusher(t *testing.T, s *Store) *pusher {
	return &pusher{t: t, s: s, next: 1 << 63, live: map[content.PacketID]bool{}}
}

// push applies one batch of n packets; it reports false when the disk has no room for more.
func (p *pusher) push(n int) bool {
	p.t.Helper()
	if p.s.Space().Level != Normal {
		return false
	}
	p.batch.Reset()
	first := p.next
	for range n {
		p.batch.Put(content.PacketID{Queue: 1, Priority: 1, Seq: p.next}, &content.Packet{Payload: bytes.Repeat([]byte{byte(p.next)}, 1000)})
		p.next++
	}
	switch err := p.s.Apply(&p.batch); {
	case errors.Is(err, ErrFull):
		p.next = first
		return false
	case err != nil:
		p.t.Fatal(err)
	}
	for seq := first; seq < p.next; seq++ {
		p.live[content.PacketID{Queue: 1, Priority: 1, Seq: seq}] = true
	}
	return true
}

// pop removes up to n packets; it reports false when the disk has no room.
func (p *pusher) pop(n int) bool {
	p.t.Helper()
	p.batch.Reset()
	var ids []content.PacketID
	for id := range p.live {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
		p.batch.Delete(id, content.Removed{Size: 1000})
	}
	switch err := p.s.Apply(&p.batch); {
	case errors.Is(err, ErrFull):
		return false
	case err != nil:
		p.t.Fatal(err)
	}
	for _, id := range ids {
		delete(p.live, id)
	}
	return true
}

// check holds a store that was just opened against what was acknowledged.
func (p *pusher) check(s *Store) {
	p.t.Helper()
	ids, tally := scanned(p.t, s)
	if len(ids) != len(p.live) {
		p.t.Errorf("%d packets are there, %d were acknowledged", len(ids), len(p.live))
	}
	for _, id := range ids {
		if !p.live[id] {
			p.t.Fatalf("packet %v should not be there", id)
		}
	}
	if err := s.Verify(tally); err != nil {
		p.t.Error(err)
	}
}

func (p *pusher) reopen(dir string) {
	p.t.Helper()
	if err := p.s.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.s = openTest(p.t, dir, Options{})
	p.check(p.s)
}

// eventually waits for something that goes on in the background.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: %s", what)
		}
	}
}

func TestSystemSmallDiskFilledByPushesDrainsAndFillsAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a disk is filled three times by one goroutine")
	}
	t.Parallel()
	_, at := mountImage(t, 64, "")
	dir := filepath.Join(at, "data")
	p := newPusher(t, openTest(t, dir, Options{}))
	for round := range 3 {
		for p.push(64) {
		}
		t.Logf("round %d: refused at %d packets, %+v", round, len(p.live), p.s.Space())
		if kib := len(p.live); kib < 20<<10 {
			t.Errorf("only %d KiB of packets fit on 64 MiB", kib)
		}
		p.reopen(dir)
		for len(p.live) > 0 {
			if !p.pop(64) {
				t.Fatalf("a pop was refused with %d packets left: %+v", len(p.live), p.s.Space())
			}
		}
		// Nothing is left, so the room must come back without a restart.
		allowed := p.s.sizes.allowance()
		eventually(t, "the room is not there again", func() bool {
			return p.s.Space().Level == Normal && p.s.tables.List().Bytes <= allowed
		})
		p.reopen(dir)
	}
}

// A batch of one packet costs the journal a page.
func TestSystemBatchesOfOnePacketDoNotFillASmallDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("many small batches are written by one goroutine")
	}
	t.Parallel()
	_, at := mountImage(t, 64, "")
	s := openTest(t, filepath.Join(at, "data"), Options{Sync: SyncNever()})
	var b content.Batch
	for seq := range uint64(40_000) { // 160 MB of journal
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{})
		if seq > 0 {
			b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: seq - 1}, content.Removed{})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatalf("after %d batches: %v, %+v", seq, err, s.Space())
		}
		b.Reset()
		if used, spare := s.journal.Size(); used+spare > 16*s.sizes.window {
			t.Fatalf("after %d batches the journal has %d bytes and %d spare", seq, used, spare)
		}
	}
}

func TestSystemForeignFileThatFillsTheDiskLosesNothing(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	dir := filepath.Join(at, "data")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPusher(t, s)
	for range 200 {
		if !p.push(64) {
			t.Fatal("refused although there is room")
		}
	}
	reserved(t, s)
	foreign := filepath.Join(at, "foreign")
	fillDisk(t, foreign)
	eventually(t, "pushes are not refused", func() bool { return s.Space().Level != Normal })
	for range 3000 { // more than the journal has room for
		eventually(t, "pops are refused", func() bool { return p.pop(1) })
	}
	// A kill now loses nothing, and neither does a stop, whether it finds the room or not.
	left := killed(t, s)
	p.check(openTest(t, left, Options{}))
	if err := s.Close(); err != nil && !errors.Is(err, ErrFull) {
		t.Errorf("closing on a full disk gives %v", err)
	}
	// It opens where it is, or says that the disk is full.
	if s, err = Open(dir, Options{}); err == nil {
		p.check(s)
		if err := s.Close(); err != nil && !errors.Is(err, ErrFull) {
			t.Errorf("closing gives %v", err)
		}
	} else if !errors.Is(err, ErrFull) {
		t.Errorf("opening on a full disk gives %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	p.s = openTest(t, dir, Options{})
	p.check(p.s)
	eventually(t, "there is no room again", func() bool { return p.push(1) })
}

func TestSystemStoreGoesOnWhenAFullDiskHasRoomAgain(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	p := newPusher(t, openTest(t, filepath.Join(at, "data"), Options{}))
	for range 50 {
		p.push(64)
	}
	reserved(t, p.s)
	foreign := filepath.Join(at, "foreign")
	fillDisk(t, foreign)
	for range 5000 {
		if !p.pop(1) {
			break
		}
	}
	n, err := p.s.Snapshot() // which may find the room
	if err == nil {
		n.Close()
	} else if !errors.Is(err, ErrFull) {
		t.Errorf("a snapshot gives %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pushes are refused", func() bool { return p.push(64) })
	p.check(openTest(t, killed(t, p.s), Options{}))
}

// reserved waits until the journal has the room that it keeps from others.
func reserved(t *testing.T, s *Store) {
	t.Helper()
	eventually(t, "the journal has no spare files", func() bool {
		_, spare := s.journal.Size()
		return spare > int64(s.sizes.spares)*s.sizes.segment
	})
}

// fillDisk writes to a file until there is no room.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for piece := make([]byte, 256<<10); len(piece) > 0; {
		_, err := file.Write(piece)
		if err == nil {
			err = file.Sync()
		}
		if errors.Is(err, syscall.ENOSPC) {
			piece = piece[:len(piece)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoreWhoseFolderIsGoneStopsAndDoesNotWaitForRoom(t *testing.T) {
	var gone atomic.Bool
	var free atomic.Int64
	free.Store(1 << 30)
	o := Options{Window: minWindow}
	o.tune.stat = func(string) (int64, int64, error) {
		if gone.Load() {
			return 0, 0, unix.ENOENT
		}
		return free.Load(), 1 << 30, nil
	}
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); !errors.Is(err, unix.ENOENT) {
			t.Errorf("closing gives %v", err)
		}
	}()
	gone.Store(true)
	if s.guard.refresh(); s.Space().Level != Normal {
		t.Errorf("the level is %v, which lets no batch come", s.Space().Level)
	}
	for range 2 {
		if err := s.Apply(one(1, content.Packet{})); !errors.Is(err, ErrUnknown) || !errors.Is(err, unix.ENOENT) || errors.Is(err, ErrFull) {
			t.Errorf("a batch gives %v", err)
		}
		gone.Store(false) // it may be another one, mounted since
	}
}

func TestAFileSystemThatDoesNotTellForAMomentStopsNothing(t *testing.T) {
	var fails atomic.Bool
	o := Options{Window: minWindow}
	o.tune.stat = func(string) (int64, int64, error) {
		if fails.Load() {
			return 0, 0, unix.ENOMEM
		}
		return 1 << 30, 1 << 30, nil
	}
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	fails.Store(true)
	s.guard.refresh()
	if err := s.Apply(one(1, content.Packet{})); err != nil || s.Space().Free != 1<<30 {
		t.Errorf("%d bytes are free, and a batch gives %v", s.Space().Free, err)
	}
	s.guard.mu.Lock()
	s.guard.told = s.guard.told.Add(-untold)
	s.guard.mu.Unlock()
	s.guard.refresh()
	if err := s.Apply(one(2, content.Packet{})); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("after a long while a batch gives %v", err)
	}
	if err := s.Close(); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("closing gives %v", err)
	}
}

func TestAMergeThatWindowsTookRoomFromIsTriedWithWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	var full, begun, taken, step atomic.Int64
	full.Store(1 << 30)
	o := Options{Window: minWindow, Sync: SyncNever()}
	o.tune.stat = func(string) (free, _ int64, err error) {
		sizes, err := Sizes(dir)
		free = full.Load() - sizes.Total
		if begun.Load() > 0 && (sizes.Total > begun.Load()+minWindow || step.Load() > minWindow) && taken.Load() == 0 { // a step is there
			taken.Store(free - freeWindows*minWindow + 1)
		}
		return free - taken.Load(), 1 << 30, err
	}
	o.tune.step = func(comes int64) { // the journal may have given back as much meanwhile
		if begun.Load() > 0 {
			step.Store(comes)
		}
	}
	s := openTest(t, dir, o)
	var b content.Batch
	for id := range uint64(24) {
		for b.Reset(); b.Len() < 1024; {
			b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: id<<10 + uint64(b.Len())}, &content.Packet{Payload: make([]byte, 1024)})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	n, err := s.Snapshot() // all is in tables
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	sizes, err := Sizes(dir)
	if err != nil {
		t.Fatal(err)
	}
	full.Store(sizes.Total + 40<<20)
	begun.Store(sizes.Total)
	for id := range uint64(24) {
		for b.Reset(); b.Len() < 700; {
			b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: id<<10 + uint64(b.Len())}, content.Removed{Size: 1024})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if n, err = s.Snapshot(); err != nil {
		t.Fatal(err)
	}
	n.Close()
	eventually(t, "nothing is merged", func() bool {
		return taken.Load() > 0 && s.tables.List().Bytes < 16<<20
	})
	if space := s.Space(); space.Failures > 0 {
		t.Errorf("work failed in the background: %+v", space)
	}
}

// Deletions of small packets take nearly as much room as the packets, until a merge of all tables.
func TestADiskFullOfSmallPacketsDrains(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: it writes 64 MiB")
	}
	dir := t.TempDir()
	const total = 64 << 20
	o := Options{Window: minWindow, Sync: SyncNever()}
	o.tune.stat = func(string) (free, _ int64, err error) {
		sizes, err := Sizes(dir)
		return total - sizes.Total, total, err
	}
	s := openTest(t, dir, o)
	var b content.Batch
	next, payload := uint64(1), make([]byte, 60)
	for full := 0; full < 20; { // what a merge takes for a while is room again
		if s.Space().Level != Normal {
			full++
			time.Sleep(50 * time.Millisecond)
			continue
		}
		full = 0
		for b.Reset(); b.Len() < 1024; next++ {
			b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: next}, &content.Packet{Payload: payload})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	for seq := uint64(1); seq < next; {
		for b.Reset(); b.Len() < 256; seq++ {
			b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, content.Removed{Size: len(payload)})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if free := s.Space().Free; free <= 0 {
			t.Fatalf("with %d of %d packets left the disk has %d bytes: %v", next-seq, next, free, s.fails(merging))
		}
	}
}

func TestFullDiskRefusesBatchesUntilThereIsRoom(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	o := Options{Window: minWindow}
	o.tune.stat = func(string) (int64, int64, error) { return free.Load(), 1 << 30, nil }
	s := openTest(t, t.TempDir(), o)
	for _, row := range []struct {
		free  int64
		level Level
	}{
		{1 << 40, Normal}, {keepWindows*minWindow - 1, NoPush}, {keepWindows * minWindow, Normal},
	} {
		free.Store(row.free)
		s.guard.refresh()
		if err := s.Apply(one(uint64(row.free), content.Packet{})); err != nil || s.Space().Level != row.level {
			t.Errorf("with %d bytes the level is %v, and a batch gives %v", row.free, s.Space().Level, err)
		}
	}
	if ids, _ := scanned(t, s); len(ids) != 3 {
		t.Errorf("%v are there", ids)
	}
}

func TestSystemADiskThatTakesNoMoreFilesIsNotSaidToLackBytes(t *testing.T) {
	f := newJournalFolder(t, 3)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256m,nr_inodes=100"); err != nil {
		t.Skip("a small file system cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	dir := filepath.Join(disk, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, f.dir, dir)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = os.WriteFile(filepath.Join(disk, fmt.Sprint(i)), nil, 0o600)
	}
	for i := range 3 { // a start makes some files before that of a table
		_ = os.Remove(filepath.Join(disk, fmt.Sprint(i)))
	}
	s, err := Open(dir, Options{})
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "takes no more files") {
		t.Errorf("got %v", err)
	}
}

func TestAStoreWhoseLockIsRemovedWritesNothingMore(t *testing.T) {
	for name, change := range map[string]func(lock string) error{
		"removed": os.Remove,
		"replaced": func(lock string) error {
			return errors.Join(os.Rename(lock, lock+".old"), os.WriteFile(lock, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{Window: minWindow})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Apply(one(1, content.Packet{})), s.Space().Lost); err != nil {
				t.Fatal(err)
			}
			if err := change(filepath.Join(dir, lockName)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the lock is missed", func() bool { return s.Space().Lost != nil }) // though nothing is written
			if err := s.Apply(one(2, content.Packet{})); !errors.Is(err, ErrInUse) {
				t.Errorf("a batch gives %v", err)
			}
			other, err := Open(dir, Options{Window: minWindow})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if err := s.Close(); !errors.Is(err, ErrInUse) {
				t.Errorf("closing gives %v", err)
			}
			if got := other.Control().Batch; got != 1 {
				t.Errorf("the other one has %d batches, want the one from before", got)
			}
		})
	}
}
