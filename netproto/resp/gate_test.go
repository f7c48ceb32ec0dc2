package resp

import (
	"strings"
	"testing"
)

const (
	pausedReply = "-PAUSED queue is paused: it takes nothing in until pause-in is off\r\n"
	closedReply = "-CLOSED queue is closed: nothing will ever be pushed again\r\n"
	nullArray   = "*-1\r\n"
)

// inUse is the reply to a client that has not the role of another.
func inUse(holder, role string) string {
	return "-INUSE queue is in use by another client: \"" + holder + "\" is its only " + role + " until it hangs up\r\n"
}

func TestAClientOfAnotherNameIsRefusedWhereRolesAreExclusive(t *testing.T) {
	d := newDoor(t, Config{})
	one, two, other := d.dial(), d.dial(), d.dial()
	one.ask("QSET q exclusive-producer yes exclusive-consumer yes", "+OK\r\n")
	for _, c := range []*conn{one, two} {
		c.ask("CLIENT SETNAME stage-1", "+OK\r\n")
	}
	one.ask("RPUSH q a", ":1\r\n")
	two.ask("QPUSH q b PRIO 1", bulkReply("1"))
	two.ask("RPOP q", bulkReply("b"))
	for _, push := range []string{"QPUSH q c", "QMPUSH q 1 c", "LPUSH q c", "RPUSHX q c", "LINSERT q BEFORE a c"} {
		other.ask(push, inUse("stage-1", "producer"))
	}
	other.ask("LPUSH elsewhere x", ":1\r\n")
	other.ask("RPOPLPUSH elsewhere q", inUse("stage-1", "producer"))
	for _, take := range []string{
		"QPOP q", "QPOP elsewhere-2 OR q", "QCLAIM q", "QCLAIM q BLOCK 0", "LPOP q", "RPOP q 2", "LMPOP 1 q LEFT", "BLPOP q 0", "BRPOP none q 0",
		"BLMPOP 0 1 q LEFT", "RPOPLPUSH q to", "LMOVE q to LEFT LEFT", "BLMOVE q to LEFT LEFT 0",
	} {
		other.ask(take, inUse("stage-1", "consumer"))
	}
	other.ask("LRANGE q 0 -1", "*1\r\n"+bulkReply("a"))
	other.ask("QLEN q", ":1\r\n")
	one.ask("CLIENT SETNAME stage-2", "+OK\r\n")
	one.ask("QPUSH q c", inUse("stage-1", "producer"))
	two.ask("RESET", "+RESET\r\n")
	one.ask("LPUSH q c", ":2\r\n")
	two.ask("LPUSH q c", inUse("stage-2", "producer"))
	address := other.wire.Addr().String()
	other.ask("RPOP q", bulkReply("a"))
	one.ask("RPOP q", inUse(address, "consumer"))
	if figures := one.pairs("QSTAT", "q"); figures["producer"] != "stage-2" || figures["consumer"] != address {
		t.Errorf("the producer is %q and the consumer %q", figures["producer"], figures["consumer"])
	}
}

func TestAClientThatIsRefusedByOneQueueHasNoRoleInAnother(t *testing.T) {
	d := newDoor(t, Config{})
	one, other := d.dial(), d.dial()
	one.ask("CLIENT SETNAME stage-1", "+OK\r\n")
	other.ask("CLIENT SETNAME stage-2", "+OK\r\n")
	for _, queue := range []string{"free", "taken"} {
		one.ask("QSET "+queue+" exclusive-consumer yes", "+OK\r\n")
	}
	one.ask("RPUSH taken a b", ":2\r\n")
	one.ask("RPOP taken", bulkReply("b"))
	for _, take := range []string{"QPOP free OR taken BLOCK 0", "QCLAIM free OR taken", "BLPOP free taken 0", "BLMPOP 0 2 free taken LEFT"} {
		other.ask(take, inUse("stage-1", "consumer"))
		if holder := one.pairs("QSTAT", "free")["consumer"]; holder != "-1" {
			t.Errorf("after %s the only consumer of the other queue is %q, want null", take, holder)
		}
	}
}

func TestARoleEndsWithItsConnection(t *testing.T) {
	d := newDoor(t, Config{})
	one, other := d.dial(), d.dial()
	one.ask("QSET q exclusive-producer yes", "+OK\r\n")
	one.send(request("HELLO", "3", "SETNAME", "one"))
	for one.readLine() != "*0" {
	}
	one.ask("LPUSH q a", ":1\r\n")
	other.ask("LPUSH q a", inUse("one", "producer"))
	_ = one.Close()
	for other.pairs("QSTAT", "q")["producer"] == "one" {
	}
	other.ask("LPUSH q a", ":2\r\n")
}

func TestABlockedClientIsTheOnlyConsumer(t *testing.T) {
	d := newDoor(t, Config{})
	blocked, c := d.dial(), d.dial()
	blocked.ask("CLIENT SETNAME stage-1", "+OK\r\n")
	c.ask("QSET q exclusive-consumer yes", "+OK\r\n")
	blocked.send(request("BRPOP", "q", "0"))
	c.awaitBlocked(1)
	c.ask("BRPOP q 0", inUse("stage-1", "consumer"))
	c.ask("LPUSH q a", ":1\r\n")
	blocked.want("*2\r\n" + bulkReply("q") + bulkReply("a"))
}

func TestAPausedQueueIsAsIfEmptyForWhoTakes(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("RPUSH q a b", ":2\r\n")
	c.ask("RPUSH other x y z", ":3\r\n")
	c.ask("QSET q pause-in yes pause-out yes", "+OK\r\n")
	d.restart() // the pauses stay
	c = d.dial()
	blocked := d.dial()
	c.ask("QPUSH q c", pausedReply)
	c.ask("RPUSH q c", pausedReply)
	c.ask("RPOPLPUSH other q", pausedReply)
	for request, reply := range map[string]string{
		"LPOP q": "$-1\r\n", "RPOP q 2": nullArray, "LMPOP 1 q LEFT": nullArray, "RPOPLPUSH q other": "$-1\r\n", "QPOP q": "*0\r\n", "QCLAIM q COUNT 5": "*0\r\n",
		"LLEN q": ":2\r\n", "LRANGE q 0 -1": "*2\r\n" + bulkReply("a") + bulkReply("b"),
	} {
		c.ask(request, reply)
	}
	c.ask("LMPOP 2 q other LEFT COUNT 9", "*2\r\n"+bulkReply("other")+"*3\r\n"+bulkReply("x")+bulkReply("y")+bulkReply("z"))
	blocked.send(request("BLPOP", "q", "0"))
	c.awaitBlocked(1)
	c.ask("QSET q pause-out no", "+OK\r\n")
	blocked.want("*2\r\n" + bulkReply("q") + bulkReply("a"))
	c.ask("LPOP q", bulkReply("b"))
}

func TestAPauseEndsAtTheMomentThatQPAUSESays(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("RPUSH q a", ":1\r\n")
	c.ask("QPAUSE q UNTIL 1700000005000", "+OK\r\n")
	c.ask("QPAUSE q IN UNTIL 1700000001000", "+OK\r\n")
	d.restart() // the moments stay
	c = d.dial()
	c.ask("LPOP q", "$-1\r\n")
	blocked, pushes := d.waiting(c, 0, "BLPOP q 0"), d.dial()
	pushes.send(request("QPUSH", "q", "b", "BLOCK", "0"))
	c.awaitBlocked(2)
	d.now += 1000
	pushes.want(bulkReply("1"))
	d.now += 3999
	if got := c.pairs("QGET", "q"); got["pause-in"] != "no" || got["pause-in-until"] != "0" || got["pause-out"] != "yes" || got["pause-out-until"] != "1700000005000" {
		t.Error(got)
	}
	d.now += 1
	blocked.want("*2\r\n" + bulkReply("q") + bulkReply("b"))
	if got := c.pairs("QGET", "q"); got["pause-out"] != "no" || got["pause-out-until"] != "0" {
		t.Error(got)
	}
	c.ask("QPAUSE q UNTIL 1800000000000", "+OK\r\n")
	c.ask("QPAUSE q UNTIL 1", "+OK\r\n") // it ends
	c.ask("LPOP q", bulkReply("a"))
	c.ask("QPAUSE q UNTIL 1800000000000", "+OK\r\n")
	c.ask("QSET q pause-out yes", "+OK\r\n") // without an end
	if got := c.pairs("QGET", "q"); got["pause-out"] != "yes" || got["pause-out-until"] != "0" {
		t.Error(got)
	}
	const refused = "-ERR UNTIL: expected it behind the queue or IN, with the moment at which the pause ends\r\n"
	for _, rest := range []string{"TILL 5", "IN UNTIL", "UNTIL 5 IN", "IN UNTIL 5 5"} {
		c.ask("QPAUSE q "+rest, refused)
	}
	c.ask("QPAUSE q UNTIL -1", "-ERR UNTIL: expected a number from 0 to 4398046511103, got \"-1\"\r\n")
	c.ask("QSET q pause-out-until 5", "-ERR pause-out-until: expected QPAUSE, which says when a pause ends\r\n")
}

func TestADrainedQueueEndsTheTakesThatAreBlocked(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QCLOSE q", ":1\r\n")
	c.ask("QCLOSE q", ":0\r\n")
	d.restart() // it stays closed
	c = d.dial()
	for _, push := range []string{"QPUSH q y", "QMPUSH q 2 y z", "LPUSH q y", "RPUSHX q y"} {
		c.ask(push, closedReply)
	}
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 2, start+30_000, "w"))
	c.ask("QPOP q", "*0\r\n")
	takes := []string{
		"QPOP q BLOCK 0", "QCLAIM q BLOCK 0", "BLPOP q 0", "BRPOP q 0", "BLMPOP 0 1 q LEFT", "BLMOVE q to LEFT LEFT 0", "BRPOPLPUSH q to 0",
	}
	var blocked []*conn
	for i, take := range takes {
		b := d.dial()
		b.send(request(strings.Split(take, " ")...) + request("PING"))
		c.awaitBlocked(i + 1)
		blocked = append(blocked, b)
	}
	open := d.dial()
	open.send(request("QPOP", "q", "OR", "open", "BLOCK", "0"))
	c.awaitBlocked(len(takes) + 1)
	c.ask("QACK q 1 2", ":1\r\n")
	for i, b := range blocked {
		b.want(closedReply + "+PONG\r\n")
		b.ask(takes[i], closedReply)
	}
	for request, reply := range map[string]string{
		"QPOP q": closedReply, "QCLAIM q COUNT 3": closedReply, "QPOP q OR open": "*0\r\n", "LPOP q": "$-1\r\n", "LMPOP 1 q LEFT": nullArray, "EXISTS q": ":1\r\n",
	} {
		c.ask(request, reply)
	}
	c.ask("QPUSH open y PRIO 1", bulkReply("3"))
	open.readLine()
	c.ask("QDROP q", "+OK\r\n")
	c.ask("LPUSH q y", ":1\r\n")
	c.ask("SET s x", "+OK\r\n")
	c.ask("QCLOSE s", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("QCLOSE q", queuedReply)
	c.ask("LPUSH q z", queuedReply)
	c.ask("BLPOP q 0", queuedReply)
	c.ask("BLPOP q 0", queuedReply)
	c.ask("QPOP q", queuedReply)
	c.ask("EXEC", "*5\r\n:1\r\n"+closedReply+"*2\r\n"+bulkReply("q")+bulkReply("y")+nullArray+closedReply)
}
