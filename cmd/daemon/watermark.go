package daemon

import (
	"log/slog"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

const (
	// Pushes are refused above so much of the memory, in percent. The rest is for takes, for what
	// connections hold, and for the next start, which needs a little more than what it starts.
	refuseAbove = 80
	// A claim takes some more memory than a packet that is ready. It is needed to make room, so it is
	// refused above this alone.
	refuseClaims = 90
	// What is refused is allowed again so far below.
	relief = 5
	// connsPart is up to where connections may hold requests and replies, in percent of the memory.
	connsPart = 85
	// softPart is where the collector works harder, in percent. It does not see the program itself.
	softPart = 90

	memoryPause = 100 * time.Millisecond

	// program is for the program itself and for mapped pages of tables, which the kernel takes back
	// only when it has to.
	program = 32 << 20
	// A table of pointers has two copies while it grows. It is small beside what the pointers lead
	// to: one byte for each scannedPerTable that a collection scans.
	scannedPerTable = 16
)

// watermark keeps the memory of the process below a limit. The loop asks in each turn, and what it
// gets is told each memoryPause.
type watermark struct {
	limit   int64
	phase   *atomic.Int32 // health.phase
	spare   *atomic.Int64 // health.spare
	log     *slog.Logger
	samples []metrics.Sample
	level   storage.Level
	told    bool // that a start needs more
	state   atomic.Pointer[storage.Memory]
	stop    func()
}

// watchMemory finds the limit, and watches until stop is called. It has the collector keep below
// the limit, too.
func watchMemory(given int64, h *health, log *slog.Logger) *watermark {
	limit, found := memoryLimit(given)
	w := &watermark{limit: limit, phase: &h.phase, spare: &h.spare, log: log, samples: memorySamples(), stop: func() {}}
	if limit == 0 {
		log.Info("memory has no limit that is known: pushes are never refused because of it")
		return w
	}
	log.Info("memory is limited", "bytes", limit, "found", found, "pushes_are_refused_above", limit/100*refuseAbove)
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, limit/100*softPart-program)) // a lower one of the environment stands
	done, ended := make(chan struct{}), make(chan struct{})
	w.look(memoryUsed(w.samples) - w.spare.Load())
	go func() { // ends when stop is called
		defer close(ended)
		tick := time.NewTicker(memoryPause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look(memoryUsed(w.samples) - w.spare.Load())
			case <-done:
				return
			}
		}
	}()
	w.stop = func() {
		close(done)
		<-ended
		debug.SetMemoryLimit(before)
	}
	return w
}

func (w *watermark) get() (m storage.Memory) {
	if known := w.state.Load(); known != nil {
		m = *known
	}
	return m
}

// room is how many bytes may be held more, as netproto.Buffers.Within wants it.
func (w *watermark) room() int {
	if w.limit == 0 {
		return math.MaxInt / 2 // they add to it
	}
	return int(w.limit/100*connsPart - w.get().Used)
}

// look says what so many used bytes mean.
func (w *watermark) look(used int64) {
	switch percent := used / (w.limit / 100); {
	case percent >= refuseClaims:
		w.level = storage.Stop
	case percent >= refuseClaims-relief:
		w.level = max(w.level, storage.NoPush)
	case percent >= refuseAbove:
		w.level = storage.NoPush
	case percent >= refuseAbove-relief:
		w.level = min(w.level, storage.NoPush)
	default:
		w.level = storage.Normal
	}
	w.state.Store(&storage.Memory{Used: used, Limit: w.limit, Level: w.level})
	if used > w.limit && phase(w.phase.Load()) <= recovering && !w.told {
		w.told = true
		w.log.Error("this start needs more memory than the server may have: give it more, or the kernel may kill it", "needs", used, "limit", w.limit)
	}
}

// The indices of memorySamples.
const (
	liveHeap = iota
	scannedHeap
	allMemory
	released
	heapObjects
	heapFree
	heapUnused
)

func memorySamples() []metrics.Sample {
	return []metrics.Sample{
		liveHeap: {Name: "/gc/heap/live:bytes"}, scannedHeap: {Name: "/gc/scan/heap:bytes"},
		allMemory: {Name: "/memory/classes/total:bytes"}, released: {Name: "/memory/classes/heap/released:bytes"},
		heapObjects: {Name: "/memory/classes/heap/objects:bytes"}, heapFree: {Name: "/memory/classes/heap/free:bytes"},
		heapUnused: {Name: "/memory/classes/heap/unused:bytes"},
	}
}

// memoryUsed is how many bytes the process needs for what it has now, in the worst moment: what
// lives, or came since the last collection, the garbage that TuneGC lets pile up, and what is no
// heap. It is not what is resident, of which the kernel takes pages back, and garbage may be most.
func memoryUsed(s []metrics.Sample) int64 {
	metrics.Read(s)
	of := func(i int) uint64 { return s[i].Value.Uint64() }
	live := of(liveHeap)
	scans := min(of(scannedHeap), live)
	beside := of(allMemory) - of(released) - of(heapObjects) - of(heapFree) - of(heapUnused)
	heap := max(live+live/100*uint64(percentOf(live, scans)), of(heapObjects))
	return int64(heap + scans/scannedPerTable + beside + program)
}
