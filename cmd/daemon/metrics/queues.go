package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Queues that have figures of their own on the page, so that it stays short.
const (
	mostLargest  = 200
	mostOldest   = 20
	mostMatching = 5000 // of those that a glob names

	matchSteps = 1 << 16 // of a glob for one name
)

// database sums what the queues of a database have.
type database struct {
	queues  int
	figures [words.Figures]int64
}

// queues adds up all queues, and chooses which are shown.
type queues struct {
	databases       [broker.Databases]database
	since           int64 // when the oldest ready packet of all was pushed; 0: there is none
	largest, oldest ranking
	matching        []broker.Surveyed
}

// ranking keeps the first of many queues.
type ranking struct {
	most  int
	less  func(a, b broker.Surveyed) int
	queue []broker.Surveyed
	// worst is the last one that was kept; nil before there were too many. One that does not come
	// before it need not be kept.
	worst *broker.Surveyed
}

func (r *ranking) add(s broker.Surveyed) {
	if r.worst != nil && r.less(s, *r.worst) >= 0 {
		return
	}
	if r.queue = append(r.queue, s); len(r.queue) >= 8*r.most {
		r.cut()
		r.worst = &r.queue[r.most-1]
	}
}

func (r *ranking) cut() {
	slices.SortStableFunc(r.queue, r.less)
	n := min(len(r.queue), r.most)
	clear(r.queue[n:])
	r.queue = r.queue[:n]
}

// size is how many packets a queue has.
func size(s *broker.Surveyed) (n int64) {
	for i, count := range netproto.Figures(&s.QueueFigures) {
		if words.QueueFigures[i].Kind == words.Gauge {
			n += count
		}
	}
	return n
}

func newQueues() *queues {
	return &queues{
		largest: ranking{most: mostLargest, less: func(a, b broker.Surveyed) int { return cmp.Compare(size(&b), size(&a)) }},
		oldest:  ranking{most: mostOldest, less: func(a, b broker.Surveyed) int { return cmp.Compare(a.Since, b.Since) }},
	}
}

// survey looks at all queues, a slice in each turn of the loop.
func (m *Metrics) survey(s *Source) (all *queues, figures broker.Figures, now int64, buffers int, err error) {
	all = newQueues()
	err = s.Loop.Survey(false, func(tx *broker.Tx) { figures, now, buffers = tx.Figures(), tx.Now(), s.Buffers.Size() }, func(slice []broker.Surveyed) {
		for _, q := range slice {
			all.add(q, m.matches(q.Name))
		}
	})
	return all, figures, now, buffers, err
}

func (m *Metrics) matches(name string) bool {
	for _, g := range m.globs {
		if steps := matchSteps; g.Match([]byte(name), &steps) {
			return true
		}
	}
	return false
}

func (q *queues) add(s broker.Surveyed, matches bool) {
	d := &q.databases[s.Database]
	d.queues++
	for i, n := range netproto.Figures(&s.QueueFigures) {
		d.figures[i] += n
	}
	if s.Since != 0 && (q.since == 0 || s.Since < q.since) {
		q.since = s.Since
	}
	switch {
	case matches && len(q.matching) < mostMatching:
		q.matching = append(q.matching, s)
		return
	case s.Since != 0:
		q.oldest.add(s)
	}
	q.largest.add(s)
}

// shown are the queues with figures of their own.
func (q *queues) shown() []broker.Surveyed {
	q.largest.cut()
	q.oldest.cut()
	shown := slices.Concat(q.matching, q.largest.queue)
	for _, s := range q.oldest.queue {
		if !slices.ContainsFunc(q.largest.queue, func(l broker.Surveyed) bool { return l.Database == s.Database && l.Name == s.Name }) {
			shown = append(shown, s)
		}
	}
	return shown
}

// maxLabel is the longest name that is shown as it is, in bytes.
const maxLabel = 128

// label is the name of a queue as a label. One that is no UTF-8, or very long, is shown in part,
// and with a hash that tells it from others.
func label(name string) string {
	if len(name) <= maxLabel && utf8.ValidString(name) {
		return name
	}
	part := strings.ToValidUTF8(name[:min(len(name), maxLabel/2)], "\uFFFD")
	return fmt.Sprintf("%s…%016x", part, xxhash.Sum64String(name))
}
