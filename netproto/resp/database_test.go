package resp

import (
	"strings"
	"testing"
)

func TestQueuesAreThoseOfTheSelectedDatabase(t *testing.T) {
	d := newDoor(t, Config{})
	c, other := d.dial(), d.dial()
	c.ask("SELECT 3", "+OK\r\n")
	c.ask("QSET q DEAD-LETTER dead MAX-ATTEMPTS 1", "+OK\r\n")
	c.text("QPUSH", "q", "x")
	other.ask("QLEN q", ":0\r\n")
	other.ask("QUEUES", "*0\r\n")
	c.ask("QUEUES", "*1\r\n$1\r\nq\r\n")
	c.ask("QLEN q", ":1\r\n")

	// A packet dies where it was, whoever makes the call that finds its lease over.
	c.send(request("QCLAIM", "q", "LEASE", "10"))
	if got := c.payloads(); got != "x" {
		t.Fatalf("claimed %q", got)
	}
	d.now += 11
	other.ask("QLEN q", ":0\r\n")
	c.ask("QUEUES", "*2\r\n$1\r\nq\r\n$4\r\ndead\r\n")
	c.ask("LRANGE dead 0 -1", "*1\r\n$1\r\nx\r\n")
	c.ask("QREDRIVE dead", ":1\r\n")
	c.ask("LRANGE q 0 -1", "*1\r\n$1\r\nx\r\n")
	other.ask("DBSIZE", ":0\r\n")
	d.restart()
	c = d.dial()
	c.ask("QUEUES", "*0\r\n")
	c.ask("SELECT 3", "+OK\r\n")
	c.ask("LRANGE q 0 -1", "*1\r\n$1\r\nx\r\n")
}

func TestWhoWaitsInADatabaseIsServedThere(t *testing.T) {
	d := newDoor(t, Config{})
	for _, words := range []string{"BLPOP q 0", "BLMOVE q to LEFT LEFT 0", "QCLAIM q BLOCK 0", "QPUSH full y BLOCK 0"} {
		waits, pushes := d.dial(), d.dial()
		waits.ask("SELECT 2", "+OK\r\n")
		pushes.ask("SELECT 2", "+OK\r\n")
		pushes.ask("QSET full BOUND 1", "+OK\r\n")
		pushes.text("QPUSH", "full", "x")
		waits.send(request(strings.Split(words, " ")...))
		pushes.awaitBlocked(1)
		pushes.ask("SELECT 0", "+OK\r\n")
		pushes.ask("RPUSH q other", ":1\r\n")
		pushes.awaitBlocked(1)
		pushes.ask("SELECT 2", "+OK\r\n")
		pushes.line("RPUSH", "q", "this")
		pushes.ask("LPOP full", "$1\r\nx\r\n")
		pushes.awaitBlocked(0)
		if got := waits.value(); strings.Contains(got, "other") {
			t.Errorf("%s gave %q", words, got)
		}
		pushes.ask("SELECT 0", "+OK\r\n")
		pushes.ask("EXISTS to full", ":0\r\n")
		pushes.ask("FLUSHALL", "+OK\r\n")
	}
}

func TestClientsAreListedWithTheirDatabases(t *testing.T) {
	d := newDoor(t, Config{})
	a, b := d.dial(), d.dial()
	a.ask("SELECT 9", "+OK\r\n")
	a.ask("SET name x", "+OK\r\n")
	a.ask("PEXPIREAT name 1700000100000", ":1\r\n")
	b.ask("SET name x", "+OK\r\n")
	list := b.text("CLIENT", "LIST")
	if !strings.Contains(list, " db=9 ") || !strings.Contains(list, " db=0 ") {
		t.Errorf("got %q", list)
	}
	b.ask("INFO keyspace", "$76\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\ndb9:keys=1,expires=1,avg_ttl=0\r\n\r\n")
	a.ask("RESET", "+RESET\r\n")
	if info := a.text("CLIENT", "INFO"); !strings.Contains(info, " db=0 ") {
		t.Errorf("got %q", info)
	}
}

func TestChannelsAreCommonToAllDatabases(t *testing.T) {
	d := newDoor(t, Config{})
	a, b := d.dial(), d.dial()
	a.ask("SELECT 9", "+OK\r\n")
	a.ask("SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	b.ask("PUBLISH news x", ":1\r\n")
	a.want("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n")
}
