package resp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

func TestALoadedPacketIsAsItWas(t *testing.T) {
	now := "1700000000000" // of the door
	for name, x := range map[string]struct{ args, want string }{
		"plain":   {"p", "behind=0 id=1 payload=p priority=128 queue=q state=ready"},
		"fresh":   {"p PRIO 3 KEY k PUSHED 5 PRODUCER me LEASE 9 META m EXPIRES 1800000000000 TAG b 2 TAG a 1 UNIQUE u", "behind=0 enqueued=5 expires=1800000000000 id=1 key=k lease=9 meta=m payload=p priority=3 producer=me queue=q state=ready tags=[a 1 b 2] unique=u"},
		"delayed": {"p AT 1700000000001", "id=1 not-before=1700000000001 payload=p priority=128 queue=q state=delayed"},
		"past":    {"p AT " + now, "behind=0 id=1 payload=p priority=128 queue=q state=ready"},
		"retried": {"p UNTIL 1700000000009 STATE delayed ATTEMPTS 2 FIRST 6 LAST 7 CONSUMER w REASON why", "attempt=2 consumer=w first-claim=6 id=1 last-claim=7 last-error-class=why not-before=1700000000009 payload=p priority=128 queue=q reason=why state=delayed"},
		"dead":    {"p STATE dead UNTIL 8 ATTEMPTS 5 REASON \xff", "attempt=5 died=8 id=1 last-error-class=\xff payload=p priority=128 queue=q reason=\xff state=dead"},
		"origin":  {"p ORIGIN o REASON r", "behind=0 id=1 last-error-class=r origin=o payload=p priority=128 queue=q reason=r state=ready"},
		"done":    {"p STATE done EXPIRES 1800000000000 PROGRESS 100 TEXT all ATTEMPTS 70000", "attempt=65535 expires=1800000000000 id=1 payload=p priority=128 progress=100 progress-text=all queue=q state=done"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, Config{})
			c := d.dial()
			c.ask("QSET o lease 5000", "+OK\r\n")
			c.ask("QLOAD q "+x.args, bulkReply("1"))
			for range 2 {
				shown := c.pairs("QSHOW", "q", "1")
				delete(shown, "why")
				var said []string
				for _, name := range slices.Sorted(maps.Keys(shown)) {
					said = append(said, name+"="+shown[name])
				}
				if got := strings.Join(said, " "); got != x.want {
					t.Errorf("got  %q\nwant %q", got, x.want)
				}
				d.restart()
				c = d.dial()
			}
		})
	}
}

func TestALoadedPacketPassesTheGatesOfItsQueue(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q bound 1 pause-in yes pause-out yes exclusive-producer yes enum level low high", "+OK\r\n")
	c.ask("QCLOSE q", ":1\r\n")
	c.ask("QLOAD q a", bulkReply("1"))
	c.ask("QLOAD q b TAG level unknown", bulkReply("2"))
	c.ask("QLEN q", ":2\r\n")
	c.ask("SET s v", "+OK\r\n")
	c.ask("QLOAD s a", "-"+errWrongType+"\r\n")
}

func TestAConsumerOfALoadedPacketWasNotSeenInTheFuture(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QLOAD q a CONSUMER w LAST 1700000000001", bulkReply("1"))
	c.ask("QCONSUMERS q", onTheWire(`*1 | *10 | "name" | "w" | "seen" | :1700000000000 | "claimed" | :0 | "ids" | *0 | "waiting" | *0`))
}

func TestALoadedPacketGoesToWhoWaits(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	waiting := d.waiting(c, 0, "BRPOP q 0")
	c.ask("QLOAD q a STATE dead", bulkReply("1"))
	c.ask("QLOAD q b", bulkReply("2"))
	waiting.want(onTheWire(`*2 | "q" | "b"`))
}

func TestALoadedWindowGoesOn(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QLOAD q x EXPIRES 1 UNIQUE gone WINDOW 1700000001000", nullReply)
	c.ask("QLOAD q x UNIQUE here WINDOW 1700000001000", bulkReply("2"))
	c.ask("QLOAD q x EXPIRES 1 UNIQUE over WINDOW 1700000000000", nullReply)
	c.ask("QPUSH q y UNIQUE gone", bulkReply("1"))
	c.ask("QPUSH q y UNIQUE here", bulkReply("2"))
	d.restart()
	c = d.dial()
	c.ask("QPUSH q y UNIQUE gone", bulkReply("1"))
	c.ask("QPUSH q y UNIQUE here", bulkReply("2"))
	c.ask("QPUSH q y UNIQUE over", bulkReply("3"))
	c.ask("QLEN q", ":2\r\n")
	d.now += 1000
	c.ask("QPUSH q y UNIQUE gone", bulkReply("4"))
}

func TestLoadsThatSayTooMuchOrTooLittleAreRefused(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for args, want := range map[string]string{
		"STATE claimed":                        "ERR STATE: expected ready, delayed, dead or done, got \"claimed\"",
		"STATE done":                           "ERR STATE: expected EXPIRES with done",
		"WINDOW 5":                             "ERR WINDOW: expected UNIQUE with it",
		"TEXT t":                               "ERR TEXT: expected PROGRESS with it",
		"EXPIRES -1":                           "ERR EXPIRES: expected a number from 0 to 9223372036854775807, got \"-1\"",
		"CONSUMER " + strings.Repeat("c", 256): "ERR CONSUMER: expected 1 to 255 bytes, got 256",
	} {
		c.ask("QLOAD q p "+args, "-"+want+"\r\n")
	}
	c.ask("EXISTS q", ":0\r\n")
}

func TestALoadNeedsToManageAndToPushToTheOrigin(t *testing.T) {
	loader := access.User{Name: "manager", Password: "manager", Grants: []access.Grant{
		{Glob: "q", Rights: access.Push | access.Manage}, {Glob: "o", Rights: access.Push}, {Glob: "only-manage", Rights: access.Manage},
	}}
	d := newDoor(t, Config{Users: access.NewControl(users(t, loader))})
	c := d.dialAs("manager")
	c.ask("QLOAD q origin PRIO 1 TAG origin foreign", bulkReply("1"))
	c.ask("QLOAD q x TAG a b ORIGIN o", bulkReply("2"))
	c.ask("QLOAD q x TAG a b ORIGIN foreign", noKey)
	c.ask("QLOAD q x origin foreign PRIO 3", noKey)
	c.ask("QLOAD only-manage x", noKey)
	d.dialAs("producer").ask("QLOAD q x", noCommand("qload"))
}
