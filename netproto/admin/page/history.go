package page

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/words"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

const (
	historyPause   = 10 * time.Second // between two samples
	historySamples = 360
	historyQueues  = 1000 // they take 6 MiB
)

// plotted are the figures of a sample, by their places: of a total it has the rate, a second.
var plotted = [...]int{words.Ready, words.Delayed, words.Claimed, words.Dead, words.Pushed, words.Popped, words.Acked}

// sample is how a queue was at a moment: what is plotted, and the milliseconds since its oldest
// ready packet was pushed. Of each number it has the upper half of 32 bits, which is right to 1 in
// 256.
type sample [len(plotted) + 1]uint16

const oldest = len(plotted)

// past is how a queue was, or all of them, by samples of a history.
type past struct {
	samples [historySamples]sample
	totals  [words.Figures]int64 // figures at the last one
	first   int                  // number of the first one
	number  uint32               // of the queue at the last one; another one may have its name now
	last    int                  // number of the last one in which it was there
}

// history keeps the last hour of the server and of the queues that came first, so that plots have a
// past when a page is opened. One goroutine takes samples.
type history struct {
	mu      sync.RWMutex
	turn    int                   // number of the next sample: the others are whole
	at      [historySamples]int64 // moments of samples, Unix milliseconds
	all     past
	passed  time.Duration // between the last sample and the next one, by a clock that never jumps
	queues  map[place]*past
	newest  [2]uint32 // highest number of a queue: at the last sample, and at the next one so far
	crowded int       // queues that were found and have no place
}

// run takes samples until the loop ends, fewer where it takes long to look at all queues.
func (h *history) run(source *Source) {
	for begun := time.Now(); h.take(source) == nil; {
		select {
		case <-source.Loop.Ended():
			return
		case <-time.After(max(historyPause, 200*time.Since(begun))):
			h.passed, begun = time.Since(begun), time.Now()
		}
	}
}

func (h *history) take(source *Source) error {
	var figures broker.Figures
	var all [words.Figures]int64
	var now, since int64
	err := source.Loop.Survey(true, func(tx *broker.Tx) { figures, now = tx.Figures(), tx.Now() }, func(slice []broker.Surveyed) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range slice {
			q := &slice[i]
			told := netproto.Figures(&q.QueueFigures)
			for f, n := range told {
				all[f] += n
			}
			if q.Since > 0 && (since == 0 || q.Since < since) {
				since = q.Since
			}
			if p := h.of(place{q.Database, q.Name}, q.Number, &told); p != nil {
				h.note(p, &told, now, q.Since)
			}
		}
	})
	if err != nil {
		return err
	}
	for f, n := range netproto.Figures(&broker.QueueFigures{Counters: figures.Totals}) {
		if words.QueueFigures[f].Kind == words.Total {
			all[f] = n // queues that are gone included
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(&h.all, &all, now, since)
	h.end(now)
	return nil
}

// of returns the past of a queue, and nil where there is no place for one. A queue made since the
// last sample counts from 0 on. Of another one that is new here, what it counted before is unknown.
func (h *history) of(at place, number uint32, told *[words.Figures]int64) *past {
	h.newest[1] = max(h.newest[1], number)
	p := h.queues[at]
	switch {
	case p != nil && p.number == number:
		return p
	case p == nil && len(h.queues) >= historyQueues:
		h.crowded++
		return nil
	case p == nil:
		p = &past{first: h.turn}
		h.queues[at] = p
	}
	p.number, p.totals = number, *told
	if number > h.newest[0] {
		p.totals = [words.Figures]int64{}
	}
	return p
}

// note notes a sample, in which the oldest ready packet was pushed at since; 0: there is none.
func (h *history) note(p *past, told *[words.Figures]int64, now, since int64) {
	s := &p.samples[h.turn%historySamples]
	*s = sample{}
	for i, f := range plotted {
		if words.QueueFigures[f].Kind == words.Gauge {
			s[i] = half(float64(told[f]))
		} else if h.turn > 0 {
			s[i] = half(float64(told[f]-p.totals[f]) / h.passed.Seconds())
		}
	}
	if since > 0 {
		s[oldest] = half(float64(max(0, now-since)))
	}
	p.totals, p.last = *told, h.turn
}

// end ends a sample: queues that were not found are gone. Those that are gone for an hour have no
// past. Nor have as many as queues that came later want places, those gone for longest first.
func (h *history) end(now int64) {
	var gone []place
	for at, p := range h.queues {
		if p.last != h.turn {
			p.samples[h.turn%historySamples] = sample{}
			gone = append(gone, at)
		}
	}
	slices.SortFunc(gone, func(a, b place) int { return h.queues[a].last - h.queues[b].last })
	for i, at := range gone {
		if i < h.crowded || h.turn-h.queues[at].last >= historySamples {
			delete(h.queues, at)
		}
	}
	if h.turn > 0 { // moments rise, also where the clock was set back
		now = max(now, h.at[(h.turn-1)%historySamples]+1)
	}
	h.at[h.turn%historySamples] = now
	h.turn++
	h.newest[0], h.crowded = h.newest[1], 0
}

// half is the upper half of a number of 32 bits, rounded.
func half(n float64) uint16 { return uint16((math.Float32bits(float32(n)) + 1<<15) >> 16) }

func whole(n uint16) float64 { return float64(math.Float32frombits(uint32(n) << 16)) }

// append appends the samples of some queues together as JSON.
func (h *history) append(dst []byte, pasts ...*past) []byte {
	dst = append(dst, `{"columns":["at"`...)
	for _, f := range plotted {
		dst = fmt.Appendf(dst, ",%q", words.QueueFigures[f].Name)
	}
	dst = append(dst, `,"oldest"],"samples":[`...)
	first := max(0, h.turn-historySamples+1) // the one before is being written over
	if len(pasts) == 1 {
		first = max(first, pasts[0].first)
	}
	for turn := first; turn < h.turn && len(pasts) > 0; turn++ {
		if turn > first {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '['), h.at[turn%historySamples], 10)
		var sums [len(sample{})]float64
		for _, p := range pasts {
			for i, n := range p.samples[turn%historySamples] {
				if i == oldest {
					sums[i] = max(sums[i], whole(n))
				} else {
					sums[i] += whole(n)
				}
			}
		}
		for _, n := range sums {
			dst = strconv.AppendFloat(append(dst, ','), n, 'g', 4, 64)
		}
		dst = append(dst, ']')
	}
	return append(dst, "]}"...)
}

// serveHistory answers how a queue was, or all that the visitor may look at.
func (p *Page) serveHistory(w http.ResponseWriter, r *http.Request, v visitor) {
	var request struct {
		Database uint8
		Queue    jsonbytes.Bytes
	}
	if !read(w, r, &request, maxBody, bodyTimeout) {
		return
	}
	may := func(name string) bool { return v.account == nil || v.account.May(access.Look, []byte(name)) }
	h := &p.history
	if !request.Queue.IsZero() && !may(string(request.Queue)) {
		refuse(w, http.StatusForbidden, "the user may not look at this queue")
		return
	}
	h.mu.RLock()
	var pasts []*past
	switch {
	case !request.Queue.IsZero():
		if one := h.queues[place{request.Database, string(request.Queue)}]; one != nil {
			pasts = append(pasts, one)
		}
	case v.account == nil || v.account.MayLookAtAll():
		pasts = append(pasts, &h.all)
	default:
		for at, one := range h.queues {
			if may(at.name) {
				pasts = append(pasts, one)
			}
		}
	}
	answer := h.append(nil, pasts...)
	h.mu.RUnlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // or the client has gone
}
