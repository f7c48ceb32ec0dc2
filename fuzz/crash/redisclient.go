package crash

import (
	"math/rand/v2"
	"strings"
)

// redisOp is one request of a redisClient: a command, or several as a transaction.
type redisOp struct {
	commands [][]string
	own      bool // they concern the client's own names only
	answer   func(reply string)
	lost     *int // counts those without a reply; nil if nobody needs to know
}

// replies is how many replies the request has.
func (o *redisOp) replies() int {
	if len(o.commands) == 1 {
		return 1
	}
	return len(o.commands) + 2
}

// redisClient is a client of the Redis protocol. Nobody else uses its own names, so the replies and
// what a restart finds under them are known exactly.
type redisClient struct {
	pipeline[redisOp]
	sent    keyspace // its own names after all requests that were sent
	acked   keyspace // and after those that were answered
	serial  uint64   // of the last value under its own names, or of the last mortal
	astray  bool     // a reply was wrong: the next ones will be, until a restart shows what is there
	claimed []string // elements of the topic that it has moved
	mortals []*mortal
}

// redisPart is the part of IDs that the first of these clients has.
const redisPart = 10_000

func newRedisClient(r *run, number int, rng *rand.Rand) *redisClient {
	return &redisClient{
		pipeline: pipeline[redisOp]{r: r, number: redisPart + number, rng: rng},
		sent:     keyspace{}, acked: keyspace{},
	}
}

func (c *redisClient) connect() (err error) {
	c.link, err = c.r.server.dial(redisListener)
	return err
}

func (c *redisClient) work() { c.follow("a client of the Redis protocol", c.build, c.answer) }

// hangUp leaves the unanswered requests to checkRedis.
func (c *redisClient) hangUp(endKind) int {
	c.link.conn.Close()
	for _, op := range c.unanswered() {
		if op.lost != nil {
			*op.lost++
		}
	}
	return len(c.unanswered())
}

// build makes the next pipeline.
func (c *redisClient) build(requests int) {
	for range requests {
		op := c.choose()
		if len(op.commands) > 1 {
			c.link.addCommand("MULTI")
		}
		for _, args := range op.commands {
			c.link.addCommand(args...)
		}
		if len(op.commands) > 1 {
			c.link.addCommand("EXEC")
		}
		c.ops = append(c.ops, op)
	}
}

// answer reads the replies to the next request.
func (c *redisClient) answer() error {
	op := &c.ops[c.done]
	var replies strings.Builder
	for range op.replies() {
		reply, err := c.link.receiveReply()
		if err != nil {
			return err
		}
		replies.WriteString(reply)
	}
	op.answer(replies.String())
	c.r.ops[ofRedis].Add(int64(len(op.commands)))
	c.done++
	return nil
}

// choose picks the next request.
func (c *redisClient) choose() redisOp {
	switch n := c.rng.IntN(100); {
	case n < 35:
		return c.ofTopic()
	case n < 40:
		return c.ofMortal()
	case n < 50:
		return c.own(2 + c.rng.IntN(4))
	default:
		return c.own(1)
	}
}

// own makes a request of so many commands under the client's own names.
func (c *redisClient) own(n int) redisOp {
	op := redisOp{own: true}
	want := ""
	for range n {
		args := c.command()
		op.commands = append(op.commands, args)
		want += c.sent.step(args)
	}
	want = transactionReply(n, want)
	op.answer = func(reply string) {
		c.acked.apply(op.commands)
		if reply != want && !c.astray {
			c.r.report(Order, "the reply to %s is %s instead of %s", briefCommands(op.commands), brief(reply), brief(want))
			c.astray = true
		}
	}
	return op
}

// ofTopic makes a request that concerns the topic.
func (c *redisClient) ofTopic() redisOp {
	t := c.r.topic
	n := c.rng.IntN(100)
	if len(c.claimed) > 0 && n < 45 {
		return c.commit()
	}
	if n < 65 && t.len() < maxTopic {
		id := t.add(c.number)
		v := string(appendPayload(nil, id, randomSize(c.rng)))
		return redisOp{commands: one("LPUSH", topicName, v), answer: func(reply string) {
			t.ack(id)
			if reply[0] != ':' {
				c.r.report(Corrupt, "the reply to a push to the topic is %q", reply)
			}
		}}
	}
	if n%3 > 0 {
		return redisOp{commands: one("RPOPLPUSH", topicName, nextName), lost: &t.moves, answer: func(reply string) { c.take(reply, true) }}
	}
	args := []string{"RPOP", topicName}
	if c.rng.IntN(4) == 0 {
		args = []string{"BRPOP", topicName, "0.02"}
	}
	return redisOp{commands: one(args...), lost: &t.pops, answer: func(reply string) { c.take(reply, false) }}
}

// maxTopic is how many elements of the topic are too many for another push.
const maxTopic = 3000

func one(args ...string) [][]string { return [][]string{args} }

// commit makes a request that removes an element which the client has moved.
func (c *redisClient) commit() redisOp {
	v := c.claimed[0]
	c.claimed = c.claimed[1:]
	id, _ := parsePayload([]byte(v))
	c.r.topic.committing(id)
	return redisOp{commands: one("LREM", nextName, "1", v), answer: func(reply string) {
		c.r.topic.committed(id)
		if reply != replyInt(1) {
			c.r.report(Lost, "the removal of element %v, which was moved, answers %q", id, reply)
		}
	}}
}

// take notes what a pop or a move of the topic gave.
func (c *redisClient) take(reply string, moved bool) {
	values := bulks(reply)
	if len(values) == 0 {
		if reply != replyNull && reply != "*-1\r\n" {
			c.r.report(Corrupt, "the reply to a pop of the topic is %q", reply)
		}
		return
	}
	v := values[len(values)-1]
	id, whole := parsePayload([]byte(v))
	if !whole {
		c.r.report(Corrupt, "an element of the topic has %d bytes that nobody pushed", len(v))
		return
	}
	if broken := c.r.topic.take(id, moved); broken != "" {
		c.r.report(broken, "element %v of the topic was handed out, and had been before, or was never pushed", id)
	} else if moved {
		c.claimed = append(c.claimed, v)
	}
}
