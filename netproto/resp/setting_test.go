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
