package resp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/storage"
)

// told reads a message of a channel in RESP2.
func (c *conn) told(channel string) string {
	c.t.Helper()
	c.want("*3\r\n$7\r\nmessage\r\n" + fmt.Sprintf("$%d\r\n%s\r\n", len(channel), channel))
	var n int
	if _, err := fmt.Sscanf(c.readLine(), "$%d", &n); err != nil {
		c.t.Fatal(err)
	}
	text := make([]byte, n+2)
	c.readFull(text)
	if !json.Valid(text) {
		c.t.Errorf("%q is no JSON", text)
	}
	return string(text[:n])
}

// wantTold expects a message of a channel.
func (c *conn) wantTold(channel, want string) {
	c.t.Helper()
	if got := c.told(channel); got != want {
		c.t.Fatalf("told %s\nwant %s", got, want)
	}
}

func (c *conn) subscribe(channel string) {
	c.t.Helper()
	c.ask("SUBSCRIBE "+channel, event("subscribe", channel, ":1"))
}

// qpush pushes a packet.
func (c *conn) qpush(queue string, options ...string) {
	c.t.Helper()
	c.send(request(append([]string{"QPUSH", queue, "x"}, options...)...))
	c.value()
}

// die has the only packet of a queue die.
func (c *conn) die(queue, reason string) {
	c.t.Helper()
	c.send(request("QCLAIM", queue))
	claim := strings.Fields(strings.Trim(c.value(), "[]"))
	field := func(name string) string { return claim[slices.Index(claim, name)+1] }
	if got := c.line("QNACK", queue, field("id"), field("token"), "DEAD", "REASON", reason); got[0] == '-' {
		c.t.Fatal(got)
	}
	c.readLine()
}

func TestOperatorsAreTold(t *testing.T) {
	d := newDoor(t, Config{})
	a, b, c := d.dial(), d.dial().resp3(), d.dial()
	a.subscribe(eventsChannel)
	b.ask("SUBSCRIBE "+eventsChannel, pushed("subscribe", eventsChannel, ":1"))
	c.line("SELECT", "3")
	c.qpush("q", "PRIO", "7")
	c.die("q", "<bad>\n")
	dead := `{"event":"dead","at":1700000000000,"database":3,"queue":"q","id":"1","priority":7,"bytes":1,"attempts":1,"reason":"<bad>\n"}`
	a.wantTold(eventsChannel, dead)
	b.want(pushed("message", eventsChannel, dead))
	c.line("QSET", "\xff\"", "bound", "1")
	c.qpush("\xff\"")
	c.line("QPUSH", "\xff\"", "x") // which is refused
	a.wantTold(eventsChannel, `{"event":"bound","at":1700000000000,"database":3,"queue":{"base64":"/yI="}}`)
	d.disk.level = storage.NoPush
	d.now += 1000
	c.line("PING")
	a.wantTold(eventsChannel, `{"event":"disk","at":1700000001000,"state":"refuses pushes"}`)
}

func TestWhatIsNotOnDiskIsNotTold(t *testing.T) {
	d := newDoor(t, Config{})
	a, c := d.dial(), d.dial()
	a.subscribe(tailPrefix + "q")
	c.send(request("QPUSH", "q", "x"))
	d.disk.commit = a.hasNothing
	a.told(tailPrefix + "q")
	c.value()
}

func TestATailTellsOfItsQueueInItsDatabase(t *testing.T) {
	d := newDoor(t, Config{})
	a, b, c := d.dial(), d.dial().resp3(), d.dial()
	channel := tailPrefix + "q"
	a.subscribe(channel)
	b.line("SELECT", "3")
	b.ask("SUBSCRIBE "+channel, pushed("subscribe", channel, ":1"))
	b.line("SELECT", "4") // changes nothing of that
	in := func(db string) { c.line("SELECT", db); c.qpush("q", "PRIO", "5") }
	in("4")
	in("3")
	in("0")
	c.qpush("other")
	a.wantTold(channel, `{"event":"pushed","at":1700000000000,"database":0,"queue":"q","id":"3","priority":5,"bytes":1}`)
	b.want(pushed("message", channel, `{"event":"pushed","at":1700000000000,"database":3,"queue":"q","id":"2","priority":5,"bytes":1}`))
	a.ask("UNSUBSCRIBE "+channel, event("unsubscribe", channel, ":0"))
	b.ask("UNSUBSCRIBE", pushed("unsubscribe", channel, ":0"))
	in("0")
	in("3")
	a.ask("PING", "+PONG\r\n")
	b.ask("PING", "+PONG\r\n")
}

func TestOnlyTheServerTellsEvents(t *testing.T) {
	d := newDoor(t, Config{})
	a, c := d.dial(), d.dial()
	a.ask("PSUBSCRIBE *", event("psubscribe", "*", ":1"))
	for _, words := range []string{"PUBLISH holdfast:events x", "PUBLISH holdfast: x", "PUBLISH holdfast:tail:q x", "SUBSCRIBE holdfast:event", "SUBSCRIBE holdfast:"} {
		c.ask(words, "-"+errReserved+"\r\n")
	}
	b := d.dial()
	b.subscribe(tailPrefix + "q")
	c.qpush("q")
	b.told(tailPrefix + "q")
	c.ask("PUBLISH holdfast x", ":1\r\n")
	a.want(event("pmessage", "*", "holdfast", "x")) // and nothing before
	b.ask("SUBSCRIBE "+tailPrefix+strings.Repeat("q", maxChannel), event("subscribe", tailPrefix+strings.Repeat("q", maxChannel), ":2"))
	c.ask("SUBSCRIBE "+tailPrefix+strings.Repeat("q", maxChannel+1), "-"+errChannel+"\r\n")
}

func TestAListenerIsToldWhatItMayLookAt(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	looker, operator, all := d.dialAs("looker"), d.dialAs("operator"), d.dialAs("all")
	for _, c := range []*conn{looker, operator, all} {
		c.subscribe(eventsChannel)
	}
	d.dialAs("worker").ask("SUBSCRIBE "+eventsChannel, noCommand("subscribe"))
	d.dialAs("looker").ask("SUBSCRIBE "+tailPrefix+"out", noChannel)
	d.dialAs("operator").ask("SUBSCRIBE "+tailPrefix+"q", noCommand("subscribe"))
	c := d.dialAs("all")
	for _, queue := range []string{"out", "q"} {
		c.qpush(queue)
		c.die(queue, queue)
	}
	d.disk.level = storage.NoPush
	c.line("PING")
	for _, want := range []struct {
		c    *conn
		told string
	}{{all, "out"}, {all, `"q"`}, {all, "disk"}, {looker, `"q"`}, {operator, "disk"}} {
		if got := want.c.told(eventsChannel); !strings.Contains(got, want.told) {
			t.Errorf("told %s, want %s", got, want.told)
		}
	}
	wantRecent := func(user string, want int) {
		t.Helper()
		pass := access.NewPass(d.config.Users)
		pass.Enter(d.config.Users.Users().Named(user))
		if got := d.protocol.Recent(&pass); len(got) != want {
			t.Errorf("recent events of %s: %s", user, got)
		}
	}
	wantRecent("all", 3)
	wantRecent("looker", 1)
	wantRecent("worker", 0)
}

func TestTheNamesOfTailedQueuesAreNotToldToOthers(t *testing.T) {
	spy := access.User{Name: "looker", Password: "looker", Grants: []access.Grant{{Glob: "holdfast:*", Rights: access.Look}}}
	d := newDoor(t, Config{Users: access.NewControl(users(t, spy))})
	d.dialAs("all").subscribe(tailPrefix + "secret")
	c := d.dialAs("looker")
	c.ask("PUBSUB CHANNELS holdfast:*", "*0\r\n")
	c.ask("PUBSUB NUMSUB holdfast:tail:secret", noChannel)
	c.ask("SUBSCRIBE holdfast:tail:secret", noChannel)
	d.dialAs("all").ask("PUBSUB CHANNELS holdfast:*", "*1\r\n$20\r\nholdfast:tail:secret\r\n")
}

func TestATailEndsWithTheRightToLook(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	a := d.dialAs("looker")
	a.subscribe(tailPrefix + "q")
	d.config.Users.Swap(users(t, access.User{Name: "looker", Password: "looker", Grants: []access.Grant{{Glob: "x", Rights: access.Look}}}))
	d.dialAs("all").qpush("q")
	a.wantEnd()
}

func TestAListenerThatDoesNotReadIsToldHowMuchItMissed(t *testing.T) {
	d := newDoor(t, Config{})
	slow, fast, c := d.dial(), d.dial(), d.dial()
	queue := strings.Repeat("q", 60_000)
	channel := tailPrefix + queue
	slow.subscribe(channel)
	fast.subscribe(channel)
	slow.wire.Stall(true)
	const n = 2 * maxTold / 60_000
	for i := range n {
		c.qpush(queue)
		if got := fast.told(channel); !strings.Contains(got, fmt.Sprintf(`"id":"%d"`, 1+i)) {
			t.Fatalf("the other listener was told %.100s as number %d", got, 1+i)
		}
	}
	for _, s := range d.protocol.sessions {
		if unsent := s.peer.Unsent(); unsent > maxTold+1<<18 {
			t.Errorf("%d bytes wait for a listener", unsent)
		}
	}
	slow.wire.Stall(false)
	got, missed := 0, 0
	for got+missed < n { // it is told once more where the system took some of it meanwhile
		last := slow.told(channel)
		if !strings.Contains(last, "missed") {
			got++
			continue
		}
		var e struct{ Messages int }
		_ = json.Unmarshal([]byte(last), &e)
		missed += e.Messages
	}
	if got+missed != n || got == 0 || missed == 0 {
		t.Errorf("got %d messages and missed %d, want %d together", got, missed, n)
	}
	c.qpush(queue)
	if last := slow.told(channel); !strings.Contains(last, fmt.Sprintf(`"id":"%d"`, 1+n)) {
		t.Errorf("told %.100s after what was missed", last)
	}
}

func TestAListenerMissesNothingThatACommitTellsInOrder(t *testing.T) {
	d := newDoor(t, Config{})
	a, c := d.dial(), d.dial()
	a.subscribe(tailPrefix + "q")
	c.send("MULTI\r\n" + strings.Repeat("QPUSH q x\r\n", 5000) + "EXEC\r\n")
	for i := range maxTailedAtOnce {
		if got := a.told(tailPrefix + "q"); !strings.Contains(got, fmt.Sprintf(`"id":"%d"`, 1+i)) {
			t.Fatalf("told %s as number %d", got, 1+i)
		}
	}
	a.wantTold(tailPrefix+"q", `{"event":"missed","at":1700000000000,"database":0,"queue":"q","messages":904}`)
}

// maxTailedAtOnce is the broker's bound of one commit.
const maxTailedAtOnce = 4096

func TestAListenerThatMustGoLeavesThePacketToTheNextInLine(t *testing.T) {
	looker := access.User{Name: "looker", Password: "looker", Grants: []access.Grant{{Glob: "q", Rights: access.Look | access.Take}}}
	d := newDoor(t, Config{Users: access.NewControl(users(t, looker))})
	c := d.dialAs("all")
	c.ask("QPUSH q late DELAY 1000", bulkReply("1"))
	goes := d.dialAs("looker").resp3()
	goes.ask("SUBSCRIBE "+tailPrefix+"q", pushed("subscribe", tailPrefix+"q", ":1"))
	goes.send(request("BLPOP", "q", "0"))
	c.awaitBlocked(1)
	next := d.dialAs("all")
	next.send(request("BLPOP", "q", "0"))
	c.awaitBlocked(2)
	looker.Grants = nil
	d.config.Users.Swap(users(t, looker))
	c.send(request("QPUSH", "q", "later", "DELAY", "1000000")) // of which the listener may not be told
	d.disk.commit = func() { d.now += 2000 }                   // the first packet is due in the turn in which the listener is to go
	next.want("*2\r\n" + bulkReply("q") + bulkReply("late"))
	goes.wantEnd()
}

func TestAReplyWaitsForItsCommitWhenAListenerMustGo(t *testing.T) {
	looker := access.User{Name: "looker", Password: "looker", Grants: []access.Grant{{Glob: "q", Rights: access.Look | access.Push}}}
	d := newDoor(t, Config{Users: access.NewControl(users(t, looker))})
	claimer, c := d.dialAs("all"), d.dialAs("all")
	c.ask("QSET q bound-bytes 10 full block", "+OK\r\n")
	c.ask("QPUSH q 12345", bulkReply("1"))
	large := d.dialAs("looker").resp3()
	large.ask("SUBSCRIBE "+tailPrefix+"q", pushed("subscribe", tailPrefix+"q", ":1"))
	large.send(request("QPUSH", "q", "1234567890", "BLOCK", "0"))
	c.awaitBlocked(1)
	small := d.dialAs("all")
	small.send(request("QPUSH", "q", "123", "BLOCK", "0"))
	c.awaitBlocked(2)
	looker.Grants[0].Rights = access.Push
	d.config.Users.Swap(users(t, looker))
	d.disk.commit = func() { d.disk.commit = small.hasNothing } // while the small push is on its way to the disk
	claimer.send(request("QCLAIM", "q"))                        // the listener may not be told
	claimer.value()
	small.want(bulkReply("3")) // 2 is the token of the claim
	large.wantEnd()
}

func TestWhereManyListenToEventsFewerAreTold(t *testing.T) {
	d := newDoor(t, Config{})
	c, first := d.dial(), d.dial()
	first.subscribe(eventsChannel)
	others := make([]*conn, 199)
	for i := range others {
		others[i] = d.dial()
		others[i].subscribe(eventsChannel)
	}
	c.ask("QSET q max-attempts 1", "+OK\r\n")
	deaths := func() (told, missed int) {
		t.Helper()
		for range 256 {
			c.qpush("q")
		}
		c.send(request("QCLAIM", "q", "COUNT", "256", "LEASE", "1"))
		c.value()
		d.now += 10
		c.line("PING")
		for told+missed < 256 {
			text := first.told(eventsChannel)
			var e struct{ Messages int }
			if _ = json.Unmarshal([]byte(text), &e); e.Messages > 0 {
				missed += e.Messages
			} else {
				told++
			}
		}
		return told, missed
	}
	if told, missed := deaths(); told != 128 || missed != 128 {
		t.Errorf("of 256 deaths 200 listeners were told %d and missed %d, want half", told, missed)
	}
	for _, o := range others {
		_ = o.Close()
	}
	if told, missed := deaths(); told != 256 {
		t.Errorf("of 256 deaths one listener was told %d and missed %d, want all", told, missed)
	}
}
