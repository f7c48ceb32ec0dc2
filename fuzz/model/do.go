package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// conn is what a server knows of a connection.
type conn struct {
	db         byte // '0' is the first one
	multi      bool
	refused    bool // what MULTI queues: EXEC does nothing
	queued     [][]string
	watches    []string
	broken     bool  // a watched name was changed
	bulk       *bulk // the command that goes on in slices
	wait       *waiting
	subscriber      // of pinpriq
	second     bool // dialect of barbershop
}

// More is the reply to a command of which a slice was done. It is done again.
type More struct{}

// verb carries out a command. It may panic with an Err before it changes anything.
type verb func(s *Server, c call) any

// rule is how a command is carried out.
type rule struct {
	do   verb
	from int    // where its options begin, of those that netproto/words has; 0: it reads them itself
	kind string // what its name must stand for, if it stands for anything; "": anything
	adds bool   // a transaction with it is refused as a whole where a full disk stops what brings something
}

// call is a command of a client.
type call struct {
	conn    string // its address
	words   []string
	name    string            // the first one, with its database before it
	options map[string]string // with their last values
	tags    Map               // of a push
	filters []filter          // of a take
	exec    bool              // it is one of a transaction
	again   string            // what happened to this queue has it made again
	filled  bool              // its time to fill a batch is over
}

// rules are those of all commands but the ones of transactions.
var rules = map[string]rule{
	"QPUSH": {qpush, 3, isList, true}, "QMPUSH": {qmpush, 0, isList, true}, "QCLAIM": {qclaim, 2, isList, false}, "QPOP": {qpop, 2, isList, false},
	"QACK": {qack, 0, isList, false}, "QNACK": {qnack, 4, isList, false}, "QEXTEND": {qextend, 0, isList, false},
	"QCANCEL": {qcancel, 0, isList, false}, "QDEL": {qdel, 0, isList, false}, "QREDRIVE": {qredrive, 0, isList, false},
	"QPURGE": {inSlices, 2, isList, false}, "QHARVEST": {inSlices, 2, isList, false}, "QMOVE": {qmove, 0, isList, true},
	"QPRIO": {qprio, 0, isList, true}, "QRUN": {qrun, 3, isList, true}, "QPROGRESS": {qprogress, 0, isList, false},
	"QSET": {qset, 0, isList, true}, "QPAUSE": {qpause, 0, isList, true}, "QCLOSE": {qclose, 0, isList, true}, "QDROP": {qdrop, 0, isList, false},
	"QSHARE": {qshare, 3, isList, true}, "QSHARES": {qshares, 2, isList, false},
	"QLEN": {qlen, 0, isList, false}, "QSTAT": {qstat, 0, isList, false}, "QSHOW": {qshow, 0, isList, false},
	"QLIST": {qlist, 2, isList, false}, "QPEEK": {qpeek, 2, isList, false}, "QGET": {qget, 0, isList, false},
	"GET": {get, 0, isString, false}, "SET": {set, 0, "", true}, "SETNX": {setnx, 0, "", true}, "SETEX": {setex, 0, "", true}, "PSETEX": {setex, 0, "", true},
	"GETSET": {getset, 0, isString, true}, "GETDEL": {getdel, 0, isString, false}, "GETEX": {getex, 0, isString, false}, "MGET": {mget, 0, "", false},
	"MSET": {mset, 0, "", true}, "MSETNX": {msetnx, 0, "", true}, "APPEND": {setrange, 0, isString, true}, "SETRANGE": {setrange, 0, isString, true},
	"STRLEN": {getrange, 0, isString, false}, "GETRANGE": {getrange, 0, isString, false}, "SUBSTR": {getrange, 0, isString, false},
	"INCR": {incr, 0, isString, true}, "DECR": {incr, 0, isString, true}, "INCRBY": {incr, 0, isString, true}, "DECRBY": {incr, 0, isString, true},
	"INCRBYFLOAT": {incrbyfloat, 0, isString, true}, "HINCRBYFLOAT": {hincrbyfloat, 0, isHash, true}, "SCAN": {scan, 0, "", false}, "HSCAN": {scan, 0, isHash, false},
	"HSET": {hset, 0, isHash, true}, "HMSET": {hset, 0, isHash, true}, "HSETNX": {hset, 0, isHash, true}, "HINCRBY": {hincrby, 0, isHash, true},
	"HGET": {hget, 0, isHash, false}, "HMGET": {hget, 0, isHash, false}, "HEXISTS": {hget, 0, isHash, false}, "HSTRLEN": {hget, 0, isHash, false},
	"HGETALL": {hall, 0, isHash, false}, "HKEYS": {hall, 0, isHash, false}, "HVALS": {hall, 0, isHash, false}, "HLEN": {hall, 0, isHash, false}, "HDEL": {hdel, 0, isHash, false},
	"LPUSH": {lpush, 0, isList, true}, "RPUSH": {lpush, 0, isList, true}, "LPUSHX": {lpush, 0, isList, true}, "RPUSHX": {lpush, 0, isList, true},
	"LPOP": {lpop, 0, isList, false}, "RPOP": {lpop, 0, isList, false}, "LMPOP": {lmpop, 0, "", false}, "LMOVE": {lmove, 0, isList, true}, "RPOPLPUSH": {lmove, 0, isList, true},
	"BLPOP": {bpop, 0, "", false}, "BRPOP": {bpop, 0, "", false}, "BLMPOP": {bpop, 0, "", false}, "BLMOVE": {bpop, 0, isList, true}, "BRPOPLPUSH": {bpop, 0, isList, true},
	"LLEN": {llen, 0, isList, false}, "LRANGE": {lrange, 0, isList, false}, "LINDEX": {lindex, 0, isList, false}, "LPOS": {lpos, 0, isList, false},
	"LSET": {lset, 0, isList, true}, "LINSERT": {linsert, 0, isList, true}, "LREM": {lrem, 0, isList, false}, "LTRIM": {ltrim, 0, isList, false},
	"DEL": {del, 0, "", false}, "UNLINK": {del, 0, "", false}, "EXISTS": {exists, 0, "", false}, "TOUCH": {exists, 0, "", false}, "TYPE": {typeOf, 0, "", false},
	"RENAME": {rename, 0, "", false}, "RENAMENX": {rename, 0, "", false},
	"EXPIRE": {expire, 0, "", false}, "PEXPIRE": {expire, 0, "", false}, "EXPIREAT": {expire, 0, "", false}, "PEXPIREAT": {expire, 0, "", false},
	"PERSIST": {persist, 0, "", false}, "TTL": {ttl, 0, "", false}, "PTTL": {ttl, 0, "", false}, "EXPIRETIME": {ttl, 0, "", false}, "PEXPIRETIME": {ttl, 0, "", false},
	"FLUSHDB": {flush, 0, "", false}, "FLUSHALL": {flush, 0, "", false}, "DBSIZE": {dbsize, 0, "", false}, "KEYS": {keys, 0, "", false}, "QUEUES": {keys, 1, "", false},
}

// Rules are the names of the commands that Do knows.
func Rules() (names []string) {
	for name := range rules {
		names = append(names, name)
	}
	return append(names, "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "SELECT")
}

// Do carries out a command of a client at an address, and returns the reply.
func (s *Server) Do(client string, words []string) any {
	o := s.conns[client]
	if o == nil {
		o = &conn{db: '0'}
		s.conns[client] = o
	}
	row := rowOf(words[0])
	if row == nil || !fits(row, len(words)-1) || o.multi && Sliced(words) {
		o.refused = o.multi
		return Err("ERR")
	}
	switch words[0] {
	case "MULTI", "EXEC", "DISCARD", "WATCH":
		return s.transaction(client, o, words)
	}
	if o.multi {
		o.queued = append(slices.Clone(o.queued), words)
		return "QUEUED"
	}
	return s.carryOut(call{conn: client, words: words})
}

// transaction carries out what MULTI does not queue.
func (s *Server) transaction(client string, o *conn, words []string) any {
	queued, refused, broken := o.queued, o.refused, o.broken
	switch {
	case words[0] == "WATCH" && s.room == Stuck:
		return Err("OOM")
	case words[0] == "WATCH" && !o.multi:
		for _, name := range words[1:] {
			o.watches = append(slices.Clone(o.watches), string(o.db)+name)
		}
		return "OK"
	case words[0] == "MULTI" && !o.multi:
		o.multi = true
		return "OK"
	case o.multi == (words[0] == "MULTI" || words[0] == "WATCH"):
		return Err("ERR")
	}
	*o = conn{db: o.db}
	claims := slices.ContainsFunc(queued, func(words []string) bool { return words[0] == "QCLAIM" })
	switch {
	case words[0] == "DISCARD":
		return "OK"
	case refused, s.room == Stuck, s.room >= NoPush && slices.ContainsFunc(queued, adds), s.room == Stop && claims:
		return Err("EXECABORT")
	case broken:
		return nil
	}
	all := []any{}
	replies, _ := s.reply.([]any)
	for i, words := range queued {
		if s.reply = nil; i < len(replies) {
			s.reply = replies[i]
		}
		all = append(all, s.carryOut(call{conn: client, words: words, exec: true}))
	}
	return all
}

// adds says that a command brings something. One that does refuses its transaction as a whole.
func adds(words []string) bool {
	return rules[words[0]].adds || words[0] == "QREDRIVE" && len(words) == 3
}

// Sliced says that a command goes on in slices, whatever there is. It is no part of a transaction.
func Sliced(words []string) bool {
	switch words[0] {
	case "QREDRIVE":
		return len(words) != 3 || words[2] == "DRYRUN"
	case "QMOVE":
		return words[2] == "TO"
	}
	return words[0] == "QPURGE" || words[0] == "QHARVEST"
}

// rowOf is the row of a command in the tables of words, nil if it has none.
func rowOf(name string) *words.Command {
	for _, g := range words.Commands {
		for i := range g.Commands {
			if g.Commands[i].Name == name {
				return &g.Commands[i]
			}
		}
	}
	return nil
}

// fits says whether a form of a command takes so many arguments. What is in [] may be missing.
func fits(row *words.Command, n int) bool {
	least, most, depth, ok := 0, 0, 0, false
	endless := len(row.Options()) > 0 || strings.ContainsAny(row.Arguments, "…[")
	for word := range strings.FieldsSeq(row.Arguments + " |") {
		if word == "|" && depth == 0 {
			ok = ok || n >= least && (n <= most || endless)
			least, most = 0, 0
			continue
		}
		depth += strings.Count(word, "[")
		if most++; depth == 0 && word != "…" {
			least++
		}
		depth -= strings.Count(word, "]")
	}
	return ok
}

// Gone says that a client has hung up.
func (s *Server) Gone(client string) { delete(s.conns, client) }

func (s *Server) carryOut(c call) (reply any) {
	words := c.words
	o, r := s.conns[c.conn], rules[words[0]]
	switch {
	case words[0] == "SELECT":
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 0 || n > 15 {
			return Err("ERR")
		}
		o.db = '0' + byte(n)
		return "OK"
	case words[0] == "UNWATCH":
		o.watches, o.broken = nil, false
		return "OK"
	case r.do == nil:
		panic("no rule for " + words[0])
	case s.room == Stuck:
		o.bulk = nil
		return OneOf{Err("OOM"), Err("ERR")} // an argument may be wrong, too
	}
	if len(words) > 1 {
		c.name = string(o.db) + words[1]
	}
	defer func() {
		s.emptied()
		if reply != (More{}) {
			o.bulk = nil
		}
		switch e := recover().(type) {
		case nil:
		case Err:
			reply = e
		default: // a mistake of the model's
			panic(e)
		}
		if !took(reply) && (r.adds && s.room >= NoPush || s.room >= Stop) { // the one is found first, or the other
			reply = OneOf{reply, Err("OOM")}
		}
	}()
	if r.from > 0 {
		from := r.from
		for from+1 < len(words) && words[from] == "OR" && (words[0] == "QPOP" || words[0] == "QCLAIM") {
			from += 2
		}
		c.parse(from)
	}
	if is := s.kind(cmp.Or(c.again, c.name)); r.kind != "" && is != isNone && is != r.kind {
		return OneOf{Err("WRONGTYPE"), Err("ERR")} // an argument may be wrong, too
	}
	if q := s.queues[c.name]; q != nil && q.shareBy != none && slices.Contains(places, words[0]) {
		if len(s.line(c.name, true)) > 0 && words[0] != "LINDEX" {
			return Err("ERR")
		} else if reply := r.do(s, c); reply == nil || words[0] != "LINDEX" { // where there is nothing it is known without places
			return OneOf{reply, Err("ERR")}
		}
		return Err("ERR")
	}
	switch {
	case !c.has("SHARE"):
		return r.do(s, c)
	case !s.exists(c.name) && Sliced(words):
		return OneOf{s.endBulk(c.conn), Err("ERR")}
	case !s.exists(c.name): // it may be known that it was there
		return OneOf{r.do(s, c), Err("ERR")}
	case s.queues[c.name].shareBy == none:
		return Err("ERR")
	}
	return r.do(s, c)
}

// places are commands that name a place of a list: shares have none.
var places = []string{"LINDEX", "LINSERT", "LPOS", "LRANGE", "LREM", "LSET", "LTRIM"}

// takes says what a full disk refuses of what changes something, nil if nothing.
func (s *Server) takes() any {
	if s.room >= Stop {
		return Err("OOM")
	}
	return nil
}

// stores is takes of what brings something.
func (s *Server) stores() any {
	if s.room >= NoPush {
		return Err("OOM")
	}
	return nil
}

// parse reads the options behind some words, as the tables of words have them.
func (c *call) parse(from int) {
	c.options, c.tags, c.filters = map[string]string{}, Map{}, nil
	row, chosen := rowOf(c.words[0]), words.Choice(0)
	for at := from; at < len(c.words); {
		i := slices.IndexFunc(row.Options(), func(o *words.Option) bool { return o.Word == c.words[at] })
		if i < 0 {
			panic(Err("ERR"))
		}
		o := row.Options()[i]
		if c.has(o.Word) && !o.Many || chosen&o.Choice != 0 {
			panic(Err("ERR"))
		}
		chosen |= o.Choice
		values := c.words[at+1:]
		n := len(strings.Fields(o.Values))
		if o == &words.MATCH {
			n = map[bool]int{true: 1, false: 2}[len(values) > 0 && values[0] == "ALL"]
		}
		if len(values) < n {
			panic(Err("ERR"))
		}
		c.option(o, values[:n])
		at += 1 + n
	}
	within(c.number("ANY", 0), 0, int64(len(c.filters)))
	for _, o := range row.Options() {
		if o.Needs != nil && c.has(o.Word) && !c.has(o.Needs.Word) {
			panic(Err("ERR"))
		}
	}
}

// option reads the values of an option.
func (c *call) option(o *words.Option, values []string) {
	value, word, ok := strings.Join(values, " "), o.Word, true
	among := func(texts string) bool { return slices.Contains(strings.Fields(texts), value) }
	switch {
	case o == &words.OR: // it stands elsewhere
		ok = false
	case o == &words.TAG:
		_, twice := c.tags[values[0]]
		ok = values[0] != "" && !twice
		c.tags[values[0]] = values[1]
	case o == &words.FILTER:
		value = values[1]
		ok = values[0] != "" && among("eq ne lt le gt ge")
		c.filters = append(c.filters, filter{values[0], values[1], values[2]})
	case o == &words.MATCH && values[0] != "ALL":
		word, value = "ANY", values[len(values)-1]
		ok = values[0] == word && len(values) == 2
		within(number(value), o.Low, o.High)
	case o == &words.STATE:
		ok = among("ready delayed claimed dead done damaged")
	case strings.Contains(o.Values, "|"):
		ok = o == &words.MATCH || among(strings.ReplaceAll(o.Values, "|", " "))
	case slices.Contains(strings.Fields("n ms unix-ms percent"), o.Values):
		within(number(value), o.Low, o.High)
	case o.High > 0:
		within(int64(len(value)), o.Low, o.High)
	}
	if c.options[word] = value; !ok {
		panic(Err("ERR"))
	}
}

func within(n, low, high int64) {
	if n < low || n > high {
		panic(Err("ERR"))
	}
}

func (c *call) has(option string) bool { _, ok := c.options[option]; return ok }

// number is the value of an option, or another one if it is not given.
func (c *call) number(option string, otherwise int64) int64 {
	if !c.has(option) {
		return otherwise
	}
	return number(c.options[option])
}

// number reads a whole number as Redis does.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		panic(Err("ERR"))
	}
	return n
}

// Key is how the model calls a name of a database.
func Key(db uint8, name string) string { return string('0'+db) + name }

// Name is how the model calls what a client means by a name.
func (s *Server) Name(client, name string) string { return string(s.conns[client].db) + name }
