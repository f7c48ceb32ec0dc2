package redis

import (
	"fmt"
	"testing"
)

func TestWaitersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		var waiters []*conn
		for i := range 5 {
			w := dial(t, addr)
			// The commands differ, the line is one.
			w.write([]command{cmd("BRPOP", "q", "0"), cmd("BLPOP", "q", "0"), cmd("BRPOPLPUSH", "q", "to", "0")}[i%3])
			c.awaitBlocked(i + 1)
			waiters = append(waiters, w)
		}
		for i, w := range waiters {
			value := fmt.Sprint(i)
			c.do(number(1), "LPUSH", "q", value)
			if i%3 == 2 {
				w.want(bulk(value))
			} else {
				w.want(bulks("q", value))
			}
			c.awaitBlocked(4 - i)
		}
		c.do(bulks("2"), "LRANGE", "to", "0", "-1")
	})
}

func TestAPushTellsTheLengthBeforeAWaiterTakesItsValue(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, w := dial(t, addr), dial(t, addr)
		w.write(cmd("BRPOP", "q", "0"))
		c.awaitBlocked(1)
		c.write(cmd("LPUSH", "q", "a", "b", "c"), cmd("LLEN", "q"))
		c.want(number(3), number(2))
		w.want(bulks("q", "a"))
		c.do(bulks("c", "b"), "LRANGE", "q", "0", "-1")
	})
}

func TestAWaiterThatHungUpTakesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, gone, stays := dial(t, addr), dial(t, addr), dial(t, addr)
		gone.write(cmd("BRPOP", "q", "0"))
		c.awaitBlocked(1)
		stays.write(cmd("BRPOP", "q", "0"))
		c.awaitBlocked(2)
		gone.hangUp()
		c.awaitBlocked(1)
		c.do(number(2), "LPUSH", "q", "a", "b")
		stays.want(bulks("q", "a"))
		c.do(bulks("b"), "LRANGE", "q", "0", "-1")
	})
}

func TestKeysOfABlockingPopAreTriedInTheOrderGiven(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, w := dial(t, addr), dial(t, addr)
		c.do(number(1), "LPUSH", "b", "1")
		c.do(number(1), "LPUSH", "c", "2")
		c.do(bulks("b", "1"), "BRPOP", "a", "b", "c", "0")
		c.do(bulks("c", "2"), "BLPOP", "a", "b", "c", "0")
		w.write(cmd("BRPOP", "a", "b", "0"))
		c.awaitBlocked(1)
		if got, want := c.transaction(cmd("LPUSH", "b", "x"), cmd("LPUSH", "a", "y")), array(number(1), number(1)); got != want {
			t.Fatalf("EXEC is answered %q, want %q", got, want)
		}
		// Redis serves the key that was first to get an element.
		w.want(bulks("b", "x"))
		c.do(bulks("y"), "LRANGE", "a", "0", "-1")
	})
}

func TestCommandsBehindABlockedPopWait(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, w := dial(t, addr), dial(t, addr)
		w.write(cmd("BRPOPLPUSH", "q", "to", "0"), cmd("INCR", "behind"), cmd("BRPOP", "q", "0"), cmd("INCR", "behind"))
		c.awaitBlocked(1)
		c.do(number(0), "EXISTS", "behind")
		c.do(number(1), "LPUSH", "q", "a")
		w.want(bulk("a"), number(1))
		c.awaitBlocked(1)
		c.do(bulk("1"), "GET", "behind")
		c.do(number(1), "LPUSH", "q", "b")
		w.want(bulks("q", "b"), number(2))
	})
}

func TestMovesThatWaitForEachOtherAreAChain(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		var waiters []*conn
		for i := range 4 {
			w := dial(t, addr)
			w.write(cmd("BLMOVE", fmt.Sprint("list", i), fmt.Sprint("list", i+1), "RIGHT", "LEFT", "0"))
			c.awaitBlocked(i + 1)
			waiters = append(waiters, w)
		}
		c.do(number(1), "LPUSH", "list0", "x")
		for _, w := range waiters {
			w.want(bulk("x"))
		}
		c.do(number(1), "EXISTS", "list0", "list1", "list2", "list3", "list4")
		c.do(bulks("x"), "LRANGE", "list4", "0", "-1")
	})
}

func TestATransactionNeverBlocks(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		got := c.transaction(cmd("BRPOPLPUSH", "q", "to", "0"), cmd("BRPOP", "q", "0"), cmd("BLPOP", "q", "0"), cmd("BLMOVE", "q", "to", "LEFT", "LEFT", "0"),
			cmd("LPUSH", "q", "x"), cmd("BRPOP", "q", "0"))
		if want := array(null, nullArray, nullArray, null, number(1), bulks("q", "x")); got != want {
			t.Errorf("EXEC is answered %q, want %q", got, want)
		}
	})
}

func TestWaitersSeeATransactionWhole(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, w := dial(t, addr), dial(t, addr)
		w.write(cmd("BRPOP", "q", "0"))
		c.awaitBlocked(1)
		if got, want := c.transaction(cmd("LPUSH", "q", "a"), cmd("DEL", "q")), array(number(1), number(1)); got != want {
			t.Errorf("EXEC is answered %q, want %q", got, want)
		}
		c.awaitBlocked(1)
		if got, want := c.transaction(cmd("LPUSH", "q", "b"), cmd("RPUSH", "q", "c")), array(number(1), number(2)); got != want {
			t.Errorf("EXEC is answered %q, want %q", got, want)
		}
		w.want(bulks("q", "c"))
		c.do(bulks("b"), "LRANGE", "q", "0", "-1")
	})
}

func TestABlockedPopEndsWithItsTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		for _, timeout := range []string{"0.01", "0.001", ".01", "1e-2"} {
			c.write(cmd("BRPOP", "q", "r", timeout), cmd("PING"))
			c.want(nullArray, "+PONG\r\n")
			c.do(nullArray, "BRPOPLPUSH", "q", "to", timeout)
			c.do(nullArray, "BLMOVE", "q", "to", "LEFT", "LEFT", timeout)
		}
		// What comes later is not taken by a pop that has ended.
		c.do(number(1), "LPUSH", "q", "a")
		c.do(bulks("a"), "LRANGE", "q", "0", "-1")
	})
}

func TestAWaiterThatCannotTakeLetsTheNextOneHaveIt(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c, first, second := dial(t, addr), dial(t, addr), dial(t, addr)
		c.do(ok, "SET", "to", "a string")
		first.write(cmd("BRPOPLPUSH", "q", "to", "0"))
		c.awaitBlocked(1)
		second.write(cmd("BRPOPLPUSH", "q", "list", "0"))
		c.awaitBlocked(2)
		c.do(number(1), "LPUSH", "q", "a")
		first.want(wrongType)
		second.want(bulk("a"))
		c.do(bulks("a"), "LRANGE", "list", "0", "-1")
	})
}
