package access

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAddressThatGuessesFasterThanItWaitsIsToldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []User{{Name: "u", Password: "x"}}
		for i := range 3 * guessesPerSecond {
			all = append(all, User{Name: fmt.Sprint("u", i), Password: "x"})
		}
		c := NewControl(users(t, all...))
		for range freeGuesses { // without waiting for a verdict
			if c.Remembered(here, []byte("u"), []byte("wrong")) != nil {
				t.Fatal("a wrong password is let in")
			}
		}
		if c.Remembered(here, []byte("u"), []byte("x")) != nil {
			t.Error("the right one of many guesses is told")
		}
		if v, _ := login(t, c, here, "u", "x"); v.err != ErrBusy {
			t.Errorf("a login gives %v", v.err)
		}
		if c.Remembered(elsewhere, []byte("u"), []byte("x")) == nil {
			t.Error("another address is not let in")
		}
		time.Sleep(time.Second)
		told := 0
		for i := range 3 * guessesPerSecond {
			if c.Remembered(here, fmt.Append(nil, "u", i), []byte("x")) != nil {
				told++
			}
			c.Remembered(here, []byte("u"), []byte("wrong"))
		}
		if told < guessesPerSecond-1 || told > guessesPerSecond+1 {
			t.Errorf("after a second %d guesses are told, want %d", told, guessesPerSecond)
		}
	})
}

func TestLoginsThatAreRightSpendNoGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControl(users(t, User{Name: "u", Hashes: []string{hashed(t, "x")}}))
		if c.Remembered(here, []byte("u"), []byte("x")) != nil {
			t.Fatal("a password is known before it was given")
		}
		if v, _ := login(t, c, here, "u", "x"); v.err != nil {
			t.Fatal(v.err)
		}
		if left := c.guesses.of[here].left; left != freeGuesses {
			t.Errorf("%v guesses are left", left)
		}
	})
}

func TestFewGuessersAreKept(t *testing.T) {
	g, now := guesses{of: make(map[netip.Addr]*guesser)}, time.Now()
	a := netip.MustParseAddr("10.0.0.0")
	for range 3 * maxGuessers {
		a = a.Next()
		if g.miss(a, now); len(g.of) > maxGuessers {
			t.Fatal("too many are kept")
		}
	}
	if g.miss(here, now.Add(time.Hour)); len(g.of) > 1 {
		t.Errorf("%d are kept that have guesses again", len(g.of))
	}
}

func TestAPasswordThatWasRightOfLateIsToldWhileOthersGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControl(users(t, User{Name: "clear", Password: "x"}, User{Name: "hashed", Hashes: []string{hashed(t, "x")}}, User{Name: "other", Password: "x"}))
		guess := func(from netip.Addr) {
			for range 2 * freeGuesses {
				c.Remembered(from, []byte("clear"), []byte("wrong"))
			}
		}
		told := func(from netip.Addr, name string, want bool) {
			t.Helper()
			if got := c.Remembered(from, []byte(name), []byte("x")) != nil; got != want {
				t.Errorf("%s from %v is told: %v", name, from, got)
			}
		}
		told(here, "clear", true)
		if v, _ := login(t, c, here, "hashed", "x"); v.err != nil {
			t.Fatal(v.err)
		}
		guess(here)
		guess(elsewhere)
		told(here, "clear", true)
		told(here, "hashed", true)
		told(here, "other", false)
		told(elsewhere, "clear", false)
		for range 2 { // each time counts
			time.Sleep(lately - time.Minute)
			guess(here)
			told(here, "clear", true)
		}
		time.Sleep(lately + 1)
		guess(here)
		told(here, "clear", false)
	})
}

func TestFewLoginsThatWereRightAreKept(t *testing.T) {
	r, now := newRight(), time.Now()
	a := netip.MustParseAddr("10.0.0.0")
	for range 2 * maxRight {
		a = a.Next()
		if r.note(a, digest{}, now); len(r.of) > maxRight || !r.has(a, digest{}, now) {
			t.Fatalf("%d are kept", len(r.of))
		}
	}
	if r.note(here, digest{}, now.Add(lately+1)); len(r.of) != 1 {
		t.Errorf("%d are kept that are too old", len(r.of))
	}
}
