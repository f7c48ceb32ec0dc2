package crash

import "time"

// counterName names a counter of QSTAT and its queue.
type counterName struct{ queue, name string }

// counter is what is known of a counter.
type counter struct {
	found    int64   // what the last restart showed
	sent     int64   // how much more it may show by all that was sent since
	answered []int64 // when each part of that was answered, in order
}

// counterAge is how old a counter may be after a kill: a second, and what a busy machine needs for
// the batch that brings it to disk.
const counterAge = time.Second + 500*time.Millisecond

// counts notes that a request will count so much.
func (t *tasks) counts(name counterName, n int64) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counters[name] == nil {
		t.counters[name] = &counter{}
	}
	t.counters[name].sent += n
}

// counted notes that a request which would count so much has counted some of that.
func (t *tasks) counted(name counterName, n, good, now int64) {
	t.counts(name, good-n)
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := t.counters[name]; good > 0; good-- {
		c.answered = append(c.answered, now)
	}
}

// checkCounters compares the counters of a queue with what was answered, and goes on from what was
// found. After a clean stop they are exact.
func (r *run) checkCounters(queue string, found map[string]any) {
	t := r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, c := range t.counters {
		if name.queue != queue {
			continue
		}
		least := c.found
		for _, at := range c.answered {
			if t.killed == 0 || at < t.killed-int64(counterAge) {
				least++
			}
		}
		n, _ := found[name.name].(int64)
		if most := c.found + c.sent; n < least || n > most {
			r.report(Counters, "%s of %s is %d instead of %d to %d", name.name, queue, n, least, most)
		}
		*c = counter{found: n}
	}
}
