package crash

import (
	"fmt"
	"strconv"
)

// mortal is a name that is made once, with a time to live. Its packet holds the times.
type mortal struct {
	packet
	name string
	read []string // the command that reads it
	want string   // the reply to that while it lives
	dead bool     // it was not there at a check, and must never come
}

// ofMortal makes a request that makes a mortal name: a string, a list or a hash.
func (c *redisClient) ofMortal() redisOp {
	if n := len(c.mortals); n > 0 && c.rng.IntN(2) == 0 {
		m := c.mortals[c.rng.IntN(n)]
		asked := c.asked
		return redisOp{commands: [][]string{m.read}, answer: func(reply string) { c.checkMortal(m, reply, asked) }}
	}
	c.serial++
	ttl := randomTTL(c.rng)
	name := fmt.Sprintf("mortal:%d:%d", c.number, c.serial)
	v, ms := c.element(), strconv.Itoa(ttl)
	m := &mortal{packet: packet{sent: c.asked, ttl: int32(ttl)}, name: name}
	op := redisOp{answer: func(reply string) {
		m.by = c.r.ledger.now()
		if reply[0] != '+' {
			c.r.report(Corrupt, "the reply to the making of %s is %.300q", name, reply)
		}
	}}
	switch c.rng.IntN(3) {
	case 0:
		m.read, m.want = []string{"GET", name}, replyBulk(v)
		op.commands = one("SET", name, v, "PX", ms)
	case 1:
		m.read, m.want = []string{"LRANGE", name, "0", "-1"}, "*2\r\n"+replyBulk("2")+replyBulk(v)
		op.commands = [][]string{{"LPUSH", name, v, "2"}, {"PEXPIRE", name, ms}}
	default:
		m.read, m.want = []string{"HGETALL", name}, "*2\r\n"+replyBulk("field")+replyBulk(v)
		op.commands = [][]string{{"HSET", name, "field", v}, {"PEXPIRE", name, ms}}
	}
	c.mortals = append(c.mortals, m)
	return op
}

// checkMortal compares the reply to a read of a mortal name, which was sent at asked. alive is
// false if the name is not there.
func (c *redisClient) checkMortal(m *mortal, reply string, asked int64) (alive bool) {
	switch {
	case reply == replyNull || reply == "*0\r\n":
		if m.by != 0 && !m.dead && !m.mayExpire(c.r.ledger.now()) {
			c.r.report(Lost, "%s lives %d ms, and is gone %d ms after it was made", m.name, m.ttl, (c.r.ledger.now()-m.sent)/1e6)
		}
		return false
	case m.dead:
		c.r.report(Returned, "%s is there again", m.name)
	case reply != m.want:
		c.r.report(Corrupt, "%s is %.300q instead of %.300q", m.name, reply, m.want)
	case m.mustExpire(asked):
		c.r.report(Expired, "%s lives %d ms and is there %d ms after it was made", m.name, m.ttl, (asked-m.by)/1e6)
	}
	return true
}

// checkMortals reads all mortal names after a restart. Those that are gone are read once more at
// the next.
func (c *redisClient) checkMortals(link *link) error {
	var reads [][]string
	for _, m := range c.mortals {
		reads = append(reads, m.read, []string{"PTTL", m.name})
	}
	asked := c.r.ledger.now()
	replies, err := link.ask(reads)
	if err != nil {
		return err
	}
	var left []*mortal
	for i, m := range c.mortals {
		alive := c.checkMortal(m, replies[2*i], asked)
		if alive && replies[2*i+1] == replyInt(-1) {
			c.r.report(Order, "%s is there without the time to live that was set with it", m.name)
		}
		if !m.dead {
			left = append(left, m)
		}
		if m.dead = !alive; m.by == 0 {
			m.by = asked // it was made before, if at all
		}
	}
	c.mortals = left
	return nil
}
