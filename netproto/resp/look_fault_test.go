package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// atTurn has fn called at the n-th turn from now on.
func (d *door) atTurn(n int, fn func()) {
	d.disk.turn = func() {
		if n--; n == 0 {
			fn()
		}
	}
}

func (c *conn) push(name string, n int) {
	c.t.Helper()
	for from := 0; from < n; from += broker.MaxChanged {
		words, to := []string{"RPUSH", name}, min(n, from+broker.MaxChanged)
		for i := from; i < to; i++ {
			words = append(words, fmt.Sprint(i))
		}
		c.send(request(words...))
		c.want(fmt.Sprintf(":%d\r\n", to))
	}
}

// skipArray reads an array of bulks whose head was read.
func (c *conn) skipArray(head string) {
	c.t.Helper()
	var n int
	if _, err := fmt.Sscanf(head, "*%d", &n); err != nil {
		c.t.Fatalf("head %q", head)
	}
	for range n {
		var l int
		if _, err := fmt.Sscanf(c.readLine(), "$%d", &l); err != nil {
			c.t.Fatal(err)
		}
		c.readFull(make([]byte, l+2))
	}
}

func TestADrainAnswersALookThatGoesOnAndWhatIsBehindIt(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.push("q", 100_000)
	c.send(request("LRANGE", "q", "0", "-1") + request("PING"))
	for range 3 {
		if err := d.network.Loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	c.hasNothing()
	if err := d.network.Await(func() error { return d.network.Server.Shutdown(t.Context()) }); err != nil {
		t.Error(err)
	}
	c.skipArray(c.readLine())
	c.want("+PONG\r\n")
	c.wantEnd()
}

func TestADelayedPacketThatIsDueDuringALookIsNotInIt(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.push("q", 10_000)
	c.text("QPUSH", "q", "x", "DELAY", "500")
	d.atTurn(3, func() { d.now += 1000 })
	c.send(request("LRANGE", "q", "0", "-1") + request("PING"))
	c.skipArray(c.readLine())
	c.want("+PONG\r\n")
}

func TestALookThatFindsTheDiskFullLeavesNothingToTheNextReply(t *testing.T) {
	d := newDoor(t, Config{})
	c, w := d.dial(), d.dial()
	c.push("q", 100_000)
	w.ask("SET a b", "+OK\r\n")
	d.atTurn(3, func() {
		d.disk.full = true
		w.send(request("SET", "a", "b"))
	})
	c.send(request("LRANGE", "q", "0", "-1"))
	head := c.readLine()
	if head[0] == '*' {
		t.Fatal("the look was faster")
	}
	d.disk.full = false
	d.now += 1000
	c.ask("PING", "+PONG\r\n")
	c.ask("LLEN q", ":100000\r\n")
}

func TestALookAtWhatChangesGoesOnInSlices(t *testing.T) {
	const n = 10_000
	for _, command := range []string{"LRANGE q 0 -1", "HKEYS h", "HGETALL h", "PUBSUB CHANNELS"} {
		t.Run(command, func(t *testing.T) {
			d := newDoor(t, Config{})
			c, w := d.dial(), d.dial()
			c.push("q", n)
			fields, channels := []string{"HSET", "h"}, []string{"SUBSCRIBE"}
			for i := range n {
				fields, channels = append(fields, fmt.Sprint(i), "x"), append(channels, fmt.Sprint(i))
			}
			listener := d.dial()
			listener.send(request(channels...))
			for i := range n {
				listener.want(event("subscribe", fmt.Sprint(i), fmt.Sprint(":", i+1)))
			}
			c.send(request(fields...))
			c.want(fmt.Sprintf(":%d\r\n", n))
			turns := 0
			d.disk.turn = func() {
				for _, s := range d.protocol.sessions {
					if s.look.under {
						turns++
						w.send(request("LPUSH", "q", "new") + request("HSET", "h", "0", "new"))
					}
				}
			}
			c.send(request(strings.Fields(command)...) + request("PING"))
			head := c.readLine()
			c.skipArray(head)
			c.want("+PONG\r\n")
			d.disk.turn = nil
			if got, want := turns, n/broker.LookSlice*3/4; got < want {
				t.Errorf("it took %d turns, want %d at least", got, want)
			}
		})
	}
}

func TestAListOfManyClientsGoesOnInSlices(t *testing.T) {
	const n, first, gone = 10_000, 1000, 1000 + 10_000/2
	for _, resp3 := range []bool{false, true} {
		d := newDoor(t, Config{})
		c, w := d.dial(), d.dial()
		c.ask("PING", "+PONG\r\n")
		w.ask("PING", "+PONG\r\n")
		all := d.protocol.sessions
		want, own := []int64{1, 2}, all[1]
		own.resp3 = resp3
		for id := int64(first); id < first+n; id++ {
			other := *own // stands for a client of its own
			other.id = id
			if all[id] = &other; id != gone {
				want = append(want, id)
			}
		}
		turns := 0
		d.disk.turn = func() {
			if own.look.under {
				turns++
				delete(all, gone)
				all[first/2] = own // it comes too late
				if held := own.peer.Held() - own.look.size; held < n*idBytes {
					t.Errorf("%d bytes are counted besides the text, want %d at least", held, n*idBytes)
				}
				w.send(request("PING"))
			}
		}
		list := strings.TrimPrefix(c.text("CLIENT", "LIST"), "txt:")
		d.disk.turn = nil
		c.ask("PING", "+PONG\r\n")
		var ids []int64
		for line := range strings.Lines(list) {
			var id int64
			if _, err := fmt.Sscanf(line, "id=%d ", &id); err != nil {
				t.Fatalf("line %q", line)
			}
			ids = append(ids, id)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%d clients are listed, want the %d that stay, in order", len(ids), len(want))
		}
		if got, want := turns, n/broker.LookSlice*3/4; got < want {
			t.Errorf("it took %d turns, want %d at least", got, want)
		}
		if held := d.held(); held != 0 {
			t.Errorf("%d bytes are still counted", held)
		}
	}
}

func TestAListOfClientsTakesABoundedNumberOfIDs(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	list := append([]string{"CLIENT", "LIST", "ID"}, slices.Repeat([]string{"1"}, maxIDs)...)
	if got := c.text(list...); strings.Count(got, "\n") != 1 {
		t.Errorf("it is listed again:\n%.1000s", got)
	}
	if got := c.line(append(list, "1")...); got != "-ERR too many ids: expected at most 16384" {
		t.Errorf("%q", got)
	}
	list[len(list)-1] = "x"
	if got := c.line(list...); got != "-ERR Invalid client ID" {
		t.Errorf("%q", got)
	}
	c.send("MULTI\r\nPING\r\nCLIENT LIST TYPE master\r\nEXEC\r\n")
	c.want("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n$0\r\n\r\n")
	if held := d.held(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
}

func TestCommandsWithManyNamesGoOnInSlices(t *testing.T) {
	const n = 4 * nameSlice
	d := newDoor(t, Config{})
	c, w := d.dial(), d.dial()
	names, fields, values := make([]string, n), []string{"HSET", "h"}, []string{"MSET"}
	for i := range names {
		names[i] = fmt.Sprint(i)
		fields, values = append(fields, names[i], "x"), append(values, names[i], "x")
	}
	array := fmt.Sprintf("*%d\r\n", n) + strings.Repeat("$1\r\nx\r\n", n)
	for _, row := range []struct {
		words  []string // before the names
		reply  string
		slices int
	}{
		{[]string{"EXISTS"}, fmt.Sprintf(":%d\r\n", n), 4},
		{[]string{"TOUCH"}, fmt.Sprintf(":%d\r\n", n), 4},
		{[]string{"MGET"}, array, 4},
		{[]string{"HMGET", "h"}, array, 4},
		{[]string{"DEL"}, fmt.Sprintf(":%d\r\n", n), 4},
		{[]string{"UNLINK"}, fmt.Sprintf(":%d\r\n", n), 4},
	} {
		t.Run(row.words[0], func(t *testing.T) {
			for _, made := range [][]string{fields, values} {
				for part := range slices.Chunk(made[len(made)-2*n:], nameSlice) {
					c.send(request(append(made[:len(made)-2*n:len(made)-2*n], part...)...))
					c.readLine()
				}
			}
			turns := 0
			last := -1
			d.disk.turn = func() {
				for _, s := range d.protocol.sessions {
					if s.look.under && int(s.look.cursor) != last {
						last = int(s.look.cursor)
						turns++
						w.send(request("PING"))
					}
				}
			}
			c.send(request(append(row.words, names...)...))
			c.want(row.reply)
			d.disk.turn = nil
			if got := turns; got != row.slices-1 {
				t.Errorf("it took %d slices, want %d", got+1, row.slices)
			}
			for range turns {
				w.want("+PONG\r\n")
			}
		})
	}
}

func TestATransactionBuildsTheTablesOfItsSearchesInSlices(t *testing.T) {
	const n = 40_000
	d := newDoor(t, Config{})
	c := d.dial()
	c.push("l", n)
	c.ask("MULTI", "+OK\r\n")
	c.ask("LINSERT l BEFORE 39990 x", "+QUEUED\r\n")
	c.ask("LINSERT l BEFORE 39980 x", "+QUEUED\r\n")
	turns := 0
	d.disk.turn = func() { turns++ }
	c.ask("EXEC", fmt.Sprintf("*2\r\n:%d\r\n:%d\r\n", n+1, n+2))
	if got := turns; got < n/4096 {
		t.Errorf("it took %d turns, want %d at least", got, n/4096)
	}
	c.ask("MULTI", "+OK\r\n")
	const lists = 30 // four of them are prepared in one turn
	for i := range lists {
		d.dial().push(fmt.Sprint("short", i), 1000)
		c.ask(fmt.Sprint("LPOS short", i, " 999"), "+QUEUED\r\n")
	}
	turns = 0
	c.ask("EXEC", fmt.Sprintf("*%d\r\n", lists)+strings.Repeat(":999\r\n", lists))
	if got := turns; got < lists*1000/broker.PrepareSlice/2 {
		t.Errorf("%d short lists took %d turns", lists, got)
	}
}

// Such packets are in no table of values: it stays empty.
func TestATransactionOfSearchesAmongPacketsWithKeysEnds(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	for range 2 * 4096 / 512 {
		words := []string{"QMPUSH", "q", "512"}
		for i := range 512 {
			words = append(words, fmt.Sprint(i))
		}
		c.send(request(append(words, "KEY", "k")...))
		c.skipArray(c.readLine())
	}
	c.ask("MULTI", "+OK\r\n")
	c.ask("LPOS q 1", "+QUEUED\r\n")
	c.ask("LPOS q 2", "+QUEUED\r\n")
	c.ask("EXEC", "*2\r\n$-1\r\n$-1\r\n")
}

func TestADeletionInSlicesTakesWhatIsThereThen(t *testing.T) {
	const n = 8 * nameSlice
	d := newDoor(t, Config{})
	c, w := d.dial(), d.dial()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	first, last := names[0], names[n-1]
	w.ask("SET "+first+" old", "+OK\r\n")
	begun := false
	d.disk.turn = func() {
		for _, s := range d.protocol.sessions {
			if s.look.under && !begun {
				begun = true
				w.send(request("MSET", first, "new", last, "new"))
			}
		}
	}
	c.send(request(append([]string{"DEL"}, names...)...))
	c.want(":2\r\n") // MSET came between
	w.want("+OK\r\n")
	w.ask("MGET "+first+" "+last, "*2\r\n$3\r\nnew\r\n$-1\r\n")
}

func TestARequestBringsNoMoreElementsThanItsLimit(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	numbers := func(n int) (words []string) {
		for i := range n {
			words = append(words, fmt.Sprint(i))
		}
		return words
	}
	for name, cmd := range newTable() {
		if cmd.per == 0 {
			continue
		}
		for _, n := range []int{broker.MaxChanged, broker.MaxChanged + 1} {
			words := append([]string{name}, numbers(cmd.elements-1+n*cmd.per)...)
			c.send(request(words...))
			reply := c.readLine()
			if got := strings.HasPrefix(reply, "-ERR too many elements: one request takes at most 16384, got 16385"); got != (n > broker.MaxChanged) {
				t.Errorf("%s of %d gave %.100q", name, n, reply)
			}
		}
	}
}
