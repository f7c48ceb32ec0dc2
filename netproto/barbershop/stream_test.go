package barbershop_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
)

const tooLong = "CLIENT_ERROR line too long: expected at most 1024 bytes"

func TestALineMayHaveTheLongestLengthAndNoMore(t *testing.T) {
	c := newBoard(t).dial()
	longest := "update 1 1" + strings.Repeat(" ", barbershop.MaxLine-len("update 1 1"))
	v2 := "UPDATE 1 1" + strings.Repeat(" ", barbershop.MaxLine-len("UPDATE 1 1"))
	for _, end := range []string{"\n", "\r\n"} {
		c.send(longest + end + v2 + end + v2 + " " + end + longest + " " + end + "next" + end)
		c.want("OK\r\n+OK\r\n-ERROR line too long: expected at most 1024 bytes\r\n" + tooLong + "\r\n1\r\n")
	}
	// A CR that is not before the LF is one byte of the line.
	c.send(longest[:barbershop.MaxLine-1] + "\r\r\n" + longest + "\r\r\n")
	c.want("CLIENT_ERROR wrong number of words: expected update <item> <score>\r\n" + tooLong + "\r\n")
	c.wantEnd()
}

func TestALongLineIsAnsweredOnceWhereverItIsSplit(t *testing.T) {
	c := newBoard(t).dial()
	line := strings.Repeat("x", barbershop.MaxLine)
	for _, more := range []int{1, 2, 3, 500} {
		for at := barbershop.MaxLine - 2; at < barbershop.MaxLine+5; at++ {
			text := line + strings.Repeat("y", more) + "\r\nnext\r\n"
			at := min(at, len(text))
			c.send(text[:at])
			c.send(text[at:])
			c.want(tooLong + "\r\n-1\r\n")
		}
	}
	c.wantEnd()
}

func TestSystemALineWithoutEndTakesNoMemory(t *testing.T) {
	c := newBoard(t).dial()
	c.ask("next", "-1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	block := bytes.Repeat([]byte{'x'}, 1<<20)
	for range 32 {
		if _, err := c.conn.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	c.send("\nnext\n")
	c.want(tooLong + "\r\n-1\r\n")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes were allocated for a line that is dropped", n)
	}
	c.wantEnd()
}

func TestManyLinesInOneWriteAreAnsweredInOrder(t *testing.T) {
	c := newBoard(t).dial()
	const many = 10_000
	var sent, want strings.Builder
	for i := range many {
		fmt.Fprintf(&sent, "update %d %d\nUPDATE %d 1\n", i, i, i+1)
		want.WriteString("OK\r\n+OK\r\n")
	}
	// The last item has score 1, item 0 has 0, every other its number and one more.
	for i := many - 1; i > 0; i-- {
		fmt.Fprintf(&sent, "next\nstats x\n")
		fmt.Fprintf(&want, "%d\r\nCLIENT_ERROR wrong number of words: expected stats alone\r\n", i)
	}
	sent.WriteString("next\nnext\nnext\n")
	fmt.Fprintf(&want, "%d\r\n0\r\n-1\r\n", many)
	go c.send(sent.String()) // ends when the replies are read
	c.want(want.String())
	c.wantEnd()
}

func TestALineMayBeSplitAtEveryByte(t *testing.T) {
	b := newBoard(t)
	c, other := b.dial(), b.dial()
	text := "update 12 34\r\nUPDATE 12 6\nSCORE 12\r\n\r\nnext\nINFO x\r\n"
	for at := range len(text) + 1 {
		c.send(text[:at])
		other.ask("SCORE 99", "+-1") // the server has most likely read the first part by then
		c.send(text[at:])
		c.want("OK\r\n+OK\r\n+40\r\n-ERROR\r\n12\r\n-ERROR\r\n")
	}
	c.wantEnd()
}

func TestALineThatIsCutOffDoesNothing(t *testing.T) {
	b := newBoard(t)
	for _, text := range []string{"u", "update 1 5", "update 1 5\r"} {
		c := b.dial()
		c.send("update 2 1\n" + text)
		c.want("OK\r\n")
		c.wantEnd()
	}
	c := b.dial()
	c.ask("next", "2")
	c.ask("next", "-1")
}

func TestDrainAnswersWhatHasArrived(t *testing.T) {
	b := newBoard(t)
	c := b.dial()
	const many = 1000
	c.send("update 7 1\n")
	c.want("OK\r\n") // the server knows the connection before it drains
	c.send(strings.Repeat("update 7 1\n", many) + "update 7")
	b.restart()
	c.want(strings.Repeat("OK\r\n", many))
	c.wantEnd()
	b.dial().ask("SCORE 7", fmt.Sprintf("+%d", many+1))
}

func TestTheBoardIsAnyQueue(t *testing.T) {
	b := newBoard(t)
	b.dial().ask("update 1 5", "OK")
	b.queue = "other \xff\n board"
	b.restart()
	c := b.dial()
	c.ask("next", "-1")
	c.ask("update 2 5", "OK")
	b.push("x", 1, 0, "payload")
	c.ask("next", `SERVER_ERROR queue "other \xff\n board" holds a packet that is not an item: `+
		"its key is not an item number; take it through another protocol")
	b.queue = barbershop.DefaultQueue
	b.restart()
	b.dial().ask("next", "1")
}

func TestManyPacketsOfOneNumberAreOneItem(t *testing.T) {
	b := newBoard(t)
	c := b.dial()
	for range 40 {
		b.push("7", 1, 0, "payload")
	}
	c.ask("PEEK", "+7")
	c.ask("next", "7")
	c.ask("next", "-1")
}

func TestAnItemWithAPayloadMovesAndGoes(t *testing.T) {
	b := newBoard(t)
	c := b.dial()
	c.ask("update 1 20", "OK")
	b.push("7", barbershop.Priority(5), 0, "payload")
	c.ask("update 7 10", "OK")
	c.ask("SCORE 7", "+15")
	b.restart()
	c = b.dial()
	c.ask("update 7 10", "OK")
	c.ask("next", "7")
	c.ask("next", "1")
}

func TestAQueueRefusesItemsByItsSettings(t *testing.T) {
	b := newBoard(t)
	c, other := b.dial(), b.dial()
	set := func(change func(s *broker.Settings)) {
		s := broker.DefaultSettings()
		change(&s)
		if err := b.loop.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error { return tx.SetSettings([]byte(b.queue), s) })
		}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(c *client, line, why string) {
		t.Helper()
		c.send(line + "\n")
		if got := c.line(); !strings.HasPrefix(got, why) {
			t.Errorf("%s gave %q, want %s", line, got, why)
		}
	}
	set(func(s *broker.Settings) { s.Bound = 1 })
	c.ask("update 1 5", "OK")
	refused(c, "update 2 5", "SERVER_ERROR queue is full")
	refused(c, "UPDATE 2 5", "-ERROR queue is full")
	c.ask("update 1 7", "OK") // it is there already
	set(func(s *broker.Settings) { s.PauseIn = true })
	refused(c, "update 2 5", "SERVER_ERROR queue is paused")
	set(func(s *broker.Settings) { s.ExclusiveProducer = true })
	c.ask("update 2 5", "OK")
	refused(other, "update 3 5", "SERVER_ERROR queue is in use")
	set(func(s *broker.Settings) { s.Closed = true })
	refused(c, "update 3 5", "SERVER_ERROR queue is closed")
	c.ask("next", "1")
	c.ask("next", "2")
	c.ask("next", "-1")
}

func TestATakeGoesOnWhereTheHeadOfTheBoardHasExpired(t *testing.T) {
	b := newBoard(t)
	c := b.dial()
	err := b.loop.Do(func(tx *broker.Tx) error {
		for range 20_000 { // more than a take deletes
			r := broker.PushRequest{Queue: []byte(b.queue), Priority: 1, TTL: time.Millisecond, Key: []byte("1")}
			if err := tx.Atomic(func() error { return pushError(tx.Push(r)) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.push("2", 99, 0, "")
	c.ask("next", "2")
}
