package page

import (
	"runtime"

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
		h.note(h.of(place{0, name}, &told), &told, 0, 0)
		all[words.Ready] += ready
	}
	h.note(&h.all, &all, 0, 0)
	h.end(0)
}
