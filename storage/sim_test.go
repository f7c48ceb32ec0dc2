package storage

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

// sim is a store on a simulated disk, beside its model. One goroutine does all, so a seed says what
// happens: which batches come, what the background does between and within them, which calls fail,
// when the process is killed or the power cut, and what is left then.
type sim struct {
	*model
	*simulated.Run
	r    *rand.Rand
	disk *simulated.Disk
	s    *Store // nil: it did not start
	o    Options

	come    map[uint64]*model // by batch: what the store may come back with
	acked   uint64            // the last batch that was answered
	durable uint64            // the last one that a power cut may not take
	least   uint64            // the earliest that the next start may show
	ordered bool              // each batch was on the device before the next began, until the last end
	begun   bool              // a start has got through
	epochs  uint64            // the highest
	issued  uint64            // numbers that the model gave
	gone    uint64            // what has expired by this second may be gone
	seen    map[string]bool   // every key that ever was
	touched map[string]uint64 // by key: the last batch since the start that was not refused and has an entry of it
	small   bool              // the disk has an end
	whole   bool              // all batches of this start are one
	keeps   uint64            // the last of them, once they may be kept
	skew    int64             // of the clock
	clocked int64             // what it said last

	fate
	slow     *rand.Rand    // says which syncs of records take long
	applying bool          // a batch
	record   string        // the file of the journal that a batch wrote last
	hangs    bool          // the sync of that takes long
	under    map[Step]bool // pieces of the background that are under way
	quiet    bool          // only pieces of the background are done within a call
	waits    int           // of the store for its background, in this operation
	kept     []*keptSnapshot
	copy     simCopy
	log      *simLog // nil: the store is alone

	f *simFigures
}

type simFigures struct {
	ops, batches, cuts, kills, faults, calls, nested, hung, starts, copies, rotten, taken int64
}

// errOver is what a log says that takes nothing more.
var errOver = errors.New("the term is over")

// within says that an error may be: the process has ended, a call has failed in this operation, or
// it is the error of one that failed since the start.
func (c *sim) within(err error) bool {
	is := func(fault error) bool { return errors.Is(err, fault) }
	return err == nil || c.dead || c.hit != "" || c.hurt && slices.ContainsFunc(append(faults(), ErrFull, errOver), is)
}

// faults are the errors of calls that fail.
func faults() []error {
	return []error{syscall.EIO, syscall.ENOSPC, syscall.ENOMEM, simulated.ErrGarbled}
}

func (c *sim) must(what string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", what, err)
	}
}

func (c *sim) at(name string) string { return filepath.Join(c.Root, "disk", name) }

func (c *sim) mount() {
	var err error
	c.disk, err = simulated.Mount(filepath.Join(c.Root, "disk"), c.r.Uint64())
	c.must("a mount", err)
	c.disk.Hook = c.hook
}

// drawFate draws how the next end comes.
func (c *sim) drawFate(within int64) {
	c.endAt, c.atSync = c.disk.Calls()+1+c.r.Int64N(within), c.r.IntN(2) == 0
	c.kill, c.cut = c.r.IntN(4) == 0, simulated.Cut(c.r.IntN(int(simulated.Cuts)))
}

// giveUp gives up a store whose process has ended.
func (c *sim) giveUp() {
	c.letGo()
	if c.s != nil {
		_ = c.s.Close()
		c.s = nil
	}
	if c.log != nil {
		c.log.owned = false
	}
}

// letGo lets go of what must be closed before the store. What it showed it shows still.
func (c *sim) letGo() {
	for _, k := range c.kept {
		k.check(c.T)
		k.Close()
	}
	c.kept = nil
	c.copy.drop()
}

// restart starts the store on what is left of it.
func (c *sim) restart() {
	if !c.dead {
		c.kill = true
		c.end("a restart")
	}
	c.giveUp()
	if c.left == "" {
		forgets := c.r.IntN(4) == 0
		c.must("a thaw", c.disk.Thaw(forgets))
		if c.least = c.durable; !c.whole && (!forgets || !c.unsync) {
			c.least = max(c.durable, c.acked)
		}
	} else {
		c.disk.Unmount()
		c.must("what is left", errors.Join(os.RemoveAll(c.at("")), os.Rename(c.left, c.at(""))))
		if c.copy.making == nil { // a name that was removed may be there again
			c.must("a folder", os.RemoveAll(c.at("copy")))
		}
		c.mount()
		c.least = c.durable
	}
	if c.left != "" || c.r.IntN(2) == 0 {
		c.room(0)
	}
	c.fate = fate{hurt: c.small, breaks: c.small}
	c.acked = c.least
	c.wholeEnds()
	if c.log == nil && c.r.IntN(6) == 0 {
		c.o.Sync = c.drawSync()
	}
	c.open()
}

func (c *sim) drawSync() SyncMode {
	return []SyncMode{SyncAlways(), SyncAlways(), SyncInterval(time.Second), SyncNever()}[c.r.IntN(4)]
}

// open starts the store, and holds what it has against what it may have.
func (c *sim) open() {
	c.checkCopy()
	if c.begun && c.r.IntN(3) == 0 {
		c.view(c.at("data"))
	}
	if c.begun && c.r.IntN(4) == 0 {
		c.rot()
	}
	if c.log == nil && len(c.touched) > 0 && c.r.IntN(3) == 0 {
		c.hole()
	}
	if c.r.IntN(6) == 0 {
		c.drawFate(60)
	}
	o := c.o
	o.Whole = c.log == nil && c.begun && c.r.IntN(6) == 0
	s, err := Open(c.at("data"), o)
	if !c.within(err) {
		c.Fatalf("it does not start: %v", err)
	}
	if err != nil {
		c.Say("no start: %v", err)
		return
	}
	c.s = s
	c.f.starts++
	batch := s.Control().Batch
	c.Say("starts at batch %d, of %d at least", batch, c.least)
	c.model = c.mayBe(batch, "it starts").clone()
	c.numbers = c.issued
	if c.log == nil {
		if c.epoch = s.Epoch(); c.epoch <= c.epochs {
			c.Fatalf("epoch %d follows %d", c.epoch, c.epochs)
		}
		c.refuse()
		_, tally := scanned(c.T, s)
		if err := s.Verify(tally); !c.within(err) || errors.Is(err, content.ErrLoss) {
			c.Fatalf("batch %d: %v", batch, err)
		}
	}
	if _, failed := s.state(); failed != nil {
		if !c.within(failed) {
			c.Fatalf("batch %d: it stopped: %v", batch, failed)
		}
		return
	}
	c.begun, c.epochs, c.acked, c.ordered = true, c.epoch, batch, c.o.Sync == SyncAlways()
	c.checkNames()
	if c.log == nil {
		c.durable, c.whole, c.keeps = batch, o.Whole, 0
		c.come = map[uint64]*model{batch: c.clone()}
		clear(c.touched) // the journal has none
		c.goBy()
	}
	c.look()
}

// mayBe returns the model of a batch with which a store may come back.
func (c *sim) mayBe(batch uint64, what string) *model {
	was := c.come[batch]
	if was == nil || batch < c.least {
		c.Fatalf("%s at batch %d, want %d or a later one of %v", what, batch, c.least, slices.Sorted(maps.Keys(c.come)))
	}
	return was
}

// goBy has another clock give the times of batches, which may have jumped.
func (c *sim) goBy() {
	if c.r.IntN(3) == 0 {
		c.skew = (c.r.Int64N(5) - 2) * []int64{1000, 3 * Jump.Milliseconds()}[c.r.IntN(2)]
	}
	c.s.GoBy(c.clock)
	if now := c.clock(); c.time-now > Jump.Milliseconds() {
		c.time = now
	}
}

func (c *sim) clock() int64 {
	c.clocked = time.Now().UnixMilli() + c.skew
	return c.clocked
}

// wait is what the store calls where it waits for its background.
func (c *sim) wait() {
	if c.waits++; c.waits > 1000 {
		c.Fatal("it waits for ever")
	}
	time.Sleep(lookAgain)
	defer func(quiet bool) { c.quiet = quiet }(c.quiet)
	c.quiet = true // the model is ahead by the batch that waits
	for _, what := range []Step{StepFlush, StepMerge, StepHousekeep, StepLook} {
		if !c.under[what] && c.step(what) {
			return
		}
	}
}

// step does a piece of the background.
func (c *sim) step(what Step) (worked bool) {
	if _, failed := c.s.state(); failed != nil {
		return false
	}
	upto, outer := c.s.Control().Batch, c.under[what]
	c.under[what] = true
	worked = c.s.Step(what)
	if delete(c.under, what); outer {
		c.Fatal("a piece of the background within itself")
	}
	if worked {
		c.Say("step %d", what)
	}
	if _, failed := c.s.state(); failed == nil && !c.dead {
		if what == StepSync && c.o.Sync.every > 0 && !c.whole {
			c.durable = max(c.durable, upto)
		}
		if !c.whole {
			c.durable = max(c.durable, c.s.tables.List().Floor.Batch)
		}
	}
	return worked
}

// room has the disk take so many bytes; 0 is any.
func (c *sim) room(bytes int64) {
	c.disk.Room(bytes)
	c.small = bytes > 0
	c.hurt, c.breaks = c.hurt || c.small, c.breaks || c.small
}

func (c *sim) tick() { time.Sleep(time.Duration(c.r.Int64N(int64(2 * time.Second)))) }

// once does one operation.
func (c *sim) once() {
	c.f.ops++
	c.hit, c.waits = "", 0
	if c.dead || c.s == nil {
		c.restart()
		return
	}
	if _, failed := c.s.state(); failed != nil {
		if !c.breaks {
			c.Fatalf("it stopped: %v", failed)
		}
		c.restart()
		return
	}
	switch n := c.r.IntN(200); {
	case n < 100:
		c.apply()
	case n < 150:
		c.step(Step(c.r.IntN(int(Steps))))
	case n < 158:
		c.look()
	case n < 163:
		c.snapshot()
	case n < 167:
		c.take()
	case n < 170:
		c.restore()
	case n < 173:
		c.tick()
	case n < 174:
		c.rush()
	case n < 175 && c.log == nil:
		c.compact()
	case n < 180:
		c.close()
	case n < 190:
		if c.endAt == 0 {
			c.drawFate(40)
		}
	case n < 196:
		if c.failAt == 0 {
			c.failAt, c.fault = c.disk.Calls()+1+c.r.Int64N(40), faults()[c.r.IntN(4)]
		}
	default:
		c.room(c.r.Int64N(2) * (c.disk.Used() + 1<<20 + c.r.Int64N(1<<20)))
	}
}

// simulate plays a seed.
func simulate(run *simulated.Run, f *simFigures) {
	c := &sim{Run: run, model: newModel(), r: rand.New(rand.NewPCG(run.Seed, 3)), slow: rand.New(rand.NewPCG(run.Seed, 5)), f: f, seen: map[string]bool{}, touched: map[string]uint64{}, under: map[Step]bool{}}
	c.o = Options{Stepped: c.wait, Window: []int64{16 << 10, 64 << 10, 256 << 10}[c.r.IntN(3)], Sync: c.drawSync()}
	if c.r.IntN(5) == 0 {
		c.log = &simLog{}
		c.o.Release = func(upto uint64) { c.durable = max(c.durable, upto) }
		c.o.Sync = SyncNever()
	}
	c.come = map[uint64]*model{0: c.clone()}
	c.must("a folder", os.MkdirAll(c.at(""), 0o700))
	c.mount()
	defer func() {
		c.disk.Freeze()
		c.giveUp()
		c.disk.Unmount()
	}()
	c.open()
	for range *simOps {
		c.once()
	}
	c.Say("the end")
}

func TestSimulation(t *testing.T) {
	var f simFigures
	begun := time.Now()
	simulated.Play(t, 60, func(run *simulated.Run) { simulate(run, &f) })
	rare := f.ops >= 15_000 && f.hung == 0 // twenty seeds may well have none
	if rare || f.ops >= 5000 && min(f.cuts, f.kills, f.faults, f.nested, f.copies, f.rotten) == 0 {
		t.Error("something never happens")
	}
	t.Logf("%+v in %v", f, time.Since(begun).Round(time.Millisecond))
}

// A seed that fails must fail again: the same calls come in the same order, with the same bytes.
func TestASeedDoesTheSameAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: one goroutine does all, so the race detector has nothing to watch")
	}
	for seed := range uint64(3) {
		var traces [2][]string
		for i := range traces {
			traces[i] = simulated.Trace(t, 1000+seed, func(run *simulated.Run) { simulate(run, &simFigures{}) })
		}
		for i, line := range traces[0] {
			if i >= len(traces[1]) || line != traces[1][i] {
				t.Fatalf("seed %d: line %d is %q, and then %q", 1000+seed, i, line, traces[1][min(i, len(traces[1])-1)])
			}
		}
		if len(traces[0]) < 1000 || len(traces[0]) != len(traces[1]) {
			t.Fatalf("seed %d says %d lines, and then %d", 1000+seed, len(traces[0]), len(traces[1]))
		}
	}
}
