package loadgen

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// testLimit is far longer than any run here takes.
const testLimit = 2 * time.Minute

func pushes(name string, conns, depth int, count int64, p Packets) Group {
	return Group{Name: name, Conns: conns, Depth: depth, Count: count, New: func() Protocol { return PinpriqPush(p) }}
}

func TestARunPushesExactlyItsCountOnce(t *testing.T) {
	f := startFake(t)
	p := Packets{Queue: "q", Size: 32, Base: 1000}
	result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{pushes("push", 4, 7, 1001, p)}})
	if err != nil {
		t.Fatal(err)
	}
	g := &result.Groups[0]
	if g.Packets != 1001 || g.Requests != 1001 || !g.Finished || g.Elapsed > result.Elapsed || g.latency.TotalCount() != 1001 {
		t.Errorf("the result is %d packets, %d requests, finished %v, %v of %v", g.Packets, g.Requests, g.Finished, g.Elapsed, result.Elapsed)
	}
	if pushed, twice, _ := f.state(); pushed != 1001 || twice != 0 {
		t.Errorf("the server got %d packets, %d keys more than once, expected 1001 and 0", pushed, twice)
	}
	if len(f.levels) != 8 || f.levels[0] != 0 {
		t.Errorf("the priorities are %v, expected 1 to 8", f.levels)
	}
}

func TestProducersAndConsumersEndWhenAllIsConsumed(t *testing.T) {
	p := Packets{Queue: "q", Size: 32}
	for name, consumer := range map[string]func() Protocol{
		"pops":        func() Protocol { return PinpriqPop("q") },
		"subscribers": func() Protocol { return PinpriqSubscribe("q") },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{
				pushes("push", 3, 5, 2000, p),
				{Name: "take", Conns: 3, Depth: 5, Count: 2000, New: consumer},
			}})
			if err != nil {
				t.Fatal(err)
			}
			take := &result.Groups[1]
			if result.Packets() != 4000 || take.Packets != 2000 || !take.Finished {
				t.Errorf("%d packets in all, %d taken, finished %v; expected 4000, 2000, true", result.Packets(), take.Packets, take.Finished)
			}
			if _, _, popped := f.state(); popped != 2000 {
				t.Errorf("the server gave %d packets, expected 2000", popped)
			}
		})
	}
}

func TestPairsKeepTheDepthOfTheQueue(t *testing.T) {
	f := startFake(t)
	p := Packets{Queue: "q", Size: 32}
	result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{
		{Name: "pair", Conns: 3, Depth: 4, Count: 500, New: func() Protocol { return PinpriqPair(p) }},
	}})
	pushed, _, popped := f.state()
	if err != nil || result.Packets() != 500 || pushed != 500 || popped != 500 {
		t.Errorf("%d packets counted, %d pushed, %d popped, %v; expected 500 of each", result.Packets(), pushed, popped, err)
	}
}

func TestALimitEndsARunThatHasNoCount(t *testing.T) {
	f := startFake(t)
	result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: 50 * time.Millisecond, Groups: []Group{
		{Name: "pop", Conns: 2, Depth: 3, New: func() Protocol { return PinpriqPop("q") }},
	}})
	g := &result.Groups[0]
	if err != nil || g.Finished || g.Packets != 0 || g.Requests != g.Empty || result.Elapsed < 50*time.Millisecond {
		t.Errorf("%v: finished %v, %d packets, %d requests, %d empty, %v", err, g.Finished, g.Packets, g.Requests, g.Empty, result.Elapsed)
	}
}

func TestAGroupKeepsToItsRate(t *testing.T) {
	f := startFake(t)
	g := pushes("push", 4, 10, 200, Packets{Queue: "q", Size: 32})
	g.Rate = 2000
	result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{g}})
	// The last window begins when the 190 before it are due.
	if err != nil || result.Packets() != 200 || result.Elapsed < 190*time.Second/2000 {
		t.Errorf("%d packets in %v, %v; expected 200 in at least 95 ms", result.Packets(), result.Elapsed, err)
	}
}

func TestACancelledRunReturnsWhatItHasAndWhy(t *testing.T) {
	f := startFake(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	proto := &cancelling{Protocol: PinpriqPush(Packets{Queue: "q", Size: 32}), after: 100, cancel: func() { cancel(nil) }}
	result, err := Run(ctx, Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{
		{Name: "push", Conns: 1, Depth: 4, New: func() Protocol { return proto }},
	}})
	if !errors.Is(err, context.Canceled) || result.Packets() < 100 {
		t.Errorf("%d packets, %v; expected at least 100 and context.Canceled", result.Packets(), err)
	}
}

// cancelling calls cancel once so many packets are acknowledged.
type cancelling struct {
	Protocol
	after  int
	cancel func()
}

func (c *cancelling) Consume(dst, src []byte) ([]byte, Progress, error) {
	dst, p, err := c.Protocol.Consume(dst, src)
	if c.after -= p.Packets; c.after <= 0 {
		c.cancel()
	}
	return dst, p, err
}

func TestAServerThatHangsUpOrAnswersTooMuchFailsTheRun(t *testing.T) {
	for name, row := range map[string]struct{ answer, want string }{
		"hangs up":              {"", "the server closed it"},
		"answers without cause": {"\x00\x00\x00\x00\x00\x00", "replies more than there were requests"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() { // ends with the one connection it serves
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 100))
				_, _ = conn.Write([]byte(row.answer))
				if row.answer != "" {
					_, _ = conn.Read(make([]byte, 100))
				}
			}()
			_, err = Run(t.Context(), Spec{Addr: l.Addr().String(), Limit: testLimit, Groups: []Group{
				{Name: "pop", Conns: 1, Depth: 1, Count: 10, New: func() Protocol { return PinpriqPop("q") }},
			}})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, expected %q in it", err, row.want)
			}
		})
	}
}

func TestAWindowLargerThanTheSocketBuffersIsWritten(t *testing.T) {
	f := startFake(t)
	p := Packets{Queue: "q", Size: 20000}
	result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{pushes("push", 1, 1000, 1000, p)}})
	if err != nil || result.Packets() != 1000 {
		t.Errorf("%d packets, %v; expected 1000", result.Packets(), err)
	}
}

func TestRunMeasuresItself(t *testing.T) {
	f := startFake(t)
	result, err := Run(t.Context(), Spec{Addr: f.addr, Limit: testLimit, Groups: []Group{pushes("push", 2, 8, 20000, Packets{Queue: "q", Size: 64})}})
	if err != nil || result.Client <= 0 || result.Rate() <= 0 {
		t.Errorf("%v: processor time %v, %v packets a second", err, result.Client, result.Rate())
	}
}

func TestAskReturnsTheFirstAnswer(t *testing.T) {
	f := startFake(t)
	p, err := Ask(t.Context(), f.addr, PinpriqPop("q"))
	if err != nil || p.Done != 1 || p.Empty != 1 {
		t.Errorf("got %+v, %v, expected one empty answer", p, err)
	}
	if p, err = Ask(t.Context(), f.addr, PinpriqPush(Packets{Queue: "q", Size: 16})); err != nil || p.Packets != 1 {
		t.Errorf("got %+v, %v, expected one packet", p, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := l.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, silent, PinpriqPop("q")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server gave %v, expected the deadline", err)
	}
	l.Close()
	if _, err := Ask(t.Context(), silent, PinpriqPop("q")); err == nil {
		t.Error("a closed port gave no error")
	}
}

func TestQuantilesAreOfOneGroupOrOfAll(t *testing.T) {
	a, b := GroupResult{latency: newLatency()}, GroupResult{latency: newLatency()}
	if a.Quantile(0.5) != 0 {
		t.Errorf("the median of nothing is %v, expected 0", a.Quantile(0.5))
	}
	a.latency.RecordValues(int64(time.Millisecond), 98)
	b.latency.RecordValues(int64(MaxLimit), 2)
	result := Result{Groups: []GroupResult{a, b}}
	for name, row := range map[string]struct{ got, want time.Duration }{
		"one group":       {a.Quantile(1), time.Millisecond},
		"all, the median": {result.Quantile(0.5), time.Millisecond},
		"all, the last":   {result.Quantile(0.99), MaxLimit},
	} {
		if row.got < row.want || float64(row.got) > float64(row.want)*1.01 {
			t.Errorf("%s: %v, expected %v to 1 %% above", name, row.got, row.want)
		}
	}
}
