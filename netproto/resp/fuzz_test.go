package resp

import (
	"slices"
	"strings"
	"testing"
)

// vocabulary is what the arguments of FuzzCommands are made of: names, values, numbers at the edges
// and options.
var vocabulary = strings.Split("a b c a b c x 0 1 -1 2 3 10 100 -100 4294967296 9223372036854775807 -9223372036854775808 9223372036854775808"+
	" 1.5 -0.25 1e400 nan inf * ? [a-b] ( left right before after count match type list string hash get nx xx gt lt ex px exat pxat keepttl"+
	" persist withvalues rank maxlen replace db limit encoding async sync ch"+
	" prio key ttl delay tag producer consumer lease newest group reason state ready claimed dead cursor older to dryrun retain dead-letter max-attempts"+
	" bound bound-bytes full drop exclusive-consumer yes no pause-in pause-out enum filter eq ne lt le gt ge any all unique window until claim end replace tell untilclaim", " ")

// endless are commands that do not answer once and at once, or change how others are answered.
var endless = []string{"blpop", "brpop", "blmpop", "brpoplpush", "blmove", "quit", "subscribe", "psubscribe", "unsubscribe",
	"punsubscribe", "client|kill", "client|reply", "hello", "reset"}

// requestsOf makes requests of bytes: the first says which command, the second how many arguments
// it gets, and the following which.
func requestsOf(table []*command, data []byte) (requests [][]string) {
	for len(data) > 2 && len(requests) < 64 {
		c := table[int(data[0])%len(table)]
		n := min(int(data[1])%8, len(data)-2)
		words := strings.Split(c.name, "|")
		for _, b := range data[2 : 2+n] {
			words = append(words, vocabulary[int(b)%len(vocabulary)])
		}
		requests = append(requests, words)
		data = data[2+n:]
	}
	return requests
}

// allCommands lists the commands that FuzzCommands uses.
func allCommands() (list []*command) {
	for _, c := range newTable() {
		subs := make([]*command, 0, len(c.subs))
		for i := range c.subs {
			subs = append(subs, &c.subs[i])
		}
		if c.run != nil {
			subs = append(subs, c)
		}
		list = append(list, subs...)
	}
	list = slices.DeleteFunc(list, func(c *command) bool { return slices.Contains(endless, c.name) })
	slices.SortFunc(list, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return list
}

// is2 says that a reply has only what RESP2 has.
func (r reply) is2() bool {
	return strings.IndexByte("+-:$*", r.kind) >= 0 && !slices.ContainsFunc(r.elements, func(e reply) bool { return !e.is2() })
}

// FuzzCommands checks that every request gets one whole reply, whatever was done before.
func FuzzCommands(f *testing.F) {
	table := allCommands()
	index := func(name string) byte {
		return byte(slices.IndexFunc(table, func(c *command) bool { return c.name == name }))
	}
	f.Add([]byte{index("multi"), 0, index("lpush"), 3, 0, 1, 2, index("rpoplpush"), 2, 0, 1, index("exec"), 0, index("lrange"), 3, 0, 7, 9})
	f.Add([]byte{index("set"), 2, 0, 1, index("append"), 2, 0, 1, index("setrange"), 3, 0, 13, 1, index("get"), 1, 0, index("rename"), 2, 0, 1})
	f.Add([]byte{index("hset"), 3, 0, 1, 2, index("hincrby"), 3, 0, 1, 8, index("hgetall"), 1, 0, index("rename"), 2, 0, 1, index("del"), 2, 0, 1})
	requests := func(all ...string) (data []byte) {
		for _, r := range all {
			words := strings.Split(r, " ")
			data = append(data, index(words[0]), byte(len(words)-1))
			for _, w := range words[1:] {
				data = append(data, byte(slices.Index(vocabulary, w)))
			}
		}
		return data
	}
	f.Add(requests("qset a enum b 1 2 3", "qpush a x tag b 2", "qpush a x tag b 3", "qpush a x tag b 0", "qlist a filter b ge 1",
		"qclaim a filter b lt 3", "qharvest a filter b eq 2", "qmove a to c filter b ne 3", "qpurge a dryrun"))
	f.Add(requests("qset a full drop bound 3 bound-bytes 10", "qmpush a 3 x x x prio 100", "qpush a x prio 10", "lpush a x x", "multi",
		"qmpush a 2 b c prio 3", "rpush a x", "rpoplpush a a", "linsert a before x b", "exec", "qpush a x key b prio 0", "qmove a to c", "rename a c"))
	d := newDoor(f, Config{})
	f.Fuzz(func(t *testing.T, data []byte) {
		d.t = t
		c := d.dial()
		defer c.Close()
		c.ask("FLUSHALL", "+OK\r\n")
		requests := requestsOf(table, data)
		var all strings.Builder
		for _, words := range requests {
			all.WriteString(request(words...))
		}
		c.send(all.String() + request("ECHO", "the end") + request("DISCARD"))
		for _, words := range append(requests, []string{"ECHO"}, []string{"DISCARD"}) {
			if r := c.read(); !r.is2() {
				t.Fatalf("%q: reply %s", words, r)
			}
		}
		c.wantNothing()
	})
}
