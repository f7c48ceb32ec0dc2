package resp

import (
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/inmemory"
)

// lookout is a server for clients of Sentinel, whose cell is called main.
type lookout struct {
	door     *door
	protocol *Protocol
	network  *inmemory.Network
	owner    string
}

func newLookout(t *testing.T, users *access.Control, owner string) *lookout {
	t.Helper()
	o := &lookout{door: newDoor(t, Config{}), owner: owner}
	o.protocol = NewSentinel(Config{Users: users, Version: "1"}, Cell{Name: "main", Owner: func() string { return o.owner }})
	o.network = o.door.serve(o.door.network.Loop, o.protocol)
	return o
}

func (o *lookout) dial() *conn { return o.door.dialTo(o.network) }

// speak3 has a connection speak RESP3.
func (c *conn) speak3() {
	c.t.Helper()
	c.send("HELLO 3\r\n")
	c.want("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n")
	c.readLine() // the id
	c.want("$4\r\nmode\r\n$8\r\nsentinel\r\n$4\r\nrole\r\n$8\r\nsentinel\r\n$7\r\nmodules\r\n*0\r\n")
}

// passTo makes another node the owner, and tells it to those who listen.
func (o *lookout) passTo(addr string) {
	o.owner = addr
	o.protocol.Switched()
}

// The replies are those of Redis 7.0.15 in its Sentinel mode. It has more fields of each node.
func TestSentinelTellsAddressesAsThatOfRedisDoes(t *testing.T) {
	o := newLookout(t, nil, "10.0.0.1:6379")
	master := "$4\r\nname\r\n$4\r\nmain\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n$4\r\nport\r\n$4\r\n6379\r\n$5\r\nflags\r\n$6\r\nmaster\r\n" +
		"$13\r\nrole-reported\r\n$6\r\nmaster\r\n$10\r\nnum-slaves\r\n$1\r\n0\r\n$19\r\nnum-other-sentinels\r\n$1\r\n0\r\n$6\r\nquorum\r\n$1\r\n1\r\n"
	noSuch := "-ERR No such master with that name\r\n"
	for name, row := range map[string]struct{ request, resp2, resp3 string }{
		"masters":             {"SENTINEL MASTERS", "*1\r\n*16\r\n" + master, "*1\r\n%8\r\n" + master},
		"one":                 {"sentinel master main", "*16\r\n" + master, "%8\r\n" + master},
		"another":             {"SENTINEL MASTER other", noSuch, noSuch},
		"address":             {"SENTINEL get-master-addr-by-name main", "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n", "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n"},
		"address of another":  {"SENTINEL GET-MASTER-ADDR-BY-NAME other", "*-1\r\n", "_\r\n"},
		"others":              {"SENTINEL SENTINELS main", "*0\r\n", "*0\r\n"},
		"others of another":   {"SENTINEL SENTINELS other", noSuch, noSuch},
		"replicas":            {"SENTINEL REPLICAS main", "*0\r\n", "*0\r\n"},
		"slaves":              {"SENTINEL SLAVES main", "*0\r\n", "*0\r\n"},
		"quorum":              {"SENTINEL CKQUORUM main", "+OK 1 usable Sentinels. Quorum and failover authorization can be reached\r\n", "+OK 1 usable Sentinels. Quorum and failover authorization can be reached\r\n"},
		"role":                {"ROLE", "*2\r\n$8\r\nsentinel\r\n*1\r\n$4\r\nmain\r\n", "*2\r\n$8\r\nsentinel\r\n*1\r\n$4\r\nmain\r\n"},
		"ping":                {"PING", "+PONG\r\n", "+PONG\r\n"},
		"name of the client":  {"CLIENT SETNAME x", "+OK\r\n", "+OK\r\n"},
		"its library":         {"CLIENT SETINFO LIB-NAME x", "+OK\r\n", "+OK\r\n"},
		"unknown subcommand":  {"SENTINEL FAILOVER main", "-ERR unknown subcommand 'FAILOVER'. Try SENTINEL HELP.\r\n", "-ERR unknown subcommand 'FAILOVER'. Try SENTINEL HELP.\r\n"},
		"a word too few":      {"SENTINEL MASTER", "-ERR wrong number of arguments for 'sentinel|master' command\r\n", "-ERR wrong number of arguments for 'sentinel|master' command\r\n"},
		"a command of queues": {"LPUSH q x", "-ERR unknown command 'LPUSH', with args beginning with: 'q' 'x' \r\n", "-ERR unknown command 'LPUSH', with args beginning with: 'q' 'x' \r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := o.dial()
			c.ask(row.request, row.resp2)
			c.speak3()
			c.ask(row.request, row.resp3)
			c.ask("QUIT", "+OK\r\n")
			c.wantEnd()
		})
	}
}

func TestSentinelTellsOfNoOwnerWhileThereIsNone(t *testing.T) {
	o := newLookout(t, nil, "")
	c := o.dial()
	c.ask("SENTINEL MASTERS", "*0\r\n")
	c.ask("SENTINEL GET-MASTER-ADDR-BY-NAME main", "*-1\r\n")
	c.ask("SENTINEL MASTER main", "-ERR no node owns the queues now: ask again\r\n")
	c.ask("SENTINEL CKQUORUM main", "-NOQUORUM no node owns the queues now\r\n")
	c.ask("SUBSCRIBE +switch-master", "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n")
	o.passTo("10.0.0.2:6379")
	c.want("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$32\r\nmain 10.0.0.2 6379 10.0.0.2 6379\r\n")
}

func TestAnAddressThatIsAllIsTheOneByWhichTheClientHasCome(t *testing.T) {
	for _, all := range []string{"0.0.0.0:6379", "[::]:6379", ":6379"} {
		o := newLookout(t, nil, all)
		o.dial().ask("SENTINEL GET-MASTER-ADDR-BY-NAME main", "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n")
	}
}

func TestThoseWhoListenHearOnceOfEachNewOwner(t *testing.T) {
	o := newLookout(t, nil, "10.0.0.1:6379")
	byName, byPattern, deaf := o.dial(), o.dial(), o.dial()
	byName.ask("SUBSCRIBE +switch-master +replica-reconf-done", "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n+replica-reconf-done\r\n:2\r\n")
	byPattern.speak3()
	byPattern.ask("PSUBSCRIBE +switch* -x*", ">3\r\n$10\r\npsubscribe\r\n$8\r\n+switch*\r\n:1\r\n>3\r\n$10\r\npsubscribe\r\n$3\r\n-x*\r\n:2\r\n")
	deaf.ask("SUBSCRIBE +sdown", "*3\r\n$9\r\nsubscribe\r\n$6\r\n+sdown\r\n:1\r\n")
	o.passTo("") // nobody knows yet who is next
	o.passTo("10.0.0.2:6379")
	o.passTo("10.0.0.2:6379")
	o.passTo("10.0.0.1:6379")
	there, back := "$32\r\nmain 10.0.0.1 6379 10.0.0.2 6379\r\n", "$32\r\nmain 10.0.0.2 6379 10.0.0.1 6379\r\n"
	named := "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n"
	byName.want(named + there + named + back)
	matched := ">4\r\n$8\r\npmessage\r\n$8\r\n+switch*\r\n$14\r\n+switch-master\r\n"
	byPattern.want(matched + there + matched + back)
	deaf.ask("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n")
}

func TestWhereThereAreUsersOneOfThemMustAskSentinel(t *testing.T) {
	users := hashedUser(t)
	o := newLookout(t, users, "10.0.0.1:6379")
	c := o.dial()
	for _, request := range []string{"SENTINEL MASTERS", "SUBSCRIBE +switch-master", "PING", "ROLE"} {
		c.ask(request, "-"+errNoAuth+"\r\n")
	}
	c.ask("AUTH op wrong", "-"+errWrongPass+"\r\n")
	c.ask("AUTH op op", "+OK\r\n") // a user without a right to any queue
	c.ask("SUBSCRIBE +switch-master", "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n")
	nobody, err := access.NewUsers(nil)
	if err != nil {
		t.Fatal(err)
	}
	users.Swap(nobody)
	o.passTo("10.0.0.2:6379")
	c.ask("PING", "-"+errNoAuth+"\r\n") // it has heard nothing since
}
