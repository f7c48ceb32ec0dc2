package daemon

import (
	"bytes"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

func TestPushesAndClaimsAreRefusedFromAMarkOnUntilFivePointsBelow(t *testing.T) {
	w := watermark{limit: 1000, phase: new(atomic.Int32)}
	if got, free := w.get(), int64(new(watermark).room()); got != (storage.Memory{}) || free < 1<<32 {
		t.Errorf("before a look: %+v; without a limit connections may hold %d", got, free)
	}
	w.phase.Store(int32(serving))
	for i, row := range []struct {
		used int64
		want storage.Level
	}{
		{799, storage.Normal}, {800, storage.NoPush}, {760, storage.NoPush}, {899, storage.NoPush}, {900, storage.Stop}, {2000, storage.Stop},
		{850, storage.Stop}, {849, storage.NoPush}, {890, storage.NoPush}, {900, storage.Stop}, {750, storage.NoPush},
		{749, storage.Normal}, {790, storage.Normal},
	} {
		w.look(row.used)
		if got := w.room(); got != 850-int(row.used) {
			t.Errorf("look %d: connections may hold %d more, want as much as is left below 850", i, got)
		}
		if got := w.get(); got != (storage.Memory{Used: row.used, Limit: 1000, Level: row.want}) {
			t.Errorf("look %d: %+v, want %v at %d", i, got, row.want, row.used)
		}
	}
}

func TestAStartThatNeedsMoreThanThereIsSaysSoOnce(t *testing.T) {
	var log bytes.Buffer
	w := watermark{limit: 1000, phase: new(atomic.Int32), log: slog.New(slog.NewTextHandler(&log, nil))}
	w.phase.Store(int32(serving))
	w.look(1001)
	if log.Len() > 0 {
		t.Errorf("a server that serves said %s", &log)
	}
	w.phase.Store(int32(recovering))
	w.look(1000)
	w.look(1001)
	w.look(1002)
	if n := strings.Count(log.String(), "this start needs more memory"); n != 1 || !strings.Contains(log.String(), "needs=1001 limit=1000") {
		t.Errorf("it said %d times:\n%s", n, &log)
	}
}

func TestTheCollectorLeavesRoomForTheProgram(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	w := watchMemory(128<<20, new(health), slog.New(slog.DiscardHandler))
	defer w.stop()
	if got, want := debug.SetMemoryLimit(-1), w.limit/100*softPart-program; got != want {
		t.Errorf("the collector may take %d of %d bytes, want %d", got, w.limit, want)
	}
}

func TestWhatIsCountedIsWhatLivesAndMayPileUp(t *testing.T) {
	const block = 64 << 20
	samples := memorySamples()
	runtime.GC()
	before := memoryUsed(samples)
	live := make([]byte, block)
	runtime.GC()
	with := memoryUsed(samples)
	if grown := with - before; grown < block/2 || grown > 2*block {
		t.Errorf("%d bytes more, while %d more live", grown, block)
	}
	runtime.KeepAlive(live)
	runtime.GC()
	if left := memoryUsed(samples); left > with-block/2 {
		t.Errorf("%d of %d bytes are left, though they are free", left, with)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before = memoryUsed(samples)
	live = make([]byte, block)
	if grown := memoryUsed(samples) - before; grown < block/2 {
		t.Errorf("%d bytes more before a collection has seen %d that are new", grown, block)
	}
	runtime.KeepAlive(live)
}
