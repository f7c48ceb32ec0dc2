package resp

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"golang.org/x/crypto/bcrypt"
)

// hashedUser has the password secret, of which only the hash is known.
func hashedUser(t testing.TB) *access.Control {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	u, err := access.NewUsers([]access.User{
		{Name: "u", Hashes: []string{string(hash)}, Grants: access.Everything()},
		{Name: "op", Password: "op", Operate: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return access.NewControl(u)
}

func TestALoginWaitsForItsVerdictAndTheRequestsBehindItToo(t *testing.T) {
	slow(t, func(d *door) {
		a, b, c := d.dial(), d.dial(), d.dial()
		for _, one := range []*conn{a, b, c} {
			one.ask("PING", "-"+errNoAuth+"\r\n")
		}
		a.send("AUTH u secret\r\nACL WHOAMI\r\n")
		a.want("+OK\r\n$1\r\nu\r\n")
		b.send("AUTH u wrong\r\nPING\r\nAUTH u secret\r\nPING\r\n")
		b.want("-" + errWrongPass + "\r\n-" + errNoAuth + "\r\n+OK\r\n+PONG\r\n")
		if got := c.line("HELLO", "3", "AUTH", "u", "secret", "SETNAME", "x"); got != "%7" {
			d.t.Errorf("HELLO: %q", got)
		}
	})
}

func TestHelloLooksAPasswordUp(t *testing.T) {
	slow(t, func(d *door) {
		c := d.dial()
		c.ask("HELLO 3 AUTH u wrong", "-"+errWrongPass+"\r\n")
		c.ask("PING", "-"+errNoAuth+"\r\n")
		if got := c.line("HELLO", "3", "AUTH", "u", "secret", "SETNAME", "x"); got != "%7" {
			d.t.Errorf("HELLO: %q", got)
		}
		c = d.dial()
		c.ask("AUTH secret", "-"+errWrongPass+"\r\n") // there is no user default
	})
}

func TestALongRequestMayFollowALogin(t *testing.T) {
	slow(t, func(d *door) {
		text := strings.Repeat("x", 16<<10+1)
		for range 2 { // it is remembered
			c := d.dial()
			c.send("AUTH u secret\r\n" + request("ECHO", text))
			c.want("+OK\r\n$16385\r\n" + text + "\r\n")
			c = d.dial()
			c.ask("AUTH u secret", "+OK\r\n")
			c.ask("EXISTS 1 2 3 4 5 6 7 8 9 10", ":0\r\n")
		}
	})
}

func TestAFailedLoginLeavesTheUserAsItWas(t *testing.T) {
	slow(t, func(d *door) {
		c := d.dial()
		c.ask("AUTH op op", "+OK\r\n")
		c.ask("AUTH u wrong", "-"+errWrongPass+"\r\n")
		c.ask("ACL WHOAMI", "$2\r\nop\r\n")
		c.ask("RESET", "+RESET\r\n")
		c.ask("ACL WHOAMI", "-"+errNoAuth+"\r\n")
	})
}

// slow has the tests of a door's logins last no longer than they compute: no time passes but where
// all wait.
func slow(t *testing.T, test func(d *door)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(openDoor(&door{t: t, config: Config{Users: hashedUser(t)}})) })
}

func TestALoginThatWaitsCannotBeUnblocked(t *testing.T) {
	slow(t, func(d *door) {
		operator, c := d.dial(), d.dial()
		operator.ask("AUTH op op", "+OK\r\n")
		c.send("AUTH u wrong\r\n")
		operator.awaitBlocked(1)
		operator.ask("CLIENT UNBLOCK 2", ":0\r\n")
		c.want("-" + errWrongPass + "\r\n")
		if d.held() != 0 {
			d.t.Errorf("%d bytes are held", d.held())
		}
	})
}

func TestOneOfTooManyLoginsIsToldToComeLater(t *testing.T) {
	slow(t, func(d *door) {
		d.dial().ask("AUTH u wrong", "-"+errWrongPass+"\r\n") // so that the address is a suspect
		var busy int
		clients := make([]*conn, 40)
		for i := range clients {
			clients[i] = d.dial()
			clients[i].send("AUTH u wrong\r\n")
		}
		for _, c := range clients {
			switch line := c.readLine(); line {
			case "-" + errWrongPass:
			case "-ERR too many logins wait for their turn: try again later":
				busy++
			default:
				d.t.Errorf("AUTH: %q", line)
			}
		}
		if busy == 0 {
			d.t.Error("none is told to come later")
		}
	})
}

func TestAConnectionThatEndsWhileItLogsInLeavesNothing(t *testing.T) {
	slow(t, func(d *door) {
		operator, c := d.dial(), d.dial()
		operator.ask("AUTH op op", "+OK\r\n")
		c.send("AUTH u wrong\r\n")
		operator.awaitBlocked(1)
		_ = c.Close()
		operator.awaitBlocked(0)
		if list := operator.text("CLIENT", "LIST"); strings.Count(list, "\n") != 1 {
			d.t.Errorf("listed are\n%s", list)
		}
	})
}

func TestInATransactionAPasswordMustHaveBeenGivenBefore(t *testing.T) {
	d := newDoor(t, Config{Users: hashedUser(t)})
	c := d.dial()
	c.ask("AUTH op op", "+OK\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("AUTH u secret", "+QUEUED\r\n")
	c.ask("AUTH op op", "+QUEUED\r\n")
	c.send("EXEC\r\n")
	if got := c.readLine() + c.readLine() + c.readLine(); !strings.HasPrefix(got, "*2-ERR the password has to be looked up") || !strings.HasSuffix(got, "+OK") {
		t.Errorf("EXEC: %q", got)
	}
}

func TestUsersAreShown(t *testing.T) {
	d := newDoor(t, Config{Users: hashedUser(t)})
	c := d.dial()
	c.ask("AUTH op op", "+OK\r\n")
	c.ask("ACL USERS", "*2\r\n$2\r\nop\r\n$1\r\nu\r\n")
	c.ask("ACL LIST", "*2\r\n"+bulkReply("user op on -@all +@operate")+bulkReply("user u on -@all (~* &* -@all +@push +@take +@look +@manage)"))
	open := newDoor(t, Config{}).dial()
	open.ask("ACL WHOAMI", bulkReply("default"))
	open.ask("ACL LIST", "*1\r\n"+bulkReply("user default on nopass -@all +@operate (~* &* -@all +@push +@take +@look +@manage)"))
	all := "*21\r\n"
	for name := range strings.FieldsSeq(categories) {
		all += bulkReply(name)
	}
	open.ask("ACL CAT", all)
	open.ask("ACL CAT Dangerous", "*0\r\n")
	open.ask("ACL CAT x", "-ERR Unknown category 'x'\r\n")
}
