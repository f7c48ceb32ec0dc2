package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
)

// Reload has a running server take the users, the password and the defaults of queues of another
// configuration, and read its certificates again. All of that happens, or nothing.
type Reload struct {
	Config Config
	// Done is called once, unless the server ends before, with the flags of certificates that are
	// others now.
	Done func(certificates []string, err error)
}

// ErrOpen: the doors are open or closed from the start of a server to its end.
var ErrOpen = errors.New("a server that began without users and passwords cannot get any, and one with them cannot lose all: start it again")

// Check says why no server can run with a configuration. It opens no address and no folder.
func (c *Config) Check() error {
	if _, err := c.listeners(); err != nil {
		return err
	}
	silent := *c
	silent.Logger = slog.New(slog.DiscardHandler)
	_, err := silent.live()
	return err
}

// Lasting refuses a file that may keep a reload waiting for ever, as a pipe does.
func Lasting(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, errors.Unwrap(err)) // which says that it was a stat
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file: expected one, since each reload reads it again", name)
	}
	return nil
}

func readLasting(name string) ([]byte, error) {
	if err := Lasting(name); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// live holds what can change while a server runs.
type live struct {
	loop     *netproto.Loop  // nil before there is one, and while the server follows
	users    *access.Control // nil: everybody may do everything
	certs    *Certificates   // nil: nothing is encrypted
	defaults broker.Defaults // of the next term
	digest   atomic.Value    // string: Server.Digest
}

// live makes it, but for the loop.
func (c *Config) live() (l *live, err error) {
	l = new(live)
	if l.users, err = c.control(); err != nil {
		return l, err
	}
	if l.defaults, err = c.queueDefaults(); err != nil {
		return l, err
	}
	l.digest.Store(c.digest())
	l.certs, err = NewCertificates(c.TLS, c.Logger)
	return l, err
}

// digest is of users and defaults of queues: machines that take turns have the same.
func (c *Config) digest() string {
	users := slices.SortedFunc(slices.Values(c.Users), func(a, b access.User) int { return strings.Compare(a.Name, b.Name) })
	b, _ := json.Marshal([]any{users, c.PlainUser, c.RedisPassword, c.Queues}) // which never fails
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// follow carries out reloads until ctx ends, and returns true then. It returns false if a commit
// has failed: Loop.Close says why.
func (l *live) follow(ctx context.Context, reloads <-chan Reload) bool {
	var failed <-chan struct{}
	if l.loop != nil {
		failed = l.loop.Failed()
	}
	for {
		select {
		case r := <-reloads:
			r.Done(l.reload(&r.Config))
		case <-ctx.Done():
			return true
		case <-failed:
			return false
		}
	}
}

// reload takes over what can change. What may fail comes first.
func (l *live) reload(c *Config) (certificates []string, err error) {
	defaults, err := c.queueDefaults()
	if err != nil {
		return nil, err
	}
	users, err := c.users()
	if err != nil {
		return nil, err
	}
	if (users == nil) != (l.users == nil) {
		return nil, ErrOpen
	}
	if l.certs != nil {
		if certificates, err = l.certs.Reload(); err != nil {
			return nil, err
		}
	}
	if l.loop != nil {
		err = l.loop.Do(func(tx *broker.Tx) error {
			tx.SetDefaults(defaults)
			return nil
		})
	}
	l.defaults = defaults
	l.digest.Store(c.digest())
	if err == nil && users != nil {
		l.users.Swap(users)
	}
	return certificates, err
}

const (
	maxQueueGlobs = 256 // each new queue is matched with all of them
	// maxGlobSteps bounds what matching a name with the globs costs. Beyond it nothing matches.
	maxGlobSteps = 100_000
)

// queueDefaults finds the settings of a name: of the glob that is the name itself, and else of the
// longest that matches it; of equally long ones the first in the order of bytes.
func (c *Config) queueDefaults() (broker.Defaults, error) {
	if len(c.Queues) == 0 {
		return nil, nil
	}
	if len(c.Queues) > maxQueueGlobs {
		return nil, fmt.Errorf("there are defaults for %d globs of queues: expected at most %d", len(c.Queues), maxQueueGlobs)
	}
	type rule struct {
		glob     *glob.Pattern
		settings *broker.Settings
	}
	var rules []rule
	for text, settings := range c.Queues {
		pattern, err := glob.Compile([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("defaults of queues %.100q: %w", text, err)
		}
		rules = append(rules, rule{pattern, settings.Clone()})
	}
	slices.SortFunc(rules, func(a, b rule) int {
		x, y := a.glob.String(), b.glob.String()
		return cmp.Or(wild(x)-wild(y), len(y)-len(x), strings.Compare(x, y))
	})
	return func(name string) *broker.Settings {
		text, steps := []byte(name), maxGlobSteps
		for _, r := range rules {
			if r.glob.Match(text, &steps) {
				return r.settings
			}
		}
		return nil
	}, nil
}

// wild is 1 for a glob that is no plain name, else 0.
func wild(glob string) int {
	if strings.ContainsAny(glob, "*?[\\") {
		return 1
	}
	return 0
}
