package crash

import "testing"

// sent is an update with a reply, lost is one without.
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
		t.handOut(h)
	}
	return t
}

func TestAScoreIsTheSumOfWhatMayHaveComeSinceTheLastHandout(t *testing.T) {
	for name, row := range map[string]struct {
		updates  []update
		handouts []handout
		count    int // of the updates that resolve leaves, how many were carried out
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
			if !it.allows(score, row.count) {
				t.Errorf("%s: score %d is refused", name, score)
			}
		}
		for _, score := range row.refused {
			if it.allows(score, row.count) {
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

// checked is what checkBoardClients finds on a board of these items of the first client, with these
// scores after the restart and these requests without a reply, sent at 5. All other items are
// missing.
func checked(items [][]update, scores []int64, unanswered []boardOp) *run {
	r := newRun(Options{NoPinpriq: true, BoardClients: 1})
	for i, updates := range items {
		r.board.items[i].with(updates, nil)
	}
	r.boardClients[0].ops, r.boardClients[0].asked = unanswered, 5
	all := make([]int64, len(r.board.items))
	for i := range all {
		all[i] = missing
	}
	copy(all, scores)
	r.checkBoardClients(all)
	return r
}

// Of two items of one client number 1 has updates of 1, 2 and 4, and number 2 of 100 and 200. Only
// the first of each has a reply.
func TestTheItemsOfAClientAreCheckedTogether(t *testing.T) {
	items := [][]update{{sent(1, 1, 2), lost(2, 5), lost(4, 5)}, {sent(100, 1, 2), lost(200, 5)}}
	updates := []boardOp{{item: 1}, {item: 2}, {item: 1}}
	withNext := []boardOp{{item: 1}, {item: 2}, {}, {item: 1}}
	nextFirst := []boardOp{{}, {item: 1}, {item: 2}, {item: 1}}
	for name, row := range map[string]struct {
		unanswered []boardOp
		scores     []int64
		kind       Kind // of a finding, "" for none
	}{
		"nothing of the rest":          {updates, []int64{1, 100}, ""},
		"the first of the rest":        {updates, []int64{3, 100}, ""},
		"two of the rest":              {updates, []int64{3, 300}, ""},
		"all of it":                    {updates, []int64{7, 300}, ""},
		"a later one without a former": {updates, []int64{1, 300}, Order},
		"the last without the second":  {updates, []int64{7, 100}, Order},
		"an answered update is gone":   {updates, []int64{1, missing}, Lost},
		"gone, and called perhaps":     {withNext, []int64{3, missing}, ""},
		"gone, and called before more": {withNext, []int64{7, missing}, ""},
		"gone, and not called yet":     {withNext, []int64{1, missing}, Lost},
		"called and made anew":         {nextFirst, []int64{3, 200}, ""},
		"made anew, and not called":    {updates, []int64{3, 200}, Order},
		"two are gone, and one called": {withNext, []int64{missing, missing}, Lost},
		"too much":                     {withNext, []int64{8, 300}, Returned},
		"no sum":                       {withNext, []int64{1, 150}, Corrupt},
	} {
		r := checked(items, row.scores, row.unanswered)
		if row.kind == "" && len(r.list()) > 0 || row.kind != "" && r.count(row.kind) == 0 {
			t.Errorf("%s: findings %v; expected %q", name, r.list(), row.kind)
		}
	}
}

func TestAnItemWithoutAnAnswerIsLostIfLaterOnesAreThere(t *testing.T) {
	items := [][]update{{lost(1, 5)}, {lost(2, 5)}, {lost(3, 5)}}
	r := checked(items, []int64{missing, 2, 3}, []boardOp{{item: 1}, {item: 2}, {item: 3}})
	if r.count(Lost) != 1 || r.count(Order) != 1 {
		t.Errorf("findings %v; expected that item 1 is lost", r.list())
	}
}

// Item 1 is gone or was made anew, and a request for the next item, sent at 5, had no reply.
func TestOnlyTheHeadOfTheBoardMayHaveBeenTakenWithoutAReply(t *testing.T) {
	for name, row := range map[string]struct {
		first  []update // of item 1
		other  []update // of item 2
		scores []int64
		taken  bool
	}{
		"the only item":                  {[]update{sent(10, 1, 2)}, nil, []int64{missing}, true},
		"the higher one":                 {[]update{sent(10, 1, 2)}, []update{sent(9, 1, 2)}, []int64{missing, 9}, true},
		"the lower one":                  {[]update{sent(10, 1, 2)}, []update{sent(11, 1, 2)}, []int64{missing, 11}, false},
		"the lower one, made anew":       {[]update{sent(10, 1, 2), sent(3, 6, 7)}, []update{sent(11, 1, 2)}, []int64{3, 11}, false},
		"the higher one, made anew":      {[]update{sent(10, 1, 2), sent(3, 6, 7)}, []update{sent(9, 1, 2)}, []int64{3, 9}, true},
		"made anew before the request":   {[]update{sent(10, 1, 2), sent(3, 3, 4)}, nil, []int64{3}, false},
		"higher by two updates":          {[]update{sent(6, 1, 2), sent(6, 3, 4)}, []update{sent(9, 1, 2)}, []int64{missing, 9}, true},
		"equal, and there next":          {[]update{sent(10, 2, 3)}, []update{sent(10, 1, 2)}, []int64{missing, 10}, false},
		"equal, and there before":        {[]update{sent(10, 1, 2)}, []update{sent(10, 3, 4)}, []int64{missing, 10}, true},
		"equal, and perhaps before":      {[]update{sent(10, 1, 3)}, []update{sent(10, 1, 2)}, []int64{missing, 10}, true},
		"equal, and there later":         {[]update{sent(10, 3, 4)}, []update{sent(10, 1, 2)}, []int64{missing, 10}, false},
		"the other rose perhaps later":   {[]update{sent(10, 1, 2)}, []update{sent(9, 1, 2), sent(9, 4, 6)}, []int64{missing, 18}, true},
		"the other came perhaps later":   {[]update{sent(10, 1, 2)}, []update{sent(11, 4, 6)}, []int64{missing, 11}, true},
		"the other rose before":          {[]update{sent(10, 1, 2)}, []update{sent(9, 1, 2), sent(9, 3, 4)}, []int64{missing, 18}, false},
		"the other rose before the last": {[]update{sent(1, 1, 2), sent(9, 8, 9)}, []update{sent(11, 6, 7)}, []int64{missing, 11}, false},
		"the other was taken as well":    {[]update{sent(10, 1, 2)}, []update{sent(90, 1, 2), sent(9, 6, 7)}, []int64{missing, 9}, true},
	} {
		r := checked([][]update{row.first, row.other}, row.scores, []boardOp{{}, {}})
		if found := r.list(); row.taken != (len(found) == 0) || !row.taken && r.count(Lost) == 0 {
			t.Errorf("%s: findings %v, expected none: %v", name, found, row.taken)
		}
	}
}

// An item had updates of 10 and 2, and perhaps another of 10. It was handed out at about the time
// of the first. So a score of 12 is that of the first two updates, or of the last two.
func TestTheLeastScoreIsThatOfAnyPossibleHistory(t *testing.T) {
	it := new(item).with([]update{sent(10, 1, 2), sent(2, 3, 4), lost(10, 5)}, []handout{{1, 3}})
	it.resolve()
	for _, row := range []struct{ score, then, least, by int64 }{
		{12, 5, 2, 4},
		{22, 5, 12, 4},
		{12, 4, 0, 0},
		{22, 4, 10, 2},
		{missing, 5, 0, 0},
		{7, 5, 0, 0},
	} {
		if least, by := it.leastScore(row.score, row.then); least != row.least || by != row.by {
			t.Errorf("with score %d it stood at %d from %d on, by %d; expected %d by %d", row.score, least, row.then, by, row.least, row.by)
		}
	}
}

func TestRequestsWithoutAReplyExplainItemsOfOtherClients(t *testing.T) {
	for name, row := range map[string]struct {
		nexts int // of the second client
		kind  Kind
	}{
		"enough":      {2, ""},
		"one too few": {1, Lost},
	} {
		r := newRun(Options{NoPinpriq: true, BoardClients: 2})
		r.board.items[0].with([]update{sent(10, 1, 2)}, nil)
		r.board.items[1].with([]update{sent(20, 1, 2)}, nil)
		r.boardClients[1].ops, r.boardClients[1].asked = make([]boardOp, row.nexts), 5
		scores := make([]int64, len(r.board.items))
		for i := range scores {
			scores[i] = missing
		}
		r.checkBoardClients(scores)
		if row.kind == "" && len(r.list()) > 0 || row.kind != "" && r.count(row.kind) == 0 {
			t.Errorf("%s: findings %v; expected %q", name, r.list(), row.kind)
		}
	}
}
