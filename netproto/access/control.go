package access

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Why a login does not let in.
var (
	// ErrWrong: the user does not exist or is switched off, or the password is wrong.
	ErrWrong = errors.New("wrong user or password")
	// ErrBusy: nothing was tried.
	ErrBusy = errors.New("too many logins wait for their turn: try again later")
)

// maxWaiting is how many logins are under way at a time. Each is a goroutine and a password.
const maxWaiting = 1024

// Control holds the present users, and lets them in. Any goroutine may call its methods.
type Control struct {
	users     atomic.Pointer[Users]
	salt      [16]byte      // of digests
	slots     chan struct{} // holds one for each bcrypt that runs
	waiting   atomic.Int32  // logins that are under way
	failed    atomic.Uint64
	penalties penalties
	guesses   guesses
	right     right
	compare   func(hash, password []byte) error // of bcrypt; no error if they belong together
	swapped   []func()                          // see Watch
}

// digest is the salted SHA-256 of a user and a password.
type digest [sha256.Size]byte

// NewControl makes a control of a set of users.
func NewControl(u *Users) *Control {
	c := &Control{
		slots:     make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		penalties: penalties{of: make(map[netip.Addr]*penalty)},
		guesses:   guesses{of: make(map[netip.Addr]*guesser)},
		right:     newRight(),
		compare:   bcrypt.CompareHashAndPassword,
	}
	_, _ = rand.Read(c.salt[:]) // which never fails
	c.users.Store(u)
	return c
}

// Users is the present set: the same pointer until Swap.
func (c *Control) Users() *Users { return c.users.Load() }

// Swap makes another set the present one. One goroutine at a time calls it. When it returns, no
// connection does what it may not do any more.
func (c *Control) Swap(u *Users) {
	u.inherit(c.users.Load())
	c.users.Store(u)
	for _, fn := range c.swapped {
		fn()
	}
}

// Watch has each Swap call functions when the new set is in force, in place of those of an earlier
// Watch. Who calls Swap calls it.
func (c *Control) Watch(fns ...func()) { c.swapped = fns }

// Remembered lets in a user whose password is known: it was right before, or stands in the clear.
// It takes microseconds. An address that has guessed too often is told only what was right there of
// late. nil: Login has to look.
func (c *Control) Remembered(from netip.Addr, name, password []byte) *Account {
	given, now := c.digest(name, password), time.Now()
	a := c.known(name, given)
	switch {
	case a == nil:
		c.guesses.miss(from, now)
		return nil
	case c.guesses.spent(from, now) && !c.right.has(from, given, now):
		return nil
	}
	c.right.note(from, given, now)
	return a
}

// known is the user of a password that is known.
func (c *Control) known(name []byte, given digest) *Account {
	a := c.Users().Named(string(name)).unlessOff()
	if a == nil {
		return nil
	}
	known := 0
	if a.user.Password != "" {
		clear := c.digest(name, []byte(a.user.Password))
		known = subtle.ConstantTimeCompare(given[:], clear[:])
	}
	for _, s := range a.secrets {
		if before := s.known.Load(); before != nil {
			known |= subtle.ConstantTimeCompare(given[:], before[:])
		}
	}
	if known == 0 {
		return nil
	}
	return a
}

// digest is of a password of a user of the name.
func (c *Control) digest(name, password []byte) digest {
	all := make([]byte, 0, 256)
	all = append(all, c.salt[:]...)
	all = append(all, name...)
	return sha256.Sum256(append(all, password...))
}

// Login finds out whether a password is a user's, in a goroutine of its own, which calls done once:
// with the account, or with ErrWrong, ErrBusy or the error of ctx. That may take seconds. A wrong
// password takes the same time for a user that does not exist, if all hashes have one cost. It is
// told after the penalty of its address. When ctx ends, nothing more is tried. It returns ErrBusy
// if too many wait; then done is not called. The caller logs what failed.
func (c *Control) Login(ctx context.Context, from netip.Addr, name, password []byte, done func(*Account, error)) error {
	if c.waiting.Add(1) > maxWaiting {
		c.waiting.Add(-1)
		return ErrBusy
	}
	// What is longer is wrong, and stays so.
	name, password = bytes.Clone(name[:min(len(name), maxUserName+1)]), bytes.Clone(password[:min(len(password), MaxClear+1)])
	go func() { // ends after a few penalties, or with ctx
		a, err := c.login(ctx, from, name, password)
		c.waiting.Add(-1)
		done(a, err)
	}()
	return nil
}

// Log logs a login that failed. Only the name of a user is logged: another one may be a password in
// the wrong place. A nil Control has no users.
func (c *Control) Log(log *slog.Logger, protocol, remote string, name []byte, why error) {
	user := "unknown"
	if c != nil && c.Users().Named(string(name)) != nil {
		user = string(name)
	}
	log.Warn("login failed", "protocol", protocol, "remote", remote, "user", user, "error", why)
}

// login waits for its turn, and for the end of the penalty of its address. What a login before it
// has shown counts.
func (c *Control) login(ctx context.Context, from netip.Addr, name, password []byte) (*Account, error) {
	given := c.digest(name, password)
	for {
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		begun := time.Now()
		if c.guesses.spent(from, begun) {
			<-c.slots
			return nil, ErrBusy
		}
		a := c.known(name, given)
		wait, err := time.Duration(0), error(nil)
		if a == nil {
			if wait, err = c.penalties.begin(from, begun); wait == 0 && err == nil {
				a = c.verify(name, password)
			}
		}
		<-c.slots
		switch {
		case a != nil:
			c.guesses.hit(from)
			c.right.note(from, given, time.Now())
			return a, nil
		case err != nil:
			return nil, err
		case wait == 0:
			c.failed.Add(1)
			_ = sleep(ctx, c.penalties.fail(from, time.Now())-time.Since(begun))
			return nil, ErrWrong
		}
		err = sleep(ctx, wait)
		c.penalties.leave(from)
		if err != nil {
			return nil, err
		}
	}
}

// verify compares a password with the hashes of its user, and with others up to the most that a
// user has. It remembers one that is right.
func (c *Control) verify(name, password []byte) *Account {
	users := c.Users()
	a := users.Named(string(name)).unlessOff()
	tried := 0
	if a != nil && hashable(password) {
		for _, s := range a.secrets {
			if c.compare(s.hash, password) == nil {
				known := c.digest(name, password)
				s.known.Store(&known)
				return a
			}
			tried++
		}
	}
	for ; tried < users.most; tried++ {
		_ = c.compare(users.costliest, password[:min(len(password), maxPassword)])
	}
	return nil
}

// Failed is how many logins had a wrong user or password.
func (c *Control) Failed() uint64 { return c.failed.Load() }

// sleep waits, at most until ctx ends, and returns its error then.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
