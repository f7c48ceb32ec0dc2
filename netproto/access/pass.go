package access

import "bytes"

// Pass says what one connection may do. The zero value may do everything: nobody has set up users.
// One goroutine uses it.
type Pass struct {
	control     *Control
	users       *Users   // to which account belongs
	account     *Account // nil: nobody has logged in
	certificate string   // by which it has; "" if it was by name

	// The last queue of maxKept bytes or less for which a verdict was yes, and the rights in those.
	rights Right
	queue  []byte
}

// maxKept is the longest name that a connection keeps for its last verdict, in bytes.
const maxKept = 256

// NewPass makes the pass of a connection on which nobody has logged in. It may do everything if c
// is nil.
func NewPass(c *Control) Pass { return Pass{control: c} }

// Open says that there are no users, so that everybody may do everything.
func (p *Pass) Open() bool { return p.control == nil }

// Enter gives the connection to an account; nil: to nobody. An open pass stays open.
func (p *Pass) Enter(a *Account) {
	if p.control == nil {
		return
	}
	*p = Pass{control: p.control, users: p.control.Users(), account: a, queue: p.queue[:0]}
	p.resolve()
}

// EnterCertified gives the connection to the user that a client certificate names, and says whether
// there is one. Without a name, or a user, it goes to nobody.
func (p *Pass) EnterCertified(name string) bool {
	if p.Enter(nil); p.control != nil {
		p.certificate = name
		p.resolve()
	}
	return p.account != nil
}

// Account is the user of the connection in the present set; nil if nobody has logged in, or that
// user is gone or switched off.
func (p *Pass) Account() *Account {
	if p.control != nil && p.users != p.control.Users() {
		p.users = p.control.Users()
		p.resolve()
	}
	return p.account
}

// resolve finds the account in the set of users, and forgets the verdict.
func (p *Pass) resolve() {
	p.rights = None
	if p.certificate != "" {
		p.account = p.users.Certified(p.certificate)
	} else {
		p.account = p.users.Named(p.account.Name()).unlessOff()
	}
}

// May is Account.May; without a user nothing is allowed. The same question again costs a
// comparison.
func (p *Pass) May(r Right, queue []byte) bool {
	if p.control == nil {
		return true
	}
	a := p.Account()
	same := bytes.Equal(p.queue, queue)
	switch {
	case same && r != None && p.rights&r == r:
		return true
	case !a.May(r, queue):
		return false
	case same:
		p.rights |= r
	case len(queue) <= maxKept:
		p.rights, p.queue = r, append(p.queue[:0], queue...)
	}
	return true
}
