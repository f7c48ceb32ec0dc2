package resp

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// event is what a subscriber gets: words, the last of which may be a number, in RESP2.
func event(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		if strings.HasPrefix(w, ":") {
			b.WriteString(w + "\r\n")
		} else {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return b.String()
}

// pushed is event in RESP3.
func pushed(words ...string) string { return ">" + event(words...)[1:] }

func TestMessagesReachWhoListens(t *testing.T) {
	d := newDoor(t, Config{})
	a, b, c := d.dial(), d.dial(), d.dial()
	a.ask("SUBSCRIBE x y x", event("subscribe", "x", ":1")+event("subscribe", "y", ":2")+event("subscribe", "x", ":2"))
	a.ask("PSUBSCRIBE x*", event("psubscribe", "x*", ":3"))
	b.ask("SUBSCRIBE x", event("subscribe", "x", ":1"))
	c.ask("PUBLISH x hello", ":3\r\n")
	c.ask("PUBLISH xx hello", ":1\r\n")
	c.ask("PUBLISH nobody hello", ":0\r\n")
	a.want(event("message", "x", "hello") + event("pmessage", "x*", "x", "hello") + event("pmessage", "x*", "xx", "hello"))
	b.want(event("message", "x", "hello"))
	c.ask("PUBSUB CHANNELS", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n")
	c.ask("PUBSUB CHANNELS [^x]", "*1\r\n$1\r\ny\r\n")
	c.ask("PUBSUB NUMSUB x y z", "*6\r\n$1\r\nx\r\n:2\r\n$1\r\ny\r\n:1\r\n$1\r\nz\r\n:0\r\n")
	c.ask("PUBSUB NUMPAT", ":1\r\n")

	a.ask("UNSUBSCRIBE x", event("unsubscribe", "x", ":2"))
	a.ask("UNSUBSCRIBE", event("unsubscribe", "y", ":1"))
	a.ask("PUNSUBSCRIBE", event("punsubscribe", "x*", ":0"))
	a.ask("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n")
	a.ask("PUNSUBSCRIBE z", event("punsubscribe", "z", ":0"))
	a.ask("PING", "+PONG\r\n")
	_ = b.Close()
	c.ask("PUBLISH x hello", ":0\r\n")
}

func TestTheSubscriptionsOfAConnectionAreBounded(t *testing.T) {
	d := newDoor(t, Config{})
	a, b := d.dial(), d.dial()
	a.ask("SUBSCRIBE first", event("subscribe", "first", ":1"))
	all := []string{"SUBSCRIBE", "first"}
	for i := range maxSubscriptions {
		all = append(all, fmt.Sprint(i))
	}
	a.send(request(all...))
	a.want("-" + errSubscriptions + "\r\n")
	a.send(request(all[:len(all)-1]...))
	a.want(event("subscribe", "first", ":1"))
	for i, name := range all[2 : len(all)-1] {
		a.want(event("subscribe", name, fmt.Sprint(":", i+2)))
	}
	a.ask("PSUBSCRIBE *", "-"+errSubscriptions+"\r\n")
	a.ask("SUBSCRIBE 0 first", event("subscribe", "0", ":65536")+event("subscribe", "first", ":65536"))
	b.send(request(append([]string{"PUBSUB", "NUMSUB"}, all[:maxNumSub+1]...)...))
	b.want("-" + errNumSub + "\r\n")
	b.ask("PUBLISH 7 x", ":1\r\n")
	a.want(event("message", "7", "x"))
}

func TestPatternsThatEndCostPublishNothing(t *testing.T) {
	all := newPubsub().patterns
	var patterns []*topic
	for i := range 100 {
		name := fmt.Sprint(i, "*")
		patterns = append(patterns, all.add(name, patternArg([]byte(name))))
	}
	for _, p := range patterns[:99] {
		all.remove(p)
	}
	if n := len(all.slots); n != 1 || all.slots[0] != patterns[99] || patterns[99].slot != 0 {
		t.Errorf("PUBLISH goes over %d patterns, expected the last one", n)
	}
}

func TestAPublishBeyondItsStepsTriesNoPattern(t *testing.T) {
	s := &session{protocol: &Protocol{pubsub: newPubsub()}}
	s.protocol.pubsub.patterns.add("x", nil) // to try it would be a panic
	if err := publish(s, nil, [][]byte{nil, []byte("x"), nil}); err != failure(errCostly) {
		t.Errorf("got %v", err)
	}
}

func TestConnectionsThatEndTogetherDoSoInSeveralTurns(t *testing.T) {
	d := newDoor(t, Config{})
	var conns []*conn
	for i := range 10 {
		c := d.dial()
		c.ask("SUBSCRIBE "+fmt.Sprint(i), event("subscribe", fmt.Sprint(i), ":1"))
		conns = append(conns, c)
	}
	other := d.dial()
	other.ask("PING", "+PONG\r\n")
	d.tick = 20 // each look at the clock is that much later
	for _, c := range conns {
		_ = c.Close()
	}
	most := 0
	for before := 11; before > 1 && d.network.Loop.Idle() == 0; before = len(d.protocol.sessions) {
		if err := d.network.Loop.Turn(); err != nil {
			t.Fatal(err)
		}
		most = max(most, before-len(d.protocol.sessions))
	}
	if len(d.protocol.sessions) != 1 || most != 1 {
		t.Errorf("%d connections ended in one turn, %d stay", most, len(d.protocol.sessions))
	}
}

func TestShortAndLongMessagesArriveInOrder(t *testing.T) {
	d := newDoor(t, Config{})
	a, b, c, p := d.dial(), d.dial(), d.dial(), d.dial()
	a.ask("SUBSCRIBE x", event("subscribe", "x", ":1"))
	b.ask("PSUBSCRIBE x*", event("psubscribe", "x*", ":1"))
	c.send("CLIENT REPLY SKIP\r\nHELLO 3\r\n")
	c.ask("SUBSCRIBE x", pushed("subscribe", "x", ":1"))
	var toA, toB, toC strings.Builder
	for i, n := range []int{10, 4000, 5000, 10, 1 << 20, 70_000, 10} {
		text := strings.Repeat(fmt.Sprint(i), n)
		p.ask("PUBLISH x "+text, ":3\r\n")
		toA.WriteString(event("message", "x", text))
		toB.WriteString(event("pmessage", "x*", "x", text))
		toC.WriteString(pushed("message", "x", text))
	}
	a.want(toA.String())
	b.want(toB.String())
	c.want(toC.String())
	c.ask("PUBLISH x "+strings.Repeat("x", 5000), ":3\r\n"+pushed("message", "x", strings.Repeat("x", 5000)))
	a.ask("PING", event("message", "x", strings.Repeat("x", 5000))+"*2\r\n$4\r\npong\r\n$0\r\n\r\n")
}

func TestASubscriberOfRESP2DoesNothingElse(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("SUBSCRIBE x", event("subscribe", "x", ":1"))
	c.ask("GET k", "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n")
	c.ask("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n")
	c.ask("PING hi", "*2\r\n$4\r\npong\r\n$2\r\nhi\r\n")
	c.ask("RESET", "+RESET\r\n")
	c.ask("GET k", "$-1\r\n")
}

func TestASubscriberOfRESP3IsPushedTo(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.line("HELLO", "3")
	_, _ = io.ReadFull(c, make([]byte, len("$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n")))
	c.ask("SUBSCRIBE x", pushed("subscribe", "x", ":1"))
	c.ask("PING", "+PONG\r\n")
	c.ask("PUBLISH x own", ":1\r\n"+pushed("message", "x", "own"))
	d.dial().ask("PUBLISH x other's", ":1\r\n")
	c.want(pushed("message", "x", "other's"))
	c.send("CLIENT REPLY OFF\r\nPUBLISH x silent\r\nPING\r\nSUBSCRIBE y\r\n")
	c.want(pushed("message", "x", "silent") + pushed("subscribe", "y", ":2"))
	c.send("CLIENT REPLY ON\r\n")
	c.want("+OK\r\n")
}

func TestAMessageToItselfComesBehindTheReply(t *testing.T) {
	c := newDoor(t, Config{}).dial().resp3()
	c.ask("SUBSCRIBE x", pushed("subscribe", "x", ":1"))
	c.ask("PSUBSCRIBE x*", pushed("psubscribe", "x*", ":2"))
	message := func(text string) string {
		return pushed("message", "x", text) + pushed("pmessage", "x*", "x", text)
	}
	const transaction = "MULTI\r\nPUBLISH x 1\r\nPING\r\nPUBLISH x 2\r\nEXEC\r\n"
	c.send(transaction + "PING\r\n")
	c.want("+OK\r\n" + strings.Repeat(queuedReply, 3) + "*3\r\n:2\r\n+PONG\r\n:2\r\n" + message("1") + message("2") + "+PONG\r\n")
	c.send("CLIENT REPLY OFF\r\n" + transaction + "CLIENT REPLY ON\r\n")
	c.want(message("1") + message("2") + "+OK\r\n")
}

func TestAMessageFollowsWhatWasDoneBefore(t *testing.T) {
	d := newDoor(t, Config{})
	a, c := d.dial(), d.dial()
	a.ask("SUBSCRIBE x", event("subscribe", "x", ":1"))
	c.ask("MULTI", "+OK\r\n")
	c.ask("SET k v", queuedReply)
	c.ask("PUBLISH x changed", queuedReply)
	c.ask("EXEC", "*2\r\n+OK\r\n:1\r\n")
	a.want(event("message", "x", "changed"))
}

func TestASlowSubscriberIsCutOff(t *testing.T) {
	d := newDoor(t, Config{})
	slow, c := d.dial(), d.dial()
	slow.ask("SUBSCRIBE x", event("subscribe", "x", ":1"))
	slow.wire.Stall(true)
	text := strings.Repeat("x", 1<<20)
	for range maxUnsent >> 20 {
		c.ask("PUBLISH x "+text, ":1\r\n")
	}
	c.line("PUBLISH", "x", text)
	if c.ask("PUBLISH x "+text, ":0\r\n"); !slow.wire.Closed() {
		t.Error("the slow subscriber is connected")
	}
}

func TestASubscriberThatPublishesTooMuchToItselfIsCutOff(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.line("HELLO", "3")
	for i := range 2 * maxUnsent >> 20 {
		c.send(request("PSUBSCRIBE", "x*"+strings.Repeat("*", i)))
	}
	c.send(request("PUBLISH", "x", strings.Repeat("x", 1<<20)) + request("SET", "k", "v"))
	if got, err := io.Copy(io.Discard, c); err != nil || got > 2*maxUnsent {
		t.Errorf("the subscriber got %d bytes, then %v", got, err)
	}
	d.dial().ask("GET k", "$-1\r\n")
}

func TestSystemASubscriptionTakesNoMoreThanItCounts(t *testing.T) {
	const conns, names = 16, 3600 // when maps have just grown
	for what, prefix := range map[string]string{"a channel": "name:", "a tail": tailPrefix} {
		d := openDoor(&door{t: t}) // it runs by itself
		heap := func() int {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		clients, large := make([]*conn, conns), strings.Repeat("x", 256<<10)
		for i := range clients {
			clients[i] = d.dial()
			clients[i].ask("ECHO "+large, fmt.Sprintf("$%d\r\n%s\r\n", len(large), large)) // for which a loop may keep room
		}
		before, counted := heap(), d.held()
		for i, c := range clients {
			words := []string{"SUBSCRIBE"}
			var replies strings.Builder
			for n := range names {
				words = append(words, fmt.Sprintf("%s%07d", prefix, i*names+n))
				replies.WriteString(event("subscribe", words[n+1], fmt.Sprint(":", n+1)))
			}
			c.ask(strings.Join(words, " "), replies.String())
		}
		counted = (d.held() - counted) / (conns * names)
		takes := (heap() - before) / (conns * names)
		t.Logf("%s takes %d bytes, %d are counted", what, takes, counted)
		if takes > counted {
			t.Errorf("%s takes %d bytes, %d are counted", what, takes, counted)
		}
		runtime.KeepAlive(d)
	}
}
