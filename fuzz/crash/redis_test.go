package crash

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redisBench is a client of the Redis protocol without a server.
type redisBench struct {
	*redisClient
	t *testing.T
}

func newRedisBench(t *testing.T) *redisBench {
	r := newRun(Options{NoPinpriq: true, RedisClients: 1, Seed: 1})
	return &redisBench{r.redisClients[0], t}
}

// finds fails the test unless the findings are of these kinds, in the order of the alphabet.
func (b *redisBench) finds(want ...Kind) {
	b.t.Helper()
	wantFindings(b.t, b.r, want)
}

func wantFindings(t *testing.T, r *run, want []Kind) {
	t.Helper()
	kinds := map[Kind]bool{}
	for _, f := range r.list() {
		kinds[f.Kind] = true
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Errorf("findings %v, want %q", r.list(), want)
	}
}

// replies are what readOf of each own name answers.
func (b *redisBench) replies(k keyspace) []string {
	var all []string
	for _, own := range ownNames() {
		name, reply := b.name(own), "*0\r\n"
		switch own {
		case ownText, ownCount:
			reply = k.step([]string{"GET", name})
		case ownHash:
			if v := k[name]; v != nil {
				for field, of := range v.fields {
					reply += replyBulk(field) + replyBulk(of)
				}
			}
		default:
			for _, v := range k.list(name) {
				reply += replyBulk(v)
			}
		}
		all = append(all, reply)
	}
	return all
}

func TestOwnNamesAreAsAfterAFirstPartOfTheRequests(t *testing.T) {
	const list, text, hash = "own:10000:list", "own:10000:text", "own:10000:hash"
	type request = [][]string // its commands
	all := func(requests ...request) []request { return requests }
	push := func(v string) request { return one("RPUSH", list, v) }
	set := func(v string) request { return one("SET", text, v) }
	pop, del := one("LPOP", list), one("DEL", list)
	transaction := request{{"RPUSH", list, "c"}, {"SET", text, "c"}, {"HSET", hash, "field", "c"}}
	for name, row := range map[string]struct {
		answered, unanswered, found []request
		want                        []Kind
	}{
		"nothing":                         {nil, nil, nil, nil},
		"all answered":                    {all(push("a"), transaction), nil, all(push("a"), transaction), nil},
		"none of the unanswered":          {all(push("a")), all(push("b"), transaction), all(push("a")), nil},
		"the first of the unanswered":     {nil, all(push("b"), transaction), all(push("b")), nil},
		"all of the unanswered":           {nil, all(push("b"), transaction), all(push("b"), transaction), nil},
		"the second without the first":    {nil, all(push("b"), transaction), all(transaction), []Kind{Order}},
		"half a transaction":              {nil, all(transaction), all(transaction[:1]), []Kind{Order}},
		"half an answered transaction":    {all(transaction), nil, all(transaction[1:]), []Kind{Lost, Order}},
		"an answered push is gone":        {all(push("a")), nil, nil, []Kind{Lost, Order}},
		"a popped element is there":       {all(push("a"), pop), nil, all(push("a")), []Kind{Order, Returned}},
		"a deleted list is there":         {all(push("a"), del), nil, all(push("a")), []Kind{Order, Returned}},
		"a deletion without a reply":      {all(push("a")), all(del), all(push("a")), nil},
		"elements in another order":       {all(push("a"), push("b")), nil, all(push("b"), push("a")), []Kind{Order}},
		"a value that was written before": {all(set("a"), set("b")), nil, all(set("a")), []Kind{Lost, Order, Returned}},
	} {
		b := newRedisBench(t)
		for _, commands := range row.answered {
			b.acked.apply(commands)
		}
		for _, commands := range row.unanswered {
			b.ops = append(b.ops, redisOp{commands: commands, own: true})
		}
		server := keyspace{}
		for _, commands := range row.found {
			server.apply(commands)
		}
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.checkOwn(b.found(b.replies(server)))
			b.finds(row.want...)
		})
	}
}

// A trim of many elements that keeps some goes in slices from the left. A kill may leave a first
// part of it, unless it was answered or is part of a transaction.
func TestATrimWithoutAReplyMayBeDoneInPart(t *testing.T) {
	all := []string{"RPUSH", "own:10000:long"}
	for i := range 3000 {
		all = append(all, strconv.Itoa(i))
	}
	rest := func(from, to int) []string { return all[2+from : 2+to] }
	for name, row := range map[string]struct {
		trim  string // from and to
		found []string
		want  []Kind
	}{
		"to its left":               {"1000 1099", rest(700, 3000), nil},
		"on both sides":             {"1000 1099", slices.Concat(rest(1000, 1100), rest(2148, 3000)), nil},
		"whole":                     {"1000 1099", rest(1000, 1100), nil},
		"to its right alone":        {"1000 1099", rest(0, 2000), []Kind{Order}},
		"without what it keeps":     {"1000 1099", rest(1001, 3000), []Kind{Lost, Order}},
		"though it keeps little":    {"1000 1007", rest(1000, 3000), []Kind{Order}},
		"though it deletes few":     {"1000 1999", rest(1000, 3000), []Kind{Order}},
		"answered":                  {"1000 1099 answered", rest(1000, 3000), []Kind{Order, Returned}},
		"in a transaction":          {"1000 1099 transaction", rest(1000, 3000), []Kind{Order}},
		"before a request that was": {"1000 1099 before", rest(1000, 3000), []Kind{Order}},
	} {
		t.Run(name, func(t *testing.T) {
			b, server, word := newRedisBench(t), keyspace{}, strings.Fields(row.trim)
			b.acked.apply([][]string{all})
			op := redisOp{own: true, commands: one("LTRIM", all[1], word[0], word[1])}
			set := one("SET", "own:10000:text", "v")
			switch strings.Join(word[2:], "") {
			case "answered":
				b.acked.apply(op.commands)
				op.commands = set
			case "transaction":
				op.commands = append(op.commands, set...)
			case "before":
				server.apply(set)
				b.ops = []redisOp{op, {own: true, commands: set}}
			}
			if len(b.ops) == 0 {
				b.ops = []redisOp{op}
			}
			server.put(all[1], value{list: row.found})
			b.checkOwn(b.found(b.replies(server)))
			b.finds(row.want...)
		})
	}
}

func TestAnElementOfTheTopicIsInOnePlaceUntilItIsTaken(t *testing.T) {
	const a, b, c = 1, 2, 3 // in the order of their pushes
	for name, row := range map[string]struct {
		prepare      func(t *topic, id func(int) ID)
		queued, next []int
		want         []Kind
		unowned      int
	}{
		"all acknowledged are there": {func(t *topic, id func(int) ID) {
			t.ack(id(a))
			t.ack(id(b))
		}, []int{b, a}, nil, nil, 0},
		"a push without a reply may be nowhere": {func(*topic, func(int) ID) {}, nil, nil, nil, 0},
		"an acknowledged one is gone": {func(t *topic, id func(int) ID) {
			t.ack(id(a))
		}, nil, nil, []Kind{Lost}, 0},
		"an acknowledged one is gone, and a pop had no reply": {func(t *topic, id func(int) ID) {
			t.ack(id(a))
			t.pops = 1
		}, nil, nil, nil, 0},
		"an older one is to the left": {func(t *topic, id func(int) ID) {}, []int{a, b}, nil, []Kind{Order}, 0},
		"a popped one is there": {func(t *topic, id func(int) ID) {
			t.take(id(a), false)
		}, []int{a}, nil, []Kind{Returned}, 0},
		"a moved one is in the second list": {func(t *topic, id func(int) ID) {
			t.take(id(a), true)
		}, nil, []int{a}, nil, 0},
		"a moved one is in the topic": {func(t *topic, id func(int) ID) {
			t.take(id(a), true)
		}, []int{a}, nil, []Kind{Returned}, 0},
		"a moved one is nowhere": {func(t *topic, id func(int) ID) {
			t.take(id(a), true)
		}, nil, nil, []Kind{Lost}, 0},
		"one is in both": {func(t *topic, id func(int) ID) {
			t.moves = 1
		}, []int{a}, []int{a}, []Kind{Doubled}, 1},
		"a move without a reply": {func(t *topic, id func(int) ID) {
			t.moves = 1
		}, []int{c, b}, []int{a}, nil, 1},
		"two moves, one without a reply": {func(t *topic, id func(int) ID) {
			t.moves = 1
		}, nil, []int{b, a}, []Kind{Order}, 2},
		"a removal without a reply, not carried out": {func(t *topic, id func(int) ID) {
			t.take(id(a), true)
			t.committing(id(a))
		}, nil, []int{a}, nil, 1},
		"a removal without a reply, carried out": {func(t *topic, id func(int) ID) {
			t.take(id(a), true)
			t.committing(id(a))
		}, nil, nil, nil, 0},
		"a removed one is there": {func(t *topic, id func(int) ID) {
			t.take(id(a), true)
			t.committed(id(a))
		}, nil, []int{a}, []Kind{Returned}, 0},
		"one that nobody pushed": {func(t *topic, id func(int) ID) {}, []int{9}, nil, []Kind{Corrupt}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bench := newRedisBench(t)
			id := func(serial int) ID { return makeID(redisPart, uint64(serial)) }
			for range 3 {
				bench.r.topic.add(redisPart)
			}
			row.prepare(bench.r.topic, id)
			values := func(serials []int) (all []string) {
				for _, n := range serials {
					all = append(all, string(appendPayload(nil, id(n), 20)))
				}
				return all
			}
			if unowned := bench.r.checkTopic(values(row.queued), values(row.next)); len(unowned) != row.unowned {
				t.Errorf("%d elements are unowned, want %d", len(unowned), row.unowned)
			}
			bench.finds(row.want...)
		})
	}
}

func TestAnElementOfTheTopicIsHandedOutOnce(t *testing.T) {
	top := newTopic()
	id := top.add(redisPart)
	for _, want := range []Kind{"", Returned} {
		if got := top.take(id, true); got != want {
			t.Errorf("taken: %q, want %q", got, want)
		}
	}
	if got := top.take(id+1, false); got != Corrupt {
		t.Errorf("taken before it was pushed: %q", got)
	}
}

func TestMortalsAreThereUntilTheyExpire(t *testing.T) {
	const ttl, second = 1000, int64(time.Second)
	for name, row := range map[string]struct {
		sent, by, asked int64 // relative to now, in seconds; by is 0 if there was no reply
		reply           string
		want            []Kind
	}{
		"there in time":                         {-1, 0, 0, "$1\r\nv\r\n", nil},
		"there after its time":                  {-9, -8, 0, "$1\r\nv\r\n", []Kind{Expired}},
		"there, and asked in time":              {-9, -8, -8, "$1\r\nv\r\n", nil},
		"gone in time":                          {0, 1, 0, replyNull, []Kind{Lost}},
		"gone after its time":                   {-9, -8, 0, replyNull, nil},
		"gone, and its making not acknowledged": {0, 0, 0, replyNull, nil},
		"another value":                         {-1, 0, 0, "$1\r\nw\r\n", []Kind{Corrupt}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRedisBench(t)
			b.r.ledger.start = time.Now().Add(-time.Hour)
			now := b.r.ledger.now()
			m := &mortal{packet: packet{sent: now + row.sent*second, ttl: ttl}, want: "$1\r\nv\r\n"}
			if row.by != 0 {
				m.by = now + row.by*second
			}
			b.checkMortal(m, row.reply, now+row.asked*second)
			b.finds(row.want...)
			if m.dead = true; row.want == nil {
				b.checkMortal(m, replyNull, now)
				b.finds()
				b.checkMortal(m, m.want, now)
				b.finds(Returned)
			}
		})
	}
}
