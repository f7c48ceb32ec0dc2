package crash

import "math"

// lostNexts are the requests for the next item that had no reply when the server was killed. Each may have
// taken one item after it was sent: the one of the highest score then, and of one score the one that had
// had it longest.
type lostNexts struct {
	board  *board
	scores []int64 // of all items after the restart
	since  int64   // when the first of them was sent; math.MaxInt64 if there is none
}

// lost gathers the requests of all barbers.
func (r *run) lost(scores []int64) *lostNexts {
	l := &lostNexts{board: r.board, scores: scores, since: math.MaxInt64}
	for _, b := range r.barbers {
		for _, op := range b.unanswered() {
			if op.item == 0 {
				l.since = min(l.since, b.asked)
			}
		}
	}
	return l
}

// mayHaveTaken says whether one of them may have taken the item between the first updates, so many, and
// the one after them: not if that one had surely come before, nor if an item that is still there surely
// stood above it. There is at least one such update.
func (l *lostNexts) mayHaveTaken(number int64, updates int) bool {
	t := l.board.of(number)
	if l.since == math.MaxInt64 || updates < t.doneBefore(l.since) {
		return false
	}
	last, score := t.updates[updates-1], sum(t.updates[:updates])
	then := max(l.since, last.sent)
	for i := range l.board.items {
		if least, by := l.board.items[i].stood(l.scores[i], then); least > score || least == score && by <= last.sent {
			return false
		}
	}
	return true
}
