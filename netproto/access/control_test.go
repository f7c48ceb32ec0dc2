package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

var here = netip.MustParseAddr("192.0.2.1")

// verdict is what a login ends with.
type verdict struct {
	account *Account
	err     error
}

// begin begins a login.
func begin(t *testing.T, c *Control, from netip.Addr, name, password string) chan verdict {
	t.Helper()
	got := make(chan verdict, 1)
	err := c.Login(t.Context(), from, []byte(name), []byte(password), func(a *Account, err error) { got <- verdict{a, err} })
	if err != nil {
		got <- verdict{nil, err}
	}
	return got
}

// login logs in, and returns how long that took.
func login(t *testing.T, c *Control, from netip.Addr, name, password string) (verdict, time.Duration) {
	t.Helper()
	begun := time.Now()
	v := <-begin(t, c, from, name, password)
	return v, time.Since(begun)
}

// counted makes a control count its bcrypts.
func counted(c *Control) *atomic.Int32 {
	n := new(atomic.Int32)
	c.compare = func(hash, password []byte) error {
		n.Add(1)
		return bcrypt.CompareHashAndPassword(hash, password)
	}
	return n
}

func TestTheRightPasswordsOfAUserLetItIn(t *testing.T) {
	long := strings.Repeat("a", 72)
	u := users(t,
		User{Name: "two", Hashes: []string{hashed(t, "old"), hashed(t, "new")}},
		User{Name: "long", Hashes: []string{hashed(t, long)}},
		User{Name: "clear", Password: long + "b\x00"},
		User{Name: "off", Hashes: []string{hashed(t, "x")}, Password: "y", Off: true},
		User{Name: "certified", Certificates: []string{"c"}},
	)
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"two", "old", true},
		{"two", "new", true},
		{"two", "", false},
		{"two", "old\x00old", false}, // which bcrypt takes for old
		{"long", long, true},
		{"long", long + "a", false}, // as it does here
		{"clear", long + "b\x00", true},
		{"clear", long, false},
		{"clear", "", false},
		{"off", "x", false},
		{"off", "y", false},
		{"certified", "", false},
		{"Two", "old", false},
		{"nobody", "old", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			control := NewControl(u)
			v, _ := login(t, control, here, c.name, c.password)
			if ok := v.err == nil && v.account.Name() == c.name; ok != c.want || !ok && v.err != ErrWrong {
				t.Errorf("%s with %.9q: %q, %v", c.name, c.password, v.account.Name(), v.err)
			}
		})
	}
}

func TestALoginThatSucceededCostsNoSecondBcrypt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControl(users(t, User{Name: "u", Hashes: []string{hashed(t, "x")}}, User{Name: "v", Hashes: []string{hashed(t, "x")}}))
		n := counted(c)
		if c.Remembered(here, []byte("u"), []byte("x")) != nil {
			t.Error("a password is known before it was given")
		}
		login(t, c, here, "u", "x")
		for range 1000 {
			if c.Remembered(here, []byte("u"), []byte("x")).Name() != "u" {
				t.Fatal("the password is not remembered")
			}
		}
		if n.Load() != 1 {
			t.Errorf("%d bcrypts, want 1", n.Load())
		}
		for _, other := range [][2]string{{"u", "y"}, {"v", "x"}, {"u", ""}, {"", "x"}} {
			if c.Remembered(here, []byte(other[0]), []byte(other[1])) != nil {
				t.Errorf("%q is let in", other)
			}
		}
	})
}

func TestWhatIsRememberedOutlivesAChangeThatKeepsTheHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := User{Name: "u", Hashes: []string{hashed(t, "x")}}
		c := NewControl(users(t, user))
		login(t, c, here, "u", "x")
		user.Hashes = append([]string{hashed(t, "z")}, user.Hashes...)
		c.Swap(users(t, user))
		if c.Remembered(here, []byte("u"), []byte("x")) == nil {
			t.Error("the same hash is forgotten")
		}
		off := user
		off.Off = true
		c.Swap(users(t, off))
		if c.Remembered(here, []byte("u"), []byte("x")) != nil {
			t.Error("a user that is switched off is let in")
		}
		user.Hashes = user.Hashes[:1]
		c.Swap(users(t, user))
		if c.Remembered(here, []byte("u"), []byte("x")) != nil {
			t.Error("a password is remembered whose hash was taken out")
		}
	})
}

func TestAWrongPasswordCostsTheSameForAUserThatDoesNotExist(t *testing.T) {
	u := users(t,
		User{Name: "one", Hashes: []string{hashed(t, "x")}},
		User{Name: "two", Hashes: []string{hashed(t, "x"), hashed(t, "y")}},
		User{Name: "off", Hashes: []string{hashed(t, "x")}, Off: true},
		User{Name: "clear", Password: "x"},
	)
	for _, name := range []string{"one", "two", "off", "clear", "nobody"} {
		for _, password := range []string{"wrong", strings.Repeat("a", 100), "x\x00"} {
			synctest.Test(t, func(t *testing.T) {
				c := NewControl(u)
				n := counted(c)
				v, took := login(t, c, here, name, password)
				if v.err != ErrWrong || n.Load() != 2 || took != firstPenalty {
					t.Errorf("%s: %v after %d bcrypts and %v", name, v.err, n.Load(), took)
				}
			})
		}
	}
}

func TestLoginsThatWaitedForTheSamePasswordCostOneBcrypt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControl(users(t, User{Name: "u", Hashes: []string{hashed(t, "x")}}))
		c.slots = make(chan struct{}, 1)
		n := counted(c)
		var all []chan verdict
		for range 500 {
			all = append(all, begin(t, c, here, "u", "x"))
		}
		for _, one := range all {
			if v := <-one; v.err != nil {
				t.Fatal(v.err)
			}
		}
		if n.Load() != 1 {
			t.Errorf("%d bcrypts, want 1", n.Load())
		}
	})
}

func TestFewBcryptsRunAtATimeAndALongLineIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControl(users(t, User{Name: "u", Hashes: []string{hashed(t, "x")}}))
		running, goOn := new(atomic.Int32), make(chan struct{})
		c.compare = func(_, _ []byte) error {
			running.Add(1)
			<-goOn
			return nil
		}
		var all []chan verdict
		for i := range maxWaiting {
			all = append(all, begin(t, c, here, "u", fmt.Sprint(i)))
		}
		synctest.Wait()
		if n := int(running.Load()); n != cap(c.slots) {
			t.Errorf("%d bcrypts run, want %d", n, cap(c.slots))
		}
		if v := <-begin(t, c, here, "u", "x"); v.err != ErrBusy {
			t.Errorf("one more: %v", v.err)
		}
		close(goOn)
		for _, one := range all {
			if v := <-one; v.err != nil {
				t.Fatal(v.err)
			}
		}
		if v := <-begin(t, c, here, "u", "x"); v.err != nil {
			t.Errorf("when all are through: %v", v.err)
		}
	})
}

func TestALoginThatNobodyWaitsForTriesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControl(users(t, User{Name: "u", Hashes: []string{hashed(t, "x")}}))
		n := counted(c)
		for range cap(c.slots) {
			c.slots <- struct{}{}
		}
		ctx, hangUp := context.WithCancel(t.Context())
		got := make(chan error, 1)
		_ = c.Login(ctx, here, []byte("u"), []byte("x"), func(_ *Account, err error) { got <- err })
		synctest.Wait()
		hangUp()
		if err := <-got; !errors.Is(err, context.Canceled) || n.Load() != 0 || c.waiting.Load() != 0 {
			t.Errorf("%v after %d bcrypts, %d wait", err, n.Load(), c.waiting.Load())
		}
	})
}
