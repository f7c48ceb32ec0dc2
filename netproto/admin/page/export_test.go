package page

import (
	"runtime"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Remember has the history have one sample more, in which queues have so many ready packets.
func (p *Page) Remember(queues map[string]int64) {
	h := &p.history
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.turn == 0 { // the next one by itself is ten seconds later
		h.mu.Unlock()
		runtime.Gosched()
		h.mu.Lock()
	}
	var all [words.Figures]int64
	for name, ready := range queues {
		told := [words.Figures]int64{words.Ready: ready}
		h.note(h.of(place{0, name}, 0, &told), &told, 0, 0)
		all[words.Ready] += ready
	}
	h.note(&h.all, &all, 0, 0)
	h.end(0)
}

// Sampler begins a history. Each call of what it returns takes a sample, as if ten seconds after
// the one before, and tells how many packets a second were pushed into a queue.
func Sampler(source *Source) func(queue string) float64 {
	h := history{queues: make(map[place]*past), passed: 10 * time.Second}
	return func(queue string) float64 {
		if h.take(source) != nil || h.queues[place{0, queue}] == nil {
			return -1
		}
		return whole(h.queues[place{0, queue}].samples[(h.turn-1)%historySamples][4])
	}
}
