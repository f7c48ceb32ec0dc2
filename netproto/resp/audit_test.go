package resp

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// auditLog is the audit lines of a door, without their times and addresses.
type auditLog struct{ bytes.Buffer }

// lines are the lines since the last call: the user, the command and what follows.
func (l *auditLog) lines() (all []string) {
	for line := range strings.Lines(l.String()) {
		_, user, _ := strings.Cut(line, " user=")
		name, rest, _ := strings.Cut(user, " ")
		_, command, _ := strings.Cut(rest, " command=")
		all = append(all, name+" "+strings.TrimSpace(command))
	}
	l.Reset()
	return all
}

func audited(t *testing.T, users *access.Control) (*door, *auditLog) {
	log := new(auditLog)
	return newDoor(t, Config{Users: users, Audit: access.NewAudit(slog.New(slog.NewTextHandler(log, nil)))}), log
}

func TestWhatIsManagedAndOperatedIsAudited(t *testing.T) {
	d, log := audited(t, control(t))
	all, operator, manager := d.dialAs("all"), d.dialAs("operator"), d.dialAs("manager")
	own := manager.line("CLIENT", "ID")[1:]
	for _, c := range []struct {
		client  *conn
		request string
		want    string // a line; "" for none
	}{
		{all, "RPUSH q a b c d e", ""},
		{all, "LTRIM q 1 -1", ""},
		{all, "SET s x", ""},
		{all, "LLEN q", ""},
		{all, "DEL s", "all del queue=s count=1"},
		{all, "DEL s s2", "all del queue=s count=0"},
		{all, "RENAME q q2", "all rename queue=q"},
		{all, "RENAME nothing q2", ""},
		{all, "FLUSHALL", ""}, // which it may not
		{manager, "QSET q2 lease 1000", `manager qset queue=q2 set="lease 1000"`},
		{manager, "QPAUSE q2 IN UNTIL 4000000000123", `manager qpause queue=q2 set="IN UNTIL 4000000000123"`},
		{manager, "QPAUSE q2 IN UNTIL 0", `manager qpause queue=q2 set="IN UNTIL 0"`},
		{manager, "QSHARE q2 acme WEIGHT 7", `manager qshare queue=q2 set="acme WEIGHT 7"`},
		{all, "EXPIRE q2 1000", "all expire queue=q2 count=1"},
		{all, "PERSIST q2", "all persist queue=q2 count=1"},
		{all, "SET s x", ""},
		{all, "EXPIRE s 1000", ""},
		{all, "PERSIST s", ""},
		{all, "EXPIRE none 1000", "all expire queue=none count=0"},
		{all, "DEL s", "all del queue=s count=1"},
		{manager, "QPURGE q2 STATE ready DRYRUN", ""},
		{manager, "QPURGE q2 STATE nothing", ""},
		{manager, "QPURGE other", ""},
		{manager, "QPURGE q2", "manager qpurge queue=q2 count=4"},
		{manager, "QREDRIVE q2 99", "manager qredrive queue=q2 packets=99 count=0"},
		{all, "RPUSH q2 a b c", ""},
		{manager, "QPRIO q2 -6 7", "manager qprio queue=q2 packets=-6 count=1"},
		{manager, "QRUN q2 -6", "manager qrun queue=q2 packets=-6 count=1"},
		{all, "QMOVE q2 -6 99 TO q3", `all qmove queue=q2 packets="-6 99" count=1`},
		{manager, "QREDRIVE q3 -6", "manager qredrive queue=q3 packets=-6 count=0"},
		{manager, "QDEL q2 -6 -7 -8", `manager qdel queue=q2 packets="-6 -7 -8" count=2`},
		{manager, "QCANCEL q2 -6 -7", `manager qcancel queue=q2 packets="-6 -7"`},
		{manager, "QDEL q2 -7 x", ""},
		{all, "QMOVE q3 TO q2", "all qmove queue=q3 count=1"},
		{all, "SELECT 3", ""},
		{all, "DEL s", "all del database=3 queue=s count=0"},
		{all, "SELECT 0", ""},
		{operator, "CLIENT UNBLOCK 99", "operator client|unblock count=0"},
		{operator, "CLIENT UNBLOCK " + own, "operator client|unblock count=0"},
		{operator, "CLIENT UNBLOCK " + operator.line("CLIENT", "ID")[1:], ""},
		{operator, "CONFIG RESETSTAT", "operator config|resetstat"},
		{manager, "CLIENT KILL ID 99", ""},
		{manager, "CLIENT UNBLOCK " + own, ""},
		{operator, "FLUSHALL", "operator flushall"},
		{operator, "AUTH operator operator", ""},
	} {
		c.client.send(request(strings.Split(c.request, " ")...))
		c.client.readLine()
		got := log.lines()
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: audited are %q, want %q", c.request, got, c.want)
		}
	}
}

func TestCommandsOfATransactionAreAudited(t *testing.T) {
	d, log := audited(t, control(t))
	c := d.dialAs("all")
	for _, line := range []string{"MULTI", "QPUSH q a", "QSET q lease 1000", "QDEL q 1", "DEL q x", "LSET none 0 x"} {
		c.send(line + "\r\n")
		c.readLine()
	}
	if got := log.lines(); len(got) > 0 {
		t.Errorf("before EXEC: %q", got)
	}
	c.send("EXEC\r\n")
	for range 6 {
		c.readLine()
	}
	if got, want := log.lines(), []string{`all qset queue=q set="lease 1000"`, "all qdel queue=q packets=1 count=1", "all del queue=q count=1"}; !slices.Equal(got, want) {
		t.Errorf("audited are %q, want %q", got, want)
	}
}

func TestWithoutUsersTheAuditNamesTheDefaultOne(t *testing.T) {
	d, log := audited(t, nil)
	c := d.dial()
	c.ask("RPUSH q a", ":1\r\n")
	c.ask("CLIENT REPLY SKIP", "")
	c.send("DEL q\r\nPING\r\n")
	c.want("+PONG\r\n")
	if got, want := log.lines(), []string{"default del queue=q count=1"}; !slices.Equal(got, want) {
		t.Errorf("audited are %q, want %q", got, want)
	}
}

func TestAPurgeThatItsClientLeavesIsAuditedAsFarAsItCame(t *testing.T) {
	d, log := audited(t, nil)
	c := d.dial()
	const packets = 20_000
	for range packets / 1000 {
		c.send(request(append([]string{"RPUSH", "q"}, slices.Repeat([]string{"x"}, 1000)...)...))
		c.readLine()
	}
	c.send("QPURGE q\r\n")
	d.atTurn(3, func() { _ = c.Close() })
	d.settle()
	next := d.dial()
	var left int
	if _, err := fmt.Sscanf(next.line("QLEN", "q"), ":%d", &left); err != nil {
		t.Fatal(err)
	}
	got, want := log.lines(), fmt.Sprintf("default qpurge queue=q count=%d", packets-left)
	if !slices.Equal(got, []string{want}) || left == 0 || left == packets {
		t.Errorf("audited are %q with %d left, want %q", got, left, want)
	}
}
