package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// longDoor is a server that takes payloads of more than other arguments.
func longDoor(t *testing.T) (c *conn, most int) {
	t.Helper()
	most = 6 << 20
	return newDoor(t, Config{MaxPayload: most}).dial(), most
}

func TestPayloadsMayBeLongerThanOtherArguments(t *testing.T) {
	c, most := longDoor(t)
	if n := broker.DefaultMaxPayload; n != wire.MaxArg {
		t.Fatalf("a payload has %d bytes by default, and another argument %d", n, wire.MaxArg)
	}
	value := strings.Repeat("v", most)
	c.ask("CONFIG GET proto-max-bulk-len", fmt.Sprintf("*2\r\n$18\r\nproto-max-bulk-len\r\n$7\r\n%d\r\n", most))
	for _, words := range [][]string{
		{"LPUSH", "l", value}, {"RPUSH", "l", value}, {"LPUSHX", "l", value}, {"RPUSHX", "l", value},
		{"LINSERT", "l", "BEFORE", "none", value}, {"QPUSH", "q", value, "PRIO", "1"}, {"QMPUSH", "q", "1", value},
	} {
		c.send(request(words...))
		if got := c.readLine(); strings.HasPrefix(got, "-") {
			t.Errorf("%s of %d bytes: %q", words[0], most, got)
		} else if words[0] == "QPUSH" || words[0] == "QMPUSH" {
			c.readLine()
		}
		if words[0] == "QMPUSH" {
			c.readLine()
		}
	}
	c.send(request("LPOS", "l", value) + request("LSET", "l", "0", value) + request("LREM", "l", "1", value) + request("LLEN", "l"))
	c.want(":0\r\n+OK\r\n:1\r\n:3\r\n")
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", most, value)
	c.send(request("LMOVE", "l", "q", "LEFT", "RIGHT") + request("LRANGE", "l", "0", "1") + request("QPEEK", "q"))
	c.want(bulk + "*2\r\n" + bulk + bulk)
	c.want("*2\r\n*") // of three: a look gives 16 MiB
}

func TestALongerPayloadOrAnotherLongArgumentIsRefusedAndTheConnectionGoesOn(t *testing.T) {
	c, most := longDoor(t)
	value := strings.Repeat("v", most)
	for _, words := range [][]string{{"QPUSH", "q", value + "v"}, {"RPUSH", "l", "a", value + "v"}} {
		c.send(request(words...) + request("PING"))
		c.want(fmt.Sprintf("-ERR too large: an argument has %d bytes, the limit is %d\r\n+PONG\r\n", most+1, most))
	}
	for _, words := range [][]string{{"SET", "k"}, {"HSET", "h", "f"}, {"APPEND", "k"}, {"PUBLISH", "c"}, {"DEL", "k"}, {"LINDEX", "l"}} {
		c.send(request(append(words, value[:wire.MaxArg+1])...) + request("PING"))
		c.want(fmt.Sprintf("-ERR too large: an argument has %d bytes, the limit is %d for all but payloads\r\n+PONG\r\n", wire.MaxArg+1, wire.MaxArg))
	}
	mib := value[:wire.MaxArg] // without a long payload a request is as long as ever
	c.send(request("RPUSH", "l", mib, mib, mib, mib) + request("PING"))
	c.want(fmt.Sprintf("-ERR the request is longer than %d bytes: send it in pieces\r\n+PONG\r\n", wire.MaxRequest))
	c.send(request("RPUSH", "l", value[:3<<20], value[:3<<20], mib) + request("RPUSH", "l", value[:4<<20], value[:4<<20], mib) + request("PING"))
	c.want(fmt.Sprintf(":3\r\n-ERR the request is longer than %d bytes: send it in pieces\r\n+PONG\r\n", wire.MaxRequest+most-wire.MaxArg))
}

func TestLongPayloadsInATransactionAreOnePartOfIt(t *testing.T) {
	c, most := longDoor(t)
	value := strings.Repeat("v", most)
	c.send(request("MULTI") + request("RPUSH", "l", value) + request("RPUSH", "l", value))
	c.want("+OK\r\n+QUEUED\r\n-ERR transaction too large: its commands may take 9437184 bytes\r\n")
	c.send(request("EXEC") + request("MULTI") + request("RPUSH", "l", value) + request("LPOP", "l") + request("EXEC"))
	c.want("-EXECABORT Transaction discarded because of previous errors.\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n")
	c.want(fmt.Sprintf("*2\r\n:1\r\n$%d\r\n%s\r\n", most, value))
}

func TestAPushOfALongPayloadWaitsForRoom(t *testing.T) {
	d := newDoor(t, Config{MaxPayload: 6 << 20})
	c, other := d.dial(), d.dial()
	value := strings.Repeat("v", 6<<20)
	other.ask("QSET q bound 1", "+OK\r\n")
	other.ask("RPUSH q first", ":1\r\n")
	c.send(request("QPUSH", "q", value, "BLOCK", "0"))
	for d.held() == 0 { // until it waits
	}
	other.ask("LPOP q", "$5\r\nfirst\r\n")
	c.readLine()
	c.readLine()
	other.send(request("LPOP", "q"))
	other.want(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value))
	if n := d.held(); n != 0 {
		t.Errorf("%d bytes are held after all", n)
	}
}

func TestAPacketThatIsLongerThanWhatATransactionWritesAgainMoves(t *testing.T) {
	const most = 33 << 20
	c := newDoor(t, Config{MaxPayload: most}).dial()
	value := strings.Repeat("v", most)
	c.send(request("LPUSH", "l", value) + request("LMOVE", "l", "q", "LEFT", "RIGHT"))
	c.want(fmt.Sprintf(":1\r\n$%d\r\n%s\r\n", most, value))
	c.ask("QPRIO q 1 7", ":1\r\n")
	c.ask("QMOVE q 1 TO l", ":1\r\n")
	c.send(request("LPUSH", "l", "x") + request("LINSERT", "l", "AFTER", "x", "new"))
	c.want(":2\r\n:3\r\n")
}
