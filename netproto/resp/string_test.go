package resp

import (
	"strings"
	"testing"
)

func TestAValueThatIsRefusedBehindALargeOneHasOneReply(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	c.do("SET", "k", strings.Repeat("v", 2000))
	d.restart() // so that only the disk holds the value
	c = d.dial()
	tooLarge := strings.Repeat("w", 1<<20+1)
	for _, args := range [][]string{{"GETSET", "k", tooLarge}, {"SET", "k", tooLarge, "GET"}} {
		if r := c.do(args...); r.kind != '-' {
			t.Fatalf("%s k of %d bytes: %.100s, want an error", args[0], len(tooLarge), r)
		}
		if r := c.do("STRLEN", "k"); r.String() != ":2000" {
			t.Fatalf("STRLEN behind %s: %.100s, want 2000", args[0], r)
		}
	}
}

func TestNamesThatDoNotExistNeedNoRoomToBeDeleted(t *testing.T) {
	c := newOther(t).dial()
	c.do("SET", "k", "v")
	args := []string{"DEL"}
	for range 20_000 {
		args = append(args, "nix")
	}
	if r := c.do(append(args, "k")...); r.String() != ":1" {
		t.Errorf("DEL of 20000 names and k: %s, want 1", r)
	}
}
