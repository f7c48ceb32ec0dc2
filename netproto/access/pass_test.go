package access

import (
	"slices"
	"strings"
	"testing"
)

// pusher is a user who may push to q.
var pusher = User{Name: "p", Grants: []Grant{{"q*", Push}}}

// entered is a pass of a user.
func entered(c *Control, name string) *Pass {
	p := NewPass(c)
	p.Enter(c.Users().Named(name))
	return &p
}

func TestWithoutUsersEverythingIsAllowed(t *testing.T) {
	var p Pass
	if !p.Open() || !p.May(Operate|Manage, []byte("q")) {
		t.Error("something is refused")
	}
}

func TestNobodyMayDoAnything(t *testing.T) {
	p := NewPass(NewControl(users(t, pusher)))
	if p.Open() || p.Account() != nil || p.May(Push, []byte("q")) || p.May(None, nil) {
		t.Error("one who has not logged in may do something")
	}
}

func TestAVerdictHoldsForItsQueueAndItsRightOnly(t *testing.T) {
	p := entered(NewControl(users(t, pusher)), "p")
	for range 2 {
		for _, queue := range []string{"q", "q1", "q" + strings.Repeat("1", maxKept)} {
			for range 2 {
				if !p.May(Push, []byte(queue)) {
					t.Errorf("%.3q is refused", queue)
				}
			}
			if p.May(Take, []byte(queue)) || p.May(Push|Take, []byte(queue)) || p.May(Push, []byte("a"+queue)) || p.May(Push, nil) {
				t.Errorf("what was allowed for %.3q is allowed for others", queue)
			}
		}
	}
}

func TestAVerdictKeepsNoNameOfTheCaller(t *testing.T) {
	p := entered(NewControl(users(t, pusher)), "p")
	name := []byte("qa")
	p.May(Push, name)
	copy(name, "xa")
	if p.May(Push, name) {
		t.Error("a name that was changed is allowed")
	}
}

func TestAChangeOfUsersHoldsForConnectionsAtOnce(t *testing.T) {
	taker, off := pusher, pusher
	taker.Grants, off.Off = []Grant{{"q", Take}}, true
	for name, c := range map[string]struct {
		next       []User
		push, take bool
		known      bool
	}{
		"the same":       {[]User{pusher}, true, false, true},
		"another right":  {[]User{taker}, false, true, true},
		"switched off":   {[]User{off}, false, false, false},
		"gone":           {nil, false, false, false},
		"one of another": {[]User{{Name: "r", Grants: Everything()}}, false, false, false},
	} {
		control := NewControl(users(t, pusher))
		p := entered(control, "p")
		if !p.May(Push, []byte("q")) {
			t.Fatal("the first set refuses")
		}
		control.Swap(users(t, c.next...))
		if push, take, known := p.May(Push, []byte("q")), p.May(Take, []byte("q")), p.Account() != nil; push != c.push || take != c.take || known != c.known {
			t.Errorf("%s: may push %v, may take %v, is a user %v", name, push, take, known)
		}
	}
}

func TestACertificateIsTheUserThatTheSetSays(t *testing.T) {
	with := func(name string, certificates ...string) User {
		return User{Name: name, Certificates: certificates, Grants: Everything()}
	}
	control := NewControl(users(t, with("a", "c1", "c2"), with("b", "c3")))
	p := NewPass(control)
	if p.EnterCertified("c4") || p.Account() != nil || p.May(Look, []byte("q")) {
		t.Error("a certificate of nobody is let in")
	}
	if !p.EnterCertified("c2") || p.Account().Name() != "a" {
		t.Error("a certificate is not its user")
	}
	control.Swap(users(t, with("a", "c1"), with("b", "c2")))
	if p.Account().Name() != "b" {
		t.Errorf("after a change the certificate is %q", p.Account().Name())
	}
	control.Swap(users(t, with("a", "c1")))
	if p.May(Look, []byte("q")) {
		t.Error("a certificate that was taken out may look")
	}
	off := with("a", "c1")
	off.Off = true
	control.Swap(users(t, off))
	if p.EnterCertified("c1") {
		t.Error("the certificate of a user that is switched off is let in")
	}
}

func TestUsersAreListedInOrder(t *testing.T) {
	if got := users(t, User{Name: "b"}, User{Name: "a"}, User{Name: "c"}).Names(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("names %q", got)
	}
}

func BenchmarkTheSameQueueAgain(b *testing.B) {
	p := entered(NewControl(users(b, pusher)), "p")
	queue := []byte("queue-of-orders")
	for b.Loop() {
		if !p.May(Push, queue) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkAnotherQueueEachTime(b *testing.B) {
	p := entered(NewControl(users(b, pusher)), "p")
	queues := [][]byte{[]byte("queue-of-orders"), []byte("queue-of-mail")}
	for i := 0; b.Loop(); i++ {
		if !p.May(Push, queues[i%2]) {
			b.Fatal("refused")
		}
	}
}
