package access

import (
	"errors"
	"fmt"
)

// Plain says who the clients of a protocol are in which nobody can log in. The zero value lets
// everybody do everything.
type Plain struct {
	Control *Control // nil: there are no users
	User    string   // of connections without a client certificate; none if empty
}

// ErrNobody is why a connection is refused that is nobody's.
var ErrNobody = errors.New("there are users, and this connection is none of them: it needs a user's client certificate, or a server that names a user for those without")

// Pass returns what a connection may do whose client certificate has this name; "" without one.
func (p Plain) Pass(certificate string) Pass {
	pass := NewPass(p.Control)
	switch {
	case pass.Open():
	case certificate != "":
		pass.EnterCertified(certificate)
	default:
		pass.Enter(p.Control.Users().Named(p.User))
	}
	return pass
}

// Check returns an error if the user of plain connections is not in a set of users. A nil set has
// none. One that is switched off is in it: then these connections are refused.
func (p Plain) Check(u *Users) error {
	switch {
	case p.User == "":
		return nil
	case u == nil || u.Named(p.User) == nil:
		return fmt.Errorf("there is no user %q", p.User)
	}
	return nil
}

// Refuses says why a request that needs a right for a queue is refused, nil if it is not. With None
// it asks whether there is a user at all.
func (p *Pass) Refuses(r Right, queue []byte) error {
	switch {
	case p.Open():
		return nil
	case p.Account() == nil:
		return ErrNobody
	case r == None || p.May(r, queue):
		return nil
	}
	return fmt.Errorf("user %s has no right to %v for queue %.80q", p.account.Name(), r, queue)
}
