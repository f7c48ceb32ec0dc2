package redis

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
)

// Errors that pressure's clients raise.
var (
	errExists   = errors.New("the queue exists")
	errMissing  = errors.New("the queue does not exist")
	errInUse    = errors.New("the queue is in use")
	errFull     = errors.New("the queue is full")
	errClosed   = errors.New("the queue is closed")
	errTimedOut = errors.New("timed out")
)

// language is whose client a pressure is. They differ in what they send.
type language string

const (
	inC      language = "C"
	inPython language = "Python"
	inGo     language = "Go"
)

var languages = []language{inC, inPython, inGo}

// pressure is a client's handle of a bounded queue: a list and the keys beside it.
type pressure struct {
	*conn
	language
	name  string
	bound int
}

// open connects to a queue, which need not exist.
func open(t testing.TB, addr string, l language, name string) *pressure {
	t.Helper()
	p := &pressure{conn: dial(t, addr), language: l, name: "__pressure__:" + name}
	if l != inPython {
		p.do("+PONG\r\n", "PING")
	}
	p.bounded()
	if l != inPython {
		p.int(p.ask("EXISTS", p.key("closed")))
	}
	return p
}

func (p *pressure) key(suffix string) string { return p.name + ":" + suffix }

// statistics is the key of a counter.
func (p *pressure) statistics(name string) string {
	if p.language == inGo {
		return p.key("stats_" + name)
	}
	return p.key("stats:" + name)
}

// bounded reads the bound.
func (p *pressure) bounded() {
	p.t.Helper()
	if text, found := p.text(p.ask("GET", p.key("bound"))); found {
		p.bound, _ = strconv.Atoi(text)
	}
}

// has asks for one of the keys.
func (p *pressure) has(suffix string) bool {
	p.t.Helper()
	return p.int(p.ask("EXISTS", p.key(suffix))) == 1
}

// exists begins every operation.
func (p *pressure) exists() bool {
	p.t.Helper()
	if p.language == inGo {
		p.do("+PONG\r\n", "PING") // on borrowing a connection from its pool
	}
	return p.has("bound")
}

func (p *pressure) create(bound int) error {
	p.t.Helper()
	if p.int(p.ask("SETNX", p.key("bound"), fmt.Sprint(bound))) == 0 {
		return errExists
	}
	for _, list := range []string{"producer_free", "consumer_free", "not_full"} {
		p.do(number(1), "LPUSH", p.key(list), "0")
	}
	p.bound = bound
	return nil
}

// take pops from one of the lists that stand for a role or for room. timeout is as it is sent.
func (p *pressure) take(list, timeout string) bool {
	p.t.Helper()
	reply := p.ask("BRPOP", p.key(list), timeout)
	if reply == nullArray {
		return false
	}
	if got := p.texts(reply); len(got) != 2 || got[0] != p.key(list) {
		p.t.Fatalf("BRPOP %s is answered %q", p.key(list), reply)
	}
	return true
}

// give pushes to such a list.
func (p *pressure) give(list string) {
	p.t.Helper()
	p.int(p.ask("LPUSH", p.key(list), "0"))
}

// count adds to the statistics.
func (p *pressure) count(what string, bytes int) {
	p.t.Helper()
	if p.language == inPython {
		p.int(p.ask("INCRBY", p.statistics(what+"_messages"), "1"))
	} else {
		p.int(p.ask("INCR", p.statistics(what+"_messages")))
	}
	p.int(p.ask("INCRBY", p.statistics(what+"_bytes"), fmt.Sprint(bytes)))
}

// put adds a value. It waits while the queue is full or another producer is at work.
func (p *pressure) put(value string) error {
	p.t.Helper()
	if !p.exists() {
		return errMissing
	}
	p.take("producer_free", "0")
	return p.produce(value, func() bool { return p.take("not_full", "0") })
}

// putPolling is what Python sends when it must be possible to unblock it: it asks again every
// second. It gives up after so many attempts for room.
func (p *pressure) putPolling(value string, attempts int) error {
	p.t.Helper()
	if !p.exists() {
		return errMissing
	}
	for !p.take("producer_free", "1") {
	}
	return p.produce(value, func() bool {
		for range attempts {
			if p.take("not_full", "1") {
				return true
			}
		}
		return false
	})
}

// putNow adds a value without waiting; overfill adds it even to a full queue.
func (p *pressure) putNow(value string, overfill bool) error {
	p.t.Helper()
	if !p.exists() {
		return errMissing
	}
	if _, found := p.text(p.ask("RPOP", p.key("producer_free"))); !found {
		p.text(p.ask("GET", p.key("producer")))
		return errInUse
	}
	return p.produce(value, func() bool {
		if overfill {
			return true
		}
		_, found := p.text(p.ask("RPOP", p.key("not_full")))
		return found
	})
}

// produce is what a producer does between taking its role and giving it back.
func (p *pressure) produce(value string, room func() bool) error {
	p.t.Helper()
	defer p.give("producer_free")
	p.do(ok, "SET", p.key("producer"), "host_1_1")
	if p.has("closed") {
		return errClosed
	}
	if p.bound > 0 && !room() {
		return errFull
	}
	length := p.int(p.ask("LPUSH", p.name, value))
	if p.bound > 0 && length < p.bound {
		p.give("not_full")
		p.do(ok, "LTRIM", p.key("not_full"), "0", "0")
	}
	p.count("produced", len(value))
	return nil
}

// get takes the oldest value. It waits for one until the queue is closed.
func (p *pressure) get() (string, error) {
	p.t.Helper()
	if !p.exists() {
		return "", errMissing
	}
	p.take("consumer_free", "0")
	defer p.give("consumer_free")
	p.do(ok, "SET", p.key("consumer"), "host_1_2")
	if p.has("closed") {
		if p.int(p.ask("EXISTS", p.name)) == 0 {
			return "", errClosed
		}
		return p.texts(p.ask("BRPOP", p.name, "0"))[1], nil
	}
	got := p.texts(p.ask("BRPOP", p.name, p.key("closed"), "0"))
	if got[0] == p.key("closed") {
		return "", errClosed
	}
	p.consumed(got[1])
	return got[1], nil
}

// getNow takes the oldest value without waiting; "" and errTimedOut if there is none.
func (p *pressure) getNow() (string, error) {
	p.t.Helper()
	if !p.exists() {
		return "", errMissing
	}
	if _, found := p.text(p.ask("RPOP", p.key("consumer_free"))); !found {
		return "", errInUse
	}
	defer p.give("consumer_free")
	p.do(ok, "SET", p.key("consumer"), "host_1_2")
	value, found := p.text(p.ask("RPOP", p.name))
	switch {
	case found:
		p.consumed(value)
		return value, nil
	case p.has("closed"):
		return "", errClosed
	}
	return "", errTimedOut
}

// consumed says that there is room again.
func (p *pressure) consumed(value string) {
	p.t.Helper()
	if p.language != inPython || p.exists() && p.int(p.ask("LLEN", p.name)) < p.bound {
		p.give("not_full")
		p.do(ok, "LTRIM", p.key("not_full"), "0", "0")
	}
	p.count("consumed", len(value))
}

// peek returns the newest value and leaves it.
func (p *pressure) peek(wait bool) (string, error) {
	p.t.Helper()
	if !p.exists() {
		return "", errMissing
	}
	if wait {
		p.take("consumer_free", "0")
	} else if _, found := p.text(p.ask("RPOP", p.key("consumer_free"))); !found {
		return "", errInUse
	}
	defer p.give("consumer_free")
	p.do(ok, "SET", p.key("consumer"), "host_1_2")
	if got := p.texts(p.ask("LRANGE", p.name, "0", "0")); len(got) > 0 {
		return got[0], nil
	}
	if p.has("closed") {
		return "", errClosed
	}
	return "", errTimedOut
}

// close says that no value will come any more.
func (p *pressure) close() error {
	p.t.Helper()
	if !p.exists() {
		return errMissing
	}
	p.take("producer_free", "0")
	defer p.give("producer_free")
	p.do(ok, "SET", p.key("producer"), "host_1_1")
	if p.has("closed") {
		return errClosed
	}
	// Two elements, of which a consumer that waits takes one. The length is told before that.
	p.do(number(2), "LPUSH", p.key("closed"), "0", "0")
	return nil
}

func (p *pressure) isClosed() (bool, error) {
	p.t.Helper()
	if !p.exists() {
		return false, errMissing
	}
	return p.has("closed"), nil
}

func (p *pressure) length() int {
	p.t.Helper()
	if p.language == inPython {
		p.exists()
	}
	return p.int(p.ask("LLEN", p.name))
}

func (p *pressure) delete() error {
	p.t.Helper()
	if !p.exists() {
		return errMissing
	}
	p.do(number(1), "DEL", p.key("bound"))
	p.give("not_full")
	p.int(p.ask("LPUSH", p.key("closed"), "0", "0"))
	p.take("producer_free", "0")
	p.int(p.ask("DEL", p.key("producer"), p.key("producer_free")))
	p.take("consumer_free", "0")
	p.int(p.ask("DEL", p.key("consumer"), p.key("consumer_free")))
	p.int(p.ask("DEL", p.key("not_full"), p.key("closed"), p.statistics("produced_messages"), p.statistics("produced_bytes"),
		p.statistics("consumed_messages"), p.statistics("consumed_bytes"), p.name))
	return nil
}

// wantError fails the test unless the error is the one that is wanted.
func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("error %v, want %v", got, want)
	}
}

func (p *pressure) wantGet(want string) {
	p.t.Helper()
	if got, err := p.get(); got != want || err != nil {
		p.t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

func TestALifeOfAPressureQueue(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for _, l := range languages {
			p := open(t, addr, l, "life"+string(l))
			if p.exists() {
				t.Fatal("the queue exists before its creation")
			}
			for _, op := range []func() error{func() error { return p.put("x") }, p.close, p.delete} {
				wantError(t, op(), errMissing)
			}
			wantError(t, p.create(100), nil)
			wantError(t, p.create(100), errExists)
			if !p.exists() {
				t.Fatal("the queue does not exist after its creation")
			}
			wantError(t, p.put("test"), nil)
			if n := p.length(); n != 1 {
				t.Errorf("length %d, want 1", n)
			}
			p.wantGet("test")
			for _, counter := range []string{"produced", "consumed"} {
				p.do(bulk("1"), "GET", p.statistics(counter+"_messages"))
				p.do(bulk("4"), "GET", p.statistics(counter+"_bytes"))
			}
			wantError(t, p.close(), nil)
			wantError(t, p.close(), errClosed)
			if closed, err := p.isClosed(); !closed || err != nil {
				t.Errorf("closed %v, %v; want true", closed, err)
			}
			wantError(t, p.put("late"), errClosed)
			_, err := p.get()
			wantError(t, err, errClosed)
			wantError(t, p.delete(), nil)
			if p.exists() {
				t.Error("the queue exists after its deletion")
			}
			p.do(emptyArray, "KEYS", "*")
		}
	})
}

func TestPressureIsFirstInFirstOutThroughOneAndTwoHandles(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for _, l := range languages {
			for _, other := range languages {
				name := "order" + string(l) + string(other)
				p := open(t, addr, l, name)
				wantError(t, p.create(0), nil)
				q := open(t, addr, other, name)
				for _, value := range []string{"a", "", "\x00\r\n$5\r\n", "d"} {
					wantError(t, p.put(value), nil)
				}
				p.wantGet("a")
				q.wantGet("")
				q.wantGet("\x00\r\n$5\r\n")
				p.wantGet("d")
			}
		}
	})
}

func TestAPutOnAFullQueueWaitsForAGet(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for _, l := range languages {
			p := open(t, addr, l, "full"+string(l))
			wantError(t, p.create(2), nil)
			producer := open(t, addr, l, "full"+string(l))
			put := make(chan error, 3)
			go func() { // ends with the third put
				defer close(put)
				for _, value := range []string{"a", "b", "c"} {
					put <- producer.put(value)
				}
			}()
			wantError(t, <-put, nil)
			wantError(t, <-put, nil)
			p.awaitBlocked(1)
			if n := p.length(); n != 2 {
				t.Errorf("length %d while the third put waits, want 2", n)
			}
			p.wantGet("a")
			wantError(t, <-put, nil)
			p.wantGet("b")
			p.wantGet("c")
		}
	})
}

func TestAGetOfAnEmptyQueueEndsWithItsClose(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for _, l := range languages {
			p := open(t, addr, l, "empty"+string(l))
			wantError(t, p.create(2), nil)
			consumer := open(t, addr, l, "empty"+string(l))
			got := make(chan error, 2)
			go func() { // ends with the second get
				defer close(got)
				for range 2 {
					_, err := consumer.get()
					got <- err
				}
			}()
			p.awaitBlocked(1)
			wantError(t, p.put("a"), nil)
			wantError(t, <-got, nil)
			p.awaitBlocked(1)
			wantError(t, p.close(), nil)
			wantError(t, <-got, errClosed)
		}
	})
}

func TestDeletingAPressureQueueFreesAProducerThatWaits(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for _, l := range languages {
			p := open(t, addr, l, "delete"+string(l))
			wantError(t, p.create(1), nil)
			wantError(t, p.put("a"), nil)
			producer := open(t, addr, l, "delete"+string(l))
			put := make(chan error, 1)
			go func() { put <- producer.put("b") }() // ends with the deletion
			p.awaitBlocked(1)
			wantError(t, p.delete(), nil)
			// It ends in either way: deletion has no order with what the producer still does.
			if err := <-put; err != nil && !errors.Is(err, errClosed) {
				t.Errorf("the put ends with %v", err)
			}
			if p.exists() {
				t.Error("the queue exists after its deletion")
			}
		}
	})
}

func TestAPipelineOfPressureQueuesPassesAllInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		const count = 100
		first, second := open(t, addr, inC, "first"), open(t, addr, inC, "second")
		wantError(t, first.create(5), nil)
		wantError(t, second.create(5), nil)
		done := make(chan error, 2)
		go func() { // ends with its close
			producer := open(t, addr, inC, "first")
			for i := range count {
				if err := producer.put(fmt.Sprint(i)); err != nil {
					done <- err
					return
				}
			}
			done <- producer.close()
		}()
		go func() { // ends when the first queue is closed
			from, to := open(t, addr, inC, "first"), open(t, addr, inPython, "second")
			for {
				value, err := from.get()
				if errors.Is(err, errClosed) {
					done <- to.close()
					return
				}
				if err := to.put(value + "!"); err != nil {
					done <- err
					return
				}
			}
		}()
		consumer := open(t, addr, inC, "second")
		for i := 0; ; i++ {
			value, err := consumer.get()
			if errors.Is(err, errClosed) {
				if i != count {
					t.Errorf("%d values came through, want %d", i, count)
				}
				break
			}
			if err != nil || value != fmt.Sprintf("%d!", i) {
				t.Fatalf("value %d is %q, %v", i, value, err)
			}
		}
		wantError(t, <-done, nil)
		wantError(t, <-done, nil)
		wantError(t, first.delete(), nil)
		wantError(t, second.delete(), nil)
		first.do(number(0), "DBSIZE")
	})
}

func TestPressureWithoutWaiting(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		p := open(t, addr, inPython, "nowait")
		wantError(t, p.create(2), nil)
		_, err := p.getNow()
		wantError(t, err, errTimedOut)
		_, err = p.peek(false)
		wantError(t, err, errTimedOut)
		wantError(t, p.putNow("a", false), nil)
		wantError(t, p.putNow("b", false), nil)
		wantError(t, p.putNow("c", false), errFull)
		wantError(t, p.putNow("c", true), nil)
		if n := p.length(); n != 3 {
			t.Errorf("length %d, want 3: overfilled", n)
		}
		for _, wait := range []bool{true, false} {
			if newest, err := p.peek(wait); newest != "c" || err != nil {
				t.Errorf("peek: %q, %v; want c", newest, err)
			}
		}
		for _, want := range []string{"a", "b", "c"} {
			if got, err := p.getNow(); got != want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		}
		wantError(t, p.close(), nil)
		_, err = p.getNow()
		wantError(t, err, errClosed)

		busy := open(t, addr, inPython, "busy")
		wantError(t, busy.create(1), nil)
		busy.do(bulk("0"), "RPOP", busy.key("producer_free"))
		busy.do(bulk("0"), "RPOP", busy.key("consumer_free"))
		wantError(t, busy.putNow("x", false), errInUse)
		_, err = busy.getNow()
		wantError(t, err, errInUse)
		_, err = busy.peek(false)
		wantError(t, err, errInUse)
	})
}

func TestAPollingPutTimesOutOnAFullQueue(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		p := open(t, addr, inPython, "polling")
		wantError(t, p.create(1), nil)
		wantError(t, p.putPolling("a", 1), nil)
		wantError(t, p.putPolling("b", 1), errFull)
		p.wantGet("a")
		wantError(t, p.putPolling("b", 1), nil)
		p.wantGet("b")
	})
}

// The first Python client has no protocol yet: a list, and a list of empty values for its room.
func TestTheQueueBeforePressureBlocksAtItsBound(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for bound := 1; bound < 92; bound += 10 {
			c := dial(t, addr)
			queue := fmt.Sprint("old", bound)
			for i := range bound {
				c.do(number(i+1), "RPUSH", queue+":sem", "")
			}
			for i := range bound {
				c.do(bulks(queue+":sem", ""), "BLPOP", queue+":sem", "1")
				c.do(number(i+1), "LPUSH", queue, fmt.Sprint(i))
			}
			c.do(null, "LPOP", queue+":sem")
			c.do(number(bound), "LLEN", queue)
			c.do(bulks("0"), "LRANGE", queue, "-1", "-1")
			c.do(bulks(fmt.Sprint(bound-1)), "LRANGE", queue, "0", "0")
			for i := range bound {
				c.do(bulks(queue, fmt.Sprint(i)), "BRPOP", queue, "1")
				c.do(number(i+1), "RPUSH", queue+":sem", "")
			}
			c.do(null, "RPOP", queue)
		}
		c := dial(t, addr)
		c.do(nullArray, "BLPOP", "nothing:sem", "0.01")
		// The reliable form keeps a value in another list until it is done.
		c.do(number(1), "LPUSH", "q", "v")
		c.do(bulk("v"), "BRPOPLPUSH", "q", "q:processing", "1")
		c.do(number(1), "LREM", "q:processing", "1", "v")
		c.do(number(1), "RPUSH", "q:processing", "w")
		c.do(bulk("w"), "RPOP", "q:processing")
	})
}

// The document's pseudocode leaves out timeouts and values, which Redis refuses.
func TestThePseudocodeOfThePressureDocument(t *testing.T) {
	const arity = "-ERR wrong number of arguments for '%s' command\r\n"
	onEach(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.do(number(1), "SETNX", "q:bound", "5")
		c.do(number(0), "SETNX", "q:bound", "6")
		c.do(number(1), "LPUSH", "q:producer_free", "1")
		c.do(fmt.Sprintf(arity, "brpop"), "BRPOP", "q:producer_free")
		c.do(fmt.Sprintf(arity, "lpush"), "LPUSH", "q:not_full")
		c.do(nullArray, "RPOP", "q:consumer_free", "0")
		c.do(emptyArray, "RPOP", "q:producer_free", "0")
		c.do(number(1), "LLEN", "q:producer_free")
		c.do("-ERR wrong number of arguments for 'rpop' command\r\n", "RPOP", "q", "q:closed", "0")
		c.do(number(1), "INCR", "q:produced_messages")
		c.do(number(5), "INCRBY", "q:produced_bytes", "5")
	})
}
