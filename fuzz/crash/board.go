package crash

import (
	"cmp"
	"slices"
	"sync"
)

// update is one update of an item. Times are nanoseconds of the run.
type update struct {
	by   uint32 // what it adds to the score
	sent int64  // it happened after this
	done int64  // and before this; 0 while there is no reply
}

// handout is one reply that named an item: the item was taken between the two times.
type handout struct{ asked, got int64 }

// item is what the clients know of an item of the board. One client alone updates it, so the server
// carries out its updates in their order. Any client may be handed it.
//
// After resolve, updates are those that may count for its score. The first early of them may have
// come before the last handout; then they do not count.
type item struct {
	mu       sync.Mutex // guards what follows
	updates  []update   // the oldest first
	acked    int        // how many of them, from the first on, have a reply
	handouts []handout
	early    int
}

// add notes that an update is about to be sent.
func (t *item) add(by uint32, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updates = append(t.updates, update{by: by, sent: now})
}

// ack notes that the oldest update without a reply has one.
func (t *item) ack(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updates[t.acked].done = now
	t.acked++
}

// handOut notes that the item was handed out.
func (t *item) handOut(h handout) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handouts = append(t.handouts, h)
}

// resolve compares the handouts with the updates, and drops the handouts and every update that
// surely came before one. It returns how many handouts nothing explains. Each needs an update of
// its own before it, and one after any handout that surely came earlier.
func (t *item) resolve() (twice int) {
	slices.SortFunc(t.handouts, func(a, b handout) int { return cmp.Compare(a.got, b.got) })
	last := handout{} // the latest times of any
	for i, h := range t.handouts {
		made := t.sentBefore(h.got)
		before := t.handouts[:i]
		for len(before) > 0 && before[len(before)-1].got >= h.asked {
			before = before[:len(before)-1]
		}
		if made <= i || len(before) > 0 && made <= t.doneBefore(before[len(before)-1].asked) {
			twice++
		}
		last.asked, last.got = max(last.asked, h.asked), max(last.got, h.got)
	}
	ended := t.doneBefore(last.asked)
	t.early = t.sentBefore(last.got) - ended
	t.updates = slices.Delete(t.updates, 0, ended)
	t.acked -= ended
	t.handouts = t.handouts[:0]
	return twice
}

// sentBefore is how many of the updates may have happened before then.
func (t *item) sentBefore(then int64) int {
	n, _ := slices.BinarySearchFunc(t.updates, then, func(u update, then int64) int { return cmp.Compare(u.sent, then) })
	return n
}

// doneBefore is how many of the updates had surely happened then.
func (t *item) doneBefore(then int64) int {
	n, _ := slices.BinarySearchFunc(t.updates[:t.acked], then, func(u update, then int64) int { return cmp.Compare(u.done, then) })
	return n
}

// missing is the score of an item that is not on the board, and the answer to a request for the
// next item of an empty board (netproto/barbershop/PROTOCOL.md).
const missing = -1

// madeBy returns the place of the update that made the item, if the server carried out exactly
// count of its updates and left it with the score. It is count itself if the item is missing. ok is
// false if no update can have made it.
func (t *item) madeBy(score int64, count int) (from int, ok bool) {
	if score == missing {
		return count, true
	}
	for from, rest := count-1, score; from >= 0 && rest > 0; from-- {
		if rest -= int64(t.updates[from].by); rest == 0 {
			return from, true
		}
	}
	return 0, false
}

// allows says whether the item may have the score if the server carried out exactly count of its
// updates, and no request without a reply took it.
func (t *item) allows(score int64, count int) bool {
	from, ok := t.madeBy(score, count)
	return ok && from <= t.early
}

// leastScore returns the least that the item's score can have been from then on, if it has the
// score in the end, and the time by which it was at least that. Both are 0 if the item may not have
// been on the board.
func (t *item) leastScore(score, then int64) (least, by int64) {
	known := t.doneBefore(then)
	for count := t.acked; count <= len(t.updates); count++ {
		from, ok := t.madeBy(score, count)
		switch {
		case !ok:
		case from >= known:
			return 0, 0
		case least == 0:
			least, by = sum(t.updates[from:known]), t.updates[known-1].done
		default:
			least = min(least, sum(t.updates[from:known]))
		}
	}
	return least, by
}

// sum is what updates add to a score together.
func sum(updates []update) int64 {
	n := int64(0)
	for _, u := range updates {
		n += int64(u.by)
	}
	return n
}

// bounds returns the lowest and the highest score that the item may have if the server carried out
// at least what it answered.
func (t *item) bounds() (low, high int64) {
	for i, u := range t.updates {
		high += int64(u.by)
		if i >= t.early && i < t.acked {
			low += int64(u.by)
		}
	}
	if low == 0 {
		low = missing
	}
	return low, high
}

// settle replaces the item's updates by one with the score that was found. It happened in the time
// of the last update.
func (t *item) settle(score, now int64) {
	last := update{sent: now, done: now}
	if t.acked > 0 {
		last = t.updates[t.acked-1]
	}
	if t.acked < len(t.updates) {
		last.sent, last.done = min(last.sent, t.updates[t.acked].sent), now
	}
	t.updates, t.acked, t.early = t.updates[:0], 0, 0
	if score != missing {
		last.by = uint32(score)
		t.updates, t.acked = append(t.updates, last), 1
	}
}

// board is all items of the run. Item number n, from 1, is items[n-1]. Each client updates a share
// of its own.
type board struct {
	items []item
	share int // items of one client
}

func newBoard(clients, share int) *board {
	return &board{items: make([]item, clients*share), share: share}
}

// of returns the item with the number; nil if no client has it.
func (b *board) of(number int64) *item {
	if number < 1 || number > int64(len(b.items)) {
		return nil
	}
	return &b.items[number-1]
}

// first is the number of the first item of a client.
func (b *board) first(client int) int64 { return int64(1 + client*b.share) }
