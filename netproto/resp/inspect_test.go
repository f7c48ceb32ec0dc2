package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestTheLifeOfAPacketInRESP2(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH jobs hello KEY k TTL 60000 TAG size 7 TAG class low PRODUCER p1 PRIO 5", bulkReply("1"))
	fields := `"id" | "1"
"queue" | "jobs"
"payload" | "hello"
"priority" | :5
`
	more := `"key" | "k"
"tags" | *4 | "class" | "low" | "size" | "7"
"producer" | "p1"
"enqueued" | :1700000000000
"expires" | :1700000060000
`
	c.ask("QPEEK jobs", onTheWire("*1\n*20\n"+fields+more+`"state" | "ready"`))
	c.ask("QCLAIM jobs CONSUMER w1 LEASE 5000", onTheWire("*1\n*28\n"+fields+`"attempt" | :1`+"\n"+more+`"token" | :2
"lease-end" | :1700000005000
"consumer" | "w1"
"state" | "claimed"`))
	c.ask("QCLAIM jobs", "*0\r\n")
	d.now += 1000
	c.ask("QPROGRESS jobs 1 2 40 halfway", "+OK\r\n")
	c.ask("QEXTEND jobs 1 2 9000", ":1700000010000\r\n")
	c.ask("QSHOW jobs 1", onTheWire("*38\n"+fields+`"attempt" | :1`+"\n"+more+`"token" | :2
"lease-end" | :1700000010000
"consumer" | "w1"
"state" | "claimed"
"progress" | :40
"progress-text" | "halfway"
"first-claim" | :1700000000000
"last-claim" | :1700000000000
"why" | "claimed by "w1" until 2023-11-14T22:13:30.000Z"`))
	c.send(request("QNACK", "jobs", "1", "2", "DELAY", "2000", "REASON", "no disk"))
	c.want(bulkReply("delayed"))
	c.ask("QNACK jobs 1 2", staleReply)
	c.ask("QLIST jobs", onTheWire(`*2 | "0" | *1
*30
`+fields+`"attempt" | :1`+"\n"+more+`"not-before" | :1700000003000
"consumer" | "w1"
"state" | "delayed"
"reason" | "no disk"
"last-error-class" | "no disk"`))
	d.now += 2000
	c.ask("QPOP jobs", onTheWire("*1\n*24\n"+fields+`"attempt" | :1`+"\n"+more+`"consumer" | "w1"
"reason" | "no disk"`))
	c.ask("QSHOW jobs 1", noQueueReply)
	c.ask("EXISTS jobs", ":0\r\n")
}

func TestTheLifeOfAPacketInRESP3(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial().resp3()
	c.ask("QPUSH jobs hello TAG class low DELAY 500", bulkReply("1"))
	const fields = `"id" | "1"
"queue" | "jobs"
"payload" | "hello"
"priority" | :128
`
	const more = `"tags" | %1 | "class" | "low"
"enqueued" | :1700000000000
`
	c.ask("QSHOW jobs 1", onTheWire("%9\n"+fields+more+`"not-before" | :1700000000500
"state" | "delayed"
"why" | "delayed until 2023-11-14T22:13:20.500Z"`))
	c.ask("QCLAIM jobs", "*0\r\n")
	other := d.dial()
	c.send(request("QCLAIM", "jobs", "BLOCK", "400"))
	other.awaitBlocked(1)
	d.now += 400
	other.ask("QLEN jobs", ":1\r\n")
	c.want("_\r\n")
	d.now += 100
	c.ask("CLIENT SETNAME w", "+OK\r\n")
	c.ask("QCLAIM jobs", onTheWire("*1\n%11\n"+fields+`"attempt" | :1`+"\n"+more+`"token" | :2
"lease-end" | :1700000030500
"consumer" | "w"
"state" | "claimed"`))
	c.ask("QSHOW jobs 2", "_\r\n")
	c.ask("QACK jobs 1 2", ":1\r\n")
	c.ask("QACK jobs 1 2", goneReply)
}

func TestAGroupIsTakenTogether(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QPUSH q a KEY k", bulkReply("1"))
	c.ask("QPUSH q b KEY k PRIO 0", bulkReply("2"))
	c.ask("QPUSH q c", bulkReply("3"))
	c.ask("LLEN q", ":2\r\n")
	c.send(request("QCLAIM", "q", "GROUP"))
	if got := c.readLine(); got != "*2" {
		t.Errorf("the claim of a group begins with %s", got)
	}
}

func TestAWaitingWorkerGetsWhatComesBack(t *testing.T) {
	d := newDoor(t, Config{})
	waits, c := d.dial(), d.dial()
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QCLAIM q CONSUMER a", claimOf("q", 1, "x", 1, 2, start+30_000, "a"))
	waits.send(request("QCLAIM", "q", "BLOCK", "0", "CONSUMER", "b", "GROUP"))
	c.awaitBlocked(1)
	c.ask("QNACK q 1 2 DELAY 0", bulkReply("ready"))
	waits.want(claimOf("q", 1, "x", 2, 3, start+30_000, "b"))
}

func TestTheWorkQueueInATransaction(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("MULTI", "+OK\r\n")
	for _, words := range []string{
		"QSET q retain 1000", "QMPUSH q 2 x y TAG a 1", "QCLAIM q COUNT 1000 CONSUMER w", "QACK q 1 3 2 4", "QNACK q 1 3",
		"QCLAIM q BLOCK 0", "QPOP q GROUP BLOCK 0", "QCLAIM q GROUP",
	} {
		c.ask(words, queuedReply)
	}
	c.send(request("EXEC"))
	for _, want := range []string{"*8", "+OK", "*2", "$1", "1", "$1", "2", "*2", "*22"} {
		if got := c.readLine(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	for c.readLine() != "*22" {
	}
	for c.readLine() != "claimed" {
	}
	c.want(":2\r\n" + staleReply + "*-1\r\n*-1\r\n*0\r\n")
	c.ask("EXISTS q", ":1\r\n")
}

// shown is the reply of QSHOW, as a map of what stands for itself on a line.
func (c *conn) shown(queue, id string) map[string]string {
	c.t.Helper()
	return c.pairs("QSHOW", queue, id)
}

// pairs sends a request and returns its reply, an array of names and values, as a map.
func (c *conn) pairs(words ...string) map[string]string {
	c.t.Helper()
	var n int
	if _, err := fmt.Sscanf(c.line(words...), "*%d", &n); err != nil {
		c.t.Fatal(words, err)
	}
	found := make(map[string]string)
	for range n / 2 {
		name := c.value()
		found[name] = c.value()
	}
	return found
}

// value reads a bulk, a number or an array, in brackets, of such.
func (c *conn) value() string {
	c.t.Helper()
	line := c.readLine()
	var n int
	if _, err := fmt.Sscan(line[1:], &n); err != nil {
		c.t.Fatalf("%q begins no value", line)
	}
	switch {
	case line[0] == '$' && n >= 0:
		text := make([]byte, n+2)
		c.readFull(text)
		return string(text[:n])
	case line[0] == '*' && n >= 0:
		var list []string
		for range n {
			list = append(list, c.value())
		}
		return fmt.Sprint(list)
	}
	return line[1:]
}

func TestPacketsAreShownInTheOrderInWhichTheyCome(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QPEEK q", "*0\r\n")
	c.ask("QMPUSH q 3 a b c", onTheWire(`*3 | "1" | "2" | "3"`))
	c.ask("QPUSH q d PRIO 1", bulkReply("4"))
	c.ask("QPUSH q e PRIO 0 KEY k", bulkReply("5"))
	c.ask("QPUSH q f DELAY 5", bulkReply("6"))
	c.send(request("QPEEK", "q", "COUNT", "1000"))
	if got := c.payloads(); got != "d a b c" {
		t.Errorf("QPEEK shows %s", got)
	}
	c.send(request("QPEEK", "q", "COUNT", "2"))
	if got := c.payloads(); got != "d a" {
		t.Errorf("QPEEK of two shows %s", got)
	}
	c.ask("QLEN q", ":6\r\n")
	c.ask("LLEN q", ":4\r\n")
	c.ask("QLEN nothing", ":0\r\n")
}

// payloads reads an array of packets and returns their payloads.
func (c *conn) payloads() string {
	c.t.Helper()
	var n int
	if _, err := fmt.Sscanf(c.readLine(), "*%d", &n); err != nil {
		c.t.Fatal(err)
	}
	list := make([]string, 0, n)
	for range n {
		words := strings.Fields(strings.Trim(c.value(), "[]")) // no payload of these tests has a space
		for i, w := range words {
			if w == "payload" {
				list = append(list, words[i+1])
			}
		}
	}
	return strings.Join(list, " ")
}

func TestAListIsReadPageByPage(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QLIST q", onTheWire(`*2 | "0" | *0`))
	for i := range 5 {
		c.ask(fmt.Sprintf("QPUSH q r%d PRIO %d", i, 5-i), bulkReply(fmt.Sprint(2*i+1)))
		c.ask(fmt.Sprintf("QPUSH q d%d DELAY 1000", i), bulkReply(fmt.Sprint(2*i+2)))
	}
	c.ask("QPUSH q z PRIO 0 KEY k", bulkReply("11"))
	for _, size := range []int{1, 2, 3, 5, 6, 11, 1000} {
		for state, want := range map[string]string{"": "z r4 r3 r2 r1 r0 d0 d1 d2 d3 d4", " STATE delayed": "d0 d1 d2 d3 d4", " STATE dead": ""} {
			cursor, found := "0", []string{}
			for page := 0; page == 0 || cursor != "0"; page++ {
				c.send(request(strings.Split(fmt.Sprintf("QLIST q CURSOR %s COUNT %d%s", cursor, size, state), " ")...))
				c.want("*2\r\n")
				cursor = c.value()
				list := strings.Fields(c.payloads())
				if len(list) > size || cursor != "0" && len(list) < size {
					t.Fatalf("a page of %d has %v", size, list)
				}
				found = append(found, list...)
			}
			if got := strings.Join(found, " "); got != want {
				t.Errorf("pages of %d%s: %s, want %s", size, state, got, want)
			}
		}
	}
}

func TestAPacketSaysWhyItIsNotDelivered(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q retain 60000", "+OK\r\n")
	c.ask("QMPUSH q 4 dead done claimed next", onTheWire(`*4 | "1" | "2" | "3" | "4"`))
	c.send(request("QCLAIM", "q", "COUNT", "3", "CONSUMER", "w", "LEASE", "5000"))
	if got := c.payloads(); got != "dead done claimed" {
		t.Fatal(got)
	}
	c.send(request("QNACK", "q", "1", "5", "DEAD", "REASON", "it is poison"))
	c.want(bulkReply("dead"))
	c.ask("QACK q 2 6", ":1\r\n")
	c.ask("QPUSH q behind", bulkReply("8"))
	c.ask("QPUSH q zero PRIO 0 KEY k", bulkReply("9"))
	c.ask("QPUSH q late DELAY 1000", bulkReply("10"))
	for id, want := range map[string]struct{ why, behind string }{
		"1":  {"dead after 1 attempt, because: it is poison", ""},
		"2":  {`done: "w" acknowledged it; it stays until 2023-11-14T22:14:20.000Z`, ""},
		"3":  {`claimed by "w" until 2023-11-14T22:13:25.000Z`, ""},
		"4":  {"next in line", "0"},
		"8":  {"behind 1 other packet", "1"},
		"9":  {"of priority 0: it is delivered only together with another packet of its key", ""},
		"10": {"delayed until 2023-11-14T22:13:21.000Z", ""},
	} {
		if got := c.shown("q", id); got["why"] != want.why || got["behind"] != want.behind {
			t.Errorf("%s is behind %q and not delivered because it is %s, want %q, %s", id, got["behind"], got["why"], want.behind, want.why)
		}
	}
	if died := c.shown("q", "1")["died"]; died != "1700000000000" {
		t.Errorf("a packet that died at 1700000000000 says %q", died)
	}
	c.ask("QSHOW q 100", "*-1\r\n")
	d.now += 60_000
	c.ask("QSHOW q 2", "*-1\r\n")
}

func TestTheFiguresOfAQueue(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q retain 60000", "+OK\r\n")
	c.ask("QMPUSH q 5 a b c d e", onTheWire(`*5 | "1" | "2" | "3" | "4" | "5"`))
	c.send(request("QCLAIM", "q", "COUNT", "3", "CONSUMER", "w"))
	c.payloads()
	c.ask("QACK q 1 6", ":1\r\n")
	c.ask("QNACK q 2 7 DEAD", bulkReply("dead"))
	c.send(request("QPOP", "q"))
	c.payloads()
	c.ask("QPUSH q late DELAY 5000", bulkReply("9"))
	c.ask("QPUSH q zero PRIO 0 KEY k", bulkReply("10"))
	d.now += 250
	got := c.pairs("QSTAT", "q")
	for name, want := range map[string]string{
		"ready": "1", "hidden": "1", "delayed": "1", "claimed": "1", "dead": "1", "done": "1", "bytes": "13",
		"pushed": "7", "popped": "1", "acked": "1", "nacked": "1", "expired": "0", "died": "1", "dropped": "0", "age": "250",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if bands := got["priorities"]; !strings.Contains(bands, "packets 1]") {
		t.Errorf("priorities: %s", bands)
	}
	c.ask("QSET states pause-in yes pause-out yes bound 1 alert-age 1000", "+OK\r\n")
	for _, want := range []string{"1 1 0 0 0", "1 1 1 0 0", "1 1 1 0 1", "1 1 1 1 1"} {
		got := c.pairs("QSTAT", "states")
		if got := strings.Join([]string{got["paused-in"], got["paused-out"], got["full"], got["closed"], got["overdue"]}, " "); got != want {
			t.Errorf("the states are %s, want %s", got, want)
		}
		switch want {
		case "1 1 0 0 0":
			c.ask("QSET states pause-in no", "+OK\r\n")
			c.ask("QPUSH states x", bulkReply("11"))
			c.ask("QSET states pause-in yes", "+OK\r\n")
		case "1 1 1 0 0":
			d.now += 2001
		case "1 1 1 0 1":
			c.ask("QCLOSE states", ":1\r\n")
		}
	}
	c.ask("QSET tight bound-bytes 3", "+OK\r\n")
	c.ask("QPUSH tight xx", bulkReply("12"))
	for _, want := range []string{"0", "1"} { // once a push has found no room
		if got := c.pairs("QSTAT", "tight"); got["full"] != want || got["paused-in"] != "0" {
			t.Errorf("full is %s, want %s", got["full"], want)
		}
		c.send(request("QPUSH", "tight", "yy"))
		if line := c.readLine(); !strings.HasPrefix(line, "-FULL ") {
			t.Errorf("a push beyond the bound: %q", line)
		}
	}
	c.ask("QSTAT nothing", noQueueReply)
	c.ask("QSET empty lease 5", "+OK\r\n")
	if age := c.pairs("QSTAT", "empty")["age"]; age != "-1" {
		t.Errorf("the age of nothing is %s", age)
	}
	for i, push := range []string{"LPUSH", "RPUSH"} { // one at each end
		c.ask(push+" list x", fmt.Sprintf(":%d\r\n", i+1))
		d.now += 1000
	}
	if age := c.pairs("QSTAT", "list")["age"]; age != "2000" {
		t.Errorf("the age is %s, want that of the packet that was pushed first", age)
	}
}

func TestConsumersAreShownWithWhatTheyHold(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QMPUSH q 3 a b c", onTheWire(`*3 | "1" | "2" | "3"`))
	c.send(request("QCLAIM", "q", "COUNT", "2", "CONSUMER", "w2"))
	c.payloads()
	d.now += 100
	c.send(request("QCLAIM", "q", "CONSUMER", "w1"))
	c.payloads()
	c.ask("QACK q 3 6", ":1\r\n")
	const before, now = "1700000000000", "1700000000100"
	want := onTheWire(`*2
%5
"name" | "w1"
"seen" | :` + now + `
"claimed" | :0
"ids" | *0
"waiting" | *0
%6
"name" | "w2"
"seen" | :` + before + `
"claimed" | :2
"since" | :` + before + `
"ids" | *2 | "1" | "2"
"waiting" | *0`)
	d.dial().resp3().ask("QCONSUMERS q", want)
	_, last, _ := strings.Cut(want, "%6")
	for _, f := range words.ConsumerFields {
		var found bool
		if _, last, found = strings.Cut(last, "\r\n"+f.Name+"\r\n"); !found {
			t.Errorf("a consumer has no column %s, or not in the order of the words", f.Name)
		}
	}
	c.ask("QCONSUMERS q", strings.NewReplacer("%5", "*10", "%6", "*12").Replace(want))
	d.now += broker.ConsumerTime
	if got := c.line("QCONSUMERS", "q"); got != "*0" && got != "*1" {
		t.Errorf("after a long time there are %s consumers", got)
	}
}

func TestWorkersThatWaitAreListedWithTheirQueuesAndFilter(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	named := d.waiting(c, 0, "QCLAIM q OR other FILTER class ge high FILTER size lt 3 MATCH ANY 1 CONSUMER new BLOCK 0")
	plain := d.dial()
	plain.ask("CLIENT SETNAME lists", "+OK\r\n")
	plain.send(request("BRPOP", "q", "0"))
	c.awaitBlocked(2)
	const want = `*2
%4
"name" | "lists"
"claimed" | :0
"ids" | *0
"waiting" | *1
%2
"queues" | *1 | "q"
"filter" | *0
%4
"name" | "new"
"claimed" | :0
"ids" | *0
"waiting" | *1
%2
"queues" | *2 | "other" | "q"
"filter" | *11 | "FILTER" | "class" | "ge" | "high" | "FILTER" | "size" | "lt" | "3" | "MATCH" | "ANY" | "1"`
	d.dial().resp3().ask("QCONSUMERS q", onTheWire(want))
	c.ask("LPUSH q x y", ":2\r\n")
	plain.want(onTheWire(`*2 | "q" | "x"`))
	_ = named.Close()
	c.awaitBlocked(0)
	c.ask("QDROP q", "+OK\r\n")
	c.ask("QCONSUMERS q", "-NOQUEUE no queue has this name: it holds no packets and has no settings\r\n")
}

func TestAWaitingWorkerGetsTheLargestPacket(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	large := strings.Repeat("x", 1_047_000)
	for i, words := range []string{
		"QCLAIM q BLOCK 0 COUNT 1000 CONSUMER " + strings.Repeat("w", 255), "QCLAIM q BLOCK 0 GROUP", "QPOP q BLOCK 0 COUNT 1000", "QPOP q BLOCK 0 GROUP",
	} {
		waits := d.dial()
		waits.send(request(strings.Split(words, " ")...))
		c.awaitBlocked(1)
		c.line("QPUSH", "q", large)
		if got := waits.readLine(); got != "*1" {
			t.Errorf("%d: the reply begins with %.60s", i, got)
		}
		c.readLine()
	}
}

func TestWhoPushedToAQueueIsListed(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("CLIENT SETNAME shop", "+OK\r\n")
	c.ask("QPUSH q a", bulkReply("1"))
	d.now += 5
	c.ask("QMPUSH q 2 b c", onTheWire(`*2 | "2" | "3"`))
	other := d.dial()
	other.ask("CLIENT SETNAME shop", "+OK\r\n")
	other.ask("RPUSH q d e", ":5\r\n")
	c.ask("CLIENT ID", ":1\r\n")
	other.ask("CLIENT ID", ":2\r\n")
	c.ask("QPRODUCERS q", onTheWire(`*1 | *10 | "name" | "shop" | "seen" | :1700000000005 | "pushed" | :5 | "connection" | :2 | "user" | "default"`))
	c.ask("QPUSH other a", bulkReply("4")) // it is another producer there
	c.ask("CLIENT SETNAME again", "+OK\r\n")
	c.ask("QPUSH q f", bulkReply("5"))
	_ = other.Close()
	for strings.Contains(c.text("CLIENT", "LIST"), "id=2 ") {
	}
	c.ask("QPRODUCERS q", onTheWire(`*2 | *10 | "name" | "again" | "seen" | :1700000000005 | "pushed" | :1 | "connection" | :1 | "user" | "default"
*6 | "name" | "shop" | "seen" | :1700000000005 | "pushed" | :5`))
	d.now += broker.ConsumerTime
	c.ask("QPUSH q g", bulkReply("6"))
	c.ask("QPRODUCERS q", onTheWire(`*1 | *10 | "name" | "again" | "seen" | :1700000600005 | "pushed" | :2 | "connection" | :1 | "user" | "default"`))
	c.ask("DEL q", ":1\r\n")
	c.ask("QPRODUCERS q", noQueueReply)
	c.ask("QPUSH q h", bulkReply("7"))
	c.ask("QPRODUCERS q", onTheWire(`*1 | *10 | "name" | "again" | "seen" | :1700000600005 | "pushed" | :3 | "connection" | :1 | "user" | "default"`))
}
