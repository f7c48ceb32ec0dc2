package storage

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"golang.org/x/sys/unix"
)

// Level says what the room left on the disk allows.
type Level uint8

// The levels, in rising order of need.
const (
	Normal Level = iota
	NoPush       // refuse pushes: what is left is kept for pops, and for tables and merges
	Stop         // refuse everything: Apply returns ErrFull
)

// String names the level for people.
func (l Level) String() string {
	return [...]string{"normal", "no-push", "stop"}[min(l, Stop)]
}

// Space is the state of the file system below the folder, in bytes, as of the last tenth of a
// second.
type Space struct {
	Free, Total int64 // free to this process
	Stored      int64 // tables of the database
	Level       Level
	Why         string        // what makes Level so high, if that is not the room: work that fails
	Failures    uint64        // of work in the background, which is tried again, since the start
	Repeats     uint64        // how often such work has begun to fail again and again, since the start
	Repeated    string        // the last one of these: which work, and why
	Wait        time.Duration // before more data is brought, since the background is behind

	Lost   error  // the folder may be another process's now: this one must end; nil: it is not
	Memory Memory // of the process; its driver sets it
}

// Memory is what a process takes of the memory that it may have, in bytes.
type Memory struct {
	Used, Limit int64 // Limit is 0 where none is known
	Level       Level // Normal, NoPush while pushes are refused because of it, or Stop while claims are, too
}

// guard watches the room on the disk. Nothing is written through a mapping, so a full disk is an
// error of a call and never kills; the guard keeps pushes from the room that pops and tables need.
type guard struct {
	path  string // of the folder
	lost  func() bool
	sizes sizes
	keep  int64 // bytes that are kept free from pushes
	stat  func(path string) (free, total int64, err error)
	needs func() (Level, error) // what the store asks for by itself, and why; nil until it runs

	mu    sync.Mutex // guards what follows
	space Space
	told  time.Time // when the file system told last
	err   error     // it does not tell, or the lock of the folder is lost
}

// untold is how long the last figures of a file system hold that does not tell: it may be short of
// memory for a moment. What is written meanwhile fails by itself on a full disk.
const untold = 10 * time.Second

// newGuard looks at the disk.
func newGuard(f *folder, o *Options) (*guard, error) {
	g := &guard{path: f.path, lost: func() bool { return f.isLost(f.lock) }, stat: o.tune.stat}
	_, total, err := g.stat(g.path)
	if err != nil {
		return nil, err
	}
	g.sizes = sizesFor(total, o.MaxWindow, o.Window)
	if o.Stepped != nil { // many small files, as in a day of a server
		g.sizes.segment = max(g.sizes.segment/16, 64<<10)
	}
	g.keep = keepWindows * max(g.sizes.window, o.MaxPayload)
	if total < 2*g.keep && g.keep > keepWindows*g.sizes.window {
		return nil, fmt.Errorf("%w: payloads of %d bytes need a file system of %d bytes, and that of %s has %d: take shorter ones, or a larger disk",
			ErrFull, o.MaxPayload, 2*g.keep, g.path, total)
	}
	g.refresh()
	return g, nil
}

// refresh brings Space up to date.
func (g *guard) refresh() {
	free, total, err := g.stat(g.path)
	level := Normal
	if err == nil && free < g.keep {
		level = NoPush
	}
	why := ""
	if err == nil && g.needs != nil {
		if needs, cause := g.needs(); needs > level && cause != nil {
			level, why = needs, cause.Error()
		} else {
			level = max(level, needs)
		}
	}
	lost := g.lost()
	g.mu.Lock()
	defer g.mu.Unlock()
	if lost && g.space.Lost == nil {
		g.space.Lost = fmt.Errorf("%w: the lock of %s was removed, so another process may have begun to write there; leave the file as long as a server runs", ErrInUse, g.path)
	}
	if g.err = g.space.Lost; g.err != nil {
		return
	}
	if err == nil {
		g.told = time.Now()
	} else if time.Since(g.told) < untold && !errors.Is(err, unix.ENOENT) {
		return
	}
	g.err = err
	g.space.Free, g.space.Total, g.space.Level, g.space.Why = free, total, level, why
}

// LeastFree returns how many bytes of a file system of total bytes must be free, or no packet is
// taken. Longer payloads need more.
func LeastFree(total int64) int64 { return keepWindows * sizesFor(total, 0, 0).window }

// nearWindows is how much room lets look at the disk before every batch, in windows.
const nearWindows = 32

// look returns an error that wraps ErrFull when nothing may be written, and another one when the
// file system has not told for a while, or the folder was removed.
func (g *guard) look() error {
	if g.get().Free < nearWindows*g.sizes.window {
		g.refresh() // a tenth of a second is long for a small disk
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err
	}
	if g.space.Level == Stop {
		return fmt.Errorf("%w: %d bytes are free below %s, and the journal has no room left; free some", ErrFull, g.space.Free, g.path)
	}
	return nil
}

// freeWindows is how many windows' room a merge leaves free: windows and the journal need it.
const freeWindows = 2

// roomToMerge returns how many bytes a merge may take for a while: at least 4.
func (g *guard) roomToMerge() int64 {
	g.refresh()
	return max(g.get().Free-freeWindows*g.sizes.window, 4)
}

// roomLeft returns an error that wraps ErrFull where a merge has taken more than it may. grows is
// what it made, less the room that comes back for that. If it is negative, there is more room soon:
// until then the journal keeps a segment.
func (g *guard) roomLeft(grows int64) error {
	g.refresh()
	if need, free := freeWindows*g.sizes.window, g.get().Free; free < need && (grows >= 0 || free < g.sizes.segment) {
		return fmt.Errorf("%w: a merge leaves %d bytes free, and there are %d", ErrFull, need, free)
	}
	return nil
}

func (g *guard) get() Space {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.space
}

// DiskSpace returns how many bytes of the file system of a path are free, and how many it has.
func DiskSpace(path string) (free, total int64, err error) {
	if free, total, err = disk.Space(path); err != nil {
		return 0, 0, fmt.Errorf("cannot tell the free space of %s: %w", path, err)
	}
	return free, total, nil
}
