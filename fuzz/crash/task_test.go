package crash

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// taskBench is a client of the work queue without a server, at second 100 of the run.
type taskBench struct {
	*taskClient
	t  *testing.T
	id ID
	of *task
}

const second = int64(1e9)

func newTaskBench(t *testing.T) *taskBench {
	r := newRun(Options{NoPinpriq: true, TaskClients: 1, Seed: 1})
	r.ledger.start = time.Now().Add(-100 * time.Second)
	b := &taskBench{taskClient: r.clients[0].(*taskClient), t: t}
	b.id, b.of = r.tasks.add(b.number, task{queue: chores, priority: 1}, 90*second, 0)
	r.tasks.acknowledge(b.of, "7", 90*second, 0)
	return b
}

// finds fails the test unless the findings are of these kinds, in the order of the alphabet.
func (b *taskBench) finds(want ...Kind) {
	b.t.Helper()
	wantFindings(b.t, b.r, want)
}

// turn is a claim at a second, with a lease of five.
func (b *taskBench) turn(at, token, attempt int64) *turn {
	return &turn{
		token: token, attempt: attempt, asked: at * second, came: at * second,
		ends: (at + 5) * second, endsBy: (at + 5) * second, told: b.r.millis((at + 5) * second),
	}
}

func TestTurnsOfATaskFollowEachOther(t *testing.T) {
	for name, row := range map[string]struct {
		change func(b *taskBench, first *turn)
		second [3]int64 // when it was claimed, with which token, and attempt
		lost   int64
		want   []Kind
	}{
		"after the lease ended":      {nil, [3]int64{98, 2, 2}, 0, nil},
		"before the lease ended":     {nil, [3]int64{93, 2, 2}, 0, []Kind{Shared}},
		"after it was returned":      {func(_ *taskBench, t *turn) { t.returned = true }, [3]int64{93, 2, 2}, 0, nil},
		"when it may be returned":    {func(_ *taskBench, t *turn) { t.returning = 1 }, [3]int64{93, 2, 2}, 0, nil},
		"after a snooze":             {func(_ *taskBench, t *turn) { t.returned, t.snoozed = true, true }, [3]int64{93, 2, 1}, 0, nil},
		"with a snooze that counted": {func(_ *taskBench, t *turn) { t.returned, t.snoozed = true, true }, [3]int64{93, 2, 2}, 0, []Kind{Attempts}},
		"when it may be snoozed":     {func(_ *taskBench, t *turn) { t.returning, t.snoozing = 1, 1 }, [3]int64{93, 2, 1}, 0, nil},
		"when it was not snoozed":    {func(_ *taskBench, t *turn) { t.snoozing = 1 }, [3]int64{98, 2, 2}, 0, nil},
		"after an ack":               {func(_ *taskBench, t *turn) { t.acked = true }, [3]int64{98, 2, 2}, 0, []Kind{Returned}},
		"after an ack without reply": {func(_ *taskBench, t *turn) { t.acking = 1 }, [3]int64{98, 2, 2}, 0, nil},
		"after a harvest": {func(b *taskBench, _ *turn) {
			b.r.tasks.harvests.begin(chores, 92*second).to = 93 * second
		}, [3]int64{93, 2, 2}, 0, nil},
		"after a harvest of others": {func(b *taskBench, _ *turn) {
			b.r.tasks.harvests.begin(jobs, 92*second)
		}, [3]int64{93, 2, 2}, 0, []Kind{Shared}},
		"after a harvest before it": {func(b *taskBench, _ *turn) {
			b.r.tasks.harvests.begin(chores, 90*second).to = 91 * second
		}, [3]int64{93, 2, 2}, 0, []Kind{Shared}},
		"with the same token":            {nil, [3]int64{98, 1, 2}, 0, []Kind{Tokens}},
		"with the same attempt":          {nil, [3]int64{98, 2, 1}, 0, []Kind{Attempts}},
		"with a claim that nobody saw":   {nil, [3]int64{98, 3, 3}, 1, nil},
		"with one that had a reply":      {nil, [3]int64{98, 3, 3}, 0, []Kind{Attempts}},
		"before the delay ended":         {func(_ *taskBench, t *turn) { t.returned, t.notBefore = true, 99*second }, [3]int64{98, 2, 2}, 0, []Kind{Early}},
		"after its death":                {func(_ *taskBench, t *turn) { t.returned, t.dead, t.died = true, true, 93*second }, [3]int64{98, 2, 2}, 0, []Kind{Returned}},
		"after its death and a redrive":  {func(b *taskBench, t *turn) { t.returned, t.dead, t.died = true, true, 93*second; b.redriven(94) }, [3]int64{98, 2, 1}, 0, nil},
		"after a redrive, without death": {func(b *taskBench, _ *turn) { b.redriven(94) }, [3]int64{98, 2, 1}, 0, []Kind{Attempts}},
		"after a death at the last lease": {func(b *taskBench, t *turn) { t.attempt = maxAttempts; b.redriven(97) },
			[3]int64{98, 2, 1}, maxAttempts - 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			first := b.turn(92, 1, 1)
			if row.change != nil {
				row.change(b, first)
			}
			b.r.tasks.lost = row.lost + max(0, first.attempt-1)
			b.of.turns = append(b.of.turns, b.turn(row.second[0], row.second[1], row.second[2]), first)
			if row.second[1] == first.token {
				slices.Reverse(b.of.turns[1:])
			}
			b.r.settleTasks()
			b.finds(row.want...)
		})
	}
}

func (b *taskBench) redriven(at int64) {
	b.r.tasks.redrives.begin(chores, at*second).to = at * second
}

func TestATokenIsRefusedOnlyAfterItsLease(t *testing.T) {
	for name, row := range map[string]struct {
		at     int64
		change func(t *turn)
		want   []Kind
	}{
		"after the lease":    {98, func(*turn) {}, nil},
		"before its end":     {93, func(*turn) {}, []Kind{Lost}},
		"after it was acked": {93, func(t *turn) { t.acked = true }, nil},
		"after it came back": {93, func(t *turn) { t.returned = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			first := b.turn(92, 1, 1)
			row.change(first)
			first.refuse(row.at * second)
			b.of.turns = append(b.of.turns, first)
			b.r.settleTasks()
			b.finds(row.want...)
		})
	}
}

func TestAnOldTokenMustBeRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *turn)
		want   []Kind
	}{
		"a good one":                {func(t *turn) {}, nil},
		"one that was refused":      {func(t *turn) { t.refused = 1 }, []Kind{Tokens}},
		"one that was returned":     {func(t *turn) { t.returned = true }, []Kind{Tokens}},
		"one whose lease has ended": {func(t *turn) { t.endsBy = 1 }, []Kind{Tokens}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			claim := b.turn(92, 1, 1)
			row.change(claim)
			b.good("an ack", &heldTask{b.id, b.of, "7", claim}, 95*second)
			b.finds(row.want...)
		})
	}
}

func TestARestartShowsATaskAsItsLastTurnLeftIt(t *testing.T) {
	ready := func(b *taskBench) []shownTask { return b.shows("ready", 0, 1) }
	claimed := func(b *taskBench) []shownTask { return b.shows("claimed", 1, 1) }
	done := func(b *taskBench) []shownTask { return b.shows("done", 0, 1) }
	nothing := func(*taskBench) []shownTask { return nil }
	for name, row := range map[string]struct {
		claim  func(t *turn) // at second 92; nil: there was none
		shown  func(b *taskBench) []shownTask
		at     int64 // of the list; 0: second 98
		change func(b *taskBench)
		want   []Kind
	}{
		"ready":                        {nil, func(b *taskBench) []shownTask { return b.shows("ready", 0, 0) }, 0, nil, nil},
		"gone":                         {nil, nothing, 0, nil, []Kind{Lost}},
		"gone, its push without reply": {nil, nothing, 0, func(b *taskBench) { b.of.pushed = false }, nil},
		"twice": {nil, func(b *taskBench) []shownTask {
			return append(b.shows("ready", 0, 0), b.shows("dead", 0, 0)...)
		}, 0, nil, []Kind{Doubled}},
		"acked and gone":        {func(t *turn) { t.acked = true }, nothing, 0, nil, nil},
		"acked and there":       {func(t *turn) { t.acked = true }, ready, 0, nil, []Kind{Returned}},
		"maybe acked and there": {func(t *turn) { t.acking = 1 }, ready, 0, nil, nil},
		"maybe acked and gone":  {func(t *turn) { t.acking = 1 }, nothing, 0, nil, nil},
		"claimed":               {func(*turn) {}, claimed, 95, nil, nil},
		"ready before its time": {func(*turn) {}, ready, 95, nil, []Kind{Lost}},
		"ready in time":         {func(*turn) {}, ready, 0, nil, nil},
		"an attempt less":       {func(t *turn) { t.attempt = 2 }, ready, 0, nil, []Kind{Attempts}},
		"an attempt more":       {func(*turn) {}, func(b *taskBench) []shownTask { return b.shows("ready", 0, 2) }, 0, nil, []Kind{Attempts}},
		"an attempt more, without reply": {func(*turn) {}, func(b *taskBench) []shownTask { return b.shows("ready", 0, 2) }, 0,
			func(b *taskBench) { b.r.tasks.lost = 1 }, nil},
		"claimed after its lease":     {func(*turn) {}, claimed, 0, nil, []Kind{Stuck}},
		"claimed for longer":          {func(t *turn) { t.told -= 100 }, claimed, 96, nil, []Kind{Stuck}},
		"returned and claimed":        {func(t *turn) { t.returned = true }, claimed, 96, nil, []Kind{Returned}},
		"progress forgotten":          {func(t *turn) { t.progress = 5 }, claimed, 96, nil, []Kind{Lost}},
		"progress may be noted":       {func(t *turn) { t.noting = 1; t.progress = 5 }, claimed, 96, nil, nil},
		"delayed for no reason":       {func(*turn) {}, func(b *taskBench) []shownTask { return b.shows("delayed", 0, 1) }, 0, nil, []Kind{Stuck}},
		"delayed":                     {func(t *turn) { t.returned, t.notAfter = true, 99*second }, func(b *taskBench) []shownTask { return b.shows("delayed", 0, 1) }, 0, nil, nil},
		"ready before its delay":      {func(t *turn) { t.returned, t.notBefore = true, 99*second }, ready, 0, nil, []Kind{Early}},
		"dead for no reason":          {func(*turn) {}, func(b *taskBench) []shownTask { return b.shows("dead", 0, 1) }, 0, nil, []Kind{Attempts}},
		"dead":                        {func(t *turn) { t.returned, t.dead, t.died = true, true, 93*second }, func(b *taskBench) []shownTask { return b.shows("dead", 0, 1) }, 0, nil, nil},
		"dead and ready":              {func(t *turn) { t.returned, t.dead, t.died = true, true, 93*second }, ready, 0, nil, []Kind{Returned}},
		"dead, redriven and ready":    {func(t *turn) { t.returned, t.dead, t.died = true, true, 93*second }, ready, 0, func(b *taskBench) { b.redriven(94) }, nil},
		"back without its reason":     {func(t *turn) { t.returned, t.reasoned = true, true }, ready, 0, nil, []Kind{Lost}},
		"from nowhere":                {func(*turn) {}, func(b *taskBench) []shownTask { s := b.shows("ready", 0, 1); s[0].origin = jobs; return s }, 0, nil, []Kind{Lost}},
		"done":                        {func(t *turn) { t.done(97, 97) }, done, 96, nil, nil},
		"done, its ack without reply": {func(t *turn) { t.acking = 1 }, done, 96, nil, nil},
		"done for no reason":          {func(*turn) {}, done, 96, nil, []Kind{Lost}},
		"done for too long":           {func(t *turn) { t.done(94, 95) }, done, 96, nil, []Kind{Stuck}},
		"done after its time":         {func(t *turn) { t.done(97, 97) }, done, 98, nil, []Kind{Stuck}},
		"done and gone":               {func(t *turn) { t.done(97, 97) }, nothing, 98, nil, nil},
		"done and gone too early":     {func(t *turn) { t.done(97, 97) }, nothing, 96, nil, []Kind{Lost}},
		"another priority": {nil, func(b *taskBench) []shownTask {
			s := b.shows("ready", 0, 0)
			s[0].priority++
			return s
		}, 0, nil, []Kind{Corrupt, Lost}},
		"another id": {nil, func(b *taskBench) []shownTask {
			s := b.shows("ready", 0, 0)
			s[0].name = "8"
			return s
		}, 0, nil, []Kind{Corrupt, Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			if row.claim != nil {
				claim := b.turn(92, 1, 1)
				row.claim(claim)
				b.of.turns = append(b.of.turns, claim)
			}
			if row.change != nil {
				row.change(b)
			}
			at := row.at
			if at == 0 {
				at = 98
			}
			b.r.compareTasks(row.shown(b), at*second, at*second)
			b.finds(row.want...)
		})
	}
}

// done makes a turn one whose task was acknowledged, and is kept until some moment between seconds.
func (t *turn) done(from, to int64) { t.acked, t.goneAt, t.goneBy = true, from*second, to*second }

// shows is a list of the one task. A lease ends at second 97, as turn says, and so does the time of
// one that is done. A delay ends at 99.
func (b *taskBench) shows(state string, token, attempt int64) []shownTask {
	s := shownTask{id: b.id, whole: true, name: "7", queue: chores, state: state, priority: 1, token: token, attempt: attempt}
	switch state {
	case "claimed":
		s.leaseEnd = b.r.millis(97 * second)
	case "done":
		s.expires = b.r.millis(97 * second)
	case "delayed":
		s.notBefore = b.r.millis(99 * second)
	}
	return []shownTask{s}
}

func TestATransactionIsThereAsAWhole(t *testing.T) {
	for name, row := range map[string]struct {
		acked, pushed bool
		change        func(before *turn)
		want          []Kind
	}{
		"both":                         {true, true, nil, nil},
		"neither":                      {false, false, nil, nil},
		"the ack alone":                {true, false, nil, []Kind{Order}},
		"the push alone":               {false, true, nil, []Kind{Order}},
		"the ack of another request":   {true, false, func(t *turn) { t.acking = 2 }, nil},
		"the push after a stale token": {false, true, func(t *turn) { t.token = 2 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			before := b.turn(92, 1, 1)
			before.acking = 1
			b.of.turns = append(b.of.turns, before)
			id, of := b.r.tasks.add(b.number, task{queue: chores, priority: 1}, 93*second, 0)
			of.after = &heldTask{b.id, b.of, "7", before}
			var shown []shownTask
			if !row.acked {
				shown = b.shows("claimed", 1, 1)
			}
			if row.pushed {
				shown = append(shown, b.shows("ready", 0, 0)...)
				shown[len(shown)-1].id, shown[len(shown)-1].name = id, "8"
			}
			if row.change != nil {
				row.change(before)
			}
			b.r.checkChainsLocked(shown)
			b.finds(row.want...)
		})
	}
}

func TestCountersAreExactAfterACleanStop(t *testing.T) {
	for name, row := range map[string]struct {
		killed int64
		n      int64
		want   []Kind
	}{
		"as answered":                   {0, 7, nil},
		"one of them forgotten":         {0, 6, []Kind{Counters}},
		"with one that had no reply":    {0, 8, nil},
		"more than were sent":           {0, 9, []Kind{Counters}},
		"as before a kill":              {94, 6, nil},
		"as long before a kill":         {97, 6, []Kind{Counters}},
		"less than were there before":   {94, 4, []Kind{Counters}},
		"more than were sent at a kill": {94, 9, []Kind{Counters}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			acks := counterName{jobs, "acked"}
			b.r.tasks.counters[acks] = &counter{found: 5}
			b.r.tasks.counts(acks, 5)
			b.r.tasks.counted(acks, 2, 1, 92*second)
			b.r.tasks.counted(acks, 2, 1, 95*second)
			b.r.tasks.killed = row.killed * second
			b.r.checkCounters(jobs, map[string]any{"acked": row.n})
			b.finds(row.want...)
		})
	}
}

func TestACleanStopCarriesOutNothingThatItGivesUp(t *testing.T) {
	b := newTaskBench(t)
	b.link = &link{conn: new(net.TCPConn)}
	b.add(b.claim([]string{jobs}, 3, maxLease, 10, filter{}))
	b.add(b.push(chores, 1))
	if n := b.hangUp(stop); n != 0 || b.r.tasks.lost != 0 {
		t.Errorf("%d requests were unanswered, and %d claims lost", n, b.r.tasks.lost)
	}
	b.r.checkCounters(chores, map[string]any{"pushed": int64(1)})
	b.finds(Counters)
	b.add(b.push(chores, 1))
	for done, want := range []int{0, 0, 1, 0} { // next is the claim, a push behind it, another push, nothing
		b.done = done
		if n := b.hangUp(stop); n != want {
			t.Errorf("behind %d replies: %d requests were unanswered, want %d", done, n, want)
		}
	}
}

func TestARestartKeepsAClaimThatIsStillThere(t *testing.T) {
	b := newTaskBench(t)
	claim := b.turn(92, 1, 1)
	b.of.turns = append(b.of.turns, claim)
	b.r.compareTasks(b.shows("claimed", 1, 1), 95*second, 95*second)
	if b.good("an ack", &heldTask{b.id, b.of, "7", claim}, 95*second); b.of.turns[0] != claim {
		t.Error("the claim is not known after a restart")
	}
	b.finds()
	b.r.compareTasks(b.shows("ready", 0, 1), 98*second, 98*second)
	b.finds()
	b.good("an ack", &heldTask{b.id, b.of, "7", claim}, 95*second)
	b.finds(Tokens)
}

func TestRepliesOfTheWorkQueueAreRead(t *testing.T) {
	payload := string(appendPayload(nil, makeID(taskPart, 3), 20))
	packet := "*12\r\n" + replyBulk("id") + replyBulk("5") + replyBulk("payload") + replyBulk(payload) +
		replyBulk("priority") + replyInt(2) + replyBulk("tags") + "*2\r\n" + replyBulk("class") + replyBulk("mid") +
		replyBulk("token") + replyInt(9) + replyBulk("state") + replyBulk("claimed")
	v, rest := parseReply("*2\r\n" + packet + packet + "-STALE it is\r\n")
	want := shownTask{id: makeID(taskPart, 3), whole: true, name: "5", priority: 2, tags: tags{class: "mid"}, token: 9, bytes: 20, state: "claimed"}
	if got := shownTasks(v); !slices.Equal(got, []shownTask{want, want}) {
		t.Errorf("got %+v, want %+v twice", got, want)
	}
	if v, rest = parseReply(rest); v != replyError("STALE it is") || rest != "" {
		t.Errorf("got %q and %q", v, rest)
	}
	for _, nothing := range []string{"*-1\r\n", "$-1\r\n"} {
		if v, _ := parseReply(nothing); v != nil {
			t.Errorf("%q is %v", strings.TrimSpace(nothing), v)
		}
	}
}
