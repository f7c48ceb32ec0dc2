package redis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// rfq is a client of rfq at a topic. Messages are hashes; their names move from the list backlog to
// the list nextlog, and off it when they are committed.
type rfq struct {
	*conn
	topic string
}

func newRFQ(t *testing.T, addr, topic string) rfq { return rfq{dial(t, addr), topic} }

func (q rfq) key(name string) string   { return "rfq:" + q.topic + ":" + name }
func (q rfq) message(id string) string { return q.key("message:" + id) }
func (q rfq) backlog() string          { return q.key("backlog") }
func (q rfq) nextlog() string          { return q.key("nextlog") }

// push is the command that adds an id to the backlog.
func push(front bool) string {
	if front {
		return "RPUSH"
	}
	return "LPUSH"
}

// publishers are all ways to publish: those of Python, oldest first, and those of JavaScript.
var publishers = map[string]func(q rfq, id string, front bool, fields ...string){
	"python, first": func(q rfq, id string, front bool, fields ...string) {
		length := q.int(q.ask("LLEN", q.backlog())) + 1
		q.wantSame(q.transaction(append(cmd("HMSET", q.message(id)), fields...), cmd(push(front), q.backlog(), id)), array(ok, number(length)))
	},
	"python, newer": func(q rfq, id string, front bool, fields ...string) {
		length := q.int(q.ask("LLEN", q.backlog())) + 1
		q.wantSame(q.transaction(append(cmd("HSET", q.message(id)), fields...), cmd(push(front), q.backlog(), id)), array(number(len(fields)/2), number(length)))
	},
	"javascript, not yet connected": func(q rfq, id string, front bool, fields ...string) {
		length := q.int(q.ask("LLEN", q.backlog())) + 1
		q.write(cmd("multi"))
		q.write(append(cmd("hmset", q.message(id)), fields...))
		q.write(cmd(strings.ToLower(push(front)), q.backlog(), id))
		q.write(cmd("exec"))
		q.want(ok, queued, queued, array(ok, number(length)))
	},
	"javascript": func(q rfq, id string, front bool, fields ...string) {
		length := q.int(q.ask("LLEN", q.backlog())) + 1
		q.write(cmd("multi"), append(cmd("hmset", q.message(id)), fields...), cmd(strings.ToLower(push(front)), q.backlog(), id), cmd("exec"))
		q.want(ok, queued, queued, array(ok, number(length)))
	},
}

// consumers claim the oldest message.
var consumers = map[string]func(q rfq) (id string, fields []string){
	"python, first": func(q rfq) (string, []string) {
		id, _ := q.text(q.ask("BRPOPLPUSH", q.backlog(), q.nextlog(), "0"))
		return id, q.texts(q.ask("HGETALL", q.message(id)))
	},
	"python, later": func(q rfq) (string, []string) {
		for {
			q.do(ok, "WATCH", "rfq::"+q.topic+":backlog", "rfq::"+q.topic+":nextlog") // other keys than it uses
			id, _ := q.text(q.ask("BRPOPLPUSH", q.backlog(), q.nextlog(), "0"))
			if reply := q.transaction(cmd("HGETALL", q.message(id))); reply != nullArray {
				return id, q.texts(strings.TrimPrefix(reply, "*1\r\n"))
			}
		}
	},
	"javascript": func(q rfq) (string, []string) {
		id, _ := q.text(q.ask("brpoplpush", q.backlog(), q.nextlog(), "0"))
		return id, q.texts(q.ask("hgetall", q.message(id)))
	},
}

// committers delete what was claimed.
var committers = map[string]func(q rfq, id string){
	"python, first": func(q rfq, id string) {
		q.wantSame(q.transaction(cmd("LREM", q.nextlog(), "0", id), cmd("DEL", q.message(id))), array(number(1), number(1)))
	},
	"python, later": func(q rfq, id string) {
		q.wantSame(q.transaction(cmd("LREM", q.nextlog(), "1", id), cmd("LREM", q.backlog(), "1", id), cmd("DEL", q.message(id))),
			array(number(1), number(0), number(1)))
	},
	"javascript": func(q rfq, id string) {
		q.write(cmd("multi"), cmd("lrem", q.nextlog(), "0", id), cmd("lrem", q.backlog(), "0", id), cmd("del", q.message(id)), cmd("exec"))
		q.want(ok, queued, queued, queued, array(number(1), number(0), number(1)))
	},
}

// harvesters bring all that is claimed back into the backlog, behind what waits there.
var harvesters = map[string]func(q rfq) (ids []string){
	"until there is none": func(q rfq) (ids []string) {
		for {
			id, found := q.text(q.ask("RPOPLPUSH", q.nextlog(), q.backlog()))
			if !found {
				return ids
			}
			ids = append(ids, id)
		}
	},
	"until an id comes again": func(q rfq) (ids []string) {
		for {
			id, found := q.text(q.ask("RPOPLPUSH", q.nextlog(), q.backlog()))
			if !found || slices.Contains(ids, id) {
				return ids
			}
			ids = append(ids, id)
		}
	},
	"of the document": func(q rfq) []string {
		ids := q.texts(q.ask("LRANGE", q.nextlog(), "0", "-1"))
		slices.Reverse(ids)
		for _, id := range ids {
			q.int(q.ask("LPUSH", q.backlog(), id))
			q.do(number(1), "LREM", q.nextlog(), "0", id)
		}
		return ids
	},
}

// purgers delete what is in a list. They return how many messages they deleted.
var purgers = map[string]func(q rfq, list string) int{
	"first": func(q rfq, list string) (n int) {
		for {
			id, found := q.text(q.ask("RPOP", list))
			if !found {
				return n
			}
			n += q.int(q.ask("DEL", q.message(id)))
		}
	},
	// It watches the list that it changes, so its EXEC never does anything.
	"second": func(q rfq, list string) int {
		for {
			q.do(ok, "WATCH", list)
			id, found := q.text(q.ask("RPOP", list))
			if !found {
				q.do(ok, "UNWATCH")
				return 0
			}
			q.wantSame(q.transaction(cmd("DEL", q.message(id))), nullArray)
		}
	},
	"third": func(q rfq, list string) (n int) {
		for {
			q.do(ok, "WATCH", list)
			ids := q.texts(q.ask("LRANGE", list, "-1", "-1"))
			if len(ids) == 0 {
				q.do(ok, "UNWATCH")
				return n
			}
			q.wantSame(q.transaction(cmd("RPOP", list), cmd("DEL", q.message(ids[0]))), array(bulk(ids[0]), number(1)))
			n++
		}
	},
}

func (q rfq) wantSame(got, want string) {
	q.t.Helper()
	if got != want {
		q.t.Fatalf("reply %q, want %q", got, want)
	}
}

// info wants the lengths of both lists.
func (q rfq) info(backlog, nextlog int) {
	q.t.Helper()
	q.wantSame(q.transaction(cmd("LLEN", q.backlog()), cmd("LLEN", q.nextlog())), array(number(backlog), number(nextlog)))
}

// pairs makes a map of the fields and values of HGETALL.
func pairs(flat []string) map[string]string {
	all := make(map[string]string)
	for pair := range slices.Chunk(flat, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}

func TestEveryVersionOfRFQTakesTheMessagesOfEveryOther(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		topic := 0
		for publisher, publish := range publishers {
			for consumer, consume := range consumers {
				for committer, commit := range committers {
					topic++
					q := newRFQ(t, addr, fmt.Sprint("topic", topic))
					publish(q, "a", false, "v", "1", "op", "tile")
					publish(q, "b", false, "v", "2", "op", "ndvi")
					publish(q, "c", true, "v", "3", "op", "front")
					for i, want := range []string{"c", "a", "b"} {
						id, fields := consume(q)
						if got := pairs(fields); id != want || len(got) != 2 || got["v"] != map[string]string{"a": "1", "b": "2", "c": "3"}[id] {
							t.Errorf("%s, %s: claim %d is %s with %q, want %s", publisher, consumer, i+1, id, fields, want)
						}
						q.info(2-i, 1)
						commit(q, id)
						q.info(2-i, 0)
						if left := q.texts(q.ask("HGETALL", q.message(id))); len(left) > 0 {
							t.Errorf("%s, %s, %s: message %s is left after its commit: %q", publisher, consumer, committer, id, left)
						}
					}
					q.do(number(0), "EXISTS", q.backlog(), q.nextlog())
				}
			}
		}
	})
}

func TestABatchOfRFQIsPublishedAsOne(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		q := newRFQ(t, addr, "batch")
		q.wantSame(q.transaction(
			cmd("HSET", q.message("1"), "n", "1"), cmd("LPUSH", q.backlog(), "1"),
			cmd("HSET", q.message("2"), "n", "2"), cmd("LPUSH", q.backlog(), "2"),
			cmd("HSET", q.message("3"), "n", "3", "m", "x"), cmd("LPUSH", q.backlog(), "3"),
		), array(number(1), number(1), number(1), number(2), number(2), number(3)))
		// At the front, the list is reversed and each is pushed to the right.
		q.wantSame(q.transaction(
			cmd("HSET", q.message("5"), "n", "5"), cmd("RPUSH", q.backlog(), "5"),
			cmd("HSET", q.message("4"), "n", "4"), cmd("RPUSH", q.backlog(), "4"),
		), array(number(1), number(4), number(1), number(5)))
		q.do(bulks("3", "2", "1", "5", "4"), "LRANGE", q.backlog(), "0", "-1") // listq
		for _, want := range []string{"4", "5", "1", "2", "3"} {
			id, fields := consumers["python, first"](q)
			if got := pairs(fields); id != want || got["n"] != want {
				t.Errorf("claimed %s with %q, want %s", id, fields, want)
			}
		}
	})
}

func TestWhatACrashedConsumerOfRFQClaimedIsHarvested(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for consumer, consume := range consumers {
			for harvester, harvest := range harvesters {
				q := newRFQ(t, addr, strings.NewReplacer(" ", "", ",", "").Replace(consumer+harvester))
				for _, id := range []string{"a", "b", "c"} {
					publishers["python, newer"](q, id, false, "id", id)
				}
				for _, want := range []string{"a", "b"} {
					crashing := rfq{dial(t, addr), q.topic}
					if id, _ := consume(crashing); id != want {
						t.Fatalf("%s claimed %s, want %s", consumer, id, want)
					}
					crashing.hangUp()
				}
				q.info(1, 2)
				if got := harvest(q); !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("%s: harvested %q, want a and b", harvester, got)
				}
				q.info(3, 0)
				for _, want := range []string{"c", "a", "b"} {
					id, fields := consume(q)
					if id != want || !maps.Equal(pairs(fields), map[string]string{"id": want}) {
						t.Errorf("%s after %s: claimed %s with %q, want %s", consumer, harvester, id, fields, want)
					}
					committers["javascript"](q, id)
				}
				q.info(0, 0)
			}
		}
	})
}

func TestPurgeOfRFQEmptiesAList(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for version, purge := range purgers {
			for _, list := range []string{"backlog", "nextlog"} {
				q := newRFQ(t, addr, version+list)
				for _, id := range []string{"a", "b", "c"} {
					publishers["python, newer"](q, id, false, "id", id)
				}
				if list == "nextlog" {
					for range 3 {
						consumers["python, first"](q)
					}
				}
				deleted := 3
				if version == "second" {
					deleted = 0 // its messages stay for ever, with any server
				}
				if got := purge(q, q.key(list)); got != deleted {
					t.Errorf("%s version: %d messages of the %s were deleted, want %d", version, got, list, deleted)
				}
				q.info(0, 0)
				q.do(number(3-deleted), "EXISTS", q.message("a"), q.message("b"), q.message("c"))
			}
		}
	})
}

func TestTopicsOfRFQAreFoundByTheirLists(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		a, b := newRFQ(t, addr, "a"), newRFQ(t, addr, "b")
		a.do(emptyArray, "KEYS", "rfq:*:backlog")
		publishers["python, newer"](a, "1", false, "n", "1")
		publishers["python, newer"](b, "2", false, "n", "2")
		publishers["python, newer"](b, "3", false, "n", "3")
		consumers["python, first"](b)
		keys := func(reply string) []string {
			found := a.texts(reply)
			slices.Sort(found)
			return found
		}
		if got := keys(a.ask("KEYS", "rfq:*:backlog")); !slices.Equal(got, []string{"rfq:a:backlog", "rfq:b:backlog"}) {
			t.Errorf("keys of backlogs: %q", got)
		}
		a.do(bulks("rfq:b:nextlog"), "KEYS", "rfq:*:nextlog")
		consumers["python, first"](b)
		a.wantSame(a.transaction(cmd("KEYS", "rfq:*:backlog"), cmd("KEYS", "rfq:*:nextlog")), array(bulks("rfq:a:backlog"), bulks("rfq:b:nextlog")))
	})
}

func TestPeekAndVersionOfRFQ(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		q := newRFQ(t, addr, "peek")
		publishers["python, first"](q, "1", false, "v", "1")
		q.do(bulks("v", "1"), "HGETALL", q.message("1"))
		q.do(emptyArray, "HGETALL", q.message("2"))
		if reply, _ := q.text(q.ask("INFO", "server")); !strings.Contains(reply, "\r\nredis_version:") {
			t.Errorf("INFO server says %q, want a line with redis_version", reply)
		}
	})
}

func TestAConsumerOfRFQStartsAgainWhenItsWatchIsBroken(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		q, other := newRFQ(t, addr, "watch"), dial(t, addr)
		publishers["python, newer"](q, "1", false, "n", "1")
		q.do(ok, "WATCH", "rfq::watch:backlog", "rfq::watch:nextlog")
		q.do(bulk("1"), "BRPOPLPUSH", q.backlog(), q.nextlog(), "0")
		other.do(number(1), "LPUSH", "rfq::watch:backlog", "x")
		q.wantSame(q.transaction(cmd("HGETALL", q.message("1"))), nullArray)
		publishers["python, newer"](q, "2", false, "n", "2")
		if id, _ := consumers["python, later"](q); id != "2" {
			t.Errorf("claimed %q, want 2", id)
		}
		q.do(bulks("2", "1"), "LRANGE", q.nextlog(), "0", "-1")
	})
}

func TestTheJavaScriptClientOfRFQConnectsAndQuits(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.raw("*1\r\n$4\r\ninfo\r\n")
		info, found := c.text(c.read())
		if !found || !strings.Contains(info, "redis_version:") {
			t.Errorf("info says %q, want a text with redis_version", info)
		}
		for line := range strings.Lines(info) {
			if strings.HasPrefix(line, "loading:") && line != "loading:0\r\n" || strings.HasPrefix(line, "master_link_status:") && line != "master_link_status:up\r\n" {
				t.Errorf("info says %q: the client would wait for ever", line)
			}
		}
		c.raw("*1\r\n$4\r\nquit\r\n")
		c.want(ok)
		c.wantClosed()
	})
}

func TestPublishesBehindABlockedConsumeWait(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		q, other := newRFQ(t, addr, "behind"), newRFQ(t, addr, "behind")
		q.write(cmd("brpoplpush", q.backlog(), q.nextlog(), "0"),
			cmd("multi"), cmd("hmset", q.message("2"), "n", "2"), cmd("lpush", q.backlog(), "2"), cmd("exec"))
		other.awaitBlocked(1)
		other.info(0, 0)
		publishers["python, newer"](other, "1", false, "n", "1")
		q.want(bulk("1"), ok, queued, queued, array(ok, number(1)))
		q.do(bulks("2"), "LRANGE", q.backlog(), "0", "-1")
		q.do(bulks("1"), "LRANGE", q.nextlog(), "0", "-1")
	})
}

func TestALargeMessageInPiecesIsPublished(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		q, large := newRFQ(t, addr, "large"), strings.Repeat("x", 40_000)
		q.raw("*1\r\n$5\r\nmulti\r\n")
		for _, piece := range []string{"*4\r\n", "$5\r\nhmset\r\n", bulk(q.message("1")), bulk("tile"), fmt.Sprintf("$%d\r\n", len(large)), large, "\r\n"} {
			q.raw(piece)
		}
		q.write(cmd("lpush", q.backlog(), "1"))
		q.write(cmd("exec"))
		q.want(ok, queued, queued, array(ok, number(1)))
		id, fields := consumers["javascript"](q)
		if id != "1" || !slices.Equal(fields, []string{"tile", large}) {
			t.Errorf("claimed %q with %d fields, want the large one", id, len(fields)/2)
		}
		committers["javascript"](q, "1")
	})
}

func TestTheProtocolOfTheRFQDocument(t *testing.T) {
	const (
		tile, ndvi       = "fe84ff90428611eabb02a4c3f0958f5d", "d97acb20428711eabb02a4c3f0958f5d"
		backlog, nextlog = "rfq:mytopic:backlog", "rfq:mytopic:nextlog"
		message          = "rfq:mytopic:message:"
	)
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.do(ok, "hmset", message+tile, "v", "1", "op", "tile")
		c.do(number(1), "lpush", backlog, tile)
		c.do(ok, "hmset", message+ndvi, "v", "1", "op", "ndvi")
		c.do(number(2), "lpush", backlog, ndvi)
		c.do(bulk(tile), "rpoplpush", backlog, nextlog)
		c.do(number(1), "lrem", nextlog, "0", tile)
		c.do(number(1), "del", message+tile)
		c.do(bulk(ndvi), "rpoplpush", backlog, nextlog)
		c.do(bulks(ndvi), "lrange", nextlog, "0", "-1")
		c.do(number(1), "lpush", backlog, ndvi)
		c.do(number(1), "lrem", nextlog, "0", ndvi)
		c.do(bulks("v", "1", "op", "ndvi"), "hgetall", message+ndvi)
	})
}
