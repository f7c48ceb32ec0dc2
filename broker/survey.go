package broker

import "github.com/holdfast-queue/holdfast/storage"

// Surveyed is a queue of a survey.
type Surveyed struct {
	Database uint8
	Name     string
	Number   uint32 // a queue that was made later has a higher one, until all were used once
	QueueFigures
	// Since is when the ready packet that was pushed first was pushed, in Unix milliseconds: up to a
	// second or a hundredth of its age before that. 0 if none is ready. It is exact of a queue whose
	// packets have at most 16 priorities, or tags and one priority. Else it is of those priorities
	// with the highest numbers. A packet that was moved counts only if none of its priority came
	// before.
	Since int64
	// Taken is when packets were last popped or claimed, or the start of the server if that is later.
	Taken int64
}

const (
	surveyPriorities = 16   // of a queue, at which Survey looks
	surveySteps      = 1024 // queues and priorities of a slice
)

// Survey appends a slice of all queues from a cursor on, 0 at first, and returns where the next one
// begins, 0 after the last. The slices are not of one moment. With emptied they also have queues
// that hold nothing any more, while those still have counters.
func (tx *Tx) Survey(cursor int, dst []Surveyed, emptied bool) (_ []Surveyed, next int) {
	m := tx.m
	for steps := 0; cursor < len(m.queues.all); cursor++ {
		if steps >= surveySteps {
			return dst, cursor
		}
		steps++
		q := m.queues.all[cursor]
		if q == nil || q.dropped || m.isFlushed(q) || !m.exists(q) && (!emptied || q.counters == Counters{}) {
			continue
		}
		since, more := m.since(q)
		steps += more
		if claimed := m.ix.Counts(q.ix).Claimed; claimed > 0 { // held looks at consumers, and at claims
			steps += min(claimed, heldClaims) + min(len(q.consumers), heldClaims)
		}
		dst = append(dst, Surveyed{Database: q.entry.Database(), Name: q.entry.Name(), Number: q.id, QueueFigures: m.figures(q, since), Since: since, Taken: max(q.taken, m.begun)})
	}
	return dst, 0
}

// Figures describe the whole server.
type Figures struct {
	Totals Counters // of all queues since the start, with those that are gone
	Cache  int      // bytes for recent payloads
	Open   int      // bytes of the open batch
	// The disk refuses pushes, or everything.
	RefusesPushes, RefusesAll bool
	Memory                    storage.Memory
}

// Figures returns the figures of the present moment.
func (tx *Tx) Figures() Figures {
	m := tx.m
	return Figures{
		Totals: m.totals, Cache: m.cache.Size(), Open: m.open.memory(),
		RefusesPushes: m.stuck || m.space.Level >= storage.NoPush, RefusesAll: m.stuck || m.space.Level >= storage.Stop,
		Memory: m.space.Memory,
	}
}
