package crash

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// handed notes that a client was handed an item.
func (r *run) handed(number int64, h handout) {
	if t := r.board.of(number); t != nil {
		t.take(h)
		return
	}
	r.add(Corrupt, "item %d of the board was never made", number)
}

// judgeHandouts resolves all items.
func (r *run) judgeHandouts() {
	for i := range r.board.items {
		if n := r.board.items[i].resolve(); n > 0 {
			r.add(Returned, "item %d of the board was handed out %d times more than updates made it", i+1, n)
		}
	}
}

// judgeBoard holds the scores of all items after a restart against what the barbers know, and empties
// the board if all is true.
func (r *run) judgeBoard(all bool) (drained int, err error) {
	line, err := r.dialBoard()
	if err != nil {
		return 0, err
	}
	defer line.conn.Close()
	if err := line.conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		return 0, err
	}
	r.judgeHandouts()
	scores, err := r.readScores(line)
	if err != nil {
		return 0, err
	}
	if err := r.judgeStats(line, scores); err != nil {
		return 0, err
	}
	r.judgeBarbers(scores)
	now := r.ledger.now()
	for i := range r.board.items {
		r.board.items[i].settle(scores[i], now)
	}
	if !all {
		return 0, nil
	}
	return r.emptyBoard(line, scores)
}

// errDoubled ends a run: a board that has an item twice answers nothing about it.
var errDoubled = errors.New("items are on the board more than once")

// readScores asks for the score of every item. A refusal means that the board cannot tell: nobody else
// pushes to its queue, so the item must be there twice.
func (r *run) readScores(line *lineLink) (scores []int64, err error) {
	scores = make([]int64, len(r.board.items))
	for i := range scores {
		line.add("SCORE " + strconv.Itoa(i+1))
	}
	if err := line.send(); err != nil {
		return nil, err
	}
	for i := range scores {
		reply, e := line.receive()
		if e != nil {
			return nil, e
		}
		if bytes.HasPrefix(reply, []byte("-ERROR")) {
			r.add(Doubled, "the score of item %d is %q", i+1, reply)
			err = errDoubled
			continue
		}
		if scores[i], e = parseNumber(reply, true); e != nil {
			return nil, fmt.Errorf("score of item %d: %w", i+1, e)
		}
	}
	return scores, err
}

// judgeStats compares the server's own counts with the scores.
func (r *run) judgeStats(line *lineLink, scores []int64) error {
	pools := map[int64]int{}
	for _, score := range scores {
		if score != missing {
			pools[score]++
		}
	}
	items := 0
	for _, n := range pools {
		items += n
	}
	line.add("stats")
	if err := line.send(); err != nil {
		return err
	}
	counts := map[string]int{}
	for {
		reply, err := line.receive()
		if err != nil {
			return err
		}
		if string(reply) == "END" {
			break
		}
		words := strings.Fields(string(reply))
		if len(words) != 3 || words[0] != "STAT" {
			return fmt.Errorf("a line of stats is %q", reply)
		}
		counts[words[1]], _ = strconv.Atoi(words[2]) // the version is no number, and not looked at
	}
	if n := counts["items"]; n > items {
		r.add(Returned, "the board counts %d items, and only %d have a score", n, items)
	} else if n < items {
		r.add(Lost, "the board counts %d items, and %d have a score", n, items)
	}
	if n := counts["pools"]; n != len(pools) {
		r.add(Corrupt, "the board counts %d pools, and there are %d different scores", n, len(pools))
	}
	return nil
}

// judgeBarbers compares the items of all barbers.
func (r *run) judgeBarbers(scores []int64) {
	lost := r.lost(scores)
	var all verdict
	for _, b := range r.barbers {
		v := r.judgeBarber(b, lost)
		all.taken += v.taken
		all.nexts += v.nexts
		b.ops, b.done = b.ops[:0], 0
	}
	if all.taken > all.nexts {
		r.add(Lost, "%d items of the board are gone, or lost what they had, and of the requests for the next item without a reply at most %d were carried out",
			all.taken, all.nexts)
	}
}

// verdict is how the items of a barber are if the server carried out some beginning of its requests that
// had no reply.
type verdict struct {
	wrong []int64 // items that nothing explains
	taken int     // items that only a request for the next one without a reply explains
	nexts int     // such requests of this barber in the beginning
}

// better says that v explains more than w, or the same with more requests left for other barbers' items.
func (v verdict) better(w verdict) bool {
	if len(v.wrong) != len(w.wrong) {
		return len(v.wrong) < len(w.wrong)
	}
	return v.nexts-v.taken > w.nexts-w.taken
}

// judgeBarber compares the items of a barber: they must be as after some beginning of its requests
// that had no reply. It returns the best verdict on any.
func (r *run) judgeBarber(b *barber, lost *lostNexts) verdict {
	first := r.board.first(b.number)
	counts := make([]int, r.board.share) // by item: updates carried out
	for i := range counts {
		counts[i] = r.board.items[int(first)-1+i].acked
	}
	best, nexts := r.compare(first, counts, lost), 0
	unanswered := b.unanswered()
	for _, op := range unanswered {
		if op.item == 0 {
			nexts++
		} else {
			counts[op.item-first]++
		}
		v := r.compare(first, counts, lost)
		v.nexts = nexts
		if v.better(best) {
			best = v
		}
	}
	for _, number := range best.wrong {
		r.wrongScore(number, lost.scores[number-1])
	}
	if n := len(best.wrong); n > 0 {
		r.add(Order, "the items of barber %d are not as they were at any moment: %d requests were unanswered, and %d items are wrong",
			b.number, len(unanswered), n)
	}
	return best
}

// compare returns the verdict on the items from the first on, of each of which so many updates were
// carried out.
func (r *run) compare(first int64, counts []int, lost *lostNexts) (v verdict) {
	for i, count := range counts {
		number := first + int64(i)
		t, score := r.board.of(number), lost.scores[number-1]
		if t.allows(score, count) {
			continue
		}
		if from, ok := t.began(score, count); ok && lost.mayHaveTaken(number, from) {
			v.taken++
		} else {
			v.wrong = append(v.wrong, number)
		}
	}
	return v
}

// wrongScore names what is wrong with an item.
func (r *run) wrongScore(number, score int64) {
	t := r.board.of(number)
	kind := Corrupt
	low, high := t.bounds()
	switch {
	case score < low || score == missing: // alone it may be missing, but not beside the others
		kind = Lost
	case score > high:
		kind = Returned
	}
	r.add(kind, "item %d of the board has score %d, expected %d to %d: %d updates that may count, of which %d have an answer, and no request for the next item without a reply may have taken it",
		number, score, low, high, len(t.updates), t.acked)
}

// emptyBoard takes all items and checks that each comes once, the highest score first, and of one score
// the item that has had it longest.
func (r *run) emptyBoard(line *lineLink, scores []int64) (drained int, err error) {
	score, since := int64(math.MaxInt64), int64(0) // of the last item; when the youngest of its pool got there
	for empty := false; !empty; {
		for range drainDepth {
			line.addNext(true)
		}
		asked := r.ledger.now()
		if err := line.send(); err != nil {
			return drained, err
		}
		for range drainDepth {
			reply, err := line.receive()
			if err != nil {
				return drained, err
			}
			number, err := parseNumber(reply, true)
			if err != nil {
				return drained, err
			}
			if number == missing {
				empty = true
				continue
			}
			if empty {
				r.add(Order, "a request for the next item gave none, and the one after it item %d", number)
			}
			drained++
			if t := r.board.of(number); t != nil && len(t.updates) > 0 {
				own, at := scores[number-1], t.updates[0]
				if own > score {
					r.add(Order, "the board gave item %d with score %d after one with %d", number, own, score)
				}
				if own == score && at.done < since {
					r.add(Order, "the board gave item %d after one that came to its score %d later", number, own)
				}
				if own != score {
					score, since = own, 0
				}
				since = max(since, at.sent)
			}
			r.handed(number, handout{asked, r.ledger.now()})
		}
	}
	r.judgeHandouts()
	for i := range r.board.items {
		if t := &r.board.items[i]; len(t.updates) > 0 {
			r.add(Lost, "item %d of the board had score %d, and was not handed out when all items were", i+1, scores[i])
			t.settle(missing, 0)
		}
	}
	return drained, nil
}
