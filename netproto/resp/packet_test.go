package resp

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// onTheWire writes a reply as it is on the wire, from its lines: a text in quotes is a bulk.
func onTheWire(lines string) string {
	var out []byte
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		for _, word := range strings.Split(strings.TrimSpace(line), " | ") {
			if text, ok := strings.CutPrefix(word, `"`); ok {
				out = wire.AppendBulk(out, strings.TrimSuffix(text, `"`))
			} else {
				out = append(out, word+"\r\n"...)
			}
		}
	}
	return string(out)
}

// fullPacket has every field that a packet can have at once, and more than that.
func fullPacket() broker.Found {
	return broker.Found{
		Packets: []broker.Packet{{
			Key: []byte{}, Payload: []byte("a\r\nb"), Expiry: 1700000009000, EnqueuedAt: 1700000000001,
			Tags: []broker.PacketTag{{Name: "class", Value: "low"}, {Name: "region", Value: ""}}, Producer: "p1", Lease: 5000, Meta: []byte("m"),
		}},
		Details: []broker.Detail{{
			ID: -7, Queue: "jobs", Priority: 4294967295, State: broker.Dead, NotBefore: 1700000000002,
			Attempts: 3, Token: 42, LeaseEnd: 1700000030000, Cancelled: true, FirstClaim: 1700000000003, LastClaim: 1700000000004, Died: 1700000000005, Behind: 7,
			Consumer: "w1", Origin: "old", Reason: []byte("timeout"), Progress: []byte("\x28halfway"), Unique: []byte("order-17"),
		}},
	}
}

// packetsReply is the reply with what was found.
func packetsReply(f broker.Found, form replyForm, resp3 bool) string {
	s := &session{protocol: &Protocol{}, peer: &netproto.Peer{}, resp3: resp3}
	s.packets(form, f, nil)
	return string(s.peer.Out)
}

// fullFields are the lines of fullPacket behind the head, but for the tags' head and the end.
const fullFields = `
"id" | "-7"
"queue" | "jobs"
"payload" | "a` + "\r\x00" + `b"
"priority" | :4294967295
"attempt" | :3
"key" | ""
"tags" | TAGS | "class" | "low" | "region" | ""
"producer" | "p1"
"lease" | :5000
"meta" | "m"
"unique" | "order-17"
"enqueued" | :1700000000001
"expires" | :1700000009000
"not-before" | :1700000000002
"token" | :42
"lease-end" | :1700000030000
"cancelled" | :1
"consumer" | "w1"
"state" | "dead"
"reason" | "timeout"
"last-error-class" | "timeout"
"died" | :1700000000005
"progress" | :40
"progress-text" | "halfway"
"origin" | "old"`

const claimFields = `
"first-claim" | :1700000000003
"last-claim" | :1700000000004
"behind" | :7
"why" | "dead after 3 attempts, because: timeout"`

func TestAPacketHasAllItsFieldsInOrder(t *testing.T) {
	full := fullPacket()
	for _, c := range []struct {
		name  string
		form  replyForm
		resp3 bool
		head  string
		tags  string
		more  string
	}{
		{"RESP2", formPackets, false, "*1\n*50", "*4", ""},
		{"RESP3", formPackets, true, "*1\n%25", "%2", ""},
		{"RESP2, without a head", formFields, false, "*50", "*4", ""},
		{"RESP3, without a head", formFields, true, "%25", "%2", ""},
		{"RESP2, why", formPacket, false, "*58", "*4", claimFields},
		{"RESP3, why", formPacket, true, "%29", "%2", claimFields},
	} {
		want := strings.ReplaceAll(onTheWire(c.head+strings.Replace(fullFields, "TAGS", c.tags, 1)+c.more), "\x00", "\n")
		if got := packetsReply(full, c.form, c.resp3); got != want {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, want)
		}
	}
}

func TestWhyAPacketThatExpiresBeforeItsClaimEndsIsGoneThen(t *testing.T) {
	p, d := &broker.Packet{Expiry: 1700000009000}, &broker.Detail{State: broker.Claimed, Consumer: "w1", LeaseEnd: 1700000030000}
	const want = `claimed by "w1" until 2023-11-14T22:13:50.000Z; then it is gone, because it expires before: 2023-11-14T22:13:29.000Z`
	if got := why(p, d); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestWhyAPacketThatWasCancelledIsGoneThen(t *testing.T) {
	d := &broker.Detail{State: broker.Claimed, Consumer: "w1", Cancelled: true}
	const want = `claimed by "w1" without end; it was cancelled, and is gone when the claim ends`
	if got := why(&broker.Packet{}, d); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestTheFieldsOfAPacketAreThoseOfTheWordsInTheirOrder(t *testing.T) {
	var got, want []string
	for _, name := range regexp.MustCompile(`(?m)^"([a-z-]+)" \|`).FindAllStringSubmatch(fullFields+claimFields, -1) {
		got = append(got, name[1])
	}
	for _, f := range words.PacketFields {
		want = append(want, f.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("a packet has the fields\n%v, in the words\n%v", got, want)
	}
}

func TestTheStatesOfAPacketAreThoseOfTheWordsInTheirOrder(t *testing.T) {
	for i, s := range words.PacketStates {
		if got := (broker.Ready + broker.State(i)).String(); got != s.Name {
			t.Errorf("state %d is %s, in the words %s", i, got, s.Name)
		}
	}
	if last := broker.Ready + broker.State(len(words.PacketStates)-1); last != broker.Damaged {
		t.Errorf("the last state of the words is %s", last)
	}
}

func TestAPacketHasNoFieldThatDoesNotApply(t *testing.T) {
	found := broker.Found{
		Packets: []broker.Packet{{Payload: []byte("x")}},
		Details: []broker.Detail{{ID: 5, Queue: "q", Priority: 128, State: broker.Ready}},
	}
	const fields = "\n\"id\" | \"5\"\n\"queue\" | \"q\"\n\"payload\" | \"x\"\n\"priority\" | :128"
	for name, c := range map[string]struct {
		form  replyForm
		resp3 bool
		want  string
	}{
		"one that waits":    {formPackets, false, "*1\n*10" + fields + "\n\"state\" | \"ready\""},
		"one that is taken": {formPopped, true, "*1\n%4" + fields},
	} {
		if got := packetsReply(found, c.form, c.resp3); got != onTheWire(c.want) {
			t.Errorf("%s: %q, want %q", name, got, onTheWire(c.want))
		}
	}
}

func TestTheClassOfAnErrorIsWhatStandsBeforeItsColon(t *testing.T) {
	for reason, want := range map[string]string{
		"ValueError: bad input: 7": "ValueError", "timeout": "timeout", "": "", ": x": "", " a b \n at: 7": "a b",
		"dead at attempt 3: smtplib.SMTPError: 421": "smtplib.SMTPError", "dead at attempt 3": "", "lease ended: w1": "lease ended", strings.Repeat("x", 63) + " y": strings.Repeat("x", 63),
		strings.Repeat("é", 40): strings.Repeat("é", 32), "x" + strings.Repeat("é", 40): "x" + strings.Repeat("é", 31),
		strings.Repeat("\xff", 70): strings.Repeat("\xff", 64),
	} {
		if got := string(errorClass([]byte(reason))); got != want {
			t.Errorf("%q is of the class %q, want %q", reason, got, want)
		}
	}
}

func TestNoPacketsAreAReplyOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		form         replyForm
		resp2, resp3 string
	}{
		{formBulk, "$-1\r\n", "_\r\n"},
		{formArray, "*-1\r\n", "_\r\n"},
		{formBulks, "", ""},
		{formPackets, "*0\r\n", "*0\r\n"},
		{formPopped, "*0\r\n", "*0\r\n"},
		{formFields, "", ""},
		{formPacket, "*-1\r\n", "_\r\n"},
	} {
		resp2, resp3 := packetsReply(broker.Found{}, c.form, false), packetsReply(broker.Found{}, c.form, true)
		if resp2 != c.resp2 || resp3 != c.resp3 {
			t.Errorf("form %d: %q and %q, want %q and %q", c.form, resp2, resp3, c.resp2, c.resp3)
		}
	}
}

func TestWhySaysInASentenceWhyAPacketIsNotDelivered(t *testing.T) {
	const end = 1700000030000
	for want, c := range map[string]struct {
		p broker.Packet
		d broker.Detail
	}{
		"delayed until 2023-11-14T22:13:50.000Z":                                      {d: broker.Detail{State: broker.Delayed, NotBefore: end}},
		`claimed by "w\"1" until 2023-11-14T22:13:50.000Z`:                            {d: broker.Detail{State: broker.Claimed, LeaseEnd: end, Consumer: `w"1`}},
		`claimed by "w" without end`:                                                  {d: broker.Detail{State: broker.Claimed, Consumer: "w"}},
		"dead after 1 attempt":                                                        {d: broker.Detail{State: broker.Dead, Attempts: 1}},
		"dead after 5 attempts, because: no disk":                                     {d: broker.Detail{State: broker.Dead, Attempts: 5, Reason: []byte("no disk")}},
		`done: "w" acknowledged it; it stays until 2023-11-14T22:13:50.000Z`:          {p: broker.Packet{Expiry: end}, d: broker.Detail{State: broker.Done, Consumer: "w"}},
		"of priority 0: it is delivered only together with another packet of its key": {d: broker.Detail{State: broker.Ready, Behind: -1}},
		"behind 1 other packet":                                                       {d: broker.Detail{State: broker.Ready, Priority: 1, Behind: 1}},
		"the queue is paused: it gives nothing until pause-out is off":                {d: broker.Detail{State: broker.Ready, Priority: 1, Paused: true}},
		"behind 12 other packets":                                                     {d: broker.Detail{State: broker.Ready, Priority: 1, Behind: 12}},
		"next in line":                                                                {d: broker.Detail{State: broker.Ready, Priority: 1}},
	} {
		if got := why(&c.p, &c.d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnAgeIsNeverNegative(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q x", bulkReply("1"))
	for _, step := range []struct {
		passes int64
		age    string
	}{{600, ":600"}, {-601, ":0"}} {
		d.now += step.passes
		c.send(request("QSTAT", "q") + request("PING"))
		age := "" // the last figure
		for line := c.readLine(); line != "+PONG"; line = c.readLine() {
			age = line
		}
		if age != step.age {
			t.Errorf("%q, want %q", age, step.age)
		}
	}
}
