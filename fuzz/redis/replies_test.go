package redis

import (
	"strings"
	"testing"
)

func TestRepliesThatClientsKnow(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.do(number(1), "LPUSH", "list", "x")
		c.do(ok, "SET", "string", "x")
		for _, r := range []struct {
			send []string
			want string
		}{
			{cmd("PING"), "+PONG\r\n"},
			{cmd("ping", "x"), bulk("x")},
			{cmd("ECHO", "x"), bulk("x")},
			{cmd("SELECT", "0"), ok},
			{cmd("SELECT", "99"), "-ERR DB index is out of range\r\n"},
			{cmd("LPUSH", "q"), "-ERR wrong number of arguments for 'lpush' command\r\n"},
			{cmd("lpush"), "-ERR wrong number of arguments for 'lpush' command\r\n"},
			{cmd("GET", "list"), wrongType},
			{cmd("INCR", "list"), wrongType},
			{cmd("HGETALL", "list"), wrongType},
			{cmd("LPUSH", "string", "x"), wrongType},
			{cmd("RPOPLPUSH", "list", "string"), wrongType},
			{cmd("BRPOP", "string", "0"), wrongType},
			{cmd("BRPOP", "nothing", "string", "0"), wrongType},
			{cmd("LRANGE", "list", "0", "-1"), bulks("x")},
			{cmd("BRPOP", "nothing", "-1"), "-ERR timeout is negative\r\n"},
			{cmd("BRPOP", "nothing", "x"), "-ERR timeout is not a float or out of range\r\n"},
			{cmd("BRPOP", "nothing", ""), "-ERR timeout is not a float or out of range\r\n"},
			{cmd("INCR", "string"), "-ERR value is not an integer or out of range\r\n"},
			{cmd("LREM", "list", "x", "x"), "-ERR value is not an integer or out of range\r\n"},
			{cmd("LINDEX", "list", "1"), null},
			{cmd("RPOP", "nothing"), null},
			{cmd("RPOP", "nothing", "2"), nullArray},
			{cmd("RPOPLPUSH", "nothing", "list"), null},
			{cmd("GET", "nothing"), null},
			{cmd("LRANGE", "nothing", "0", "-1"), emptyArray},
			{cmd("TYPE", "list"), "+list\r\n"},
			{cmd("TYPE", "nothing"), "+none\r\n"},
			{cmd("EXISTS", "list", "list", "string", "nothing"), number(3)},
			{cmd("DEL", "nothing"), number(0)},
			{cmd("EXEC"), "-ERR EXEC without MULTI\r\n"},
			{cmd("DISCARD"), "-ERR DISCARD without MULTI\r\n"},
			{cmd("FOO"), "-ERR unknown command 'FOO', with args beginning with: \r\n"},
			{cmd("foo", "a", "b c"), "-ERR unknown command 'foo', with args beginning with: 'a' 'b c' \r\n"},
		} {
			c.do(r.want, r.send...)
		}
	})
}

func TestATransactionThatCannotRun(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.do(ok, "MULTI")
		c.do("-ERR MULTI calls can not be nested\r\n", "MULTI")
		c.do(queued, "INCR", "n")
		c.do(array(number(1)), "EXEC")

		c.do(ok, "MULTI")
		c.do(queued, "INCR", "n")
		c.do("-ERR wrong number of arguments for 'incr' command\r\n", "INCR")
		c.do("-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
		c.do(bulk("1"), "GET", "n")

		c.do(ok, "MULTI")
		c.do(queued, "INCR", "n")
		c.do(queued, "LPUSH", "n", "x")
		c.do(queued, "INCR", "n")
		c.do(array(number(2), wrongType, number(3)), "EXEC")

		c.do(ok, "MULTI")
		c.do(queued, "INCR", "n")
		c.do(ok, "DISCARD")
		c.do(bulk("3"), "GET", "n")
		c.do(ok, "MULTI")
		c.do(emptyArray, "EXEC")
	})
}

func TestAWatchIsBrokenByAnyoneWhoChangesTheKey(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, other := dial(t, addr), dial(t, addr)
		for name, change := range map[string][]command{
			"made":             {cmd("SET", "k", "1")},
			"pushed":           {cmd("LPUSH", "k", "1")},
			"popped":           {cmd("LPUSH", "k", "1"), cmd("WATCH", "k"), cmd("RPOP", "k")},
			"made and deleted": {cmd("SET", "k", "1"), cmd("DEL", "k")},
			"renamed":          {cmd("SET", "j", "1"), cmd("RENAME", "j", "k")},
			"flushed":          {cmd("SET", "k", "1"), cmd("FLUSHDB")},
		} {
			c.ask("DEL", "k")
			c.do(ok, "WATCH", "k", "j")
			for _, args := range change {
				other.ask(args...)
			}
			if got := c.transaction(cmd("INCR", "never")); got != nullArray {
				t.Errorf("%s: EXEC is answered %q, want nil", name, got)
			}
			other.ask("UNWATCH")
			c.ask("DEL", "k")
			if got := c.transaction(cmd("PING")); got != array("+PONG\r\n") {
				t.Errorf("%s: the next EXEC is answered %q: the watch ends with the first", name, got)
			}
		}
		c.do(number(0), "EXISTS", "never")
		c.do(ok, "WATCH", "k")
		other.do(ok, "SET", "k", "1")
		c.do(ok, "UNWATCH")
		if got := c.transaction(cmd("GET", "k")); got != array(bulk("1")) {
			t.Errorf("EXEC after UNWATCH is answered %q", got)
		}
		c.do(ok, "WATCH", "k")
		if got := c.transaction(cmd("INCR", "k")); got != array(number(2)) {
			t.Errorf("EXEC after a change of its own is answered %q", got)
		}
	})
}

func TestInlineCommandsAndEmptyArrays(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.raw("PING\r\n\r\nping\n*0\r\n*-1\r\n  LPUSH q \"a b\" 'c' \r\nLRANGE q 0 -1\r\n")
		c.want("+PONG\r\n", "+PONG\r\n", number(2), bulks("c", "a b"))
		c.raw("SET q2 \"unbalanced\r\n")
		c.want("-ERR Protocol error: unbalanced quotes in request\r\n")
		c.wantClosed()
	})
}

func TestACommandMayComeInAnyPieces(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		for _, b := range []byte(bulks("LPUSH", "q", "x\r\ny") + bulks("RPOP", "q")) {
			c.raw(string(b))
		}
		c.want(number(1), bulk("x\r\ny"))
	})
}

func TestALongPipelineIsAnsweredInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		var commands []command
		for range 2_000 {
			commands = append(commands, cmd("LPUSH", "q", strings.Repeat("x", 100)), cmd("INCR", "n"), cmd("RPOP", "q"))
		}
		go c.write(commands...) // ends when the server has read all
		for i := range 2_000 {
			c.want(number(1), number(i+1), bulk(strings.Repeat("x", 100)))
		}
	})
}

func TestMemoryUsageIsAFigureForEveryType(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		large := strings.Repeat("x", 1000)
		c.do(ok, "SET", "string", large)
		c.do(number(1), "HSET", "hash", "f", large)
		c.do(number(1), "LPUSH", "list", large)
		for _, name := range []string{"string", "hash", "list"} {
			if n := c.int(c.ask("MEMORY", "USAGE", name)); n < 1000 || n > 2000 {
				t.Errorf("MEMORY USAGE %s says %d, want a little more than 1000", name, n)
			}
		}
		c.do(null, "MEMORY", "USAGE", "nothing", "SAMPLES", "0")
	})
}
