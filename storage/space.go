package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Level says what the room left on the disk allows.
type Level uint8

// The levels, in rising order of need.
const (
	Normal Level = iota
	NoPush       // refuse pushes: what is left is kept for pops and for Badger's own work
	Stop         // refuse everything: Apply returns ErrFull
)

// String names the level for people.
func (l Level) String() string {
	return [...]string{"normal", "no-push", "stop"}[min(l, Stop)]
}

// Space is the state of the file system below the folder, in bytes, as of the last batch or second.
type Space struct {
	Free, Total int64 // free to this process, without the reserve file
	Stored      int64 // tables of the database
	Level       Level
}

// guard keeps Badger from a full disk. Badger writes through mapped files, and where the file
// system finds no block for a page the process gets SIGBUS: in a batch, in a flush of a memory
// table, in a compaction, and at the next start again. So:
//
//  1. A batch is refused while what is free, the reserve included, is less
//     than what Badger may write by itself (sizing.background): Stop.
//  2. Before that comes NoPush, with room for pops (sizing.draining).
//  3. The reserve is a file of real blocks. When somebody else fills the
//     disk it is removed, so that work under way finds room, and made again
//     when there is room for it and for everything else.
type guard struct {
	path    string // of the folder
	reserve string // the reserve file
	sizing  sizing
	stat    func(path string) (free, total int64, err error)

	looking sync.Mutex // one look at a time: no older reading follows a newer one

	mu sync.Mutex // guards what follows
	// inflight tells how many bytes compactions under way have written so
	// far; nil before Badger is open.
	inflight func() int64
	reserved int64 // size of the reserve file, 0 when there is none
	lsm      int64 // bytes of tables
	space    Space
}

// newGuard looks at the disk and at the reserve. logs is what the logs hold, to be written out when
// Badger opens: where not even that has room the reserve goes, and where that does not help opening
// is refused. Memory tables have memTable bytes at least.
func newGuard(f *folder, o *Options, memTable, logs, lsm int64) (*guard, error) {
	g := &guard{path: f.path, reserve: f.name(reserveName), stat: o.tune.stat, lsm: lsm}
	_, total, err := g.stat(g.path)
	if err != nil {
		return nil, err
	}
	g.sizing = sizingFor(total, o.MemTable)
	g.sizing.memTable = max(g.sizing.memTable, memTable)
	if err := g.checkReserve(total); err != nil {
		return nil, err
	}
	need := min(logs+logs/4+g.sizing.floor()+lsm, g.sizing.background(lsm))
	if err := g.room(need); err != nil {
		return nil, err
	}
	_ = g.look(0) // Apply will say it
	return g, nil
}

// checkReserve takes in the reserve that is there. One of another size than wanted is of another
// memory table or file system, and one that does not have the blocks of its size is a copy of the
// folder, which made a hole of it: what it counts for must be there. It goes when there is room for
// the right one, which the first refresh makes.
func (g *guard) checkReserve(total int64) error {
	var st unix.Stat_t
	err := unix.Lstat(g.reserve, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look at the reserve file: %w", &os.PathError{Op: "lstat", Path: g.reserve, Err: err})
	}
	g.reserved = min(st.Size, st.Blocks*statBlock)
	free, _, err := g.stat(g.path)
	if err != nil {
		return err
	}
	if want := g.sizing.reserve(total); g.reserved != want && (g.reserved == 0 || g.fits(free+g.reserved, want)) {
		g.drop()
	}
	return nil
}

// fits tells whether free bytes are enough for a reserve and everything else.
func (g *guard) fits(free, reserve int64) bool {
	return free > reserve+g.sizing.background(g.lsm)+g.sizing.draining()
}

// look brings Space up to date; a batch of batch bytes is about to be written. It returns an error
// that wraps ErrFull when it must not be, and another one when the file system does not tell, as
// when the folder was removed. Waiting for room would not help then, so the level lets the batch
// come that fails.
func (g *guard) look(batch int64) error {
	g.looking.Lock()
	defer g.looking.Unlock()
	free, total, err := g.stat(g.path)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.space.Level = Normal
		return err
	}
	if free < g.sizing.floor() && g.reserved > 0 {
		free += g.reserved
		g.drop()
	}
	// A record is written to the log with up to 34 bytes around it, and to a page of its own at
	// worst at the end.
	const page = 4096
	stop := g.sizing.background(g.lsm) + 2*batch + page
	g.space = Space{Free: free, Total: total, Stored: g.lsm}
	avail := free + g.reserved
	if avail < stop+g.sizing.draining() && g.inflight != nil {
		// What stop keeps for them is partly used, and not missing.
		avail += min(g.inflight(), g.sizing.compaction(g.lsm))
	}
	switch {
	case avail < stop:
		g.space.Level = Stop
		return fmt.Errorf("%w: %d bytes are free below %s and Badger may need %d; free some room", ErrFull, avail, g.path, stop)
	case avail < stop+g.sizing.draining():
		g.space.Level = NoPush
	}
	return nil
}

// rotated takes the size of the tables in when a log was made: the log before it becomes one more.
func (g *guard) rotated(lsm int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lsm = lsm + g.sizing.oneTable()
}

// refresh takes the size of the tables in and makes the reserve when there is room. Called about
// once a second.
func (g *guard) refresh(lsm int64) {
	g.mu.Lock()
	g.lsm = lsm
	g.mu.Unlock()
	_ = g.look(0) // the level says it
	g.mu.Lock()
	defer g.mu.Unlock()
	want := g.sizing.reserve(g.space.Total)
	if g.reserved == 0 && g.fits(g.space.Free, want) {
		g.make(want)
	}
}

// room gives the reserve up if it must to have need bytes free, and returns an error that wraps
// ErrFull if there are not as many.
func (g *guard) room(need int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	free, _, err := g.stat(g.path)
	if err == nil && free < need {
		g.drop()
		free, _, err = g.stat(g.path)
	}
	if err == nil && free < need {
		err = fmt.Errorf("%w: %d bytes are free below %s and %d may be written; free some room", ErrFull, free, g.path, need)
	}
	return err
}

// fillRate is how fast somebody else may fill the disk, in bytes a second. Nothing holds against
// one who is faster while Badger is at work: the process then dies of SIGBUS, as by a kill, and
// what was acknowledged stays.
const fillRate = 1 << 30

// again returns how long nothing can happen to the disk that matters.
func (g *guard) again() time.Duration {
	margin := g.get().Free - g.sizing.floor()
	return min(max(time.Duration(margin)*time.Second/fillRate, 5*time.Millisecond), time.Second)
}

// watch sets inflight.
func (g *guard) watch(inflight func() int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inflight = inflight
}

func (g *guard) get() Space {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.space
}

// tight reports whether a log should have its blocks before it is written to.
func (g *guard) tight() bool {
	s := g.get()
	return s.Free < 4*(g.sizing.background(s.Stored)+g.sizing.draining())
}

// make allocates the reserve; without support of the file system there is none.
func (g *guard) make(size int64) {
	file, err := os.OpenFile(g.reserve, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	err = allocate(file, size)
	if cerr := file.Close(); err != nil || cerr != nil {
		_ = os.Remove(g.reserve)
		return
	}
	g.reserved = size
	g.space.Free -= size
}

func (g *guard) drop() {
	if err := os.Remove(g.reserve); err == nil || errors.Is(err, fs.ErrNotExist) {
		g.reserved = 0
	}
}

func statSpace(path string) (free, total int64, err error) {
	var st unix.Statfs_t
	err = unix.Statfs(path, &st)
	for errors.Is(err, unix.EINTR) {
		err = unix.Statfs(path, &st)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot tell the free space of %s: %w", path, err)
	}
	size := int64(st.Bsize)
	return int64(st.Bavail) * size, int64(st.Blocks) * size, nil
}
