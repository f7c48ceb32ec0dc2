package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// sizes pushes the first packets of a door, with the tag size. Their payloads count from 0,
// their ids from 1.
func (c *conn) sizes(queue string, sizes ...int) {
	c.t.Helper()
	for i, size := range sizes {
		c.ask(fmt.Sprintf("QPUSH %s %d TAG size %d", queue, i, size), bulkReply(fmt.Sprint(1+i)))
	}
}

// shownBy sends a request and returns the payloads of the packets that it replies with.
func (c *conn) shownBy(words string) string {
	c.t.Helper()
	c.send(request(strings.Split(words, " ")...))
	return c.payloads()
}

func TestTakesOfTheFirstQueueThatHasAPacketThatMatches(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.sizes("q", 10, 9, 100)
	c.ask("QPUSH other x", bulkReply("4"))
	c.ask("QPUSH other y TAG size 5", bulkReply("5"))
	for _, step := range [][2]string{
		{"QPOP nothing OR other OR q FILTER size gt 9", "0"},
		{"QCLAIM other OR q FILTER size lt 9", "y"},
		{"QCLAIM other OR q COUNT 5 FILTER size ne 100 FILTER size ne 9 MATCH ANY 2", ""},
		{"QCLAIM other OR q COUNT 5 FILTER size ge 9 FILTER size le 9 MATCH ANY 1", "1 2"},
		{"QCLAIM q OR other", "x"},
	} {
		if got := c.shownBy(step[0]); got != step[1] {
			t.Errorf("%s takes %q, want %q", step[0], got, step[1])
		}
	}
}

func TestAValueThatOneOfTheQueuesDoesNotDeclareChangesNothing(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.sizes("q", 1)
	c.ask("QSET other enum size small large", "+OK\r\n")
	const refusal = `-ERR value is not one of those that the queue declares for the tag: tag "size", expected one of "small", "large", got "1"`
	for _, words := range []string{
		"QPOP q OR other FILTER size eq 1", "QCLAIM q OR other FILTER size eq 1", "QCLAIM q OR other FILTER size eq 1 BLOCK 0", "QLIST other FILTER size eq 1",
		"QPURGE other FILTER size eq 1", "QHARVEST other FILTER size eq 1", "QREDRIVE other FILTER size eq 1", "QMOVE other TO q FILTER size eq 1 DRYRUN",
	} {
		c.ask(words, refusal+"\r\n")
	}
	if got := c.shownBy("QPEEK q"); got != "0" {
		t.Errorf("the queue has %q", got)
	}
	c.ask("QPUSH other large TAG size large", bulkReply("2"))
	c.ask("QPUSH other small TAG size small", bulkReply("3"))
	if got := c.shownBy("QCLAIM other OR q FILTER size lt large"); got != "small" {
		t.Errorf("by the declared order the claim takes %q", got)
	}
}

func TestAFilteredClaimWaitsForWhatMatches(t *testing.T) {
	d := newDoor(t, Config{})
	c, waits := d.dial(), d.dial()
	waits.send(request("QCLAIM", "q", "CONSUMER", "w", "FILTER", "size", "gt", "9", "BLOCK", "0"))
	c.awaitBlocked(1)
	c.sizes("q", 9, 8)
	waits.send(request("PING")) // it comes into the buffer where the filter stood
	c.awaitBlocked(1)
	c.ask("QPUSH q big TAG size 10", bulkReply("3"))
	if got := waits.payloads(); got != "big" {
		t.Errorf("the waiting claim gets %q", got)
	}
	waits.want("+PONG\r\n")
	c.ask("LLEN q", ":2\r\n")
}

func TestAFilterChoosesWhatChangesInBulk(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q max-attempts 1", "+OK\r\n")
	c.sizes("q", 1, 2, 1, 2, 1, 2)
	if got := c.shownBy("QCLAIM q COUNT 4 LEASE 600000"); got != "0 1 2 3" {
		t.Fatalf("claimed %q", got)
	}
	c.ask("QNACK q 1 7", bulkReply("dead"))
	c.ask("QNACK q 2 8", bulkReply("dead"))
	for _, step := range []struct{ words, reply string }{
		{"QHARVEST q FILTER size eq 2", ":1"}, // 3 is ready, 2 is claimed
		{"QREDRIVE q FILTER size gt 1", ":1"}, // 1 is ready, 0 is dead
		{"QMOVE q TO other FILTER size lt 2 DRYRUN", ":2"},
		{"QMOVE q TO other FILTER size lt 2", ":2"}, // 0 and 4
		{"QPURGE q FILTER size eq 1 DRYRUN", ":1"},
		{"QPURGE q FILTER size eq 1", ":1"}, // 2
		{"QPURGE q FILTER size eq 7", ":0"},
	} {
		c.ask(step.words, step.reply+"\r\n")
	}
	if got := c.shownBy("QPEEK q"); got != "1 3 5" {
		t.Errorf("the queue has %q", got)
	}
	c.ask("QLEN q", ":3\r\n")
	for id, state := range map[string]string{"1": "dead", "5": "ready"} {
		if got := c.shown("other", id)["state"]; got != state {
			t.Errorf("what has moved is %s, want %s", got, state)
		}
	}
}

func TestAListWithAFilterGoesOnWhereItStopsLooking(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.sizes("q", 1, 2, 1, 2)
	for left := broker.MaxLook; left > 0; left -= broker.MaxCount {
		c.line(append([]string{"QMPUSH", "q", fmt.Sprint(broker.MaxCount)}, append(strings.Split(strings.Repeat("x", broker.MaxCount), ""), "DELAY", "1000")...)...)
		for range broker.MaxCount {
			c.value()
		}
	}
	c.line("QPUSH", "q", "late", "DELAY", "1000", "TAG", "size", "2")
	c.readLine()
	pages := func(words string) (all []string) {
		for cursor := "0"; len(all) == 0 || cursor != "0"; {
			c.send(request(strings.Split(fmt.Sprintf("QLIST q FILTER size ge 2 CURSOR %s %s", cursor, words), " ")...))
			c.want("*2\r\n")
			cursor = c.value()
			all = append(all, c.payloads())
		}
		return all
	}
	for words, want := range map[string]string{
		"COUNT 1":               `["1" "3" "" "late"]`,
		"COUNT 2":               `["1 3" "" "late"]`,
		"COUNT 9":               `["1 3" "late"]`,
		"STATE ready COUNT 1":   `["1" "3"]`,
		"STATE ready COUNT 2":   `["1 3"]`,
		"STATE delayed COUNT 5": `["" "late"]`,
		"STATE dead COUNT 5":    `[""]`,
	} {
		if got := fmt.Sprintf("%q", pages(words)); got != want {
			t.Errorf("%s: pages are %s, want %s", words, got, want)
		}
	}
}

func TestFiltersOfARequestAreBounded(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	const queues, sets = 4, 8000
	for i := range queues * sets {
		c.send(request("QPUSH", fmt.Sprint("q", i%queues), "x", "TAG", "n", fmt.Sprint(i)))
	}
	for i := range queues * sets {
		c.want(bulkReply(fmt.Sprint(1 + i)))
	}
	filter := strings.Repeat(" FILTER n eq x", 64)
	const refusal = "-ERR FILTER: too costly: 64 terms and 32004 sets of tags, expected at most 2000000 comparisons of one with the other in a request; use fewer terms, or name fewer queues\r\n"
	for _, words := range []string{"QPOP q0 OR q1 OR q2 OR q3", "QCLAIM q0 OR q1 OR q2 OR q3", "QCLAIM q0 OR q1 OR q2 OR q3 BLOCK 1"} {
		c.ask(words+filter, refusal)
	}
	c.ask("QPOP q0 OR q1 OR q2"+filter, "*0\r\n")
	c.ask("MULTI", "+OK\r\n")
	for range 4 {
		c.ask("QPOP q0"+filter, "+QUEUED\r\n")
	}
	c.ask("EXEC", "*4\r\n*0\r\n*0\r\n*0\r\n"+strings.Replace(refusal, "32004", "8001", 1))
}

func TestNamesOfARequestAreBounded(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	names := ""
	for i := range 1025 {
		names += fmt.Sprint(" ", i)
	}
	const refusal = "-ERR too many names: expected at most 1024\r\n"
	joined := strings.ReplaceAll(names, " ", " OR ")
	for _, words := range []string{"QPOP a", "QCLAIM a"} {
		c.ask(words+joined, refusal)
		c.ask(words+joined+" COUNT 2", refusal)
		c.ask(words+" OR b OR a", "-ERR a queue is named twice: expected each once\r\n")
	}
	c.ask("BLPOP"+names+" 1", refusal)
	c.ask("BRPOP"+names+" 1", refusal)
	c.ask("LMPOP 1025"+names+" LEFT", refusal)
	c.ask("BLMPOP 1 1025"+names+" LEFT", refusal)
	names = names[:strings.LastIndexByte(names, ' ')]
	c.ask("QPOP"+strings.TrimPrefix(strings.ReplaceAll(names, " ", " OR "), " OR"), "*0\r\n")
	c.ask("LMPOP 1024"+names+" LEFT", "*-1\r\n")
}
