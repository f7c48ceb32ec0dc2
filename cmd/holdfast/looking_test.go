package main

import (
	"slices"
	"strings"
	"testing"
)

// columns returns some columns of a table without its head.
func columns(table string, wanted ...int) (rows []string) {
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		cells := strings.Fields(line)
		var row []string
		for _, i := range wanted {
			row = append(row, cells[i])
		}
		rows = append(rows, strings.Join(row, " "))
	}
	return rows
}

func TestPacketsAreListed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, args := range [][]string{{"a", "--tag", "class=low"}, {"b", "--key", "k", "--priority", "1"}, {"c", "--delay", "1h"}} {
		s.must(t, append([]string{"push", "q"}, args...)...)
	}
	for command, want := range map[string][]string{
		"peek q":                 {"ready 1 b", "ready 128 a"},
		"peek q --count 1":       {"ready 1 b"},
		"list q":                 {"ready 1 b", "ready 128 a", "delayed 128 c"},
		"list q --state delayed": {"delayed 128 c"},
		"list q --count 1":       {"ready 1 b"},
		"list q --state dead":    nil,
	} {
		if table := s.must(t, strings.Fields(command)...); !slices.Equal(columns(table, 1, 2, 7), want) {
			t.Errorf("%s printed\n%s\nwant %q", command, table, want)
		}
	}
	if got := s.must(t, "list", "q", "--json"); strings.Count(got, "\n") != 3 || !strings.HasPrefix(got, `{"id":"`) {
		t.Errorf("list printed\n%s\nwant three objects", got)
	}
	oneErrorLine(t, s.run(t, "peek", "none"), exitNothing, "nothing to take")
	for _, form := range []string{"--state=ready", "--json", "--filter=a=b"} {
		oneErrorLine(t, s.run(t, "list", "none", form), exitNothing, `queue "none": no queue has this name`)
	}
}

func TestAPacketIsShown(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	id := strings.TrimSpace(s.must(t, "push", "q", "a\x00\xff", "--id", "--delay", "1h", "--producer", "shop"))
	for _, want := range []string{"id          " + id + "\n", "why         delayed until 2", "producer    shop\n", " (in 59m", `payload     "a\x00\xff" (3 B)` + "\n"} {
		field(t, s.must(t, "show", "q", id), want)
	}
	if got := s.must(t, "show", "q", id, "--raw"); got != "a\x00\xff" {
		t.Errorf("show printed %q, want the payload", got)
	}
	for _, want := range []string{`"payload":{"base64":"YQD/"}`, `"not_before":1`, `"why":"delayed until 2`} {
		field(t, s.must(t, "show", "q", id, "--json"), want)
	}
	oneErrorLine(t, s.run(t, "show", "q", "99"), exitNothing, "no such packet: 99 in q")
	oneErrorLine(t, s.run(t, "show", "none", "99"), exitNothing, `queue "none": no queue has this name`)
}

func TestQueuesAreListedWithTheirFigures(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "publish", "jobs.b", "x")
	s.must(t, "push", "jobs.a", "x", "--delay", "1h")
	s.must(t, "set", "jobs.b", "pause-out=yes", "bound=1")
	s.must(t, "push", "mails", "to ann", "--priority", "7")
	s.must(t, "push", "mails", "to bob", "--priority", "0", "--key", "k")
	if got, want := s.must(t, "queues", "--match", "jobs.*"), "QUEUE   READY  DELAYED  CLAIMED  DEAD  STATE\njobs.a  0      1        0        0     -\njobs.b  1      0        0        0     paused-out, full\n"; got != want {
		t.Errorf("queues printed\n%s\nwant\n%s", got, want)
	}
	if got := s.must(t, "queues", "--json"); strings.Count(got, "\n") != 3 || !strings.Contains(got, `{"queue":"mails","ready":1,"hidden":1,"delayed":0,`) {
		t.Errorf("queues printed\n%s\nwant an object for each of three", got)
	}
	table := s.must(t, "stats", "mails", "jobs.a")
	for _, want := range []string{"QUEUE            mails  jobs.a\n", "\nhidden           1      0\n", "\ndelayed          0      1\n", "\npushed           2      1\n", "\npaused-out       no     no\n", "\nQUEUE  PRIORITY  READY\nmails  1-9       1\n"} {
		field(t, table, want)
	}
	if got, want := s.must(t, "stats"), "QUEUE READY DELAYED CLAIMED DEAD AGE STATE"; strings.Join(strings.Fields(strings.SplitN(got, "\n", 2)[0]), " ") != want || strings.Count(got, "\n") != 4 {
		t.Errorf("stats printed\n%s\nwant %q and a row for each of three", got, want)
	}
	field(t, s.must(t, "stats", "mails", "--json"), `"priorities":[{"from":1,"to":9,"packets":1},`)
	if got := s.must(t, "stats", "--match", "jobs.*"); strings.Count(got, "\n") != 3 || strings.Contains(got, "mails") {
		t.Errorf("stats printed\n%s\nwant the two queues that match", got)
	}
	oneErrorLine(t, s.run(t, "stats", "mails", "--match", "jobs.*"), exitUsage, "--match: expected no queue with it")
	oneErrorLine(t, s.run(t, "stats", "mails", "none"), exitNothing, `queue "none": no queue has this name`)
}

func TestConnectionsAreListed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	header, row, _ := strings.Cut(s.must(t, "connections"), "\n")
	if got := strings.Join(strings.Fields(header), " "); got != "ID ADDRESS NAME USER AGE IDLE DB LAST LIBRARY" {
		t.Errorf("connections begins with %q", got)
	}
	if cells := strings.Fields(row); len(cells) < 9 || cells[3] != "default" || cells[6] != "0" || cells[7] != "client|list" {
		t.Errorf("its own connection is %q", row)
	}
	field(t, s.must(t, "connections", "--json", "--db", "3"), `"user":"default","age":0,"idle":0,"db":3,"last":"client|list"`)
}

func TestAServerWithoutUsersIsOpen(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	field(t, s.must(t, "users"), "default  open   *: push+take+look+manage, operate")
	field(t, s.must(t, "users", "--json"), `{"user":"default","off":false,"open":true,"operate":true,"grants":[{"pattern":"*","rights":["push","take","look","manage"]}]}`)
}
