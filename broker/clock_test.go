package broker_test

import (
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestAJumpOfTheWallClockIsToldAndNothingElseIs(t *testing.T) {
	w := newWork(t)
	told := func() (ahead []int64) {
		w.barrier()
		for _, e := range w.b.told {
			if e.Kind == broker.EventClock {
				ahead = append(ahead, e.Ahead)
			}
		}
		return ahead
	}
	for _, by := range [][2]int64{
		{0, 0}, {3_600_000, 3_600_000}, // an hour passes
		{60_000, 0}, {60_001, 0}, {0, 60_001}, // the other one stands still
		{-3_600_000, 1000},
	} {
		w.now.Add(by[0])
		w.steady.Add(by[1])
		w.barrier()
	}
	w.now.Add(60_001) // a turn took so long
	w.b.Stood(60_001)
	if got, want := told(), []int64{60_001, -60_001, -3_601_000}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	for _, behind := range []int64{60_000, 60_001} {
		_ = w.b.Close()
		w.store.control.Time = w.now.Load() + behind // of the last batch
		w.restarted()
		w.barrier() // the first turn
		if got, want := told(), behind > 60_000; (len(got) > 0) != want {
			t.Errorf("a start that is %d ms behind tells %v", behind, got)
		}
	}
}
