package storage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk"
)

var simOps = flag.Int("sim.ops", 300, "how many operations a seed of the simulation has")

// clone copies a model; what its maps hold is never changed.
func (m *model) clone() *model {
	c := *m
	c.packets, c.states, c.items, c.queues = maps.Clone(m.packets), maps.Clone(m.states), maps.Clone(m.items), maps.Clone(m.queues)
	c.counters, c.uniques, c.shares = maps.Clone(m.counters), maps.Clone(m.uniques), maps.Clone(m.shares)
	return &c
}

// draw draws a batch.
func (c *sim) draw() *drawer {
	d := &drawer{model: c.model, put: map[content.PacketID]int{}, sizes: []int{0, 10, 10, 1024, 1025, 9000}}
	if c.r.IntN(40) == 0 {
		d.sizes = []int{200_000}
	}
	d.choose = func(_ string, from, to int) int { return from + c.r.IntN(to-from+1) }
	d.expiries = []int64{0, 0, time.Now().UnixMilli() + c.r.Int64N(20_000), 4_000_000_000_000}
	d.draw()
	checkTotals(c.T, &d.b)
	c.issued = c.numbers
	return d
}

// apply applies a batch, or takes one where the store follows.
func (c *sim) apply() {
	if _, failed := c.s.state(); c.dead || failed != nil {
		return
	}
	if c.log != nil && !c.log.owned {
		c.follow()
		return
	}
	before := c.clone()
	d := c.draw()
	if d.b.Len() == 0 {
		return
	}
	next := c.batches
	c.come[next] = c.clone()
	var err error
	for tries := 0; ; tries++ {
		c.clocked = 0
		c.applying = true
		err = c.s.Apply(&d.b)
		c.applying = false
		c.time = max(before.time, c.clocked)
		c.come[next].time = c.time
		if !errors.Is(err, ErrFull) || c.dead {
			break
		}
		if tries == 5 || c.quiet {
			if !c.hurt {
				c.Fatalf("batch %d: %v", next, err)
			}
			c.Say("batch %d: %v", next, err)
			delete(c.come, next) // nothing of it may be there
			c.model = before
			c.numbers = c.issued
			return
		}
		c.quiet = true // the model is ahead by this batch
		c.step(Step(c.r.IntN(int(Steps))))
		c.quiet = false
		c.tick()
	}
	body, _ := d.b.Body(nil, nil) // it was not refused: the journal may have it
	c.must("a batch", content.EachEntry(body, uint32(d.b.Len()), func(e content.Entry) { c.touched[string(e.Key)] = next }))
	if c.log != nil && uint64(len(c.log.contents)) < next {
		delete(c.come, next) // it was not decided
	}
	if err != nil {
		c.Say("batch %d: %v", next, err)
		if _, failed := c.s.state(); !c.dead && (failed == nil || !c.breaks) {
			c.Fatalf("batch %d: %v", next, err)
		}
		return // it may be there or not
	}
	c.f.batches++
	c.Say("batch %d", next)
	c.acked = next
	if c.log == nil && c.o.Sync == SyncAlways() && !c.whole {
		c.durable = next
		maps.DeleteFunc(c.come, func(batch uint64, _ *model) bool { return batch < next })
	}
}

// rush has more windows become tables than a merge waits for.
func (c *sim) rush() {
	defer func(quiet bool) { c.quiet = quiet }(c.quiet)
	c.quiet = len(c.under) > 0 // the model is ahead within a batch
	c.Say("a rush")
	for range mergeGroups + 2 {
		if behind, _ := c.s.lookBehind(); c.dead || len(c.under) > 0 && max(behind, c.s.behind()) > 0.8 {
			return
		}
		c.apply()
		time.Sleep(restEvery + time.Second)
		c.step(StepHousekeep)
		c.step(StepFlush)
	}
}

// simLog is a log of several machines, and its last owner.
type simLog struct {
	contents [][]byte // of batch 1 and on
	owned    bool     // by the store
}

// follow takes some batches of the log. Who has all may own it.
func (c *sim) follow() {
	for n := 1 + c.r.IntN(4); n > 0 && (len(c.under) == 0 || c.s.behind() <= 0.8); n-- { // else it would wait for this one
		next := c.s.Control().Batch + 1
		if next > uint64(len(c.log.contents)) {
			c.own()
			return
		}
		err := c.s.Take(next, c.log.contents[next-1])
		if !c.within(err) {
			c.Fatalf("batch %d of the log: %v", next, err)
		}
		if err != nil {
			c.Say("batch %d of the log: %v", next, err)
			return
		}
		c.f.taken++
		c.Say("takes batch %d", next)
		c.acked, c.model = next, c.come[next].clone()
		c.numbers = c.issued
	}
}

func (c *sim) own() {
	if c.quiet {
		return // it waits for tables
	}
	term := func(batch uint64, pieces [][]byte) error {
		switch c.r.IntN(80) {
		case 0:
			c.hit, c.hurt, c.breaks = "the term", true, true
			return errOver
		case 1: // it is decided, and the answer is lost
			c.hit, c.hurt, c.breaks = "the term", true, true
			c.log.contents = append(c.log.contents, bytes.Join(pieces, nil))
			return errOver
		}
		c.log.contents = append(c.log.contents, bytes.Join(pieces, nil))
		return nil
	}
	err := c.s.Own(term, c.clock)
	if !c.within(err) {
		c.Fatalf("it does not own: %v", err)
	}
	if c.log.owned = err == nil; err == nil {
		c.epoch = c.stored + 1
		c.Say("owns in epoch %d", c.epoch)
	}
}

// look reads every key that ever was.
func (c *sim) look() {
	if _, failed := c.s.state(); c.dead || failed != nil {
		return
	}
	state := c.s.readState()
	defer c.s.endRead(state)
	c.read(state)
	if !c.quiet && len(c.under) == 0 && c.r.IntN(2) == 0 { // what was written meanwhile is read anew
		c.apply()
		c.read(state)
	}
}

// read is look by a state that may have read before.
func (c *sim) read(state *readState) {
	if _, failed := c.s.state(); c.dead || failed != nil {
		return
	}
	want := c.raw()
	for key := range want {
		c.seen[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(c.seen)) {
		e, there := want[key]
		if !there && key[:2] == content.PacketPrefix || e.expires > 0 && e.expires <= c.gone {
			continue // nobody asks for it
		}
		value, ok, err := state.get([]byte(key), false)
		if !c.within(err) {
			c.Fatalf("a read: %v", err)
		}
		if c.dead {
			return
		}
		if err == nil && (ok != there || string(value) != e.value) {
			c.Fatalf("batch %d: %s: there is %v, %.20q, want %v, %.20q", c.batches, content.DescribeKey([]byte(key)), ok, value, there, e.value)
		}
	}
	has := c.s.Control()
	has.Hides = 0 // an estimate
	if has != c.control() {
		c.Fatalf("control record %+v, want %+v", has, c.control())
	}
}

// snapshot keeps what the store shows now, and holds it against what it showed before.
func (c *sim) snapshot() {
	want, as := c.raw(), c.come[c.batches].control() // with the time that was written, whatever clock gives the next one
	n, err := c.s.Snapshot()
	if !c.within(err) {
		c.Fatal(err)
	}
	if err != nil {
		return
	}
	c.kept = append(c.kept, &keptSnapshot{n, want, as, c.gone})
	for _, k := range c.kept {
		k.check(c.T)
	}
	if len(c.kept) > 2 {
		c.kept[0].Close()
		c.kept = c.kept[1:]
	}
}

// compact merges all, without what has expired.
func (c *sim) compact() {
	at := time.Now()
	err := c.s.Compact(c.Context(), at.UnixMilli(), nil)
	c.gone = max(c.gone, uint64(at.Unix()))
	if !c.within(err) {
		c.Fatalf("it does not compact: %v", err)
	}
}

// close closes the store, and starts it again.
func (c *sim) close() {
	c.letGo()
	if c.whole && c.r.IntN(2) == 0 {
		c.keep()
	}
	err := c.s.Close()
	c.s = nil
	if !c.within(err) {
		c.Fatalf("it does not close: %v", err)
	}
	c.Say("closed: %v", err)
	if err == nil && !c.dead && !c.whole {
		c.durable = c.acked
	}
	if c.log != nil {
		c.log.owned = false
	}
	if !c.dead && c.r.IntN(2) == 0 { // all is there behind a close
		c.drawFate(1)
		c.end("a close")
	}
	c.hit = ""
	c.restart() // it has at least what is durable
}

// view looks at a folder that nobody has open, and holds it against what may be there.
func (c *sim) view(dir string) {
	v, err := OpenView(dir, ViewOptions{})
	if !c.within(err) {
		c.Fatalf("nobody can look: %v", err)
	}
	if err != nil {
		return
	}
	defer v.Close()
	was := c.mayBe(v.Control().Batch, "a look is")
	(&keptSnapshot{v.Snapshot, was.raw(), was.control(), c.gone}).check(c.T)
	if err := v.Close(); !c.within(err) {
		c.Fatal(err)
	}
}

// rot changes a bit of a copy of the folder. A start refuses that, or it has all that it may have.
func (c *sim) rot() {
	c.f.rotten++
	dir := filepath.Join(c.Root, "rotten")
	c.must("a copy", copied(c.at("data"), dir))
	defer func() { c.must("a folder", os.RemoveAll(dir)) }()
	var names []string
	c.must("a walk", filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	}))
	name := names[c.r.IntN(len(names))]
	b, err := os.ReadFile(name)
	c.must("a file", err)
	if len(b) == 0 {
		return
	}
	at := c.r.IntN(len(b))
	for tries := 0; b[at] == 0 && tries < 20; tries++ { // most of the journal is zeros
		at = c.r.IntN(len(b))
	}
	b[at] ^= 1 << c.r.IntN(8)
	c.must("a file", os.WriteFile(name, b, 0o600))
	name = strings.TrimPrefix(name, dir)
	o := c.o
	if o.Release != nil {
		o.Release = func(uint64) {}
	}
	s, err := Open(dir, o)
	if err != nil {
		c.Say("byte %d of %s: %v", at, name, err)
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrLoss) && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNotFolder) {
			c.Fatalf("byte %d of %s is another one: %v", at, name, err)
		}
		return
	}
	defer s.Close()
	// The newest record has none behind it, and the anchor may be older than it.
	batch := s.Control().Batch
	was := c.come[batch]
	if file, _, _ := strings.Cut(name[1:], "/"); file != anchorName && (file != journalName || c.ordered && batch+1 < c.least) {
		c.mayBe(batch, fmt.Sprintf("with another byte %d of %s it starts", at, name))
	}
	n, err := s.Snapshot()
	c.must("a snapshot", err)
	defer n.Close()
	if was != nil {
		(&keptSnapshot{n, was.raw(), was.control(), c.gone}).check(c.T)
	}
}

// simCopy is files of the store that are held, and a folder that was made of some.
type simCopy struct {
	held   *Files
	of     *model // what the files have
	whole  *model // what the folder must have; nil: it need not be there
	making *model // what it may have
}

func (k *simCopy) drop() {
	if k.held != nil {
		k.held.Close()
	}
	k.held = nil
}

// take holds the files of now.
func (c *sim) take() {
	if _, failed := c.s.state(); c.copy.held != nil || c.dead || c.whole || failed != nil {
		return
	}
	f, err := c.s.Files()
	if !c.within(err) {
		c.Fatalf("no files: %v", err)
	}
	if err == nil {
		c.copy.held, c.copy.of = f, c.come[c.batches]
		c.Say("holds the files of batch %d", c.batches)
	}
}

// restore makes a folder of the files that are held.
func (c *sim) restore() {
	k := &c.copy
	if k.held == nil || k.making != nil {
		return
	}
	defer k.drop()
	k.making = k.of
	c.f.copies++
	bytes := int64(0)
	for _, f := range k.held.List {
		bytes += f.Size
	}
	r, err := Restore(c.at("copy"), bytes)
	if err == nil {
		for _, f := range k.held.List {
			if err == nil {
				err = r.Add(f.Name, f.Content)
			}
		}
		if err == nil {
			err = r.Keep()
		} else {
			r.Discard()
		}
	}
	if !c.within(err) {
		c.Fatalf("no copy: %v", err)
	}
	c.Say("a copy of batch %d: %v", k.of.batches, err)
	if err == nil && !c.dead {
		k.whole = k.of
	}
	if c.r.IntN(2) == 0 {
		c.checkCopy()
	}
}

// checkCopy looks at the folder that was made, and removes it.
func (c *sim) checkCopy() {
	k := &c.copy
	if k.making == nil || c.dead {
		return
	}
	v, err := OpenView(c.at("copy"), ViewOptions{})
	if k.whole != nil && !c.within(err) {
		c.Fatalf("the copy is not whole: %v", err)
	}
	if err == nil {
		defer v.Close()
		(&keptSnapshot{v.Snapshot, k.making.raw(), k.making.control(), c.gone}).check(c.T)
		_ = v.Close()
	}
	for errors.Join(disk.RemoveAll(c.at("copy")), syncName(c.at(""))) != nil && !c.dead { // else a cut may bring it back
	}
	if !c.dead {
		k.making, k.whole = nil, nil
	}
}
