package barbershop_test

import (
	"io"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

func control(t *testing.T, rights access.Right) *access.Control {
	t.Helper()
	all := []access.User{{Name: "other"}}
	if rights != access.None {
		all = append(all, access.User{Name: "plain", Grants: []access.Grant{{Glob: "barbershop", Rights: rights}}})
	}
	u, err := access.NewUsers(all)
	if err != nil {
		t.Fatal(err)
	}
	return access.NewControl(u)
}

const nobody = "there are users, and this connection is none of them: it needs a user's client certificate, or a server that names a user for those without"

func TestADoorWithoutAUserIsClosed(t *testing.T) {
	c := newBoardOf(t, access.Plain{Control: control(t, access.OfQueues)}).dial()
	if got, err := io.ReadAll(c.conn); string(got) != "CLIENT_ERROR "+nobody+"\r\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAUserMayGiveTheLinesThatItsRightsAllow(t *testing.T) {
	lines := map[string]access.Right{
		"update 1 1": access.Push, "UPDATE 1 1": access.Push, "next": access.Take, "NEXT": access.Take,
		"stats": access.Look, "INFO": access.Look, "PEEK": access.Look, "SCORE 1": access.Look,
	}
	for right := access.Push; right <= access.Manage; right <<= 1 {
		c := newBoardOf(t, access.Plain{Control: control(t, right), User: "plain"}).dial()
		for line, needs := range lines {
			if right == needs || right == access.Manage && needs == access.Look {
				continue // its reply has its own test
			}
			start := "-ERROR "
			if line[0] >= 'a' {
				start = "CLIENT_ERROR "
			}
			c.ask(line, start+"user plain has no right to "+needs.String()+` for queue "barbershop"`)
		}
		switch right {
		case access.Push:
			c.ask("update 1 1", "OK")
			c.ask("UPDATE 1 1", "+OK")
		case access.Take:
			c.ask("next", "-1")
			c.ask("NEXT", "+-1")
		case access.Look, access.Manage:
			c.ask("PEEK", "+-1")
			c.ask("SCORE 1", "+-1")
			c.ask("INFO", "uptime:0", "version:1.2.3", "updates:0", "items:0", "pools:0")
			c.send("stats\n")
			c.want("STAT uptime 0\r\n")
		}
	}
}

func TestAConnectionEndsWithItsUser(t *testing.T) {
	users := control(t, access.OfQueues)
	b := newBoardOf(t, access.Plain{Control: users, User: "plain"})
	users.Watch(b.server.Review)
	c := b.dial()
	c.ask("next", "-1")
	users.Swap(control(t, access.Push).Users())
	c.ask("next", `CLIENT_ERROR user plain has no right to take for queue "barbershop"`)
	users.Swap(control(t, access.None).Users())
	if got, err := io.ReadAll(c.conn); string(got) != "CLIENT_ERROR "+nobody+"\r\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
