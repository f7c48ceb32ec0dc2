package resp

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const queuedReply = "+QUEUED\r\n"

func TestATransactionRunsAtExec(t *testing.T) {
	d := newDoor(t, Config{})
	c, other := d.dial(), d.dial()
	c.ask("EXEC", "-ERR EXEC without MULTI\r\n")
	c.ask("DISCARD", "-ERR DISCARD without MULTI\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("MULTI", "-ERR MULTI calls can not be nested\r\n")
	c.ask("LPUSH l a b", queuedReply)
	c.ask("WATCH x", "-ERR WATCH inside MULTI is not allowed\r\n")
	c.ask("RPOPLPUSH l m", queuedReply)
	c.ask("INCR l", queuedReply)
	c.ask("BLPOP nothing 0", queuedReply)
	c.ask("LRANGE l 0 -1", queuedReply)
	other.ask("LLEN l", ":0\r\n")
	c.ask("EXEC", "*5\r\n:2\r\n$1\r\na\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n*-1\r\n*1\r\n$1\r\nb\r\n")
	other.ask("LRANGE m 0 -1", "*1\r\n$1\r\na\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("SET k v", queuedReply)
	c.ask("DISCARD", "+OK\r\n")
	c.ask("EXISTS k", ":0\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("EXEC", "*0\r\n")
}

func TestATransactionWithARefusedCommandDoesNothing(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	const aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	for _, c := range []struct {
		conn            *conn
		request, reason string
	}{
		{c, "nonsense x", "-ERR unknown command 'nonsense', with args beginning with: 'x' \r\n"},
		{c, "SET k", "-ERR wrong number of arguments for 'set' command\r\n"},
		{c, "SUBSCRIBE", "-ERR wrong number of arguments for 'subscribe' command\r\n"},
	} {
		c.conn.ask("MULTI", "+OK\r\n")
		c.conn.ask("SET k v", queuedReply)
		c.conn.ask(c.request, c.reason)
		c.conn.ask("SET k w", queuedReply)
		c.conn.ask("EXEC", aborted)
		c.conn.ask("EXISTS k", ":0\r\n")
	}
}

func TestExecNoticesWhatIsWatched(t *testing.T) {
	d := newDoor(t, Config{})
	c, other := d.dial(), d.dial()
	exec := func(want string) {
		t.Helper()
		c.ask("MULTI", "+OK\r\n")
		c.ask("PING", queuedReply)
		c.ask("EXEC", want)
	}
	const done, broken = "*1\r\n+PONG\r\n", "*-1\r\n"
	c.ask("WATCH a b", "+OK\r\n")
	exec(done)
	other.ask("SET a 1", "+OK\r\n")
	exec(done) // EXEC has ended the watch
	for name, change := range map[string]string{"another client's": "SET b 2", "a list": "LPUSH l x", "a hash": "HSET h f 1"} {
		c.ask("WATCH b l h", "+OK\r\n")
		other.line(strings.Split(change, " ")...)
		t.Log(name)
		exec(broken)
		exec(done)
	}
	c.ask("WATCH b", "+OK\r\n")
	c.ask("SET b 3", "+OK\r\n")
	exec(broken)
	c.ask("WATCH b", "+OK\r\n")
	other.ask("DEL b", ":1\r\n")
	c.ask("UNWATCH", "+OK\r\n")
	exec(done)
	c.ask("SET b 1 PX 1000", "+OK\r\n")
	c.ask("WATCH b", "+OK\r\n")
	d.now += 1000
	exec(broken)
	c.ask("WATCH b", "+OK\r\n")
	other.ask("SET b 1", "+OK\r\n")
	c.ask("DISCARD", "-ERR DISCARD without MULTI\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("DISCARD", "+OK\r\n")
	exec(done)
}

func TestATransactionHoldsFourMegabytesOfAnyCommands(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	value := strings.Repeat("x", 1<<20-1)
	c.ask("MULTI", "+OK\r\n")
	for i := range 3 {
		c.ask(fmt.Sprintf("SET k%d %s", i, value), queuedReply)
	}
	c.send(request("SET", "k4", value))
	if got := c.readLine(); !strings.HasPrefix(got, "-ERR transaction too large: its commands may take 4194304 bytes") {
		t.Errorf("the last command: %q", got)
	}
	c.ask("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n")

	c.ask("MULTI", "+OK\r\n")
	for i := range 10_000 {
		c.send(request("SET", fmt.Sprint(i), "x"))
	}
	c.want(strings.Repeat(queuedReply, 10_000))
	c.ask("EXEC", "*10000\r\n"+strings.Repeat("+OK\r\n", 10_000))
	c.ask("DBSIZE", ":10000\r\n")
}

func TestAWaitInATransactionChangesOneElement(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("MULTI", "+OK\r\n")
	for range 20 {
		c.ask("BLPOP"+strings.Repeat(" k", 1000)+" 0", queuedReply)
	}
	c.ask("EXEC", "*20\r\n"+strings.Repeat("*-1\r\n", 20))
}

// What a command in a transaction brings is not there yet when room is reserved.
func TestCommandsOfATransactionBuildOnEachOther(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	big := strings.Repeat("x", 50_000)
	c.ask("RPUSH old "+big+" "+big, ":2\r\n")
	c.ask("MULTI", "+OK\r\n")
	for _, words := range []string{
		"LPUSH l " + big, "RPOPLPUSH l m", "LPOP m 2",
		"SET s " + big, "APPEND s " + big, "RENAME s t", "STRLEN t",
		"RPOP old", "RPOPLPUSH old new", "DEL new", "EXISTS l m old new",
	} {
		c.ask(words, queuedReply)
	}
	bulk := "$50000\r\n" + big + "\r\n"
	c.ask("EXEC", "*11\r\n:1\r\n"+bulk+"*1\r\n"+bulk+"+OK\r\n:100000\r\n+OK\r\n:100000\r\n"+bulk+bulk+":1\r\n:0\r\n")
}

func TestALongTransactionOfShortValuesIsCarriedOut(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	const n = 1000
	c.ask("MULTI", "+OK\r\n")
	for i := range n {
		c.send(request("SET", fmt.Sprint(i), "value") + request("EXPIRE", fmt.Sprint(i), "100") + request("RENAME", fmt.Sprint(i), "new"+fmt.Sprint(i)))
	}
	c.want(strings.Repeat(queuedReply, 3*n))
	c.ask("EXEC", fmt.Sprintf("*%d\r\n", 3*n)+strings.Repeat("+OK\r\n:1\r\n+OK\r\n", n))
}

func TestWhatATransactionHeldIsGivenBack(t *testing.T) {
	d := newDoor(t, Config{})
	c, gone := d.dial(), d.dial()
	for end, reply := range map[string]string{"EXEC": "*1\r\n+OK\r\n", "DISCARD": "+OK\r\n", "RESET": "+RESET\r\n"} {
		c.ask("WATCH x y x", "+OK\r\n")
		c.ask("MULTI", "+OK\r\n")
		c.ask("SET k v", queuedReply)
		if want := 2*len("x") + 2*150 + heldSize([][]byte{[]byte("SET"), []byte("k"), []byte("v")}); d.held() != want {
			t.Errorf("%d bytes are held, want %d", d.held(), want)
		}
		c.ask(end, reply)
		if d.held() != 0 {
			t.Errorf("%d bytes are held after %s", d.held(), end)
		}
	}
	c.line("SUBSCRIBE", "a", "b") // and does not read on
	gone.ask("MULTI", "+OK\r\n")
	gone.ask("SET k v", queuedReply)
	gone.ask("QUIT", "+OK\r\n")
	gone.wantEnd()
	_ = c.Close()
	d.stop()
	if len(d.protocol.sessions) != 0 || len(d.protocol.pubsub.channels.byName) != 0 {
		t.Errorf("%d sessions and %d channels are left", len(d.protocol.sessions), len(d.protocol.pubsub.channels.byName))
	}
}

func TestTheNamesThatOneConnectionWatchesAreBounded(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	name := func(i int) string { return fmt.Sprint(i, strings.Repeat("n", maxWatched/4-200)) }
	for i := range 4 {
		for range 2 { // the second time it takes nothing
			c.ask("WATCH "+name(i), "+OK\r\n")
		}
	}
	c.ask("WATCH "+name(4), "-ERR too many names are watched on one connection: they may take 4194304 bytes\r\n")
	c.ask("UNWATCH", "+OK\r\n")
	c.ask("WATCH "+name(4), "+OK\r\n")
}

func TestTheLargestValueIsStored(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	const limit = 1 << 20 // COMMANDS.md tells it
	value := strings.Repeat("x", limit)
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", limit, value)
	name := strings.Repeat("n", 65_535)
	for _, name := range []string{"k", name} {
		c.ask("SET "+name+" "+value, "+OK\r\n")
		c.ask("GET "+name, bulk)
		c.ask("DEL "+name, ":1\r\n")
		c.ask("RPUSH "+name+" "+value, ":1\r\n")
		c.ask("RPOPLPUSH "+name+" m", bulk)
		c.ask("HSET "+name+" "+name+" "+value, ":1\r\n")
		c.ask("HGET "+name+" "+name, bulk)
		c.ask("DEL "+name, ":1\r\n")
		c.line("QPUSH", name, value)
		c.readLine()
		c.ask("LPOP "+name, bulk)
	}
	for _, words := range []string{"SET k", "LPUSH l", "APPEND new", "HSET h f", "QPUSH q"} {
		c.ask(words+" "+value+"x", fmt.Sprintf("-ERR too large: an argument has %d bytes, the limit is %d\r\n", limit+1, limit))
	}
	c.ask("SET k "+value, "+OK\r\n")
	if got := c.line("APPEND", "k", "x"); !strings.Contains(got, "exceeds maximum allowed size") {
		t.Errorf("APPEND of more: %q", got)
	}
	operation, err := os.ReadFile("../../cmd/holdfast/OPERATION.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(document(t), "An argument has at most 1 MiB") || !strings.Contains(string(operation), "1 MiB of a value") {
		t.Error("a document does not tell the limit")
	}
}

func TestAValueThatAReplyHasNoRoomForStays(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	value := strings.Repeat("x", 1_000_000)
	for i := range 70 {
		c.ask(fmt.Sprint("SET k", i, " ", value), "+OK\r\n")
	}
	c.ask("MULTI", "+OK\r\n")
	commands := []string{"GETDEL k%d", "GETSET k%d new", "SET k%d new GET"}
	for i := range 70 {
		c.ask(fmt.Sprintf(commands[i%3], i), queuedReply)
	}
	c.send(request("EXEC"))
	c.want("*70\r\n")
	var refused []int
	for i := range 70 {
		if line := c.readLine(); line[0] == '$' {
			c.want(value + "\r\n")
		} else {
			refused = append(refused, i)
		}
	}
	for _, i := range refused {
		c.ask(fmt.Sprint("STRLEN k", i), fmt.Sprintf(":%d\r\n", len(value)))
	}
	if len(refused) < 3 {
		t.Errorf("only %d replies were refused", len(refused))
	}
}

func TestACommandOfWhichOnePartIsTooLargeChangesNothing(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	value := strings.Repeat("x", 1<<20+1)
	for _, words := range []string{"MSET a 1 b", "MSETNX a 1 b", "HSET a f 1 g", "HMSET a f 1 g", "RPUSH a 1"} {
		if got := c.line(strings.Split(words+" "+value, " ")...); !strings.Contains(got, "the limit is") {
			t.Errorf("%s: %q, want that it is too large", words, got)
		}
		c.ask("EXISTS a", ":0\r\n")
	}
}
