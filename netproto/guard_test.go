package netproto

import "testing"

func TestAStreamThatBeginsLikeTLSIsClosedUnread(t *testing.T) {
	for _, hello := range []string{"\x16\x03\x01\x02\x00\n", "\x16\x03\x01\x02\x00\r\n", "\x00\n", "\x1f\n", "\t\n"} {
		s, _ := serveLines(t, Config{})
		c := dial(t, s)
		send(t, c, hello+"line\n")
		wantEnd(t, c)
	}
	s, _ := serveLines(t, Config{})
	for _, begin := range []string{"\r\n", "\n", " \n"} {
		c := dial(t, s)
		send(t, c, begin+"\x16\n")
		wantRead(t, c, begin+"\x16\n")
	}
}
