package resp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// rightsOfCommands says which rights each command needs, and which of the second of its keys.
const rightsOfCommands = `
none: hello auth ping echo quit reset select time command command|count command|docs command|getkeys command|info role
none: command|list command|help info
none: client|id client|getname client|setname client|setinfo client|info client|list client|reply
none: client|help config|get config|help acl|whoami acl|cat acl|help memory|help pubsub|help
none: multi exec discard unwatch unsubscribe punsubscribe pubsub|numpat
push: lpush rpush lpushx rpushx hset hmset hsetnx setnx msetnx append setrange qpush qmpush publish
push+look: linsert incr decr incrby decrby incrbyfloat hincrby hincrbyfloat
push+manage: set setex psetex mset getset qload
take: lpop rpop lmpop blpop brpop blmpop lrem ltrim hdel getdel getex qpop qclaim qack qnack qextend qprogress
take push: rpoplpush lmove brpoplpush blmove
look: llen lrange lindex lpos hget hmget hgetall hkeys hvals hexists hlen hstrlen hscan
look: get mget strlen getrange substr exists touch type ttl pttl expiretime pexpiretime memory|usage object
look: keys scan dbsize queues watch subscribe psubscribe pubsub|channels pubsub|numsub
look: qpeek qlist qshow qget qlen qstat qconsumers qproducers qshares
manage: lset del unlink rename renamenx expire pexpire expireat pexpireat persist
manage: qdel qcancel qmove qprio qrun qpurge qharvest qredrive qset qshare qpause qclose qdrop
operate: config|resetstat client|kill client|unblock flushall flushdb acl|users acl|list
`

// The list is written by hand: whoever adds a command decides what it needs.
func TestEachCommandNeedsTheRightsOfTheList(t *testing.T) {
	want := make(map[string]string)
	for line := range strings.Lines(strings.TrimSpace(rightsOfCommands)) {
		rights, names, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(names) {
			if want[name] != "" {
				t.Errorf("%s is listed twice", name)
			}
			want[name] = rights
		}
	}
	for _, c := range all(newTable()) {
		if c.run == nil { // it only holds others
			continue
		}
		got := c.needs().String()
		if c.second != access.None {
			got += " " + c.second.String()
		}
		if got != want[c.name] {
			t.Errorf("%s needs %q, the list says %q", c.name, got, want[c.name])
		}
		delete(want, c.name)
	}
	if len(want) > 0 {
		t.Errorf("no commands: %v", want)
	}
}

// A command whose keys are not at fixed places says itself what it asks for, or it asks for all.
func TestNoCommandWithKeysEscapesTheRights(t *testing.T) {
	for _, c := range all(newTable()) {
		if kinds := flagWrite | flagRead | flagAdds; c.flags&kinds != 0 && c.needs() == access.None {
			t.Errorf("%s is free", c.name)
		}
		if c.flags&flagLocal == 0 && c.needs() == access.None {
			t.Errorf("%s uses the broker and is free", c.name)
		}
	}
}

// control has the users of these tests. The passwords are their names.
func control(t testing.TB) *access.Control { return access.NewControl(users(t)) }

func users(t testing.TB, more ...access.User) *access.Users {
	t.Helper()
	user := func(name string, grants ...access.Grant) access.User {
		return access.User{Name: name, Password: name, Grants: grants}
	}
	operator := user("operator")
	operator.Operate = true
	all := []access.User{
		operator,
		user("producer", access.Grant{Glob: "q*", Rights: access.Push}),
		user("worker", access.Grant{Glob: "q*", Rights: access.Take}, access.Grant{Glob: "out", Rights: access.Push}),
		user("looker", access.Grant{Glob: "q*", Rights: access.Look}, access.Grant{Glob: "COUNT", Rights: access.Look}),
		user("manager", access.Grant{Glob: "q*", Rights: access.Manage}, access.Grant{Glob: "q", Rights: access.Push | access.Take}),
		user("all", access.Everything()...),
	}
	for _, u := range more {
		at := slices.IndexFunc(all, func(o access.User) bool { return o.Name == u.Name })
		all[at] = u
	}
	made, err := access.NewUsers(all)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// dialAs returns a connection of a user.
func (d *door) dialAs(name string) *conn {
	d.t.Helper()
	c := d.dial()
	c.ask("AUTH "+name+" "+name, "+OK\r\n")
	return c
}

const (
	noKey     = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	noChannel = "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
)

func noCommand(name string) string {
	word, sub, has := strings.Cut(name, "|")
	c := lookup(newTable(), []byte(word))
	if has {
		c = c.sub[sub]
	}
	return fmt.Sprintf("-NOPERM this user has no permissions to run the '%s' command: it needs the right %v\r\n", name, c.needs()|c.second)
}

func TestAUserMayDoWhatItsRightsSayAndNothingElse(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	d.dialAs("producer").ask("RPUSH q a b", ":2\r\n")
	for _, c := range []struct{ user, request, refused string }{
		{"producer", "LPUSH q1 x", ""},
		{"producer", "LPUSH out x", noKey},
		{"producer", "QPUSH out x", noKey},
		{"producer", "QPUSH q9 x UNIQUE u", ""},
		{"producer", "QPUSH q9 x UNIQUE u REPLACE", noKey},
		{"producer", "LPOP q", noCommand("lpop")},
		{"producer", "LLEN q", noCommand("llen")},
		{"producer", "SET q x", noCommand("set")},
		{"producer", "DEL q", noCommand("del")},
		{"producer", "INCR q7", noCommand("incr")},
		{"producer", "HSET q2 f v", ""},
		{"producer", "PUBLISH qc x", ""},
		{"producer", "PUBLISH c x", noChannel},
		{"producer", "SUBSCRIBE qc", noCommand("subscribe")},
		{"producer", "FLUSHALL", noCommand("flushall")},
		{"producer", "CONFIG RESETSTAT", noCommand("config|resetstat")},
		{"producer", "PING", ""},
		{"producer", "CONFIG GET hz", ""},
		{"worker", "RPOPLPUSH q out", ""},
		{"worker", "RPOPLPUSH q q1", noKey},
		{"worker", "LMOVE out q LEFT LEFT", noKey},
		{"worker", "LMPOP 2 q q1 LEFT", ""},
		{"worker", "LMPOP 2 q out LEFT", noKey},
		{"worker", "LMPOP 99 q out LEFT", noKey},
		{"worker", "BLMPOP 0.01 2 q out LEFT", noKey},
		{"worker", "BLPOP out 0", noKey},
		{"worker", "QPOP q OR q1", ""},
		{"worker", "QPOP q OR out COUNT 1", noKey},
		{"worker", "QCLAIM COUNT OR q", noKey}, // a queue with the name of an option
		{"worker", "QCLAIM q COUNT 1", ""},
		{"worker", "QMOVE q TO out", noCommand("qmove")},
		{"looker", "KEYS q*", ""},
		{"looker", "KEYS *", noKey},
		{"looker", "SCAN 0 MATCH q1*", ""},
		{"looker", "SCAN 0", noKey},
		{"looker", "SCAN 0 TYPE match COUNT 10", noKey},
		{"looker", "SCAN 0 MATCH q* MATCH *", noKey},
		{"looker", "QUEUES MATCH q*", ""},
		{"looker", "QUEUES", ""},
		{"producer", "QUEUES", noCommand("queues")},
		{"looker", "DBSIZE", noKey},
		{"looker", "LLEN q", ""},
		{"looker", "MGET q1 out", noKey},
		{"looker", "MEMORY USAGE out", noKey},
		{"looker", "OBJECT ENCODING out", noKey},
		{"looker", "PUBSUB CHANNELS q*", ""},
		{"looker", "PUBSUB CHANNELS", noChannel},
		{"looker", "PUBSUB NUMSUB q out", noChannel},
		{"looker", "PSUBSCRIBE *", noChannel},
		{"looker", "SUBSCRIBE q out", noChannel},
		{"looker", "WATCH out", noKey},
		{"manager", "QSET q lease 1000", ""},
		{"manager", "QMOVE q TO q", ""},
		{"manager", "QMOVE q TO q1", noKey},
		{"manager", "QMOVE q TO ", noKey}, // a queue without a name
		{"manager", "QREDRIVE q TO q1", noKey},
		{"manager", "QREDRIVE q COUNT 1 TO q1", noKey},
		{"manager", "QREDRIVE q", ""},
		{"manager", "QSET q dead-letter q1", noKey},
		{"manager", "QSET q dead-letter ", ""}, // none
		// Values are no words.
		{"manager", "QMOVE q SHARE TO TO q", ""},
		{"manager", "QMOVE q TO q SHARE TO COUNT 3", ""},
		{"manager", "QREDRIVE q SHARE TO COUNT 3", ""},
		{"manager", "QREDRIVE q SHARE TO TO q1", noKey},
		{"manager", "QSET q enum class dead-letter high", ""},
		{"manager", "RENAME q1 out", noKey},
		{"manager", "SET q1 x", noKey},
		{"manager", "LLEN q", ""},
		{"operator", "CONFIG RESETSTAT", ""},
		{"operator", "LLEN q", noCommand("llen")},
		{"operator", "KEYS *", noCommand("keys")},
		{"operator", "ACL LIST", ""},
		{"all", "ACL LIST", noCommand("acl|list")},
		{"all", "KEYS *", ""},
		{"all", "FLUSHALL", noCommand("flushall")},
	} {
		client := d.dialAs(c.user)
		client.send(request(strings.Split(c.request, " ")...))
		if got := client.readLine() + "\r\n"; c.refused != "" && got != c.refused || c.refused == "" && strings.Contains(got, "NOPERM") {
			t.Errorf("%s: %s: %q, want %q", c.user, c.request, got, c.refused)
		}
	}
}

func TestWithoutManageAUserAddsAndChangesNothingThatIsThere(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	producer, all := d.dialAs("producer"), d.dialAs("all")
	for _, c := range []struct{ request, first, again string }{
		{"HSET qh a 1", ":1", ":0"},
		{"HSET qh b 1 c 2", ":2", ":0"},
		{"HSET qh d 1 a 2", noKey, ":1"},
		{"HMSET qm a 1", "+OK", "+OK"},
		{"APPEND qs x", ":1", ":2"},
		{"SETRANGE qr 1 x", ":2", ":2"},
	} {
		producer.ask(c.request, strings.TrimSuffix(c.first, "\r\n")+"\r\n")
		producer.ask(c.request, noKey)
		producer.ask("MULTI", "+OK\r\n")
		producer.ask(c.request, "+QUEUED\r\n")
		producer.ask("EXEC", "*1\r\n"+noKey)
		all.ask(c.request, c.again+"\r\n")
	}
	producer.ask("GETSET qg x", noCommand("getset"))
}

func TestAUserSeesTheQueuesThatItMayLookAt(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	all := d.dialAs("all")
	for _, queue := range []string{"q1", "out"} {
		all.ask("QPUSH "+queue+" x", bulkReply(map[string]string{"q1": "1", "out": "2"}[queue]))
	}
	looker := d.dialAs("looker")
	for _, request := range []string{"QUEUES", "QUEUES MATCH *"} {
		looker.ask(request, onTheWire(`*1 | "q1"`))
	}
	looker.ask("QUEUES MATCH o*", "*0\r\n")
	looker.ask("MULTI", "+OK\r\n")
	looker.ask("QUEUES", "+QUEUED\r\n")
	looker.ask("EXEC", "*1\r\n"+onTheWire(`*1 | "q1"`))
	looker.ask("SELECT 1", "+OK\r\n")
	looker.ask("QUEUES", "*0\r\n")
}

func TestTheRightsOfManyQueuesCostStepsOfTheRequest(t *testing.T) {
	made, err := access.NewUsers([]access.User{
		{Name: "all", Password: "all", Grants: []access.Grant{{Glob: "*", Rights: access.Push | access.Look}}},
		{Name: "looker", Password: "looker", Grants: []access.Grant{{Glob: "*-[0-9]*", Rights: access.Look}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(t, Config{Users: access.NewControl(made)})
	all := d.dialAs("all")
	for i := range 200 {
		all.send(request("QPUSH", fmt.Sprint(strings.Repeat("-", 60_000), i%10, "x", i), "x"))
		all.readLine()
		all.readLine()
	}
	d.dialAs("looker").ask("QUEUES MATCH nothing", "*0\r\n")
	d.dialAs("looker").ask("QUEUES", "-"+errCostly+"\r\n")
}

// The requests of rfq and of pressure, by who sends them.
func TestUsersOfRFQAndPressureNeedTheRightsThatAreDocumented(t *testing.T) {
	type grants = []access.Grant
	const push, take, look, manage = access.Push, access.Take, access.Look, access.Manage
	made, err := access.NewUsers([]access.User{
		{Name: "publisher", Password: "publisher", Grants: grants{{Glob: "rfq:*:message:*", Rights: push}, {Glob: "rfq:*:backlog", Rights: push}}},
		{Name: "worker", Password: "worker", Grants: grants{
			{Glob: "rfq:*:message:*", Rights: manage}, {Glob: "rfq:*:backlog", Rights: push | take}, {Glob: "rfq:*:nextlog", Rights: push | take}, {Glob: "rfq:*", Rights: look},
		}},
		{Name: "looker", Password: "looker", Grants: grants{{Glob: "rfq:*", Rights: look}}},
		{Name: "pressure", Password: "pressure", Grants: grants{{Glob: "__pressure__:*", Rights: push | take | manage}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(t, Config{Users: access.NewControl(made)})
	for _, c := range []struct{ user, requests string }{
		{"publisher", "MULTI;HMSET rfq:t:message:1 v 1;LPUSH rfq:t:backlog 1;EXEC"},
		{"publisher", "MULTI;HSET rfq:t:message:2 v 1 w 2;RPUSH rfq:t:backlog 2;EXEC"},
		{"worker", "WATCH rfq::t:backlog rfq::t:nextlog;BRPOPLPUSH rfq:t:backlog rfq:t:nextlog 0;MULTI;HGETALL rfq:t:message:2;EXEC"},
		{"worker", "MULTI;LREM rfq:t:nextlog 1 2;LREM rfq:t:backlog 1 2;DEL rfq:t:message:2;EXEC"},
		{"worker", "BRPOPLPUSH rfq:t:backlog rfq:t:nextlog 0;RPOPLPUSH rfq:t:nextlog rfq:t:backlog;LRANGE rfq:t:backlog -1 -1;RPOP rfq:t:backlog;DEL rfq:t:message:1"},
		{"looker", "INFO server;KEYS rfq:*:backlog;MULTI;LLEN rfq:t:backlog;LLEN rfq:t:nextlog;EXEC;LRANGE rfq:t:backlog 0 -1;HGETALL rfq:t:message:1"},
		{"pressure", "PING;GET P:bound;EXISTS P:closed;SETNX P:bound 5;LPUSH P:producer_free 0;LPUSH P:consumer_free 0;LPUSH P:not_full 0"},
		{"pressure", "EXISTS P:bound;BRPOP P:producer_free 0;SET P:producer u;BRPOP P:not_full 0;LPUSH P x;LPUSH P:not_full 0;LTRIM P:not_full 0 0;INCR P:stats;INCRBY P:stats 5;LPUSH P:producer_free 0"},
		{"pressure", "BRPOP P:consumer_free 0;SET P:consumer u;BRPOP P P:closed 0;LPUSH P:not_full 0;LTRIM P:not_full 0 0;LLEN P;LPUSH P:consumer_free 0"},
		{"pressure", "LPUSH P:closed 0 0;DEL P:bound;DEL P:producer P:producer_free P:consumer P:consumer_free P:not_full"},
	} {
		client := d.dialAs(c.user)
		for words := range strings.SplitSeq(strings.ReplaceAll(c.requests, "P:", "__pressure__:q:"), ";") {
			client.send(request(strings.Fields(strings.ReplaceAll(words+" ", " P ", " __pressure__:q "))...))
		}
		client.send(request("ECHO", "the end"))
		for line := ""; line != "the end"; {
			if line = client.readLine(); strings.HasPrefix(line, "-") {
				t.Errorf("%s: %s: %q", c.user, c.requests, line)
			}
		}
	}
}

func TestOnlyWhoMayLookAtAllNamesIsToldHowMany(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	d.dialAs("producer").ask("RPUSH q a", ":1\r\n")
	for user, want := range map[string]bool{"producer": false, "looker": false, "all": true} {
		if got := d.dialAs(user).text("INFO", "keyspace"); strings.Contains(got, "keys=1") != want {
			t.Errorf("%s: %q", user, got)
		}
	}
}

func TestATransactionWithACommandThatIsRefusedIsDropped(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	c := d.dialAs("producer")
	c.ask("MULTI", "+OK\r\n")
	c.ask("LPUSH q x", "+QUEUED\r\n")
	c.ask("LPUSH out x", noKey)
	c.ask("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n")
}

func TestAChangeOfUsersHoldsForWhatIsUnderWay(t *testing.T) {
	users0 := control(t)
	d := newDoor(t, Config{Users: users0})
	d.dialAs("producer").ask("PING", "+PONG\r\n")
	queued, waits, next, listens := d.dialAs("producer"), d.dialAs("worker"), d.dialAs("all"), d.dialAs("looker")
	gone := d.dialAs("manager")
	queued.ask("MULTI", "+OK\r\n")
	queued.ask("LPUSH q x", "+QUEUED\r\n")
	waits.send("BLPOP q 0\r\n")
	next.awaitBlocked(1)
	listens.ask("SUBSCRIBE qc", event("subscribe", "qc", ":1"))

	users0.Swap(users(t,
		access.User{Name: "producer", Grants: []access.Grant{{Glob: "r", Rights: access.Push}}},
		access.User{Name: "worker", Grants: []access.Grant{{Glob: "r", Rights: access.Take}}},
		access.User{Name: "looker"},
		access.User{Name: "manager", Off: true},
	))
	queued.ask("EXEC", "*1\r\n"+noKey)
	next.ask("RPUSH q x", ":1\r\n")
	waits.want(noKey)
	next.ask("LLEN q", ":1\r\n")
	next.ask("PUBLISH qc x", ":0\r\n")
	listens.wantEnd()
	gone.ask("PING", "-"+errNoAuth+"\r\n")
}

func TestWhoMayTakeIsNextWhenTheFirstMayNoMore(t *testing.T) {
	users0 := control(t)
	d := newDoor(t, Config{Users: users0})
	first, second, c := d.dialAs("worker"), d.dialAs("all"), d.dialAs("all")
	first.send("BLPOP q 0\r\n")
	c.awaitBlocked(1)
	second.send("BLPOP q 0\r\n")
	c.awaitBlocked(2)
	users0.Swap(users(t, access.User{Name: "worker"}))
	c.ask("RPUSH q x", ":1\r\n")
	first.want(noCommand("blpop"))
	second.want("*2\r\n$1\r\nq\r\n$1\r\nx\r\n")
}

func TestUsersSeeTheirOwnConnectionsOnly(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	a, operator := d.dialAs("producer"), d.dialAs("operator")
	b := d.dialAs("producer")
	d.dialAs("worker")
	if got := a.text("CLIENT", "LIST"); strings.Count(got, "user=producer") != 2 || strings.Count(got, "\n") != 2 {
		t.Errorf("a producer sees\n%s", got)
	}
	if got := operator.text("CLIENT", "LIST"); strings.Count(got, "\n") != 4 || !strings.Contains(got, "user=worker") {
		t.Errorf("an operator sees\n%s", got)
	}
	a.ask("CLIENT KILL USER worker", noCommand("client|kill"))
	operator.ask("CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n")
	operator.ask("CLIENT KILL USER producer", ":2\r\n")
	a.wantEnd()
	b.wantEnd()
}

func TestUsersEndTheirOwnConnectionsAndWaitsOnly(t *testing.T) {
	d := newDoor(t, Config{Users: control(t)})
	a, b, foreign, stranger := d.dialAs("worker"), d.dialAs("worker"), d.dialAs("all"), d.dial()
	stranger.ask("PING", "-"+errNoAuth+"\r\n")
	id := func(c *conn) int {
		n, err := strconv.Atoi(c.line("CLIENT", "ID")[1:])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	own, last := strconv.Itoa(id(b)), id(foreign)
	others := []string{strconv.Itoa(last), strconv.Itoa(last + 1), strconv.Itoa(last + 2), "0", "x"}
	foreign.send("BLPOP q 0\r\n")
	a.awaitBlocked(1)
	for _, id := range others {
		a.ask("CLIENT UNBLOCK "+id, noCommand("client|unblock"))
		a.ask("CLIENT KILL ID "+id, noCommand("client|kill"))
		a.ask("CLIENT KILL ID "+own+" ID "+id, noCommand("client|kill"))
	}
	a.ask("CLIENT KILL "+b.wire.Addr().String(), noCommand("client|kill"))
	a.ask("CLIENT KILL "+own, noCommand("client|kill")) // an address without ID
	a.ask("CLIENT UNBLOCK "+own, ":0\r\n")
	b.send("BLPOP q 0\r\n")
	a.awaitBlocked(2)
	a.ask("CLIENT UNBLOCK "+own+" ERROR", ":1\r\n")
	b.want("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
	a.ask("CLIENT KILL ID "+own, ":1\r\n")
	b.wantEnd()
}
