package resp

import (
	"bytes"
	"context"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// userName is the user of the connection. Without one it is the default user, which may do nothing
// then.
func (s *session) userName() string {
	if a := s.pass.Account(); a != nil {
		return a.Name()
	}
	return access.Default
}

// beginAsUser makes the connection that of the user who has it from its start, or of its client
// certificate. Without one, or if the certificate is nobody's, nobody has logged in.
func (s *session) beginAsUser() {
	if name := s.peer.User(); name != "" && !s.pass.Open() {
		s.pass.Enter(s.protocol.config.Users.Users().Named(name))
	} else {
		s.pass.EnterCertified(s.peer.Certificate())
	}
	s.known()
}

// known says whether the connection is that of a user, or needs none. The parser is told.
func (s *session) known() bool {
	known := s.pass.Open() || s.pass.Account() != nil
	s.parser.Stranger = !known
	return known
}

// verdict is what a login has ended with.
type verdict struct {
	account *access.Account
	err     error
}

// login makes the connection that of a user. If it has to look the password up, it parks the
// request, which is made again with the verdict.
func (s *session) login(tx *broker.Tx, name, password []byte) (waits bool, err error) {
	users := s.protocol.config.Users
	if s.pass.Open() {
		if string(name) != access.Default {
			err = access.ErrWrong
		}
		return false, s.entered(name, nil, err)
	}
	if v := s.verdict; v != nil {
		s.verdict = nil
		return false, s.entered(name, v.account, v.err)
	}
	if a := users.Remembered(s.peer.Host(), name, password); a != nil {
		return false, s.entered(name, a, nil)
	}
	if s.inExec || s.parked.again {
		return false, failure("ERR the password has to be looked up, which this request cannot wait for: send AUTH by itself")
	}
	if err := s.park(tx, broker.Parking{}); err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	name = bytes.Clone(name)
	err = users.Login(ctx, s.peer.Host(), name, password, func(a *access.Account, err error) {
		s.peer.Post(func(tx *broker.Tx) {
			switch {
			case s.cancelLogin != nil:
				s.cancelLogin()
				s.cancelLogin, s.verdict = nil, &verdict{a, err}
				tx.TimeOut(s.consumer)
			case err == access.ErrWrong: // nobody waits for the answer any more
				s.logFailed(name, err)
			}
		})
	})
	if err != nil {
		cancel()
		tx.Unpark(s.consumer)
		s.unpark()
		return false, s.entered(name, nil, err)
	}
	s.cancelLogin = cancel
	return true, nil
}

// entered ends a login, and logs one that failed.
func (s *session) entered(name []byte, a *access.Account, err error) error {
	if err == nil {
		s.pass.Enter(a)
		s.known() // the next request may be long
		return nil
	}
	s.logFailed(name, err)
	if err == access.ErrBusy {
		return failure("ERR " + err.Error())
	}
	return failure(errWrongPass)
}

func (s *session) logFailed(name []byte, err error) {
	s.protocol.config.Users.Log(s.protocol.config.Logger, s.protocol.Name(), s.peer.Remote().String(), name, err)
}
