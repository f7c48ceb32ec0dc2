package pinpriq_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// usersOf makes a set with the user plain, who may do this, and one that is switched off.
func usersOf(t *testing.T, grants ...access.Grant) *access.Users {
	t.Helper()
	u, err := access.NewUsers([]access.User{{Name: "plain", Grants: grants}, {Name: "off", Off: true, Grants: access.Everything()}})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// wantEnd waits until the server has closed a connection, from which nothing comes.
func wantEnd(t *testing.T, conn io.Reader) {
	t.Helper()
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v; want the end", got, err)
	}
}

func TestADoorWithoutAUserIsClosed(t *testing.T) {
	for _, name := range []string{"", "off", "nobody"} {
		addr, log := serveTo(t, nil, access.Plain{Control: access.NewControl(usersOf(t, access.Everything()...)), User: name})
		wantEnd(t, dial(t, addr)) // which has sent nothing
		if !log.has(access.ErrNobody.Error()) {
			t.Errorf("user %q: the log does not say why", name)
		}
	}
}

func TestAUserMayMakeTheRequestsThatItsRightsAllow(t *testing.T) {
	push := pinpriq.Request{Op: pinpriq.OpPush, Queue: []byte("q"), Priority: 1}
	pop := pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte("q")}
	subscribe := pinpriq.Request{Op: pinpriq.OpSubscribe, Queue: []byte("q")}
	harmless := []pinpriq.Request{{Op: pinpriq.OpUnsubscribe, Queue: []byte("x")}, {Op: pinpriq.OpReady}}
	for _, c := range []struct {
		rights  access.Right
		request pinpriq.Request
		may     bool
	}{
		{access.Push, push, true},
		{access.Push, pop, false},
		{access.Push, subscribe, false},
		{access.Take, pop, true},
		{access.Take, subscribe, true},
		{access.Take, push, false},
		{access.Look | access.Manage, push, false},
		{access.Look | access.Manage, pop, false},
		{access.Look | access.Manage, subscribe, false},
	} {
		control := access.NewControl(usersOf(t, access.Grant{Glob: "q", Rights: c.rights}, access.Grant{Glob: "end", Rights: access.Take}))
		addr, log := serveTo(t, nil, access.Plain{Control: control, User: "plain"})
		conn := dial(t, addr)
		if _, err := conn.Write(frames(t, append(harmless, c.request, pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte("end")})...)); err != nil {
			t.Fatal(err)
		}
		want := 0 // bytes: a reply to the request, if it is a pop, and to the last one
		if c.may {
			want = 2
			if c.request.Op == pinpriq.OpPop {
				want = 4
			}
		}
		got := make([]byte, want+1)
		n, _ := io.ReadFull(conn, got[:max(want, 1)])
		if n != want {
			t.Errorf("%v: op %c: %d bytes came, want %d", c.rights, c.request.Op, n, want)
		}
		if refused := log.has(`user plain has no right to`); refused == c.may {
			t.Errorf("%v: op %c: the log says that it was refused: %v", c.rights, c.request.Op, refused)
		}
	}
}

func TestASubscriptionEndsWithTheRightToTake(t *testing.T) {
	for name, after := range map[string]*access.Users{
		"the right is gone":    usersOf(t, access.Grant{Glob: "q", Rights: access.Push}),
		"it is of one of two":  usersOf(t, access.Grant{Glob: "r", Rights: access.Take}),
		"it is still there":    usersOf(t, access.Everything()...),
		"the user is gone":     usersOfNobody(t),
		"it has another queue": usersOf(t, access.Grant{Glob: strings.Repeat("q", 2), Rights: access.Take}),
	} {
		control := access.NewControl(usersOf(t, access.Everything()...))
		addr, _ := serveTo(t, nil, access.Plain{Control: control, User: "plain"})
		conn := dial(t, addr)
		c := pinpriq.NewClient(conn)
		if err := errors.Join(c.Sync(t.Context()), c.Subscribe("q"), c.Subscribe("r"), c.Ready(), c.Flush(), c.Sync(t.Context())); err != nil {
			t.Fatal(name, err)
		}
		control.Swap(after)
		if name != "it is still there" {
			wantEnd(t, conn)
			continue
		}
		if err := errors.Join(c.Push("q", []byte("x"), pinpriq.PushOptions{Priority: 1}), c.Flush()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if got, err := c.Receive(ctx); err != nil || len(got) != 1 {
			t.Errorf("%s: %d packets, %v", name, len(got), err)
		}
	}
}

func usersOfNobody(t *testing.T) *access.Users {
	t.Helper()
	u, err := access.NewUsers(nil)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
