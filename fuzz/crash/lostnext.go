package crash

import "math"

// lostNexts are the requests for the next item that had no reply when the server was killed. Each
// may have taken one item: the one with the highest score then, and of several the one that had it
// longest.
type lostNexts struct {
	board  *board
	scores []int64 // of all items after the restart
	since  int64   // when the first request was sent; math.MaxInt64 if there is none
}

// lostNexts gathers the requests of all clients.
func (r *run) lostNexts(scores []int64) *lostNexts {
	l := &lostNexts{board: r.board, scores: scores, since: math.MaxInt64}
	for _, b := range r.boardClients {
		for _, op := range b.unanswered() {
			if op.item == 0 {
				l.since = min(l.since, b.asked)
			}
		}
	}
	return l
}

// mayHaveTaken says whether a request may have taken the item after its first updates, at least
// one, and before the update that follows them. That is impossible if the update that follows had
// surely come before the requests, or if an item that is still there surely stood above it.
func (l *lostNexts) mayHaveTaken(number int64, updates int) bool {
	t := l.board.of(number)
	if l.since == math.MaxInt64 || updates < t.doneBefore(l.since) {
		return false
	}
	last, score := t.updates[updates-1], sum(t.updates[:updates])
	then := max(l.since, last.sent)
	for i := range l.board.items {
		if least, by := l.board.items[i].leastScore(l.scores[i], then); least > score || least == score && by <= last.sent {
			return false
		}
	}
	return true
}
