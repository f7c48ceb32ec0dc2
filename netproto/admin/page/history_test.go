package page

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// told is what a history says, a row a sample.
func (h *history) told(t *testing.T, pasts ...*past) (rows [][]float64) {
	t.Helper()
	var said struct {
		Columns []string
		Samples [][]float64
	}
	if err := json.Unmarshal(h.append(nil, pasts...), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Samples) > 0 && len(said.Samples[0]) != len(said.Columns) {
		t.Fatalf("%d columns, %d values", len(said.Columns), len(said.Samples[0]))
	}
	return said.Samples
}

// sampled takes a sample each ten seconds, of queues that have so many ready
// packets, pushes, and a number.
func (h *history) sampled(queues map[string][3]int64) {
	now := int64(h.turn) * 10_000
	h.passed = 10 * time.Second
	for name, n := range queues {
		var told [words.Figures]int64
		told[words.Ready], told[words.Pushed] = n[0], n[1]
		if p := h.of(place{0, name}, uint32(n[2]), &told); p != nil {
			h.note(p, &told, now, max(0, now-n[0]))
		}
	}
	h.end(now)
}

func TestAHistoryHasTheLastHourOfAQueueAndItsRates(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	for n := range int64(1000) {
		h.sampled(map[string][3]int64{"jobs": {n % 200, 25 * n}})
	}
	rows := h.told(t, h.queues[place{0, "jobs"}])
	if len(rows) != historySamples-1 {
		t.Fatalf("%d samples", len(rows))
	}
	for i, row := range rows {
		n := float64(1000 - len(rows) + i)
		if want := math.Mod(n, 200); row[0] != n*10_000 || row[1] != want || row[5] != 2.5 || row[8] != want {
			t.Fatalf("sample %v: %v", n, row)
		}
	}
}

func TestAQueueThatWasGoneHasAPastWithAHole(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	for _, queues := range []map[string][3]int64{{"a": {7, 7}}, {}, {"a": {3, 20}}, {"a": {3, 30}}} {
		h.sampled(queues)
	}
	if got := fmt.Sprint(h.told(t, h.queues[place{0, "a"}])); got != "[[0 7 0 0 0 0 0 0 0] [10000 0 0 0 0 0 0 0 0] [20000 3 0 0 0 1.297 0 0 3] [30000 3 0 0 0 1 0 0 3]]" {
		t.Error(got)
	}
	for range historySamples {
		h.sampled(nil)
	}
	if len(h.queues) != 0 {
		t.Error("what is empty for an hour has a past")
	}
}

func TestRatesAreOfWhatWasPushedSinceTheLastSample(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	for _, q := range [][3]int64{{1, 50_000, 2}, {}, {1, 50_001, 2}, {1, 50_002, 2}, {1, 10, 3}, {1, 30, 4}, {1, 70, 1}} {
		queues := map[string][3]int64{"busy": q}
		if q[2] == 0 { // it is not found
			queues = nil
		}
		h.sampled(queues)
	}
	var rates []float64
	for _, row := range h.told(t, h.queues[place{0, "busy"}]) {
		rates = append(rates, math.Round(row[5]*100)/100)
	}
	if want := []float64{0, 0, 0.1, 0.1, 1, 3, 0}; !slices.Equal(rates, want) {
		t.Errorf("rates %v, want %v", rates, want)
	}
}

func TestTheMomentsOfSamplesRise(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	for _, at := range []int64{1000, 5000, 2000, 3000, 9000} {
		h.end(at)
	}
	if got := h.at[:5]; !slices.Equal(got, []int64{1000, 5000, 5001, 5002, 9000}) {
		t.Error(got)
	}
}

func TestAQueueThatCameLateHasNoPastBeforeThat(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	for range 3 {
		h.sampled(nil)
	}
	h.sampled(map[string][3]int64{"late": {5, 5}})
	if rows := h.told(t, h.queues[place{0, "late"}]); len(rows) != 1 || rows[0][1] != 5 {
		t.Error(rows)
	}
}

func TestAHistoryIsOfSoManyQueuesAndThoseThatAreGoneMakePlace(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	queues := make(map[string][3]int64)
	for i := range historyQueues {
		queues[fmt.Sprint("q", i)] = [3]int64{1, 1}
	}
	h.sampled(queues)
	delete(queues, "q0")
	queues["late"], queues["later"] = [3]int64{5, 5}, [3]int64{5, 5}
	h.sampled(queues) // finds no place
	h.sampled(queues) // one of the two has that of q0
	_, one := h.queues[place{0, "late"}]
	_, other := h.queues[place{0, "later"}]
	if len(h.queues) != historyQueues || one == other {
		t.Errorf("%d queues have a past, those that came last: %v and %v", len(h.queues), one, other)
	}
}

func TestOneQueueThatComesTakesThePlaceOfTheOneGoneForLongest(t *testing.T) {
	h := history{queues: make(map[place]*past)}
	queues := make(map[string][3]int64)
	for i := range historyQueues {
		queues[fmt.Sprint("q", i)] = [3]int64{1, 1}
	}
	for i := range 10 {
		h.sampled(queues)
		delete(queues, fmt.Sprint("q", i))
	}
	queues["late"] = [3]int64{5, 5}
	h.sampled(queues)
	if len(h.queues) != historyQueues-1 || h.queues[place{0, "q0"}] != nil {
		t.Errorf("one queue came, and %d of %d have a past", len(h.queues), historyQueues)
	}
}

func TestNumbersOfAHistoryAreRightToOneIn256(t *testing.T) {
	for n := 1.0; n < 1e12; n *= 1.003 {
		if got := whole(half(n)); math.Abs(got-n) > n/256 {
			t.Fatalf("%v became %v", n, got)
		}
	}
	for n := range 257 {
		if got := whole(half(float64(n))); got != float64(n) {
			t.Fatalf("%d became %v", n, got)
		}
	}
}
