package resp

import (
	"strings"
	"testing"
)

func TestAReplyThatIsTooLargeIsAnError(t *testing.T) {
	const tooLarge = "-ERR reply too large: the limit is 67371008 bytes\r\n"
	get := func(n int, names ...string) string { // MGET of more bytes than its names have
		words := []string{"MGET"}
		for range n {
			words = append(words, names...)
		}
		return request(words...)
	}
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("SET small "+strings.Repeat("x", 1000), "+OK\r\n")
	c.ask("SET large "+strings.Repeat("x", 3000), "+OK\r\n")
	c.send(get(100_000, "small") + request("PING"))
	c.want(tooLarge + "+PONG\r\n")

	c.ask("MULTI", "+OK\r\n")
	for _, n := range []int{15_000, 60_000} {
		c.send(get(n, "small"))
		c.want("+QUEUED\r\n")
	}
	c.ask("INCR n", "+QUEUED\r\n")
	c.send(request("EXEC"))
	c.want("*3\r\n*15000\r\n" + strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 15_000) + "-" + errLooks + "\r\n:1\r\n")

	d.restart() // so that the large value is on disk only
	c = d.dial()
	c.send(get(100_000, "large", "small") + request("PING"))
	c.want(tooLarge + "+PONG\r\n")
}

func TestAListThatIsTooLargeIsAnErrorInPlaceOfAllOfIt(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	const page, packet = 16, 1_040_000
	for range page {
		c.line("QPUSH", "q", strings.Repeat("x", packet))
		c.readLine()
	}
	c.line("QPUSH", "q", strings.Repeat("x", packet), "DELAY", "1000")
	c.readLine()
	ready := "QLIST q STATE ready COUNT 1000\r\n"
	c.send("MULTI\r\n" + strings.Repeat("LMOVE q q LEFT LEFT\r\n", 3*page) + "QLIST q COUNT 1000\r\n" + ready + "EXEC\r\nPING\r\n")
	tooLarge, heads, cursors := 0, 0, 0
	for line := ""; line != "+PONG"; {
		line = c.readLine()
		if strings.HasPrefix(line, "-ERR reply too large") {
			tooLarge++
		}
		switch line {
		case "*16":
			heads++
		case "2:0:0": // the first list ends before the delayed one
			cursors++
		}
	}
	if tooLarge != 1 || heads != 1 || cursors != 1 {
		t.Errorf("%d lists are there, %d cut, and %d errors, want one of each", heads, cursors, tooLarge)
	}
}
