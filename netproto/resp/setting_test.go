package resp

import (
	"fmt"
	"strings"
	"testing"
)

// largeSettings makes n queues with large definitions.
func (c *conn) largeSettings(n int) {
	c.t.Helper()
	long := strings.Repeat("x", maxQueueName)
	for i := range n {
		c.ask(fmt.Sprintf("QSET q%d dead-letter %s", i, long), "+OK\r\n")
	}
}

func TestATransactionMayWriteManySettings(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.largeSettings(30)
	for _, words := range []string{"QSET q%d lease 5", "RENAME q%d p%[1]d"} {
		c.ask("MULTI", "+OK\r\n")
		for i := range 30 {
			c.ask(fmt.Sprintf(words, i), "+QUEUED\r\n")
		}
		c.ask("EXEC", "*30\r\n"+strings.Repeat("+OK\r\n", 30))
	}
}

func TestAPushToAQueueThatWasEmptiedWritesNoSettings(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.largeSettings(30)
	for i := range 30 {
		c.ask(fmt.Sprintf("RPUSH q%d x", i), ":1\r\n")
		c.ask(fmt.Sprintf("EXPIRE q%d 1000", i), ":1\r\n")
		c.ask(fmt.Sprintf("RPOP q%d", i), bulkReply("x"))
	}
	c.ask("MULTI", "+OK\r\n")
	for i := range 30 {
		c.ask(fmt.Sprintf("RPUSH q%d x", i), "+QUEUED\r\n")
	}
	c.ask("EXEC", "*30\r\n"+strings.Repeat(":1\r\n", 30))
}

func TestAQueueWithSettingsExpiresAlsoWhenItWasEmptied(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q lease 5", "+OK\r\n")
	for range 2 {
		c.ask("RPUSH q x", ":1\r\n")
		c.ask("PEXPIRE q 1000", ":1\r\n")
		c.ask("RPOP q", bulkReply("x"))
		c.ask("PTTL q", ":1000\r\n")
	}
	c.ask("RPUSH q x", ":1\r\n")
	c.ask("PTTL q", ":1000\r\n")
	d.now += 1000
	c.ask("EXISTS q", ":0\r\n")
	c.ask("QGET q", noQueueReply)
}

func TestAChangeOfShapeThatMovesManyPacketsNeedsForce(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.fill("q", 1, 11_000)
	const many, over = "-ERR 11000 packets would move at once, and nobody is served for about 20ms: FORCE lets them, outside of MULTI\r\n", "+QUEUED\r\n"
	want := func(strict string) {
		c.t.Helper()
		if got := c.pairs("QGET", "q"); got["strict"] != strict || got["lease"] == "7" {
			t.Errorf("the settings are %q, want strict %s and no other lease", got, strict)
		}
	}
	for _, row := range [][2]string{
		{"QSET q strict yes lease 7", many}, {"QSET q share-by key lease 7", many},
		{"QSET q FORCE strict yes lease 7 FORCE", "-ERR FORCE: expected it once only\r\n"},
		{"QSET q lease 7 FORCE strict", "-ERR strict: expected a value behind it\r\n"},
		{"QSET q lease 7 strict perhaps FORCE", "-ERR strict: expected yes or no, got \"perhaps\"\r\n"},
		{"MULTI", "+OK\r\n"}, {"QSET q FORCE lease 7 strict yes", over}, {"QSET q lease 7 strict yes", over},
		{"EXEC", "*2\r\n-ERR FORCE: expected it outside of MULTI: all wait while packets move\r\n" + many},
	} {
		c.ask(row[0], row[1])
	}
	want("no")
	c.ask("QSET q strict yes FORCE", "+OK\r\n")
	want("yes")
	c.ask("QSET q max-attempts 7 force", "+OK\r\n")
	c.ask("QSET other FORCE share-by key", "+OK\r\n")
	if _, err := NewSettings([][]string{{"strict", "yes", "FORCE"}}); err == nil || !strings.HasPrefix(err.Error(), `unknown setting "FORCE"`) {
		t.Errorf("defaults with FORCE: %v", err)
	}
}
