package doors

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// fromPage returns the first code of a language below a heading of the page about the outbox.
func fromPage(t *testing.T, heading, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../netproto/client/OUTBOX.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n"+heading+"\n")
	_, code, found := strings.Cut(section, "```"+language+"\n")
	if !found {
		t.Fatalf("the page shows no %s below %s", language, heading)
	}
	code, _, _ = strings.Cut(code, "```")
	return code
}

// changed puts texts in the place of others: each is followed by what takes its place.
func changed(t *testing.T, text string, changes ...string) string {
	t.Helper()
	for change := range slices.Chunk(changes, 2) {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("there is no %q in\n%s", change[0], text)
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	return text
}

// database is a system of databases that a test has started.
type database struct {
	heading string                    // of its table
	fresh   func(t *testing.T) string // makes a database, and returns its address
	connect []string                  // changes of a Python program, as the page says
	marks   []string                  // the same, of placeholders
}

// databases start one for a test. They skip the test where it is not installed.
var databases = map[string]func(t *testing.T) *database{"SQLite": sqlite}

func sqlite(t *testing.T) *database {
	return &database{
		heading: "### SQLite",
		fresh:   func(t *testing.T) string { return filepath.Join(t.TempDir(), "shop") },
		connect: []string{"psycopg2", "sqlite3"}, marks: []string{"%s", "?"},
	}
}

// outbox is a database with an outbox, and the server of its relay.
type outbox struct {
	*database
	address string
	python  string
	server  *server
	c       *client.Client
}

// open makes the table of the page. The queue mails keeps what was acknowledged, so that a test
// sees each packet that was ever pushed.
func (d *database) open(t *testing.T) *outbox {
	t.Helper()
	o := &outbox{database: d, python: python(t, "redis"), address: d.fresh(t), server: start(t)}
	o.c = o.server.client(t)
	o.sql(t, fromPage(t, d.heading, "sql")+"CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9))")
	if err := o.c.Set(t.Context(), "mails", "retain", "3600000"); err != nil {
		t.Fatal(err)
	}
	return o
}

// script returns a program in Python that has not begun.
func (o *outbox) script(t *testing.T, text string, changes ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, o.python, "", "-c", changed(t, text, slices.Concat(changes, o.connect)...))
	cmd.Env = append(cmd.Env, "DATABASE="+o.address, "HOLDFAST_URL=redis://"+o.server.addr)
	return cmd
}

// statements returns a program that runs some, and prints what they select.
func (o *outbox) statements(t *testing.T, statements string) *exec.Cmd {
	t.Helper()
	cmd := o.script(t, `
import os, sys
import psycopg2

db = psycopg2.connect(os.environ["DATABASE"])
rows = db.cursor()
for statement in sys.stdin.read().split(";"):
    if statement.strip():
        rows.execute(statement)
        for row in rows.fetchall() if rows.description else []:
            print(*row)
db.commit()
`)
	cmd.Stdin = strings.NewReader(statements)
	return cmd
}

func (o *outbox) sql(t *testing.T, statements string) string {
	t.Helper()
	return output(t, o.statements(t, statements))
}

// commit has transactions of the page insert a row each, and as many roll back.
func (o *outbox) commit(t *testing.T, payloads ...string) {
	t.Helper()
	var text strings.Builder
	for _, p := range payloads {
		transaction := strings.ReplaceAll(fromPage(t, "### Your transaction", "sql"), "receipt 17", p)
		text.WriteString(transaction + strings.NewReplacer("'"+p+"'", "'rolled back'", "COMMIT", "ROLLBACK").Replace(transaction))
	}
	o.sql(t, text.String())
}

// relay is the relay of the page, which runs.
type relay struct {
	cmd  *exec.Cmd
	says *bufio.Reader
	in   io.Writer
}

// toTheEnd changes the relay so that it ends when nothing is due.
var toTheEnd = []string{"time.sleep(0.2)", "break"}

// relay starts the relay of the page, changed.
func (o *outbox) relay(t *testing.T, changes ...string) *relay {
	t.Helper()
	cmd := o.script(t, fromPage(t, "## The relay in Python", "python"), slices.Concat(changes, o.marks)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &relay{cmd, bufio.NewReader(out), in}
	t.Cleanup(r.kill)
	return r
}

// kill ends the process as kill -9 does. A second call does nothing.
func (r *relay) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// stops waits until the relay is where stopAt has it stop.
func (r *relay) stops(t *testing.T) {
	t.Helper()
	if line, err := r.says.ReadString('\n'); line != "here\n" {
		t.Fatalf("the relay says %q, %v; want it to stop", line, err)
	}
}

// drain has the relay push what is due, until nothing is.
func (o *outbox) drain(t *testing.T, changes ...string) {
	t.Helper()
	if err := o.relay(t, append(changes, toTheEnd...)...).cmd.Wait(); err != nil {
		t.Fatalf("the relay ends with %v", err)
	}
}

// work acknowledges all that is ready, as fast workers do.
func (o *outbox) work(t *testing.T) {
	t.Helper()
	packets, err := o.c.Claim(t.Context(), "mails", client.Count(1000))
	for _, p := range packets {
		if err == nil {
			err = p.Ack(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pushed returns the payloads of all packets that the queue mails ever got, in their order.
func (o *outbox) pushed(t *testing.T) (payloads []string) {
	t.Helper()
	all := make(map[int]string)
	for p, err := range o.c.List(t.Context(), "mails") {
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.Atoi(p.ID)
		if err != nil {
			t.Fatal(err)
		}
		all[id] = string(p.Payload)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		payloads = append(payloads, all[id])
	}
	return payloads
}

// left says how many rows are in the outbox.
func (o *outbox) left(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(o.sql(t, "SELECT count(*) FROM outbox"))
}

// onePacketEach compares what the queue got with what was committed.
func (o *outbox) onePacketEach(t *testing.T, committed []string) {
	t.Helper()
	if got, left := o.pushed(t), o.left(t); !slices.Equal(got, committed) || left != "0" {
		t.Errorf("the queue got %q, and %s rows are left; want %q, and none", got, left, committed)
	}
}

// moments are places in the relay, which takes two rows at a time: before a text of it, when the
// second row has come so far.
var moments = map[string]string{
	"before the push":   "        try:\n",
	"after the push":    "            done.append([id])\n",
	"after the deletes": "    db.commit()\n",
	"after the commit":  "    if not done:\n",
}

// stopAt changes the relay so that it says "here" at a moment, and waits for a line.
func stopAt(moment string) []string {
	text := moments[moment]
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	return []string{"LIMIT 100", "LIMIT 2", text, indent + "if done: print('here', flush=True); input()\n" + text}
}

func TestEachCommittedRowIsOnePacketWhateverIsKilled(t *testing.T) {
	t.Parallel()
	committed := []string{"1", "2", "3", "4", "5"}
	onDatabases(t, func(t *testing.T, d *database) {
		for moment := range moments {
			for _, victim := range []string{"the relay", "the server"} {
				t.Run(victim+" "+moment, func(t *testing.T) {
					t.Parallel()
					if moment != "after the push" {
						needsWhole(t) // this is the moment that UNIQUE is for
					}
					o := d.open(t)
					o.commit(t, committed...)
					r := o.relay(t, append(stopAt(moment), toTheEnd...)...)
					r.stops(t)
					o.work(t)
					if victim == "the server" {
						o.server.kill()
						o.server.again(t)
						_, _ = io.WriteString(r.in, strings.Repeat("\n", len(committed)))
						_ = r.cmd.Wait() // it goes on, or its connection is lost
					}
					r.kill()
					o.work(t)
					o.drain(t)
					o.onePacketEach(t, committed)
				})
			}
		}
	})
}

// onDatabases runs a test on each database that is installed.
func onDatabases(t *testing.T, test func(t *testing.T, d *database)) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// The page says why WINDOW is needed.
func TestARelayWithoutAWindowPushesTwice(t *testing.T) {
	t.Parallel()
	without := []string{`, "WINDOW", WINDOW`, ""}
	o := sqlite(t).open(t)
	o.commit(t, "1", "2")
	r := o.relay(t, append(stopAt("after the push"), without...)...)
	r.stops(t)
	o.work(t)
	r.kill()
	o.drain(t, without...)
	if got, want := o.pushed(t), []string{"1", "2", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("the queue got %q, want %q", got, want)
	}
}

func TestTwoRelaysAtOncePushEachRowOnce(t *testing.T) {
	t.Parallel()
	committed := []string{"1", "2", "3"}
	onDatabases(t, func(t *testing.T, d *database) {
		o := d.open(t)
		o.commit(t, committed...)
		first := o.relay(t, append(stopAt("after the push"), toTheEnd...)...)
		first.stops(t)
		o.drain(t) // the second
		o.work(t)
		_, _ = io.WriteString(first.in, strings.Repeat("\n", len(committed)))
		if err := first.cmd.Wait(); err != nil {
			t.Errorf("the first relay ends with %v", err)
		}
		o.onePacketEach(t, committed)
	})
}

func TestARefusedRowStaysWithItsReasonAndKeepsNoOther(t *testing.T) {
	t.Parallel()
	o := sqlite(t).open(t)
	ctx := t.Context()
	for queue, settings := range map[string][]string{
		"paused": {"pause-in", "yes"}, "small": {"bound", "1"}, "drops": {"bound", "1", "full", "drop"},
	} {
		if err := o.c.Set(ctx, queue, settings); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.c.CloseQueue(ctx, "shut"); err != nil {
		t.Fatal(err)
	}
	if err := o.c.Redis().Set(ctx, "text", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	o.sql(t, `INSERT INTO outbox (queue, payload, once) VALUES
		('paused', 'x', 'a'), ('small', 'x', 'b'), ('small', 'y', 'c'), ('drops', 'x', 'd'), ('drops', 'y', 'e'),
		('shut', 'x', 'f'), ('text', 'x', 'g'), ('mails', 'x', '`+strings.Repeat("h", 256)+`'), ('mails', 'last', 'i')`)
	o.drain(t)
	got := o.sql(t, "SELECT substr(once, 1, 1), error FROM outbox ORDER BY id")
	want := []string{"a PAUSED ", "c FULL ", "e the full queue ", "f CLOSED ", "g WRONGTYPE ", "h UNIQUE: "}
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("refused are\n%s\nwant %q", got, want)
			break
		}
	}
	if got := o.pushed(t); !slices.Equal(got, []string{"last"}) {
		t.Errorf("the queue got %q, want the last row", got)
	}
	if _, err := o.c.Pop(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	if err := o.c.Set(ctx, "paused", "pause-in", "no"); err != nil {
		t.Fatal(err)
	}
	o.sql(t, "UPDATE outbox SET due = 0")
	o.drain(t)
	if got := o.left(t); got != "4" {
		t.Errorf("%s rows are left, want the 4 that are still refused", got)
	}
}

func TestTheTableRefusesAPayloadThatTheServerWould(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d *database) {
		o := d.open(t)
		insert := func(bytes int) string {
			return fmt.Sprintf("INSERT INTO outbox (queue, payload) VALUES ('mails', '%s')", strings.Repeat("x", bytes))
		}
		o.sql(t, insert(1<<20))
		if o.statements(t, insert(1<<20+1)).Run() == nil {
			t.Error("the table takes more than 1 MiB, want an error")
		}
		o.drain(t)
		if got := o.left(t); got != "0" {
			t.Errorf("%s rows are left, want that the server takes 1 MiB", got)
		}
	})
}

// The module of Holdfast has no driver, so the relay in Go is only compiled here.
func TestTheRelayInGoCompilesWithoutItsDriver(t *testing.T) {
	t.Parallel()
	text := changed(t, fromPage(t, "## The relay in Go", "go"), "\t_ \"github.com/lib/pq\" // the driver\n", "")
	file := filepath.Join(t.TempDir(), "relay.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, program(t, "go", "", "vet", file))
}
