package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// start is the time at which a door's clock stands.
const start = 1_700_000_000_000

// resp3 makes the connection speak RESP3.
func (c *conn) resp3() *conn {
	c.t.Helper()
	c.send(request("HELLO", "3"))
	for c.readLine() != "*0" {
	}
	return c
}

// claimOf is the reply to a claim of one packet, of which it has the fields that it cannot lack.
func claimOf(queue string, id int, payload string, attempt, token int, leaseEnd int64, consumer string) string {
	return onTheWire(fmt.Sprintf(`*1
*20
"id" | "%d"
"queue" | "%s"
"payload" | "%s"
"priority" | :128
"attempt" | :%d
"enqueued" | :%d
"token" | :%d
"lease-end" | :%d
"consumer" | "%s"
"state" | "claimed"`, id, queue, payload, attempt, int64(start), token, leaseEnd, consumer))
}

const (
	staleReply   = "-STALE the claim has ended: its lease ended, or it was acknowledged or returned\r\n"
	goneReply    = "-STALE no queue has this name: the claim has ended with its last packet, or the name is wrong\r\n"
	noQueueReply = "-NOQUEUE no queue has this name: it holds no packets and has no settings\r\n"
)

func bulkReply(text string) string { return string(wire.AppendBulk(nil, text)) }

func TestAPushOfManyPacketsBringsAllOrNone(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	if got := c.line("QMPUSH", "q", "2", "a", strings.Repeat("x", 1<<20+1)); !strings.HasPrefix(got, "-ERR too large") {
		t.Errorf("a packet that is too large, among others, gave %.100q", got)
	}
	c.ask("QLEN q", ":0\r\n")
}

func TestClaimsAreGivenOutInOrderAndOnlyOnce(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QMPUSH q 3 a b c", onTheWire(`*3 | "1" | "2" | "3"`))
	c.ask("QPUSH q urgent PRIO 1", bulkReply("4"))
	lease := int64(start + 30_000)
	c.ask("QCLAIM q NEWEST CONSUMER w", strings.Replace(claimOf("q", 4, "urgent", 1, 5, lease, "w"), ":128\r\n", ":1\r\n", 1))
	c.ask("QCLAIM empty OR q CONSUMER w", claimOf("q", 1, "a", 1, 6, lease, "w"))
	c.ask("QCLAIM q NEWEST CONSUMER w", claimOf("q", 3, "c", 1, 7, lease, "w"))
	c.ask("QCLAIM q COUNT 1000 CONSUMER w", claimOf("q", 2, "b", 1, 8, lease, "w"))
	c.ask("QCLAIM q COUNT 1000", "*0\r\n")
	c.ask("LLEN q", ":0\r\n")
	c.ask("LPOP q", "$-1\r\n")
	c.ask("QPOP q", "*0\r\n")
	c.ask("TYPE q", "+list\r\n")
	c.ask("QACK q 4 5 1 5 3 7 2 8 2 8", ":3\r\n") // 1 has another token, and 2 is gone the second time
	c.ask("QACK q 1 5 3 7", ":0\r\n")
	c.ask("QACK q 1 5", staleReply)
	c.ask("EXISTS q", ":1\r\n")
	c.ask("QACK q 1 6", ":1\r\n")
	c.ask("EXISTS q", ":0\r\n")
}

func TestTheFirstTokenIsNotZero(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("RPUSH q a", ":1\r\n")
	want := claimOf("q", -1, "a", 1, 1, start+30_000, "w")
	c.ask("QCLAIM q CONSUMER w", want)
	c.ask("QACK q -1 1", ":1\r\n")
}

func TestALeaseThatEndsReturnsThePacketWithAnotherToken(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QCLAIM q LEASE 1000 CONSUMER a", claimOf("q", 1, "x", 1, 2, start+1000, "a"))
	d.now += 999
	c.ask("QCLAIM q", "*0\r\n")
	d.now += 1
	c.send(request("QCLAIM", "q", "CONSUMER", "b"))
	for c.readLine() != "claimed" {
	}
	c.want(bulkReply("reason"))
	c.readLine() // the length of the reason
	if got := c.readLine(); got != "lease ended: a" {
		t.Errorf("the reason of a packet whose lease ended is %q", got)
	}
	c.ask("QACK q 1 2", staleReply)
	c.ask("QEXTEND q 1 2 5", staleReply)
	c.ask("QPROGRESS q 1 2 5", staleReply)
	c.ask("QNACK q 1 2 DEAD", staleReply)
	c.ask("QACK other 1 3", goneReply)
	c.ask("QACK q 1 3", ":1\r\n")
}

func TestAPacketThatIsTriedTooOftenIsDead(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q MAX-ATTEMPTS 2 backoff-min 0 backoff-max 0", "+OK\r\n")
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 2, start+30_000, "w"))
	c.ask("QNACK q 1 2", bulkReply("ready"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 2, 3, start+30_000, "w"))
	c.ask("QNACK q 1 3 REASON poison", bulkReply("dead"))
	c.ask("QCLAIM q", "*0\r\n")
	c.ask("LLEN q", ":0\r\n")
	c.ask("QNACK q 1 3", staleReply)
	c.ask("EXISTS q", ":1\r\n")
}

func TestADeadPacketMovesToTheDeadLetterQueue(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q dead-letter grave", "+OK\r\n")
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 2, start+30_000, "w"))
	c.ask("QNACK q 1 2 DEAD REASON poison", bulkReply("dead"))
	c.ask("LLEN grave", ":1\r\n")
	c.ask("QPOP grave", onTheWire(`*1
*16
"id" | "1"
"queue" | "grave"
"payload" | "x"
"priority" | :128
"enqueued" | :1700000000000
"consumer" | "w"
"reason" | "dead at attempt 1: poison"
"origin" | "q"`))
	c.ask("QPUSH q y", bulkReply("3"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 3, "y", 1, 4, start+30_000, "w"))
	c.ask("QNACK q 3 4 DEAD", bulkReply("dead"))
	if got := c.shown("grave", "3")["reason"]; got != "dead at attempt 1" {
		t.Errorf("the reason of a packet that died without one is %q", got)
	}
}

// settingsReply is QGET's of a queue with few settings; kind begins the map.
func settingsReply(kind, attempts, lease, letter, enum string) string {
	return onTheWire(kind + `
"max-attempts" | :` + attempts + `
"lease" | :` + lease + `
"backoff-min" | :1000
"backoff-max" | :600000
"dead-letter" | "` + letter + `"
"retain" | :0
"bound" | :0
"bound-bytes" | :0
"full" | "reject"
"exclusive-producer" | "no"
"exclusive-consumer" | "no"
"pause-in" | "no"
"pause-out" | "no"
"closed" | "no"
"enum" | ` + enum + `
"retain-dead" | :0
"alert-age" | :0
"pause-in-until" | :0
"pause-out-until" | :0
"share-by" | "no"
"max-claimed" | :0
"share-max-claimed" | :0
"rate" | "no"
"share-rate" | "no"
"rate-burst" | :0
"bound-share" | :0
"strict" | "no"
"on-dead" | "go-on"
"own" | "yes"`)
}

func TestSettingsAreShownAndKeepTheQueue(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q max-attempts 0 dead-letter grave", "+OK\r\n")
	c.ask("QGET q", settingsReply("*58", "0", "30000", "grave", "*0"))
	c.ask("QSET q lease 5 dead-letter ", "+OK\r\n")
	d.dial().resp3().ask("QGET q", settingsReply("%29", "0", "5", "", "%0"))
	c.ask("TYPE q", "+list\r\n")
	c.ask("EXISTS q grave", ":1\r\n")
	c.ask("QUEUES", onTheWire(`*1 | "q"`))
	c.ask("SET string x", "+OK\r\n")
	c.ask("QUEUES MATCH q*", onTheWire(`*1 | "q"`))
	c.ask("QUEUES MATCH x*", "*0\r\n")
	c.ask("SCAN 0 TYPE list", onTheWire(`*2 | "0" | *1 | "q"`))
	c.ask("DEL q", ":1\r\n")
	c.ask("QGET q", noQueueReply)
	c.ask("QSET q lease 5", "+OK\r\n")
	c.ask("QDROP q", "+OK\r\n")
	c.ask("EXISTS q", ":0\r\n")
	const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	for _, words := range []string{
		"QPUSH string x", "QCLAIM string", "QPOP string", "QACK string 1 1", "QSET string lease 5", "QGET string", "QDROP string", "QSHOW string 1",
	} {
		c.ask(words, wrongType)
	}
}

func TestBoundsRolesAndPausesAreShown(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q bound 7 BOUND-BYTES 9007199254740992 full BLOCK exclusive-producer yes exclusive-consumer YES pause-in yes pause-out yes", "+OK\r\n")
	shown := func(want map[string]string) {
		t.Helper()
		got := c.pairs("QGET", "q")
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %s, want %s", name, got[name], value)
			}
		}
	}
	shown(map[string]string{
		"bound": "7", "bound-bytes": "9007199254740992", "full": "block", "exclusive-producer": "yes", "exclusive-consumer": "yes",
		"pause-in": "yes", "pause-out": "yes", "closed": "no", "lease": "30000",
	})
	c.ask("QSET q pause-in no full drop bound-bytes 0", "+OK\r\n")
	shown(map[string]string{"bound": "7", "bound-bytes": "0", "full": "drop", "pause-in": "no", "pause-out": "yes"})
}

func TestSwitchesAreSetByEachWordForYesAndNo(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for i, words := range [][2]string{{"yes", "no"}, {"1", "0"}, {"true", "false"}, {"on", "off"}, {"On", "OFF"}} {
		for yes, word := range map[string]string{"yes": words[0], "no": words[1]} {
			c.ask("QSET q pause-in "+word, "+OK\r\n")
			if got := c.pairs("QGET", "q")["pause-in"]; got != yes {
				t.Errorf("%d: after %s it is %s", i, word, got)
			}
		}
	}
}

func TestADeadPacketSaysHowLongItStays(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q retain-dead 60000", "+OK\r\n")
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 2, start+30_000, "w"))
	c.ask("QNACK q 1 2 DEAD", bulkReply("dead"))
	if got, want := c.shown("q", "1")["why"], "dead after 1 attempt; it stays until 2023-11-14T22:14:20.000Z"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOrdersOfValuesAreShownAndEnd(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	enum := func(want string) {
		t.Helper()
		if got := c.pairs("QGET", "q")["enum"]; got != want {
			t.Errorf("enum is %s, want %s", got, want)
		}
	}
	c.ask("QSET q lease 5 ENUM size small large", "+OK\r\n")
	c.ask("QSET q enum class low standard performance lease", "+OK\r\n")
	enum("[class [low standard performance lease] size [small large]]")
	c.ask("QSET q enum size s", "+OK\r\n")
	enum("[class [low standard performance lease] size [s]]")
	d.dial().resp3().ask("QGET q", settingsReply("%29", "5", "5", "", `%2 | "class" | *4 | "low" | "standard" | "performance" | "lease" | "size" | *1 | "s"`))
	c.ask("QSET q enum class ", "+OK\r\n")
	c.ask("QSET q enum nothing ", "+OK\r\n")
	enum("[size [s]]")
}

func TestAQueueOrdersTheValuesOfAFewTags(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for i := range content.MaxOrders {
		c.ask(fmt.Sprintf("QSET q enum tag%d a b", i), "+OK\r\n")
	}
	c.ask("QSET q enum another a b", "-ERR enum: expected at most 16 tags, got 17\r\n")
	c.ask("QSET q enum tag7 a b c", "+OK\r\n")
	c.ask("QSET q enum tag8 ", "+OK\r\n")
	c.ask("QSET q enum another a b", "+OK\r\n")
}

func TestWorkersThatWaitAreServedInOrder(t *testing.T) {
	d := newDoor(t, Config{})
	c, first, second, third := d.dial(), d.dial(), d.dial(), d.dial()
	first.send(request("QCLAIM", "a", "OR", "b", "BLOCK", "0", "CONSUMER", "w1"))
	c.awaitBlocked(1)
	second.send(request("QPOP", "b", "BLOCK", "0"))
	c.awaitBlocked(2)
	third.send(request("QCLAIM", "b", "BLOCK", "0", "COUNT", "2", "CONSUMER", "w3") + request("PING"))
	c.awaitBlocked(3)
	c.ask("QMPUSH b 3 x y z", onTheWire(`*3 | "1" | "2" | "3"`))
	lease := int64(start + 30_000)
	first.want(claimOf("b", 1, "x", 1, 4, lease, "w1"))
	second.want(onTheWire(`*1
*10
"id" | "2"
"queue" | "b"
"payload" | "y"
"priority" | :128
"enqueued" | :1700000000000`))
	third.want(claimOf("b", 3, "z", 1, 5, lease, "w3") + "+PONG\r\n")
}

func TestAPopThatWaitedTakesAsManyAsItWants(t *testing.T) {
	d := newDoor(t, Config{})
	waits, c := d.dial(), d.dial()
	waits.send(request("QPOP", "q", "BLOCK", "0", "COUNT", "1000"))
	c.awaitBlocked(1)
	c.ask("LPUSH q"+strings.Repeat(" x", 1000), ":1000\r\n")
	if got := waits.readLine(); got != "*1000" {
		t.Errorf("a waiting QPOP of 1000 packets gets %s", got)
	}
	c.ask("LLEN q", ":0\r\n")
}

func TestAWaitEndsWithNil(t *testing.T) {
	d := newDoor(t, Config{})
	waits, c := d.dial(), d.dial()
	waits.send(request("QCLAIM", "q", "BLOCK", "50"))
	c.awaitBlocked(1)
	d.now += 50
	c.ask("PING", "+PONG\r\n")
	c.awaitBlocked(0)
	waits.want("*-1\r\n")
}

func TestAPipelineIsAnsweredInOrder(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.send(request("QPUSH", "q", "x") + request("QCLAIM", "q", "CONSUMER", "w") + request("QACK", "q", "1", "2") +
		request("QACK", "q", "1", "2") + request("QCLAIM", "q") + request("PING"))
	c.want(bulkReply("1") + claimOf("q", 1, "x", 1, 2, start+30_000, "w") + ":1\r\n" + goneReply + "*0\r\n+PONG\r\n")
}

func TestWhatChangesManyPacketsIsNoPartOfATransaction(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for _, words := range []string{"qpurge q", "qharvest q", "qredrive q", "qmove q to other"} {
		name, _, _ := strings.Cut(words, " ")
		c.ask("MULTI", "+OK\r\n")
		c.ask(words, fmt.Sprintf("-ERR '%s' cannot be part of a transaction: it changes packets slice by slice\r\n", name))
		c.ask("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n")
	}
	c.ask("MULTI", "+OK\r\n")
	c.ask("QMOVE q 1 TO other", queuedReply)
	c.ask("EXEC", "*1\r\n:0\r\n")
}

func TestAPacketHasALeaseOfItsOwn(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q lease 1000", "+OK\r\n")
	c.ask("QPUSH q a LEASE 5000", bulkReply("1"))
	c.ask("QMPUSH q 1 b LEASE 6000", onTheWire(`*1 | "2"`))
	c.ask("QPUSH q c", bulkReply("3"))
	c.ask("QPUSH q d LEASE 5000 KEY k PRIO 200", bulkReply("4"))
	c.ask("QPRIO q 4 201", ":1\r\n")
	d.restart()
	c = d.dial()
	for id, want := range map[string]string{"1": "5000", "2": "6000", "3": "", "4": "5000"} {
		if got := c.shown("q", id)["lease"]; got != want {
			t.Errorf("packet %s has the lease %q, want %q", id, got, want)
		}
	}
	c.send(request("QCLAIM", "q", "COUNT", "4"))
	if got := c.payloads(); got != "a b c d" {
		t.Fatal(got)
	}
	for id, want := range map[string]string{"1": "1700000005000", "2": "1700000006000", "3": "1700000001000", "4": "1700000005000"} {
		if got := c.shown("q", id)["lease-end"]; got != want {
			t.Errorf("the claim of packet %s ends at %s, want %s", id, got, want)
		}
	}
	c.ask("QHARVEST q", ":4\r\n")
	c.send(request("QCLAIM", "q", "LEASE", "70"))
	c.payloads()
	if got := c.shown("q", "1")["lease-end"]; got != "1700000000070" {
		t.Error("LEASE of a claim does not overrule that of the packet:", got)
	}
}

func TestWhatIsPushedBesideAPayloadGoesWithThePacket(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound-bytes 20", "+OK\r\n")
	c.ask("QPUSH q a META 1234567\xff", bulkReply("1"))
	c.ask("QMPUSH q 1 b META m", onTheWire(`*1 | "2"`))
	c.ask("QPUSH q c META 123456789", fullReply("2 packets with 11 bytes", "20 bytes"))
	c.ask("QPUSH q c META 12345678", bulkReply("3"))
	c.ask("QPRIO q 3 200", ":1\r\n")
	c.ask("LREM q 0 b", ":1\r\n")
	d.restart()
	c = d.dial()
	for id, want := range map[string]string{"1": "1234567\xff", "3": "12345678"} {
		if got := c.shown("q", id)["meta"]; got != want {
			t.Errorf("packet %s has the meta %q, want %q", id, got, want)
		}
	}
	c.ask("QPUSH q d META 12", fullReply("2 packets with 18 bytes", "20 bytes"))
	for _, ask := range []string{"QPEEK q", "QLIST q", "QCLAIM q COUNT 2"} {
		c.send(request(strings.Split(ask, " ")...))
		if ask == "QLIST q" {
			c.want("*2\r\n$1\r\n0\r\n")
		}
		var n int
		if _, err := fmt.Sscanf(c.readLine(), "*%d", &n); err != nil || n != 2 {
			t.Fatal(ask, n, err)
		}
		for _, want := range []string{"1234567\xff", "12345678"} {
			if got := c.value(); !strings.Contains(got, "meta "+want) {
				t.Errorf("%s tells %q, want the meta %q", ask, got, want)
			}
		}
	}
}
