package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

// fate is what becomes of calls and of the process.
type fate struct {
	endAt  int64         // the call at which the process ends; 0: none
	kill   bool          // the process alone ends; else the power is cut
	cut    simulated.Cut // and leaves this
	failAt int64         // the call that fails; 0: none
	fault  error
	dead   bool   // the process has ended
	left   string // what a power cut left
	hurt   bool   // a call has failed since the start, or the disk has an end
	unsync bool   // and it was a sync: the kernel may have lost what was not on the device
	ended  bool   // the loop has, by a call that failed
}

// faults are the errors of calls that fail.
func faults() []error { return []error{syscall.EIO, syscall.ENOSPC, syscall.ENOMEM} }

// within says that an error may be: it is that of a call that has failed, or the process has ended.
func (w *world) within(err error) bool {
	is := func(fault error) bool { return errors.Is(err, fault) }
	return err == nil || w.dead || w.hurt && slices.ContainsFunc(append(faults(), broker.ErrDiskFull), is)
}

func (w *world) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// hook decides what becomes of a call.
func (w *world) hook(n int64, call *disk.Call) error {
	w.f.calls++
	path := strings.TrimPrefix(call.Path, w.Root)
	w.Say("%d %s %s %d", n, call.Op, path, len(call.Data))
	reads := call.Op == disk.OpRead || call.Op == disk.OpMap
	switch {
	case w.endAt > 0 && n >= w.endAt:
		w.end(fmt.Sprintf("%s %s", call.Op, path))
	case reads && w.failing > 0 && w.r.IntN(w.failing) == 0:
		return syscall.EIO
	case w.failAt > 0 && n >= w.failAt && call.Op != disk.OpSpace && !(reads && w.turning): // what a turn cannot read is damaged
		w.failAt, w.hurt, w.unsync = 0, true, w.unsync || call.Op == disk.OpSync
		w.f.faults++
		w.note("fails: %s %s: %v", call.Op, path, w.fault)
		return w.fault
	case call.Op == disk.OpSync && w.turning && w.slow.IntN(32) == 0 && w.Seed%4 == 3:
		w.f.slow++
		w.note("takes long: %s %s", call.Op, path)
		time.Sleep(time.Duration(200+w.slow.IntN(4000)) * time.Millisecond)
	}
	return nil
}

// end ends the process.
func (w *world) end(where string) {
	w.dead, w.endAt, w.failAt = true, 0, 0
	if w.kill {
		w.f.kills++
		w.note("killed at %s", where)
	} else {
		w.f.cuts++
		w.note("the power is cut at %s, kind %d", where, w.cut)
		w.left = filepath.Join(w.Root, "left")
		w.must("a cut", w.disk.Leave(w.left, w.cut, rand.New(rand.NewPCG(w.r.Uint64(), 7))))
	}
	w.disk.Freeze()
}

// drawFate draws how the next end comes, within some calls.
func (w *world) drawFate(within int64) {
	w.endAt = w.disk.Calls() + 1 + w.r.Int64N(within)
	w.kill, w.cut = w.r.IntN(4) == 0, simulated.Cut(w.r.IntN(int(simulated.Cuts)))
}

func (w *world) at(name string) string { return filepath.Join(w.Root, "disk", name) }

func (w *world) mount(r *rand.Rand) {
	var err error
	w.disk, err = simulated.Mount(filepath.Join(w.Root, "disk"), r.Uint64())
	w.must("a mount", err)
	w.disk.Hook = w.hook
}

// giveUp gives up what a process has that has ended.
func (w *world) giveUp() {
	if w.s != nil {
		_ = w.s.Close()
	}
	w.s, w.server, w.looker, w.stuck = nil, nil, nil, false
	clear(w.clients)
}

// restart ends the process, if it has not, and starts another one.
func (w *world) restart() {
	clean := false
	if !w.dead && !w.ended && w.s != nil && w.r.IntN(6) == 0 {
		clean = w.close()
	}
	if !w.dead {
		w.kill = true
		w.end("a restart")
	}
	w.giveUp()
	if w.left == "" {
		forgets := w.r.IntN(4) == 0
		w.must("a thaw", w.disk.Thaw(forgets))
		w.suspect = w.suspect || w.unsync
		if w.least = w.durable; !forgets || !w.suspect {
			w.least = max(w.durable, w.acked)
		}
		w.suspect = w.suspect && !forgets
	} else {
		w.suspect = false
		w.disk.Unmount()
		w.must("what is left", errors.Join(os.RemoveAll(w.at("")), os.Rename(w.left, w.at(""))))
		w.mount(w.r)
		w.least = w.durable
	}
	if w.least < w.acked {
		w.told = 0 // what was answered may be lost, and its numbers with it
	}
	w.disk.Room(0)
	w.acked, w.fate = w.least, fate{}
	w.drawSkew()
	if w.r.IntN(6) == 0 {
		w.options.Sync = w.drawSync()
	}
	w.offline()
	w.start(!clean)
}

// close ends the process as SIGTERM does. It says whether all was brought to disk.
func (w *world) close() (clean bool) {
	w.note("closes")
	err := w.loop.End()
	w.collect()
	if err == nil {
		err, w.s = w.coated.Close(), nil
	}
	if !w.within(err) {
		w.Fatalf("it does not close: %v", err)
	}
	if err == nil && !w.dead {
		w.durable = w.acked
	}
	return err == nil && !w.dead
}

func (w *world) drawSync() storage.SyncMode {
	return []storage.SyncMode{storage.SyncAlways(), storage.SyncAlways(), storage.SyncInterval(time.Second), storage.SyncNever()}[w.r.IntN(4)]
}

// drawSkew draws how far the clock is wrong from now on.
func (w *world) drawSkew() {
	if len(w.skews) > 0 {
		w.skew, w.skews = w.skews[0], w.skews[1:]
		w.note("the clock is wrong by %d", w.skew)
		return
	}
	if w.r.IntN(3) > 0 {
		w.skew = 0
		return
	}
	const minute, hour, year = 60_000, 3_600_000, 365 * 24 * 3_600_000
	by := []int64{2000, minute + 1000, hour, year}[w.r.IntN(4)]
	w.skew = by - 2*by*w.r.Int64N(2)
	w.note("the clock is wrong by %d", w.skew)
}

func (w *world) wall() int64 { return time.Now().UnixMilli() + w.skew }

// start starts a server, and says what it must show from now on.
func (w *world) start(crash bool) {
	if w.r.IntN(6) == 0 {
		w.drawFate(60)
	}
	s, err := storage.Open(w.at("data"), w.options)
	if !w.within(err) {
		w.Fatalf("it does not start: %v", err)
	}
	if err != nil {
		w.note("no start: %v", err)
		return
	}
	w.s, w.coated, w.f.starts = s, w.coat(s), w.f.starts+1
	seen := store{w.coated, w}
	control := seen.Control()
	was := w.come[control.Batch]
	if was == nil || control.Batch < w.least {
		w.Fatalf("it starts at batch %d, want %d or a later one of %v", control.Batch, w.least, slices.Sorted(maps.Keys(w.come)))
	}
	next := max(1, int64(control.Marks.NextSeq-content.FirstSeq))
	if next < was.Next() || next < w.told {
		w.Fatalf("the next number is %d, and the last one was %d, or told %d", next, was.Next()-1, w.told-1)
	}
	low := min(-1, int64(control.Marks.LowSeq-content.FirstSeq))
	if low > was.Low() {
		w.Fatalf("the next number at the oldest end is %d, and the last one was %d", low, was.Low()+1)
	}
	now := w.wall()
	w.note("starts at batch %d, of %d at least, at %d", control.Batch, w.least, now)
	state, err := recovery.Restore(seen, recovery.Options{Now: now})
	if !w.within(err) {
		w.Fatalf("it does not recover: %v\nThe model has\n%s", err, was.Dump())
	}
	if err != nil || w.dead {
		return
	}
	if len(state.Report.Findings) > 0 {
		w.Fatalf("it finds %q\nThe model has\n%s", state.Report.Findings, was.Dump())
	}
	w.model = was.Clone()
	for _, q := range state.Queues { // a batch that is lost may have named others so
		name := model.Key(q.Database, string(q.Name))
		w.defined[name], w.named[q.ID] = q.ID, name
	}
	w.reads(state)
	w.model.Restart(now, next, low, crash)
	w.model.Spent(control.Time)
	w.come = map[uint64]*model.Server{control.Batch: w.model.Clone()}
	w.acked, w.durable, w.onDisk = control.Batch, control.Batch, w.model.Changes()
	w.serve(seen, state)
}

// reads notes which names queues have: a batch that is gone may have renamed one.
func (w *world) reads(state *recovery.State) {
	for _, q := range state.Queues {
		name := model.Key(q.Database, string(q.Name))
		maps.DeleteFunc(w.defined, func(_ string, id uint32) bool { return id == q.ID })
		w.defined[name], w.named[q.ID] = q.ID, name
	}
}

// serve begins the loop, perhaps under another clock than the start.
func (w *world) serve(s store, state *recovery.State) {
	planned := len(w.skews) > 0
	if planned || w.r.IntN(4) == 0 {
		w.drawSkew()
	}
	w.s.GoBy(w.wall)
	w.turns, w.stood, w.runs, w.tails = 0, 0, 0, nil
	begun := w.wall() - time.Now().UnixMilli() // from which the steady clock goes on
	w.loop = netproto.NewStepped(broker.New(s, state, broker.Options{Cache: 1 << 16}), s, netproto.LoopConfig{
		Clock:  func() int64 { w.turnAt = w.wall(); return w.turnAt },
		Steady: func() int64 { w.turnSteady = begun + time.Now().UnixMilli(); return w.turnSteady },
		Tell:   w.hear,
	})
	w.server = netproto.NewServer(nil, netproto.Config{Protocol: protocol{resp.New(resp.Config{}), w}, Loop: w.loop.Loop})
	w.openDoors()
	w.looker = w.connect()
	for range 3 {
		w.connect()
	}
	if !planned && w.r.IntN(2) == 0 {
		w.look()
	}
}

// applied notes that a batch is on disk, with so many changes of the model.
func (w *world) applied(batch uint64, changes int) {
	w.acked, w.onDisk, w.suspect = batch, changes, false
	if w.options.Sync == storage.SyncAlways() {
		w.durable = batch
	}
	maps.DeleteFunc(w.come, func(b uint64, _ *model.Server) bool { return b < w.durable })
}

// drawFault draws a call that fails.
func (w *world) drawFault() {
	w.failAt = w.disk.Calls() + 1 + w.r.Int64N(60)
	w.fault = faults()[w.r.IntN(3)]
}
