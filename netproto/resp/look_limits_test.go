package resp

import (
	"strings"
	"testing"
)

func TestALongLookHasTheLimitOfAReply(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	value := strings.Repeat("x", 16_000)
	push := []string{"RPUSH", "l"}
	for range 60 {
		push = append(push, value)
	}
	for range 75 { // 72 MB
		c.do(push...)
	}
	if got := c.do("LRANGE", "l", "0", "-1"); !strings.HasPrefix(got.text, "ERR reply too large") {
		t.Errorf("LRANGE of 72 MB replies %c%.100s", got.kind, got.text)
	}
	c.expect([2]string{"LLEN l", ":4500"})
}

func TestAPeerThatHasClosedItsSideGetsALongReply(t *testing.T) {
	d := newOther(t)
	other := d.dial()
	other.do(numbers(5*longLook, "RPUSH", "l")...)
	other.do(numbers(5*longLook, "HSET", "h")...)
	for i := range 5 {
		other.do(numbers(5*longLook, "MSET", string(rune('a'+i)))[:5*longLook]...)
	}
	for _, command := range []string{"LRANGE l 0 -1", "HKEYS h", "KEYS *", "LPOS l 7", "LREM l 1 7"} {
		t.Run(command, func(t *testing.T) {
			c := d.dial()
			c.send(request(strings.Fields(command)...) + request("SET", "behind", "1"))
			c.wire.HangUp()
			c.read()
			if got := c.read(); got.text != "OK" {
				t.Errorf("behind it: %v", got)
			}
		})
	}
}
