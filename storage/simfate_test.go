package storage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

// fate is what becomes of calls and of the process.
type fate struct {
	endAt  int64         // the call at which the process ends, or a later sync or rename; 0: none
	atSync bool          // it is a sync or a rename
	kill   bool          // the process alone ends; else the power is cut
	cut    simulated.Cut // and leaves this
	failAt int64         // the call that fails; 0: none
	fault  error
	dead   bool   // the process has ended
	left   string // what a power cut left
	hit    string // the call that failed in this operation
	hurt   bool   // one has failed since the start, or the disk has an end
	breaks bool   // and it was one that changes something: the store may stop
	unsync bool   // it was a sync: the kernel may have lost what was not on the device
}

// hook decides what becomes of a call.
func (c *sim) hook(n int64, call *disk.Call) error {
	c.f.calls++
	path := strings.TrimPrefix(call.Path, c.Root)
	c.Say("%d %s %s %d", n, call.Op, path, len(call.Data))
	switch points := call.Op == disk.OpSync || call.Op == disk.OpRename; {
	case c.endAt > 0 && n >= c.endAt && (points || !c.atSync):
		c.end(fmt.Sprintf("%s %s", call.Op, path))
		return nil
	case c.failAt > 0 && n >= c.failAt && c.fits(call):
		c.failAt, c.hurt, c.unsync = 0, true, c.unsync || call.Op == disk.OpSync
		// Without a word of the device for long, nobody knows whether it is full.
		c.breaks = c.breaks || !slices.Contains([]disk.Op{disk.OpOpen, disk.OpStat, disk.OpList, disk.OpRead, disk.OpMap}, call.Op)
		c.hit = fmt.Sprintf("%s %s: %v", call.Op, path, c.fault)
		c.f.faults++
		c.Say("fails: %s", c.hit)
		return c.fault
	}
	c.nest(call)
	c.hang(call)
	return nil
}

// fits says that the fault may be one of a call. A device that stores another bit is found where a
// table is read back.
func (c *sim) fits(call *disk.Call) bool {
	return c.fault != simulated.ErrGarbled || call.Op == disk.OpSync && making(call.Path)
}

// making says that a path is of a table in the making.
func making(path string) bool {
	return filepath.Base(filepath.Dir(path)) == buildName && filepath.Ext(path) == ".sst"
}

// nest does other work in the middle of a piece of the background.
func (c *sim) nest(call *disk.Call) {
	if len(c.under) == 0 || c.r.IntN(8) > 0 {
		return
	}
	c.f.nested++
	// While a table is made, nobody holds what another piece of the background would wait for. Who
	// moves or removes one does.
	made := making(call.Path) && call.Op != disk.OpRename && call.Op != disk.OpRemove
	what := Step(c.r.IntN(int(StepMergeBeside + 1)))
	waits := c.under[what] || what == StepMerge && c.under[StepMergeBeside] || what == StepFlush && c.hangs
	if made && !c.quiet && len(c.under) == 1 && c.under[StepMerge] && c.r.IntN(16) == 0 {
		c.rush()
		c.step(StepMergeBeside)
		return
	}
	if made && !waits && c.r.IntN(2) == 0 {
		c.Say("step %d within %v", what, slices.Sorted(maps.Keys(c.under)))
		c.step(what)
		return
	}
	if c.quiet {
		return
	}
	c.quiet = true
	c.Say("within %v:", slices.Sorted(maps.Keys(c.under)))
	switch c.r.IntN(4) {
	case 0:
		c.look()
	case 1:
		c.take()
	default:
		if behind, _ := c.s.lookBehind(); max(behind, c.s.behind()) <= 0.8 { // else it would wait for this one
			c.apply()
		}
	}
	c.quiet = false
}

// hang has the device take long for the sync of a record, or of a spare file that a batch makes.
// Meanwhile the background works, but waits before each piece. A flush waits for the batch.
func (c *sim) hang(call *disk.Call) {
	batch := c.applying && len(c.under) == 0
	switch {
	case call.Op == disk.OpWrite: // of a segment that begins only the header is written, where others wait
		if c.record = ""; call.At > 0 && batch {
			c.record = call.Path
		}
		return
	case call.Op != disk.OpSync || !batch || call.Path != c.record || filepath.Base(filepath.Dir(call.Path)) != journalName || c.slow.IntN(32) > 0:
		return
	}
	what, before := []Step{StepPrepare, StepMerge, StepMergeBeside}[c.slow.IntN(3)], c.disk.Calls()
	c.Say("step %d within the sync of a record", what)
	defer func(quiet bool) { c.quiet, c.hangs = quiet, false }(c.quiet)
	c.quiet, c.hangs = true, true // the model is ahead by this record
	c.step(what)
	if c.disk.Calls() > before {
		c.f.hung++
	}
}

// end ends the process.
func (c *sim) end(where string) {
	c.dead, c.endAt, c.failAt = true, 0, 0
	if c.kill {
		c.f.kills++
		c.Say("killed at %s", where)
	} else {
		c.f.cuts++
		c.Say("the power is cut at %s, kind %d", where, c.cut)
		c.left = filepath.Join(c.Root, "left")
		c.must("a cut", c.disk.Leave(c.left, c.cut, rand.New(rand.NewPCG(c.r.Uint64(), 7))))
	}
	c.disk.Freeze()
}
