package storage

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, int64(mib)<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot make a file system here: %v %s", err, out)
	}
	mount(t, image, at, options)
	return image, at
}

func mount(t *testing.T, image, at, options string) {
	t.Helper()
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop"+options, image, at).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot mount a file system here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
}

// pusher fills a store with packets of 1,000 bytes and remembers them.
type pusher struct {
	t     *testing.T
	s     *Store
	batch Batch
	next  uint64
	live  map[PacketID]bool
}

func newPusher(t *testing.T, s *Store) *pusher {
	return &pusher{t: t, s: s, next: 1 << 63, live: map[PacketID]bool{}}
}

// push applies one batch of n packets; it reports false when the disk has no
// room for more.
func (p *pusher) push(n int) bool {
	p.t.Helper()
	if p.s.Space().Level != Normal {
		return false
	}
	p.batch.Reset()
	first := p.next
	for range n {
		p.batch.Put(PacketID{1, 1, p.next}, &Packet{Payload: bytes.Repeat([]byte{byte(p.next)}, 1000)})
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
		p.live[PacketID{1, 1, seq}] = true
	}
	return true
}

// pop removes up to n packets; it reports false when the disk has no room.
func (p *pusher) pop(n int) bool {
	p.t.Helper()
	p.batch.Reset()
	var ids []PacketID
	for id := range p.live {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
		p.batch.Delete(id, Removed{})
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

// check scans the store and holds it against what was acknowledged.
func (p *pusher) check() {
	p.t.Helper()
	ids, tally := scanned(p.t, p.s)
	if len(ids) != len(p.live) {
		p.t.Errorf("%d packets are there, %d were acknowledged", len(ids), len(p.live))
	}
	for _, id := range ids {
		if !p.live[id] {
			p.t.Fatalf("packet %v should not be there", id)
		}
	}
	if err := p.s.Verify(tally); err != nil {
		p.t.Error(err)
	}
}

func (p *pusher) reopen(dir string) {
	p.t.Helper()
	if err := p.s.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.s = openTest(p.t, dir, Options{})
	p.check()
}

func TestSmallDiskFilledByPushesDrainsAndFillsAgain(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	dir := filepath.Join(at, "data")
	p := newPusher(t, openTest(t, dir, Options{}))
	for round := range 3 {
		for p.push(64) {
		}
		t.Logf("round %d: refused at %d packets, %+v", round, len(p.live), p.s.Space())
		if kib := len(p.live); kib < 10<<10 {
			t.Errorf("only %d KiB of packets fit on 64 MiB", kib)
		}
		p.reopen(dir)
		for len(p.live) > 0 {
			if !p.pop(64) {
				t.Fatalf("a pop was refused with %d packets left: %+v", len(p.live), p.s.Space())
			}
		}
		// Nothing is left, so the room must come back without a restart.
		for p.s.Space().Level != Normal || p.s.Space().Stored > tidyTables*p.s.guard.sizing.memTable {
			time.Sleep(10 * time.Millisecond)
		}
		p.reopen(dir)
	}
}

func TestForeignFileThatFillsTheDiskLosesNothing(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	dir := filepath.Join(at, "data")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPusher(t, s)
	for range 100 {
		if !p.push(64) {
			t.Fatal("refused although there is room")
		}
	}
	// A disk that somebody else fills while Badger merges tables ends the process, see fillRate.
	for quiet, was := 0, int64(0); quiet < 50; quiet++ {
		if now := s.inflight(); now != was || s.db.Levels()[0].NumTables >= int(s.guard.sizing.l0) {
			quiet, was = 0, now
		}
		time.Sleep(10 * time.Millisecond)
	}

	// New work is refused before there is nothing left, and the reserve goes
	// to the work under way.
	foreign := filepath.Join(at, "foreign")
	fillDisk(t, foreign)
	for s.Space().Level != Stop {
		p.pop(1)
	}
	if p.pop(1) {
		t.Error("a batch was taken on a full disk")
	}
	p.check()

	// It cannot be closed in order, which loses nothing, nor opened again.
	if err := s.Close(); !errors.Is(err, ErrFull) {
		t.Errorf("closing on a full disk gives %v", err)
	}
	again := t.TempDir()
	copyFolder(t, dir, again)
	if _, err := Open(again, Options{tune: tuning{stat: func(string) (int64, int64, error) { return 1 << 20, 64 << 20, nil }}}); !errors.Is(err, ErrFull) {
		t.Errorf("opening on a full disk gives %v", err)
	}
	p.s = openTest(t, again, Options{})
	p.check()

	// The abandoned store of this process, for the file system to be unmounted.
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if err := s.closeBadger(); err != nil {
		t.Error(err)
	}
	s.release()
}

func TestCompactionUnderWayDoesNotCountAsAFullDisk(t *testing.T) {
	const tables, written = 20 << 20, 12 << 20
	g := &guard{sizing: sizingFor(1<<30, minMemTable), lsm: tables}
	free := g.sizing.background(tables) + g.sizing.draining()/2 - written
	g.stat = func(string) (int64, int64, error) { return free, 1 << 30, nil }
	g.watch(func() int64 { return 0 })
	if _ = g.look(0); g.get().Level != Stop {
		t.Errorf("without a compaction the level is %v", g.get().Level)
	}
	g.watch(func() int64 { return written })
	if _ = g.look(0); g.get().Level != NoPush {
		t.Errorf("with %d bytes written by a compaction the level is %v", written, g.get().Level)
	}
}

func TestTableOfAnUnfinishedCompactionGivesItsRoomBack(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	if err := s.Apply(one(1, Packet{})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	unlisted := filepath.Join(dir, dbName, "000999"+tableSuffix)
	if err := os.WriteFile(unlisted, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeUnlisted(filepath.Join(dir, dbName)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(unlisted); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if ids, _ := scanned(t, smallStore(t, dir)); len(ids) != 1 {
		t.Errorf("%v are there", ids)
	}
}

// fillDisk writes to a file until there is no room, at the speed of the disk.
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
	o := Options{MemTable: minMemTable}
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
	free.Store(0)
	s.guard.refresh(0) // gives the reserve up
	if s.guard.refresh(0); s.Space().Level != Stop {
		t.Errorf("the level of a full disk is %v", s.Space().Level)
	}
	gone.Store(true)
	if s.guard.refresh(0); s.Space().Level != Normal {
		t.Errorf("the level is %v, which lets no batch come", s.Space().Level)
	}
	for range 2 {
		if err := s.Apply(one(1, Packet{})); !errors.Is(err, ErrUnknown) || !errors.Is(err, unix.ENOENT) || errors.Is(err, ErrFull) {
			t.Errorf("a batch gives %v", err)
		}
		gone.Store(false) // it may be another one, mounted since
	}
}
