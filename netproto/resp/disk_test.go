package resp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// disk is a store whose free space and commits the test controls.
type disk struct {
	*storage.Store
	level, memory storage.Level
	wait          time.Duration // of those who bring data
	full          bool          // a commit finds no room
	rotten        bool          // no packet can be read
	turn          func()        // called at the begin of a turn
	commit        func()        // called before the next commit
}

func (d *disk) Space() storage.Space {
	if d.turn != nil {
		d.turn()
	}
	return storage.Space{Level: d.level, Wait: d.wait, Memory: storage.Memory{Used: 7, Limit: 9, Level: d.memory}}
}

func (d *disk) Apply(b *content.Batch) error {
	if fn := d.commit; fn != nil {
		d.commit = nil
		fn()
	}
	if d.full {
		return storage.ErrFull
	}
	return d.Store.Apply(b)
}

// Read implements broker.Store.
func (d *disk) Read(ids []content.PacketID, fn func(int, []byte, error)) {
	if !d.rotten {
		d.Store.Read(ids, fn)
		return
	}
	for i := range ids {
		fn(i, nil, storage.ErrDamaged)
	}
}

func TestAReplyWaitsForWhatItShows(t *testing.T) {
	d := newDoor(t, Config{})
	writer, reader, listener := d.dial(), d.dial(), d.dial()
	writer.ask("SET old 1", "+OK\r\n")
	listener.ask("SUBSCRIBE x", event("subscribe", "x", ":1"))
	writer.send(request("SET", "new", "1") + request("PUBLISH", "x", "set"))
	reader.send(request("GET", "old") + request("GET", "new") + request("PING"))
	d.disk.commit = func() {
		for _, c := range []*conn{reader, listener, writer} {
			c.hasNothing()
		}
	}
	writer.want("+OK\r\n:1\r\n")
	reader.want("$1\r\n1\r\n$1\r\n1\r\n+PONG\r\n")
	listener.want(event("message", "x", "set"))
}

func TestWhileABatchFindsNoRoomWhatTouchesNoDataIsAnsweredAtOnce(t *testing.T) {
	d := newDoor(t, Config{})
	writer, idle := d.dial(), d.dial()
	writer.ask("SET old 1", "+OK\r\n")
	d.disk.full = true
	writer.send(request("SET", "new", "1") + request("PING"))
	d.settle()
	idle.ask("PING", "+PONG\r\n")
	idle.ask("GET", "-ERR wrong number of arguments for 'get' command\r\n")
	idle.ask("GET old", "-OOM command not allowed: disk is full: nothing is accepted until space is freed\r\n")
	writer.wantNothing()
	d.disk.full = false
	d.now += 1000 // the batch is tried again
	writer.want("+OK\r\n+PONG\r\n")
	writer.ask("GET new", "$1\r\n1\r\n")
	idle.ask("GET new", "$1\r\n1\r\n")
}

func TestWithoutMemoryWhatStoresIsRefusedAndTakesGoOn(t *testing.T) {
	const refused = "OOM command not allowed: memory is nearly full: pushes are refused until packets are taken or deleted, pops go on"
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("RPUSH q a b c", ":3\r\n")
	for _, queue := range []string{"much", "more"} {
		c.ask("RPUSH "+queue+strings.Repeat(" x", 1026), ":1026\r\n")
	}
	d.disk.memory = storage.NoPush
	for _, stores := range []string{"RPUSH q c", "LPUSH q c", "SET s 1", "HSET h f v", "INCR n", "QPUSH q x", "QPUSH q x DELAY 9", "QSET p strict yes"} {
		c.ask(stores, "-"+refused+"\r\n")
	}
	c.ask("LPOP q", "$1\r\na\r\n")
	d.disk.memory = storage.Stop
	for _, claims := range []string{"QCLAIM q", "QCLAIM much COUNT 1000", "QCLAIM much COUNT 24"} { // some can always go on
		c.send(request(strings.Fields(claims)...))
		c.value()
	}
	c.ask("QCLAIM much", "-"+refused+"; claims are refused, too, until some are acknowledged or returned\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("LPOP q", queuedReply)
	c.ask("QCLAIM none OR much", queuedReply)
	c.ask("EXEC", "-EXECABORT Transaction discarded because of: "+strings.TrimPrefix(refused, "OOM command not allowed: ")+"; claims are refused, too, until some are acknowledged or returned\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("QCLAIM more COUNT 1000", queuedReply)
	c.ask("QCLAIM more COUNT 24", queuedReply)
	c.ask("QCLAIM more", queuedReply)
	c.send(request("EXEC"))
	c.value()
	c.ask("LLEN more", ":1\r\n")
	c.ask("LPOP q", "$1\r\nb\r\n")
	c.ask("QPAUSE much UNTIL 0", "+OK\r\n")
	d.disk.memory = storage.Normal
	c.ask("RPUSH q c", ":1\r\n")
}

func TestWhileTheStorageIsBehindOnlyWhatBringsDataWaits(t *testing.T) {
	d := newDoor(t, Config{})
	reader, writer, transaction := d.dial(), d.dial(), d.dial()
	reader.ask("RPUSH q a b c", ":3\r\n")
	d.disk.wait = time.Hour
	reader.ask("PING", "+PONG\r\n")
	writer.send(request("PING") + request("CLIENT", "REPLY", "SKIP") + request("RPUSH", "q", "d") + request("RPUSH", "q", "e"))
	writer.want("+PONG\r\n")
	transaction.ask("MULTI", "+OK\r\n")
	transaction.ask("RPUSH q f", "+QUEUED\r\n")
	transaction.ask("LLEN q", "+QUEUED\r\n")
	transaction.send(request("EXEC"))
	reader.ask("LPOP q", "$1\r\na\r\n")
	reader.ask("LPOP q", "$1\r\nb\r\n")
	reader.ask("LRANGE q 0 -1", "*1\r\n$1\r\nc\r\n")
	transaction.wantNothing()
	writer.wantNothing()
	d.disk.wait = 0
	reader.ask("PING", "+PONG\r\n")
	writer.want(":3\r\n")
	transaction.want("*2\r\n:4\r\n:4\r\n")
}

func TestANearlyFullDiskRefusesWhatStores(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("RPUSH l a b", ":2\r\n")
	c.ask("SET k v", "+OK\r\n")
	d.disk.level = storage.NoPush
	refused := func(words ...string) {
		t.Helper()
		if got := c.line(words...); !strings.HasPrefix(got, "-OOM command not allowed: disk is nearly full") {
			t.Errorf("%v: %q", words, got)
		}
	}
	c.ask("LPUSH l c", "-OOM command not allowed: disk is nearly full: pushes are refused until space is freed, pops go on\r\n")
	refused("SET", "k", "w")
	refused("HSET", "h", "f", "1")
	c.ask("GET k", "$1\r\nv\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("RPOP l", queuedReply)
	c.ask("LPUSH m x", queuedReply)
	if got := c.line("EXEC"); !strings.HasPrefix(got, "-EXECABORT Transaction discarded because of: disk is nearly full") {
		t.Errorf("EXEC: %q", got)
	}
	c.ask("MULTI", "+OK\r\n")
	c.ask("RPOP l", queuedReply)
	c.ask("DEL k", queuedReply)
	if got := c.line("EXEC"); got != "*2" {
		t.Errorf("EXEC of what takes: %q", got)
	}
	c.readLine()
	c.readLine()
	c.want(":1\r\n")
	d.disk.level = storage.Normal
	d.now += 1000
	c.ask("SET k v", "+OK\r\n")
}

func TestRequestsBehindAFullBatchWait(t *testing.T) {
	d := newDoor(t, Config{})
	writer, c := d.dial(), d.dial()
	writer.send(request("SET", "first", "1"))
	const n = 20_000 // more than a batch takes
	for i := range n {
		c.send(request("SET", fmt.Sprint(i), "x"))
	}
	d.disk.commit = c.hasNothing
	c.want(strings.Repeat("+OK\r\n", n))
	c.ask("DBSIZE", fmt.Sprintf(":%d\r\n", n+1))
}

func TestRoomIsAskedForAfterWhatIsDueHasExpired(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	d.do(func(tx *broker.Tx) error {
		r := broker.PushRequest{Queue: []byte("k"), Priority: broker.ListPriority, TTL: time.Second, Payload: []byte("x")}
		return tx.Atomic(func() error { return pushError(tx.Push(r)) })
	})
	long := strings.Repeat("y", 5000)
	c.ask("LPUSH k "+long, ":2\r\n")
	d.now += 2000
	c.ask("RPOPLPUSH k to", "$5000\r\n"+long+"\r\n")
}

// pushError is the error of a Push whose id does not matter.
func pushError(_ broker.ID, err error) error { return err }

func TestWhoWaitsForAnEmptyListWaitsAlsoWhileTheDiskIsFull(t *testing.T) {
	d := newDoor(t, Config{})
	c, other := d.dial(), d.dial()
	d.disk.level = storage.Stop
	for _, command := range []string{"BLPOP q 0.5", "QPOP q BLOCK 500", "QCLAIM q BLOCK 500"} {
		c.send(request(strings.Split(command, " ")...))
		other.awaitBlocked(1)
		d.now += 1000
		c.want("*-1\r\n")
	}
	d.disk.level = storage.Normal
	other.ask("LPUSH q x", ":1\r\n")
	d.disk.level = storage.Stop
	c.ask("BLPOP q 0.5", "-OOM command not allowed: disk is full: nothing is accepted until space is freed\r\n")
	d.disk.level = storage.Normal
}
