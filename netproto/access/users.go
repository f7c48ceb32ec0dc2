package access

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/holdfast-queue/holdfast/netproto/glob"
	"golang.org/x/crypto/bcrypt"
)

// Limits of users.
const (
	maxUserName = 128 // bytes
	// maxCost bounds a login: each step up doubles its time, and this is about a second.
	maxCost = 14
	// maxPassword is all that bcrypt looks at, in bytes. MaxClear bounds a password in the clear.
	maxPassword = 72
	MaxClear    = 1024
	// maxSteps bounds what matching one queue with the globs of a user costs. Beyond it nothing
	// matches: the user has no right.
	maxSteps = 100_000
)

// Users is a set of users. It never changes, but for what its logins have shown.
type Users struct {
	byName        map[string]*Account
	byCertificate map[string]*Account
	// costliest is the hash that a login is compared with in vain, so that a user that does not exist
	// takes the time of one that does; nil if no user has one. most is the most hashes of a user.
	costliest []byte
	most      int
}

// Account is a user of a set.
type Account struct {
	user    User
	grants  []compiled
	secrets []*secret
}

type compiled struct {
	glob   *glob.Pattern
	rights Right
}

// secret is a password of which the hash is known.
type secret struct {
	hash  []byte                 // by bcrypt
	known atomic.Pointer[digest] // of the password, once it was given
}

// NewUsers makes the set. The error names the user and what is wrong with it, behind the key that a
// config file has for that: hashes or certificates.
func NewUsers(all []User) (*Users, error) {
	u := &Users{byName: make(map[string]*Account), byCertificate: make(map[string]*Account)}
	for _, user := range all {
		if err := u.add(user); err != nil {
			return nil, fmt.Errorf("user %q: %w", user.Name, err)
		}
	}
	return u, nil
}

func (u *Users) add(user User) error {
	switch {
	case !isName(user.Name):
		return fmt.Errorf("not a name: expected 1 to %d printable characters of ASCII, and no space", maxUserName)
	case u.byName[user.Name] != nil:
		return errors.New("there are two of them")
	case len(user.Password) > MaxClear:
		return fmt.Errorf("its password is too long: expected at most %d bytes", MaxClear)
	}
	a := &Account{user: user}
	for _, g := range user.Grants {
		if g.Rights == None || g.Rights&^OfQueues != 0 {
			return fmt.Errorf("grant %q gives %v: expected some of %v", g.Glob, g.Rights, OfQueues)
		}
		if strings.ContainsFunc(g.Glob, func(c rune) bool { return c == ' ' || unicode.IsControl(c) }) { // it stands in ACL LIST as it is
			return fmt.Errorf("grant %q has a space or a control character: write ? for it", g.Glob)
		}
		pattern, err := glob.Compile([]byte(g.Glob))
		if err != nil {
			return fmt.Errorf("grant: %w", err)
		}
		if g.Rights&Manage != 0 {
			g.Rights |= Look
		}
		a.grants = append(a.grants, compiled{pattern, g.Rights})
	}
	for _, hash := range user.Hashes {
		if err := u.addHash(a, hash); err != nil {
			return fmt.Errorf("hashes: %w", err)
		}
	}
	for _, name := range user.Certificates {
		switch other := u.byCertificate[name]; {
		case name == "":
			return errors.New("certificates: one has no name")
		case other == a:
			return fmt.Errorf("certificates: %q is there twice", name)
		case other != nil:
			return fmt.Errorf("certificates: %q is of user %q, too", name, other.Name())
		}
		u.byCertificate[name] = a
	}
	u.byName[user.Name] = a
	return nil
}

var isHash = regexp.MustCompile(`^\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}$`)

func (u *Users) addHash(a *Account, hash string) error {
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case err != nil || !isHash.MatchString(hash): // err may repeat a part of it
		return errors.New("a hash is none of bcrypt: expected 60 characters that begin with $2")
	case cost > maxCost:
		return fmt.Errorf("a hash has the cost %d: expected at most %d", cost, maxCost)
	}
	a.secrets = append(a.secrets, &secret{hash: []byte(hash)})
	u.most = max(u.most, len(a.secrets))
	if highest, err := bcrypt.Cost(u.costliest); err != nil || cost > highest {
		u.costliest = []byte(hash)
	}
	return nil
}

// isName says whether a text can be a user's name: it stands in lists and in logs as it is.
func isName(name string) bool {
	unfit := func(c rune) bool { return c <= ' ' || c > '~' }
	return name != "" && len(name) <= maxUserName && !strings.ContainsFunc(name, unfit)
}

// hashable says whether bcrypt tells a password from all others: it repeats a short one behind a
// zero byte, and cuts a long one.
func hashable(password []byte) bool {
	return len(password) <= maxPassword && !slices.Contains(password, 0)
}

// Hash makes the hash of a password for User.Hashes.
func Hash(password string) (string, error) {
	if password == "" || !hashable([]byte(password)) {
		return "", fmt.Errorf("expected a password of 1 to %d bytes, none of them zero", maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	return string(hash), err
}

// inherit takes over what logins have shown of the same users with the same hashes.
func (u *Users) inherit(old *Users) {
	for name, a := range u.byName {
		before := old.byName[name]
		if before == nil {
			continue
		}
		for i, s := range a.secrets {
			same := func(o *secret) bool { return string(o.hash) == string(s.hash) }
			if at := slices.IndexFunc(before.secrets, same); at >= 0 {
				a.secrets[i].known.Store(before.secrets[at].known.Load())
			}
		}
	}
}

// Names are the names of all users, in order.
func (u *Users) Names() []string { return slices.Sorted(maps.Keys(u.byName)) }

// Named returns a user, nil if there is none of the name.
func (u *Users) Named(name string) *Account { return u.byName[name] }

// Certified returns the user that a name in a client certificate stands for, nil if there is none
// or it is switched off.
func (u *Users) Certified(name string) *Account { return u.byCertificate[name].unlessOff() }

func (a *Account) unlessOff() *Account {
	if a == nil || a.user.Off {
		return nil
	}
	return a
}

// User is the user as it was written down, which must not be changed.
func (a *Account) User() *User { return &a.user }

// Name is the user's name; "" of nil.
func (a *Account) Name() string {
	if a == nil {
		return ""
	}
	return a.user.Name
}

// May says whether the user has all of the rights for a queue. Operate is independent of the queue.
func (a *Account) May(r Right, queue []byte) bool {
	steps := maxSteps
	return a.MayWithin(r, queue, &steps)
}

// MayWithin is May for one of a request's many queues. It takes its steps, as glob counts them,
// from the request's steps. It is false when these are used up, or the steps that May has for one
// queue.
func (a *Account) MayWithin(r Right, queue []byte, steps *int) bool {
	left := min(*steps, maxSteps)
	rest := *steps - left
	may := a.has(r, func(g *glob.Pattern) bool { return g.Match(queue, &left) })
	*steps = rest + left
	return may
}

// MayAll says whether the user has all of the rights for all queues that a pattern matches. One of
// its grants must cover the pattern by itself.
func (a *Account) MayAll(r Right, pattern *glob.Pattern) bool {
	return a.has(r, func(g *glob.Pattern) bool { return g.Covers(pattern) })
}

// MayLookAtAll says whether the user may know what is told of the whole server, or of all queues
// together: it operates, or may look at every queue.
func (a *Account) MayLookAtAll() bool {
	return a.May(Operate, nil) || a.MayAll(Look, everything)
}

var everything, _ = glob.Compile([]byte("*"))

// MaySome says whether for each of the rights the user has it for some queue.
func (a *Account) MaySome(r Right) bool {
	return a.has(r, func(*glob.Pattern) bool { return true })
}

// has says whether the grants that are chosen give all of the rights, together. A nil account has
// none: its user may go while a request asks.
func (a *Account) has(r Right, chosen func(*glob.Pattern) bool) bool {
	if a == nil {
		return false
	}
	if a.user.Operate {
		r &^= Operate
	}
	for i := 0; i < len(a.grants) && r != None; i++ {
		if g := &a.grants[i]; g.rights&r != 0 && chosen(g.glob) {
			r &^= g.rights
		}
	}
	return r == None
}
