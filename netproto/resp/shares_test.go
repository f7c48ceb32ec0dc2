package resp

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// tenants claims packets of q, and says their payloads.
func (c *conn) tenants(words string) string {
	c.t.Helper()
	c.send(request(strings.Fields("QCLAIM q CONSUMER w " + words)...))
	return c.payloads()
}

// pagesOf lists q a page at a time.
func (c *conn) pagesOf(words string) (all []string) {
	c.t.Helper()
	for cursor := ""; cursor != "0"; {
		c.send(request(strings.Fields(fmt.Sprintf("QLIST q CURSOR %s %s", cmp.Or(cursor, "0"), words))...))
		c.want("*2\r\n")
		cursor = c.value()
		all = append(all, strings.Fields(c.payloads())...)
	}
	return all
}

// One tenant with many packets does not keep another waiting, by whatever door it takes.
func TestSharesOfAQueueTakeTurnsAtEachDoor(t *testing.T) {
	for door, take := range map[string]func(c *conn) string{
		"QCLAIM": func(c *conn) string { return c.tenants("COUNT 4") },
		"QPOP":   func(c *conn) string { c.send(request("QPOP", "q", "COUNT", "4")); return c.payloads() },
		"LPOP":   func(c *conn) string { c.send(request("LPOP", "q", "4")); return strings.Trim(c.value(), "[]") },
		"RPOP":   func(c *conn) string { c.send(request("RPOP", "q", "4")); return strings.Trim(c.value(), "[]") },
		"LMOVE": func(c *conn) string {
			var got []string
			for range 4 {
				c.send(request("LMOVE", "q", "other", "RIGHT", "LEFT"))
				got = append(got, c.value())
			}
			return strings.Join(got, " ")
		},
	} {
		c := newDoor(t, Config{}).dial()
		c.ask("QSET q share-by tag:tenant", "+OK\r\n")
		for i := range 20 {
			c.ask("QPUSH q large TAG tenant large", bulkReply(fmt.Sprint(i+1)))
		}
		c.ask("QPUSH q small TAG tenant small", bulkReply("21"))
		c.ask("QPUSH q small TAG tenant small", bulkReply("22"))
		if got := take(c); strings.Count(got, "small") != 2 {
			t.Errorf("%s took %s first", door, got)
		}
	}
}

func TestOneShareIsTakenListedAndPurged(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QCLAIM q SHARE a", onTheWire("*0"))
	for i, tenant := range strings.Fields("a b a b c") {
		c.ask(fmt.Sprintf("QPUSH q %s%d KEY %s", tenant, i, tenant), bulkReply(fmt.Sprint(i+1)))
	}
	c.ask("QCLAIM q SHARE a", "-ERR queue has no shares: set its share-by first\r\n")
	c.ask("QSET q share-by KEY", `-ERR share-by: expected no, key, or tag:NAME with a tag's name of at most 255 bytes, got "KEY"`+"\r\n")
	c.ask("QSET q share-by tag:", `-ERR share-by: expected no, key, or tag:NAME with a tag's name of at most 255 bytes, got "tag:"`+"\r\n")
	c.ask("QSET q share-by key", "+OK\r\n")
	c.ask("LRANGE q 0 -1", "-ERR places in a list are not known in a queue with share-by: its shares take turns\r\n")
	c.ask("LLEN q", ":5\r\n")
	if got := c.tenants("SHARE b COUNT 9"); got != "b1 b3" {
		t.Errorf("share b gave %s", got)
	}
	for count := 1; count < 4; count++ {
		for words, want := range map[string]string{"STATE ready": "a0 a2 c4", "": "a0 a2 c4 b1 b3", "SHARE a": "a0 a2", "SHARE b": "b1 b3", "SHARE none": ""} {
			if got := strings.Join(c.pagesOf(fmt.Sprintf("%s COUNT %d", words, count)), " "); got != want {
				t.Errorf("QLIST %s COUNT %d lists %s, want %s", words, count, got, want)
			}
		}
	}
	c.ask("QLIST q CURSOR 1:1:1:2:3", "-ERR packets have come to other shares since the last page: begin the list anew\r\n")
	c.ask("QPURGE q SHARE a", ":2\r\n")
	c.ask("QSET q share-by NO", "+OK\r\n")
	if got := strings.Join(c.pagesOf("STATE ready"), " "); got != "c4" {
		t.Errorf("left is %s", got)
	}
}

// Nobody waits for ever for a share of a queue that has none any more.
func TestWhoWaitsForAShareIsToldThatTheQueueHasNoneAnyMore(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q share-by key", "+OK\r\n")
	c.ask("QPUSH q x KEY a", bulkReply("1"))
	first := d.waiting(c, 0, "QCLAIM q SHARE b BLOCK 0")
	second := d.waiting(c, 1, "QCLAIM q SHARE c BLOCK 0 COUNT 2 FILL 60000")
	c.ask("QSET q share-by NO", "+OK\r\n")
	first.want("-ERR queue has no shares: set its share-by first\r\n")
	second.want("-ERR queue has no shares: set its share-by first\r\n")
	third := d.waiting(c, 0, "QCLAIM later SHARE b BLOCK 0") // the queue comes without shares
	c.ask("QPUSH later x KEY b", bulkReply("2"))
	third.want("-ERR queue has no shares: set its share-by first\r\n")
}

func TestQSHARESetsAndForgetsAWeight(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSHARE q large WEIGHT 3", "+OK\r\n")
	if got := c.pairs("QGET", "q"); got["own"] != "yes" {
		t.Errorf("the queue has the settings %v, want some of its own", got)
	}
	c.ask("QSET q share-by key", "+OK\r\n")
	for i := range 10 {
		c.ask("QPUSH q large KEY large", bulkReply(fmt.Sprint(2*i+1)))
		c.ask("QPUSH q small KEY small", bulkReply(fmt.Sprint(2*i+2)))
	}
	if got := c.tenants("COUNT 8"); strings.Count(got, "large") != 6 {
		t.Errorf("with the weights 3 and 1 a claim of 8 took %s", got)
	}
	c.ask("QSHARE q large RESET", "+OK\r\n")
	if got := c.tenants("COUNT 4"); strings.Count(got, "small") != 4 {
		t.Errorf("with equal weights, after 6 and 2 claims, one of 4 took %s", got)
	}
	c.ask("QSHARE none a RESET", "+OK\r\n")
	c.ask("QGET none", noQueueReply)
	c.ask("SET text x", "+OK\r\n")
	c.ask("QSHARE text a WEIGHT 2", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
	c.ask("QSHARE q a", "-ERR WEIGHT, MAX-CLAIMED, RATE, HOLD, RESET: expected one of them\r\n")
	if got := c.line("QSHARE", "q", strings.Repeat("x", 256), "WEIGHT", "2"); !strings.HasPrefix(got, "-ERR") && !strings.HasPrefix(got, "-too large") {
		t.Errorf("a long name gives %s", got)
	}
}

func TestQSHARELimitsWhatIsClaimedOfAShare(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q share-by key share-max-claimed 1", "+OK\r\n")
	c.ask("QSHARE q a WEIGHT 5 MAX-CLAIMED 3", "+OK\r\n")
	c.ask("QSHARE q a WEIGHT 2", "+OK\r\n")
	for i, key := range strings.Fields("a a a a a b b") {
		c.ask("QPUSH q "+key+" KEY "+key, bulkReply(fmt.Sprint(i+1)))
	}
	if got := c.tenants("COUNT 9"); strings.Count(got, "a") != 3 || strings.Count(got, "b") != 1 {
		t.Errorf("of limits of 3 and 1 a claim of 9 took %s", got)
	}
	if got := c.pairs("QSHOW", "q", "4")["why"]; got != "share a has 3 of 3 claimed" {
		t.Errorf("why: %s", got)
	}
	c.ask("QSHARES q COUNT 1", onTheWire(`*2 | "1" | *1 | *14 | "name" | "a" | "why" | "has 3 of 3 claimed" | "ready" | :2 | "claimed" | :3 | "age" | :0 | "weight" | :2 | "max-claimed" | :3`))
	c.ask("QSHARE q a RESET MAX-CLAIMED 4", "+OK\r\n")
	if got := c.tenants("COUNT 9"); got != "a" {
		t.Errorf("when the limit was raised a claim of 9 took %s", got)
	}
	c.ask("QSHARE q a RESET", "+OK\r\n")
	if got := c.pairs("QSHOW", "q", "5")["why"]; got != "share a has 4 of 1 claimed" {
		t.Errorf("why: %s", got)
	}
}

func TestQSHARELimitsHowFastAShareGives(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q share-by key", "+OK\r\n")
	c.ask("QSHARE q a RATE 2/1m", "+OK\r\n")
	for i, key := range strings.Fields("a a b b") {
		c.ask("QPUSH q "+key+" KEY "+key, bulkReply(fmt.Sprint(i+1)))
	}
	if got := c.tenants("COUNT 9"); strings.Count(got, "a") != 1 || strings.Count(got, "b") != 2 {
		t.Errorf("a claim of 9 took %s", got)
	}
	if got := c.pairs("QSHOW", "q", "2")["why"]; got != "share a waits for the rate 2/1m: the next is due in 30s" {
		t.Errorf("why: %s", got)
	}
	c.ask("QSHARES q COUNT 1", onTheWire(`*2 | "1" | *1 | *16 | "name" | "a" | "rate" | "2/1m" | "why" | "waits for the rate 2/1m: the next is due in 30s" | "ready" | :1 | "claimed" | :1 | "age" | :0 | "weight" | :1 | "until" | :1700000029990`))
	waits := d.waiting(c, 0, "QPOP q SHARE a BLOCK 0")
	c.ask("QSHARE q a RATE no WEIGHT 2", "+OK\r\n")
	if got := waits.payloads(); got != "a" {
		t.Errorf("without the rate a pop took %s", got)
	}
	for _, rate := range []string{"x", "1/1y"} {
		if got := c.line("QSHARE", "q", "a", "RATE", rate); !strings.HasPrefix(got, "-ERR RATE: expected no, or a number of packets") {
			t.Errorf("%q: %s", rate, got)
		}
	}
}

func TestCOSTCountsAsSeveralTakes(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q rate 1/1s rate-burst 2", "+OK\r\n")
	for i := range 3 {
		c.ask("QPUSH q x", bulkReply(fmt.Sprint(i+1)))
	}
	if got := c.tenants("COUNT 9"); got != "x x" {
		t.Fatalf("a claim took %s", got)
	}
	c.ask("QACK q 1 4 COST 0", "-ERR COST: expected a number from 1 to 1000000, got \"0\"\r\n")
	c.ask("QACK q 1 4 cost 10", ":1\r\n")
	c.ask("QNACK q 2 5 DELAY 5 COST 10", bulkReply("delayed"))
	if got := c.pairs("QSHOW", "q", "3")["why"]; got != "queue waits for the rate 1/1s: the next is due in 19s" {
		t.Errorf("why: %s", got)
	}
}

func TestHOLDLetsAShareRest(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q share-by key max-attempts 1", "+OK\r\n")
	c.ask("QPUSH q a KEY a", bulkReply("1"))
	c.ask("QPUSH q b KEY b", bulkReply("2"))
	if got := c.tenants("SHARE a"); got != "a" {
		t.Fatalf("a claim took %s", got)
	}
	c.ask("QNACK q 1 3 HOLD 12000 REASON 429", bulkReply("ready"))
	if got := c.pairs("QSHOW", "q", "1"); got["why"] != `share a rests for 12s, said by "w"` || got["attempts"] != "" || got["reason"] != "429" {
		t.Errorf("it is %v", got)
	}
	c.ask("QSHARES q COUNT 1", onTheWire(`*2 | "1" | *1 | *16 | "name" | "a" | "why" | "rests for 12s, said by "w"" | "ready" | :1 | "claimed" | :0 | "age" | :0 | "weight" | :1 | "rests" | :12000 | "until" | :1700000012000`))
	c.ask("QSHARE q a HOLD 13000", "+OK\r\n")
	if got := c.pairs("QSHOW", "q", "1")["why"]; got != "share a rests for 13s" {
		t.Errorf("as an operator says, it %s", got)
	}
	waits := d.waiting(c, 0, "QPOP q SHARE a BLOCK 0")
	if got := c.tenants("COUNT 9"); got != "b" {
		t.Errorf("while a rests a claim took %s", got)
	}
	c.ask("QSHARE q a HOLD 0", "+OK\r\n")
	if got := waits.payloads(); got != "a" {
		t.Errorf("after the rest a pop took %s", got)
	}
	c.ask("QSHARE q a HOLD 5000 WEIGHT 2", "+OK\r\n")
	c.ask("QSHARES q COUNT 1", onTheWire(`*2 | "2" | *1 | *14 | "name" | "a" | "why" | "rests for 5s" | "ready" | :0 | "claimed" | :0 | "weight" | :2 | "rests" | :5000 | "until" | :1700000005000`))
	c.ask("QSHARE q a RESET", "+OK\r\n")
	c.ask("QSHARES q AFTER 0 COUNT 9", onTheWire(`*2 | "0" | *1 | *8 | "name" | "b" | "ready" | :0 | "claimed" | :1 | "weight" | :1`))
	c.ask("QPUSH other x", bulkReply("5"))
	c.send(request("QCLAIM", "other", "CONSUMER", "w"))
	c.payloads()
	c.ask("QNACK other 5 6 HOLD 5000", bulkReply("ready"))
	if got := c.pairs("QGET", "other"); got["pause-out"] != "yes" || got["pause-out-until"] == "0" {
		t.Errorf("a queue without shares has the settings %v", got)
	}
}

func TestQSHARESListsSharesByPagesAndByWhatWaits(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSHARES q", noQueueReply)
	c.ask("QSET q share-by key", "+OK\r\n")
	c.ask("QSHARES q", onTheWire(`*2 | "0" | *0`))
	for i, key := range strings.Fields("b a b c b c") {
		c.ask("QPUSH q x KEY "+key, bulkReply(fmt.Sprint(i+1)))
	}
	c.ask("QSHARE q none WEIGHT 7", "+OK\r\n")
	c.ask("QSHARE q c WEIGHT 2", "+OK\r\n")
	c.tenants("SHARE b")
	d.now += 5000
	row := func(name string, ready, claimed, weight int) string {
		if ready == 0 {
			return fmt.Sprintf(` | *8 | "name" | "%s" | "ready" | :0 | "claimed" | :%d | "weight" | :%d`, name, claimed, weight)
		}
		return fmt.Sprintf(` | *10 | "name" | "%s" | "ready" | :%d | "claimed" | :%d | "age" | :5000 | "weight" | :%d`, name, ready, claimed, weight)
	}
	none, ofC, b, a := row("none", 0, 0, 7), row("c", 2, 0, 2), row("b", 2, 1, 1), row("a", 1, 0, 1)
	c.ask("QSHARES q", onTheWire(`*2 | "0" | *4`+none+ofC+b+a))
	var pages []string
	for cursor := ""; cursor != "0"; {
		c.send(request("QSHARES", "q", "AFTER", cmp.Or(cursor, "0"), "COUNT", "1"))
		c.want("*2\r\n")
		cursor = c.value()
		pages = append(pages, c.value())
	}
	if got := strings.Join(pages, "\n"); len(pages) != 5 || strings.Index(got, "none") > strings.Index(got, " c ") {
		t.Errorf("the pages are\n%s", got)
	}
	c.ask("QSHARES q TOP 1", "-ERR unknown option \"TOP\": expected one of AFTER, COUNT\r\n")
}

func TestQSHARESSaysThatTheQueueIsPaused(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q share-by key", "+OK\r\n")
	c.ask("QPUSH q x KEY a", bulkReply("1"))
	c.ask("QPAUSE q UNTIL 1700000005000", "+OK\r\n")
	c.ask("QSHARES q", onTheWire(`*2 | "0" | *1 | *14 | "name" | "a" | "why" | "queue is paused" | "ready" | :1 | "claimed" | :0 | "age" | :0 | "weight" | :1 | "until" | :1700000005000`))
	c.ask("QSET q pause-out yes", "+OK\r\n")
	c.ask("QSHARES q", onTheWire(`*2 | "0" | *1 | *12 | "name" | "a" | "why" | "queue is paused" | "ready" | :1 | "claimed" | :0 | "age" | :0 | "weight" | :1`))
}
