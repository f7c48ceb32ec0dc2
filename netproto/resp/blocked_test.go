package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// awaitBlocked expects so many clients to be blocked by what was sent, as another client sees them.
// What redis-server reads comes later.
func (c *conn) awaitBlocked(n int) {
	c.t.Helper()
	if c.wire != nil {
		c.door.settle()
	}
	for want := fmt.Sprintf("blocked_clients:%d\r\n", n); ; {
		if got := c.text("INFO", "clients"); strings.Contains(got, want) {
			return
		} else if c.wire != nil {
			c.t.Fatalf("want %s in\n%s", want, got)
		}
	}
}

func TestABlockedClientIsUnblocked(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	blocked.ask("CLIENT ID", ":1\r\n")
	c.ask("CLIENT UNBLOCK 1", ":0\r\n")
	c.ask("CLIENT UNBLOCK 99", ":0\r\n")
	c.ask("CLIENT UNBLOCK x", "-ERR value is not an integer or out of range\r\n")
	c.ask("CLIENT UNBLOCK 1 maybe", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n")
	for reason, reply := range map[string]string{
		"":         "*-1\r\n",
		" TIMEOUT": "*-1\r\n",
		" ERROR":   "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
	} {
		blocked.send(request("BLPOP", "l", "0") + request("PING"))
		c.awaitBlocked(1)
		if got := c.text("CLIENT", "LIST", "ID", "1"); !strings.Contains(got, " flags=b ") {
			t.Errorf("a blocked client is listed as %s", got)
		}
		c.ask("CLIENT UNBLOCK 1"+reason, ":1\r\n")
		blocked.want(reply + "+PONG\r\n")
	}
	for _, reason := range []string{"TIMEOUT", "ERROR"} { // the second of one turn finds nobody
		blocked.send(request("BLPOP", "l", "0"))
		c.awaitBlocked(1)
		c.send("CLIENT UNBLOCK 1\r\nCLIENT UNBLOCK 1 " + reason + "\r\n")
		c.want(":1\r\n:0\r\n")
		blocked.want("*-1\r\n")
	}
	c.ask("LPUSH l a", ":1\r\n")
	c.ask("LLEN l", ":1\r\n")
}

func TestAKilledClientThatIsBlockedTakesNothing(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	blocked.send(request("BLPOP", "l", "0"))
	c.awaitBlocked(1)
	c.ask("CLIENT KILL TYPE normal", ":1\r\n")
	blocked.wantEnd()
	c.awaitBlocked(0)
	c.ask("LPUSH l a", ":1\r\n")
	c.ask("LPOP l", "$1\r\na\r\n")
}

func TestABlockedClientThatListensIsSentMessages(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	if got := blocked.line("HELLO", "3"); got != "%7" {
		t.Fatal(got)
	}
	for blocked.readLine() != "*0" {
	}
	blocked.ask("SUBSCRIBE x", pushed("subscribe", "x", ":1"))
	blocked.send(request("BLPOP", "l", "0"))
	c.awaitBlocked(1)
	c.ask("PUBLISH x hello", ":1\r\n")
	blocked.want(pushed("message", "x", "hello"))
	c.ask("LPUSH l a", ":1\r\n")
	blocked.want("*2\r\n$1\r\nl\r\n$1\r\na\r\n")
}

func TestAClientThatWantsNoRepliesStillTakes(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	blocked.send("CLIENT REPLY OFF\r\nBLPOP l 0\r\nCLIENT REPLY ON\r\n")
	c.awaitBlocked(1)
	c.ask("LPUSH l a", ":1\r\n")
	blocked.want("+OK\r\n")
	c.ask("EXISTS l", ":0\r\n")
}

// Redis serves the name that was given something first, also if a RENAME took that away in between.
func TestNamesAreServedInTheOrderInWhichATransactionFilledThem(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	blocked.send(request("BRPOP", "b", "d", "0"))
	c.awaitBlocked(1)
	c.ask("MULTI", "+OK\r\n")
	for _, command := range []string{"RPUSH b 1", "RENAME b d", "RPUSH b 2"} {
		c.ask(command, "+QUEUED\r\n")
	}
	c.ask("EXEC", "*3\r\n:1\r\n+OK\r\n:1\r\n")
	blocked.want("*2\r\n$1\r\nb\r\n$1\r\n2\r\n")
}

func TestARequestBehindABlockedOneWithoutAReplyIsCarriedOut(t *testing.T) {
	for _, reply := range []string{"OFF", "SKIP"} {
		for _, reason := range []string{"TIMEOUT", "ERROR"} {
			d := newDoor(t, Config{})
			blocked, c := d.dial(), d.dial()
			blocked.ask("CLIENT ID", ":1\r\n")
			blocked.send("CLIENT REPLY " + reply + "\r\nBLPOP l 0\r\nCLIENT REPLY ON\r\n")
			c.awaitBlocked(1)
			c.ask("CLIENT UNBLOCK 1 "+reason, ":1\r\n")
			blocked.want("+OK\r\n")
		}
	}
}

func TestABlockedRequestWaitsForAsManyNamesAsItMayAndNoMore(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	names := make([]string, broker.MaxSubscriptions)
	for i := range names {
		names[i] = fmt.Sprint("l", i)
	}
	blocked.ask("BLPOP more "+strings.Join(names, " ")+" 0", "-ERR too many names: expected at most 1024\r\n")
	blocked.send(request(append(append([]string{"BLPOP"}, names...), "0")...))
	c.awaitBlocked(1)
	c.ask("LPUSH l1023 a", ":1\r\n")
	blocked.want("*2\r\n$5\r\nl1023\r\n$1\r\na\r\n")
}
