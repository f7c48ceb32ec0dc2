package main

import "sync"

// lineNumbers tells which line of a snapshot an update came from: blank lines make none.
type lineNumbers struct {
	mu     sync.Mutex
	blanks []blanks // guarded by mu; in rising order, and none that only answered updates need
}

// blanks are blank lines that stand together.
type blanks struct {
	before int64 // number of the update behind them, from 1 on
	count  int64 // how many lines are blank up to that, in all
}

// skip notes a blank line in front of the update with number next. Updates up to answered need no
// line any more, but for the last of them.
func (l *lineNumbers) skip(next, answered int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.blanks) > 1 && l.blanks[1].before <= answered {
		l.blanks = l.blanks[1:]
	}
	count := int64(0)
	if n := len(l.blanks); n > 0 {
		last := &l.blanks[n-1]
		if last.before == next {
			last.count++
			return
		}
		count = last.count
	}
	l.blanks = append(l.blanks, blanks{before: next, count: count + 1})
}

// of is the line of an update that is not answered yet, or was answered last; 0 for update 0.
func (l *lineNumbers) of(update int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.blanks) - 1; i >= 0; i-- {
		if l.blanks[i].before <= update {
			return update + l.blanks[i].count
		}
	}
	return update
}
