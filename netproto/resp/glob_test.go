package resp

import (
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/glob"
)

// The time is that of a few passes over the names: 40 of them took 17 s byte by byte.
func TestAPatternOfLettersCostsOnePassOverLongNames(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	name := strings.Repeat("a", 65_000)
	for i := range 40 {
		c.ask("HSET "+name+strconv.Itoa(i)+" "+name+" v", ":1\r\n")
	}
	pattern := "*" + strings.Repeat("a", 1000) + "b"
	c.ask("KEYS "+pattern, "*0\r\n")
	c.ask("SCAN 0 COUNT 100 MATCH "+pattern, "*2\r\n$1\r\n0\r\n*0\r\n")
	c.ask("HSCAN "+name+"0 0 MATCH "+pattern, "*2\r\n$1\r\n0\r\n*0\r\n")
	c.ask("QUEUES MATCH "+pattern, "*0\r\n")
}

// costly has so many steps on a name of 65,000 times a that one such name takes 3 million, and 4
// more than a command may take.
var costly = "*" + strings.Repeat("[ab]", 50) + "[c]*"

func TestAPatternThatIsTooCostlyIsRefused(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	name := strings.Repeat("a", 65_000)
	for i := range 4 {
		c.ask("LPUSH "+name+strconv.Itoa(i)+" v", ":1\r\n")
		c.ask("HSET h "+name+strconv.Itoa(i)+" v", ":1\r\n")
	}
	const refused = "-" + errCostly + "\r\n"
	c.ask("KEYS "+costly, refused)
	c.ask("QUEUES MATCH "+costly, refused)
	for _, scan := range [][]string{{"SCAN"}, {"HSCAN", "h"}} {
		if cursor := c.scanOnce(scan, "0", costly); cursor == "0" {
			t.Errorf("%s reached the end in one call", scan[0])
		} else if cursor = c.scanOnce(scan, cursor, costly); cursor != "0" {
			t.Errorf("%s did not reach the end in two calls", scan[0])
		}
	}
	one := "*" + strings.Repeat("[ab]", 200) + "[c]*" // 13 million
	c.ask("SCAN 0 MATCH "+one, refused)

	listener := d.dial()
	listener.ask("PSUBSCRIBE "+one, "*3\r\n$10\r\npsubscribe\r\n$"+strconv.Itoa(len(one))+"\r\n"+one+"\r\n:1\r\n")
	listener.ask("SUBSCRIBE "+name, "*3\r\n$9\r\nsubscribe\r\n$65000\r\n"+name+"\r\n:2\r\n")
	c.ask("PUBLISH "+name+" x", refused)
	c.ask("PUBSUB CHANNELS "+one, refused)
	c.ask("PUBLISH "+strings.Repeat("a", 65_536)+" x", "-"+errChannel+"\r\n")
	listener.ask("SUBSCRIBE "+strings.Repeat("a", 65_536), "-"+errChannel+"\r\n")
}

// scanOnce asks for many names and returns the cursor.
func (c *conn) scanOnce(command []string, cursor, pattern string) string {
	c.t.Helper()
	c.line(append(command, cursor, "COUNT", "100", "MATCH", pattern)...)
	c.readLine() // the length of the cursor
	cursor = c.readLine()
	c.want("*0\r\n")
	return cursor
}

func TestConfigAndCommandPatternsAreBounded(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	long := strings.Repeat("*", glob.MaxLength+1)
	c.ask("CONFIG GET "+long, "-"+errPattern+"\r\n")
	c.ask("COMMAND LIST FILTERBY PATTERN "+long, "-"+errPattern+"\r\n")
	c.ask("PUBSUB CHANNELS "+long, "-"+errPattern+"\r\n")
	c.ask("CONFIG GET"+strings.Repeat(" x", 10_001), "-"+errCostly+"\r\n")
	c.ask("CONFIG GET APP*[M-O]L?", "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n")
}

func TestALongPatternIsRefused(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for _, command := range []string{"KEYS ", "SCAN 0 MATCH ", "HSCAN h 0 MATCH ", "PSUBSCRIBE "} {
		c.ask("HSET h f v", ":1\r\n")
		c.ask(command+strings.Repeat("*", glob.MaxLength+1), "-"+errPattern+"\r\n")
		c.ask("DEL h", ":1\r\n")
	}
	c.ask("KEYS "+strings.Repeat("*", glob.MaxLength), "*0\r\n")
}
