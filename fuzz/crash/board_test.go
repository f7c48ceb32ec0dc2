package crash

import (
	"math"
	"testing"
)

// sent is an update with a reply, lost one without.
func sent(by uint32, from, to int64) update { return update{by: by, sent: from, done: to} }
func lost(by uint32, from int64) update     { return update{by: by, sent: from} }

// with notes the updates and handouts of an item that has none.
func (t *item) with(updates []update, handouts []handout) *item {
	for _, u := range updates {
		t.add(u.by, u.sent)
		if u.done != 0 {
			t.ack(u.done)
		}
	}
	for _, h := range handouts {
		t.take(h)
	}
	return t
}

func TestAScoreIsTheSumOfWhatMayHaveComeSinceTheLastHandout(t *testing.T) {
	for name, row := range map[string]struct {
		updates  []update
		handouts []handout
		count    int // updates carried out of those that are left after resolve
		allowed  []int64
		refused  []int64
	}{
		"never made":                 {nil, nil, 0, []int64{missing}, []int64{0, 1}},
		"made once":                  {[]update{sent(5, 1, 2)}, nil, 1, []int64{5}, []int64{missing, 0, 4, 6}},
		"all updates count":          {[]update{sent(5, 1, 2), sent(3, 3, 4)}, nil, 2, []int64{8}, []int64{missing, 3, 5}},
		"unanswered, carried out":    {[]update{sent(5, 1, 2), lost(3, 3)}, nil, 2, []int64{8}, []int64{missing, 3, 5}},
		"unanswered, not":            {[]update{sent(5, 1, 2), lost(3, 3)}, nil, 1, []int64{5}, []int64{missing, 3, 8}},
		"the only one, unanswered":   {[]update{lost(3, 3)}, nil, 0, []int64{missing}, []int64{3}},
		"handed out after all":       {[]update{sent(5, 1, 2)}, []handout{{3, 4}}, 0, []int64{missing}, []int64{5}},
		"made anew":                  {[]update{sent(5, 1, 2), sent(3, 5, 6)}, []handout{{3, 4}}, 1, []int64{3}, []int64{missing, 5, 8}},
		"handed out at the same":     {[]update{sent(5, 1, 2), sent(3, 4, 6)}, []handout{{3, 5}}, 1, []int64{missing, 3}, []int64{5, 8}},
		"and then once more":         {[]update{sent(5, 1, 2), sent(3, 4, 6), sent(2, 7, 8)}, []handout{{3, 5}}, 2, []int64{2, 5}, []int64{missing, 3, 10}},
		"handouts noted out of turn": {[]update{sent(5, 1, 2), sent(3, 5, 6)}, []handout{{7, 8}, {3, 4}}, 0, []int64{missing}, []int64{3, 5, 8}},
	} {
		it := new(item).with(row.updates, row.handouts)
		if n := it.resolve(); n != 0 {
			t.Errorf("%s: %d handouts are not explained", name, n)
		}
		for _, score := range row.allowed {
			if !it.allows(score, 0, it.early, row.count) {
				t.Errorf("%s: score %d is refused", name, score)
			}
		}
		for _, score := range row.refused {
			if it.allows(score, 0, it.early, row.count) {
				t.Errorf("%s: score %d is allowed", name, score)
			}
		}
	}
}

func TestAnItemIsHandedOutTwiceOnlyIfAnUpdateMayHaveMadeItAnew(t *testing.T) {
	for name, row := range map[string]struct {
		updates  []update
		handouts []handout
		twice    int
	}{
		"once for each":                 {[]update{sent(1, 1, 2), sent(1, 5, 6)}, []handout{{3, 4}, {7, 8}}, 0},
		"again, nothing between":        {[]update{sent(1, 1, 2), sent(1, 3, 4)}, []handout{{5, 6}, {7, 8}}, 1},
		"again, an unanswered between":  {[]update{sent(1, 1, 2), lost(1, 5)}, []handout{{3, 4}, {7, 8}}, 0},
		"again, one sent too late":      {[]update{sent(1, 1, 2), sent(1, 9, 10)}, []handout{{3, 4}, {7, 8}}, 1},
		"three at a time for two":       {[]update{sent(1, 1, 9), sent(1, 2, 9)}, []handout{{3, 7}, {4, 6}, {3, 8}}, 1},
		"two at a time for two":         {[]update{sent(1, 1, 9), sent(1, 2, 9)}, []handout{{3, 7}, {4, 6}}, 0},
		"never made":                    {nil, []handout{{1, 2}}, 1},
		"one that another may have had": {[]update{sent(1, 1, 2), sent(1, 3, 6)}, []handout{{4, 5}, {7, 8}}, 0},
		"noted in another order":        {[]update{sent(1, 1, 2), sent(1, 5, 6)}, []handout{{7, 8}, {3, 4}}, 0},
	} {
		if n := new(item).with(row.updates, row.handouts).resolve(); n != row.twice {
			t.Errorf("%s: %d handouts are not explained, expected %d", name, n, row.twice)
		}
	}
}

func TestAnItemIsSettledWithTheTimeOfItsLastUpdate(t *testing.T) {
	for name, row := range map[string]struct {
		updates []update
		score   int64
		want    update
	}{
		"answered":            {[]update{sent(5, 1, 2), sent(3, 3, 4)}, 8, sent(8, 3, 4)},
		"perhaps carried out": {[]update{sent(5, 1, 2), lost(3, 3)}, 8, sent(8, 1, 9)},
		"only unanswered":     {[]update{lost(3, 3)}, 3, sent(3, 3, 9)},
	} {
		it := new(item).with(row.updates, nil)
		it.settle(row.score, 9)
		if len(it.updates) != 1 || it.updates[0] != row.want || it.acked != 1 {
			t.Errorf("%s: %+v, expected %+v", name, it.updates, row.want)
		}
		it.settle(missing, 9)
		if len(it.updates) != 0 || it.acked != 0 {
			t.Errorf("%s: %+v is left of a missing item", name, it.updates)
		}
	}
}

// Of two items of one barber number 1 has updates of 1, 2 and 4, and number 2 of 100 and 200; only the
// first of each has a reply.
func TestABarbersItemsAreJudgedTogether(t *testing.T) {
	unanswered := []boardOp{{item: 1}, {item: 2}, {}, {item: 1}}
	for name, row := range map[string]struct {
		scores []int64
		lost   int // requests for the next item without a reply
		used   int
		kind   Kind // of a finding, "" for none
	}{
		"nothing of the rest":          {[]int64{1, 100}, 0, 0, ""},
		"the first of the rest":        {[]int64{3, 100}, 0, 0, ""},
		"two of the rest":              {[]int64{3, 300}, 0, 0, ""},
		"all of it":                    {[]int64{7, 300}, 0, 0, ""},
		"a later one without a former": {[]int64{1, 300}, 0, 0, Order},
		"the last without the second":  {[]int64{7, 100}, 0, 0, Order},
		"an answered update is gone":   {[]int64{missing, 100}, 0, 0, Lost},
		"gone, and called perhaps":     {[]int64{missing, 100}, 1, 1, ""},
		"called and made anew":         {[]int64{4, 300}, 1, 1, ""},
		"too much":                     {[]int64{8, 300}, 1, 0, Returned},
		"no sum":                       {[]int64{1, 150}, 1, 0, Corrupt},
	} {
		r := newRun(Options{Workers: None, Takers: None, Barbers: 1})
		b := r.barbers[0]
		for number, updates := range map[int64][]update{
			1: {sent(1, 1, 2), lost(2, 5), lost(4, 5)},
			2: {sent(100, 1, 2), lost(200, 5)},
		} {
			r.board.of(number).with(updates, nil)
		}
		b.ops, b.asked = unanswered, 5
		scores := make([]int64, len(r.board.items))
		for i := range scores {
			scores[i] = missing
		}
		copy(scores, row.scores)
		lost := lostNexts{count: row.lost, since: math.MaxInt64}
		if row.lost > 0 {
			lost.since = 5
		}
		used := r.judgeBarber(b, scores, lost)
		if used != row.used || row.kind == "" && len(r.list()) > 0 || row.kind != "" && r.of(row.kind) == 0 {
			t.Errorf("%s: %d explained by lost requests, findings %v; expected %d and %q", name, used, r.list(), row.used, row.kind)
		}
	}
}
