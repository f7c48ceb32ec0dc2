package access

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

var elsewhere = netip.MustParseAddr("198.51.100.7")

func withUser(t *testing.T) *Control {
	return NewControl(users(t, User{Name: "u", Hashes: []string{hashed(t, "x")}}))
}

func TestFailuresOfAnAddressCostEachTimeMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withUser(t)
		want := []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000}
		for i, ms := range want {
			v, took := login(t, c, here, "u", "wrong")
			if v.err != ErrWrong || took != ms*time.Millisecond {
				t.Errorf("failure %d: %v after %v, want %d ms", i+1, v.err, took, ms)
			}
		}
		time.Sleep(forgotten - maxPenalty) // the last was told as late after it
		if _, took := login(t, c, here, "u", "wrong"); took != maxPenalty {
			t.Errorf("at %v after the last failure it costs %v", forgotten, took)
		}
		time.Sleep(forgotten - maxPenalty + 1)
		if _, took := login(t, c, here, "u", "wrong"); took != firstPenalty {
			t.Errorf("when all is forgotten it costs %v", took)
		}
		fail(t, c, here, 3)
		if _, took := login(t, c, elsewhere, "u", "wrong"); took != firstPenalty {
			t.Errorf("another address waits %v", took)
		}
	})
}

// fail lets an address fail n times, and ends when the last is told.
func fail(t *testing.T, c *Control, from netip.Addr, n int) {
	t.Helper()
	for range n {
		if v, _ := login(t, c, from, "u", "wrong"); v.err != ErrWrong {
			t.Fatal(v.err)
		}
	}
}

func TestGuessesAtTheSameTimeAreTriedOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withUser(t)
		n := counted(c)
		fail(t, c, here, 1)
		begun := time.Now()
		var guesses []chan verdict
		for range 4 {
			guesses = append(guesses, begin(t, c, here, "u", "guess"))
		}
		for _, g := range guesses {
			<-g
		}
		if took := time.Since(begun); took != (200+400+800+1600)*time.Millisecond || n.Load() != 5 {
			t.Errorf("%d guesses took %v", n.Load()-1, took)
		}
	})
}

func TestOneGuessOfASuspectIsTriedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withUser(t)
		c.slots = make(chan struct{}, 4)
		fail(t, c, here, 1)
		running := new(atomic.Int32)
		c.compare = func(_, _ []byte) error {
			if n := running.Add(1); n > 1 {
				t.Errorf("%d are tried at a time", n)
			}
			time.Sleep(firstPenalty)
			running.Add(-1)
			return bcrypt.ErrMismatchedHashAndPassword
		}
		var guesses []chan verdict
		for range 4 {
			guesses = append(guesses, begin(t, c, here, "u", "guess"))
		}
		for _, g := range guesses {
			<-g
		}
	})
}

func TestTheRightPasswordOfASuspectWaitsUnlessItIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withUser(t)
		fail(t, c, here, 4) // the last has cost 800 ms
		wrong := begin(t, c, here, "u", "wrong")
		synctest.Wait()
		v, took := login(t, c, here, "u", "x")
		if v.err != nil || took != 1600*time.Millisecond {
			t.Errorf("the right password: %v after %v", v.err, took)
		}
		<-wrong
		if c.Remembered(here, []byte("u"), []byte("x")) == nil {
			t.Error("what is remembered waits")
		}
	})
}

func TestASuspectFillsNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withUser(t)
		fail(t, c, here, 1)
		wrong := begin(t, c, here, "u", "wrong")
		synctest.Wait()
		for range maxSuspects {
			begin(t, c, here, "u", "wrong")
		}
		synctest.Wait()
		if v, took := login(t, c, here, "u", "x"); v.err != ErrBusy || took != 0 {
			t.Errorf("one more of it: %v after %v", v.err, took)
		}
		if v, took := login(t, c, elsewhere, "u", "y"); v.err != ErrWrong || took != firstPenalty {
			t.Errorf("one of another address: %v after %v", v.err, took)
		}
		<-wrong
		time.Sleep(time.Hour) // all are through
		if v, _ := login(t, c, here, "u", "x"); v.err != nil {
			t.Errorf("one later: %v", v.err)
		}
	})
}

func TestASuspectThatHangsUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withUser(t)
		fail(t, c, here, 1)
		begin(t, c, here, "u", "wrong")
		synctest.Wait()
		for range 3 * maxSuspects {
			ctx, hangUp := context.WithCancel(t.Context())
			got := make(chan error, 1)
			_ = c.Login(ctx, here, []byte("u"), []byte("x"), func(_ *Account, err error) { got <- err })
			synctest.Wait()
			hangUp()
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	})
}

func TestAHostIsOneAddress(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::ffff:0:0:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		if same := Host(netip.MustParseAddr(c.a)) == Host(netip.MustParseAddr(c.b)); same != c.same {
			t.Errorf("%s and %s are one: %v", c.a, c.b, same)
		}
	}
}

func TestAsManyAddressesAsFailAreNotAllKnown(t *testing.T) {
	p := penalties{of: make(map[netip.Addr]*penalty)}
	now := time.Unix(1_800_000_000, 0)
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for i := range 2 * maxPenalties {
		p.fail(address(i), now.Add(time.Duration(i)*time.Millisecond))
	}
	if len(p.of) != maxPenalties || p.of[address(0)] != nil || p.of[address(2*maxPenalties-1)] == nil {
		t.Errorf("%d addresses are known, want the newest %d", len(p.of), maxPenalties)
	}
	if p.fail(address(2*maxPenalties), now.Add(time.Hour)); len(p.of) != 1 {
		t.Errorf("%d addresses are known after an hour, want 1", len(p.of))
	}
}
