package page

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// surveyPause is how long after a survey the next begins.
const surveyPause = time.Second

// survey is how all queues are, for all open pages. While there are any, a goroutine looks at the
// queues again and again. Each of the pages remembers no more than which survey it has seen: so one
// that takes nothing for a while gets the newest state then, and costs no memory.
type survey struct {
	mu    sync.RWMutex
	rows  map[place]*row
	all   []*row // of rows, in the order in which they came
	turn  uint64 // number of the last survey
	lost  uint64 // number of the last one that missed a queue
	sums  Figures
	pages map[chan struct{}]struct{} // told of each survey
	runs  bool

	found []broker.Surveyed // by the present one; only its goroutine uses it
}

type place struct {
	database uint8
	name     string
}

// row is a queue.
type row struct {
	broker.Surveyed
	changed, found uint64 // numbers of surveys
	gone           bool
}

// join has a channel told of each survey, and of the last one if it is fresh.
func (s *survey) join(source *Source) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := make(chan struct{}, 1)
	if s.runs {
		if s.turn > 0 {
			told <- struct{}{}
		}
	} else {
		s.rows, s.pages, s.runs = make(map[place]*row), make(map[chan struct{}]struct{}), true
		go s.run(source) // ends a pause after the last page has left, or the loop ended
	}
	s.pages[told] = struct{}{}
	return told
}

func (s *survey) leave(told chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, told)
}

func (s *survey) run(source *Source) {
	for s.take(source) {
		time.Sleep(surveyPause)
	}
}

// take makes a survey. It returns false, and forgets everything, if nobody looks or the loop has
// ended.
func (s *survey) take(source *Source) bool {
	var figures broker.Figures
	sums := Figures{Whole: new(Whole)}
	s.found = s.found[:0]
	err := source.Loop.Survey(false, func(tx *broker.Tx) { figures, sums.At = tx.Figures(), tx.Now() }, func(slice []broker.Surveyed) {
		s.found = append(s.found, slice...)
	})
	if err == nil {
		source.Figures(sums.Whole)
		sums.see(&figures)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || len(s.pages) == 0 {
		s.rows, s.all, s.found, s.turn, s.runs = nil, nil, nil, 0, false
		return false
	}
	s.turn++
	for i := range s.found {
		sums.add(&s.found[i])
		s.note(&s.found[i])
	}
	if len(s.rows) > sums.Queues {
		s.lost = s.turn
		s.all = slices.DeleteFunc(s.all, func(r *row) bool {
			if r.gone = r.found != s.turn; r.gone {
				delete(s.rows, place{r.Database, r.Name})
			}
			return r.gone
		})
	}
	s.sums = sums
	for told := range s.pages {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	return true
}

// note notes a queue that was found.
func (s *survey) note(q *broker.Surveyed) {
	at := place{q.Database, q.Name}
	r := s.rows[at]
	if r == nil {
		r = &row{}
		s.rows[at], s.all = r, append(s.all, r)
	}
	if r.Surveyed != *q {
		r.Surveyed, r.changed = *q, s.turn
	}
	r.found = s.turn
}
