package crash

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// handedOut notes that a client was handed an item.
func (r *run) handedOut(number int64, h handout) {
	if t := r.board.of(number); t != nil {
		t.handOut(h)
		return
	}
	r.report(Corrupt, "item %d of the board was never made", number)
}

// checkHandouts resolves all items.
func (r *run) checkHandouts() {
	for i := range r.board.items {
		if n := r.board.items[i].resolve(); n > 0 {
			r.report(Returned, "item %d of the board was handed out %d times more than updates made it", i+1, n)
		}
	}
}

// checkBoard compares the scores of all items after a restart with what the clients know. It
// empties the board if all is true.
func (r *run) checkBoard(all bool) error {
	link, err := r.server.dialToCheck(boardListener)
	if err != nil {
		return err
	}
	defer link.conn.Close()
	r.checkHandouts()
	scores, err := r.readScores(link)
	if err != nil {
		return err
	}
	if err := r.checkStats(link, scores); err != nil {
		return err
	}
	r.checkBoardClients(scores)
	now := r.ledger.now()
	for i := range r.board.items {
		r.board.items[i].settle(scores[i], now)
	}
	if !all {
		return nil
	}
	return r.emptyBoard(link, scores)
}

// errDoubled ends a run: a board that holds an item twice answers nothing about it.
var errDoubled = errors.New("items are on the board more than once")

// readScores asks for the score of every item. The server refuses that only if its queue has
// several packets for the item.
func (r *run) readScores(link *link) (scores []int64, err error) {
	scores = make([]int64, len(r.board.items))
	for i := range scores {
		link.addLine("SCORE " + strconv.Itoa(i+1))
	}
	if err := link.send(); err != nil {
		return nil, err
	}
	for i := range scores {
		reply, e := link.receiveLine()
		if e != nil {
			return nil, e
		}
		if bytes.HasPrefix(reply, []byte("-ERROR")) {
			r.report(Doubled, "the score of item %d is %q", i+1, reply)
			err = errDoubled
			continue
		}
		if scores[i], e = v2().number(reply); e != nil {
			return nil, fmt.Errorf("score of item %d: %w", i+1, e)
		}
	}
	return scores, err
}

// checkStats compares the server's own counts with the scores.
func (r *run) checkStats(link *link, scores []int64) error {
	items, pools := 0, map[int64]bool{}
	for _, score := range scores {
		if score != missing {
			items++
			pools[score] = true
		}
	}
	link.addLine("stats")
	if err := link.send(); err != nil {
		return err
	}
	counts := map[string]int{}
	for {
		reply, err := link.receiveLine()
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
		counts[words[1]], _ = strconv.Atoi(words[2]) // the version is no number, and is not compared
	}
	if n := counts["items"]; n > items {
		r.report(Returned, "the board counts %d items, and only %d have a score", n, items)
	} else if n < items {
		r.report(Lost, "the board counts %d items, and %d have a score", n, items)
	}
	if n := counts["pools"]; n != len(pools) {
		r.report(Corrupt, "the board counts %d pools, and there are %d different scores", n, len(pools))
	}
	return nil
}

// checkBoardClients compares the items of all clients.
func (r *run) checkBoardClients(scores []int64) {
	lost := r.lostNexts(scores)
	taken, nexts := 0, 0
	for _, b := range r.boardClients {
		v := r.checkBoardClient(b, lost)
		taken += v.taken
		nexts += v.nexts
		b.forget()
	}
	if taken > nexts {
		r.report(Lost, "%d items of the board are gone, or lost what they had, and of the requests for the next item without a reply at most %d were carried out",
			taken, nexts)
	}
}

// verdict is how the items of a client are if the server carried out a certain first part of its
// requests without a reply.
type verdict struct {
	wrong []int64 // items that nothing explains
	taken int     // items that only a request for the next one without a reply explains
	nexts int     // such requests of this client in the first part
}

// better says whether v explains more than w, or the same with more requests left for the items of
// others.
func (v verdict) better(w verdict) bool {
	if len(v.wrong) != len(w.wrong) {
		return len(v.wrong) < len(w.wrong)
	}
	return v.nexts-v.taken > w.nexts-w.taken
}

// checkBoardClient compares the items of a client. They must be as after a first part of its
// requests without a reply. It returns the best verdict on any first part.
func (r *run) checkBoardClient(b *boardClient, lost *lostNexts) verdict {
	first := r.board.first(b.number)
	counts := make([]int, r.board.share) // by item: updates carried out
	for i := range counts {
		counts[i] = r.board.items[int(first)-1+i].acked
	}
	best, nexts := r.compare(first, counts, lost), 0
	for _, op := range b.unanswered() {
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
		r.reportScore(number, lost.scores[number-1])
	}
	if n := len(best.wrong); n > 0 {
		r.report(Order, "the items of client %d are not as they were at any moment: %d requests were unanswered, and %d items are wrong",
			b.number, len(b.unanswered()), n)
	}
	return best
}

// compare returns the verdict on a client's items, from number first on, if counts says how many
// updates of each were carried out.
func (r *run) compare(first int64, counts []int, lost *lostNexts) (v verdict) {
	for i, count := range counts {
		number := first + int64(i)
		t, score := r.board.of(number), lost.scores[number-1]
		if t.allows(score, count) {
			continue
		}
		if from, ok := t.madeBy(score, count); ok && lost.mayHaveTaken(number, from) {
			v.taken++
		} else {
			v.wrong = append(v.wrong, number)
		}
	}
	return v
}

// reportScore reports what is wrong with an item.
func (r *run) reportScore(number, score int64) {
	t := r.board.of(number)
	kind := Corrupt
	low, high := t.bounds()
	switch {
	case score < low || score == missing: // alone it may be missing, but not beside the others
		kind = Lost
	case score > high:
		kind = Returned
	}
	r.report(kind, "item %d of the board has score %d, expected %d to %d: %d updates that may count, of which %d have an answer, and no request for the next item without a reply may have taken it",
		number, score, low, high, len(t.updates), t.acked)
}

// emptyBoard takes all items and checks that each comes once, by falling score, and of several with
// one score first the item that had it longest.
func (r *run) emptyBoard(link *link, scores []int64) error {
	score, since := int64(math.MaxInt64), int64(0) // of the last item; when the last of those with its score got it
	for empty := false; !empty; {
		for range drainDepth {
			link.addLine(v2().next)
		}
		asked := r.ledger.now()
		if err := link.send(); err != nil {
			return err
		}
		for range drainDepth {
			reply, err := link.receiveLine()
			if err != nil {
				return err
			}
			number, err := v2().number(reply)
			if err != nil {
				return err
			}
			if number == missing {
				empty = true
				continue
			}
			if empty {
				r.report(Order, "a request for the next item gave none, and the one after it item %d", number)
			}
			if t := r.board.of(number); t != nil && len(t.updates) > 0 {
				own, at := scores[number-1], t.updates[0]
				if own > score {
					r.report(Order, "the board gave item %d with score %d after one with %d", number, own, score)
				}
				if own == score && at.done < since {
					r.report(Order, "the board gave item %d after one that came to its score %d later", number, own)
				}
				if own != score {
					score, since = own, 0
				}
				since = max(since, at.sent)
			}
			r.handedOut(number, handout{asked, r.ledger.now()})
		}
	}
	r.checkHandouts()
	for i := range r.board.items {
		if t := &r.board.items[i]; len(t.updates) > 0 {
			r.report(Lost, "item %d of the board had score %d, and was not handed out when all items were", i+1, scores[i])
			t.settle(missing, 0)
		}
	}
	return nil
}
