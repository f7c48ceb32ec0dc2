package redis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// serveDir names the folder that the test binary serves in place of testing, when it is the server.
const serveDir = "HOLDFAST_TEST_SERVE"

func TestMain(m *testing.M) {
	dir := os.Getenv(serveDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, daemon.Run(context.Background(), daemon.Config{
		Data: dir, Pinpriq: "127.0.0.1:0", Barbershop: "127.0.0.1:0", BarbershopQueue: "barbershop", Redis: "127.0.0.1:0", Cache: 16 << 20,
		Listening: func(protocol string, addr net.Addr) { fmt.Println(protocol, addr) },
	}))
	os.Exit(1)
}

// victim is a server in a process of its own, which can be killed.
type victim struct {
	cmd   *exec.Cmd
	addrs map[string]string // by protocol
}

func startVictim(t *testing.T, dir string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(os.Args[0]), addrs: make(map[string]string)}
	v.cmd.Env = append(os.Environ(), serveDir+"="+dir)
	v.cmd.Stderr = os.Stderr
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.kill)
	for lines := bufio.NewScanner(out); len(v.addrs) < 3; {
		if !lines.Scan() {
			t.Fatal("the server does not start")
		}
		protocol, addr, _ := strings.Cut(lines.Text(), " ")
		v.addrs[protocol] = addr
	}
	return v
}

// kill ends the process as kill -9 does. A second call does nothing.
func (v *victim) kill() {
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
}

// pop takes the best packet of a queue by pinpriq.
func (v *victim) pop(t *testing.T, queue string) string {
	t.Helper()
	conn, err := net.Dial("tcp", v.addrs["pinpriq"])
	if err != nil {
		t.Fatal(err)
	}
	client := pinpriq.NewClient(conn)
	defer client.Close()
	packets, err := client.Pop(t.Context(), queue)
	if err != nil || len(packets) != 1 {
		t.Fatalf("pop of %s: %d packets, %v; want one", queue, len(packets), err)
	}
	return string(packets[0].Payload)
}

// push adds a packet by pinpriq. It is on disk when push returns.
func (v *victim) push(t *testing.T, queue, payload string, o pinpriq.PushOptions) {
	t.Helper()
	conn, err := net.Dial("tcp", v.addrs["pinpriq"])
	if err != nil {
		t.Fatal(err)
	}
	client := pinpriq.NewClient(conn)
	defer client.Close()
	if err := client.Push(queue, []byte(payload), o); err != nil {
		t.Fatal(err)
	}
	if err := client.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasAnsweredIsThereAfterTheServerIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	q := newRFQ(t, v.addrs["redis"], "killed")
	for _, id := range []string{"a", "b", "c"} {
		publishers["python, newer"](q, id, false, "id", id)
	}
	consumers["python, later"](q)
	bounded := open(t, v.addrs["redis"], inC, "killed")
	wantError(t, bounded.create(2), nil)
	wantError(t, bounded.put("x"), nil)
	q.do(ok, "SET", "string", "value", "EX", "1000")
	q.do(number(2), "HSET", "hash", "f", "1", "g", "2")
	if got := q.transaction(cmd("INCR", "counter"), cmd("LPUSH", "list", "1", "2", "3"), cmd("RPOPLPUSH", "list", "other"), cmd("HDEL", "hash", "g")); got != array(number(1), number(3), bulk("1"), number(1)) {
		t.Errorf("EXEC is answered %q", got)
	}
	waiter := dial(t, v.addrs["redis"])
	waiter.write(cmd("BRPOP", "nothing", "0"))
	q.awaitBlocked(1)

	v.kill()
	v = startVictim(t, dir)
	q = newRFQ(t, v.addrs["redis"], "killed")
	q.info(2, 1)
	if ids := harvesters["until there is none"](q); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("harvested %q, want a", ids)
	}
	for _, want := range []string{"b", "c", "a"} {
		id, fields := consumers["javascript"](q)
		if id != want || !slices.Equal(fields, []string{"id", want}) {
			t.Errorf("claimed %s with %q, want %s", id, fields, want)
		}
		committers["python, first"](q, id)
	}
	bounded = open(t, v.addrs["redis"], inGo, "killed")
	wantError(t, bounded.put("y"), nil)
	bounded.wantGet("x")
	bounded.wantGet("y")
	q.do(bulk("value"), "GET", "string")
	if ttl := q.int(q.ask("TTL", "string")); ttl <= 0 || ttl > 1000 {
		t.Errorf("TTL %d, want at most 1000", ttl)
	}
	q.do(bulks("f", "1"), "HGETALL", "hash")
	q.do(bulk("1"), "GET", "counter")
	q.do(bulks("3", "2"), "LRANGE", "list", "0", "-1")
	q.do(bulks("1"), "LRANGE", "other", "0", "-1")
}

func TestOneQueueOverPinpriqAndRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	c := dial(t, v.addrs["redis"])
	c.do(number(2), "LPUSH", "q", "first", "second")
	if got := v.pop(t, "q"); got != "second" {
		t.Errorf("pinpriq pops %q, want second, the newest", got)
	}
	v.push(t, "q", "third", pinpriq.PushOptions{Priority: 128})
	v.push(t, "q", "urgent", pinpriq.PushOptions{Priority: 1, Key: []byte("key")})
	c.do(number(3), "LLEN", "q")
	c.do("+list\r\n", "TYPE", "q")

	v.kill()
	v = startVictim(t, dir)
	c = dial(t, v.addrs["redis"])
	c.do(bulk("urgent"), "RPOP", "q")
	c.do(bulks("third", "first"), "LRANGE", "q", "0", "-1")
	c.do(ok, "WATCH", "q")
	if got := v.pop(t, "q"); got != "third" {
		t.Errorf("pinpriq pops %q, want third", got)
	}
	if got := c.transaction(cmd("RPOP", "q")); got != nullArray {
		t.Errorf("EXEC after a pop of the watched queue is answered %q, want nil", got)
	}

	waiter := dial(t, v.addrs["redis"])
	c.do(bulk("first"), "RPOP", "q")
	waiter.write(cmd("BRPOP", "q", "0"))
	c.awaitBlocked(1)
	v.push(t, "q", "fourth", pinpriq.PushOptions{Priority: 7})
	waiter.want(bulks("q", "fourth"))
}

func TestTheBoardIsAListThere(t *testing.T) {
	t.Parallel()
	v := startVictim(t, t.TempDir())
	dialled, err := net.Dial("tcp", v.addrs["barbershop"])
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	board := &patient{dialled, limit}
	lines := bufio.NewReader(board)
	say := func(line, want string) {
		t.Helper()
		fmt.Fprint(board, line, "\r\n")
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\r\n" {
			t.Fatalf("%s is answered %q, %v; want %s", line, got, err, want)
		}
	}
	say("update 7 3", "OK")
	say("update 8 5", "OK")
	c := dial(t, v.addrs["redis"])
	c.do("+list\r\n", "TYPE", "barbershop")
	c.do(number(2), "LLEN", "barbershop")
	c.do(number(1), "DEL", "barbershop")
	say("next", "-1")
	c.do(ok, "SET", "barbershop", "x")
	c.do(bulk("x"), "GET", "barbershop")
}
