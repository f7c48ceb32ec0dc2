package loadgen

import (
	"bytes"
	"fmt"
	"sync/atomic"
)

// inboxes numbers the subjects at which connections get their answers.
var inboxes atomic.Uint64

// NATSPublish publishes messages to the subject of a stream of JetStream. A message is answered
// when the stream acknowledges it.
func NATSPublish(p Packets) Protocol {
	inbox := fmt.Sprint("_INBOX.", inboxes.Add(1))
	hello := fmt.Sprintf("CONNECT {\"verbose\":false}\r\nSUB %s 1\r\n", inbox)
	publish := request(fmt.Sprintf("PUB %s %s %d\r\n", p.Queue, inbox, p.Size), p.numbered(), "\r\n")
	body := false // whether the next line is what a message says
	return &driver{func(dst []byte, first uint64, n int) []byte {
		dst = append(dst, hello...)
		hello = ""
		return publish.all(dst, first, n)
	}, func(dst, src []byte) (_ []byte, p Progress, err error) {
		for {
			text, size, err := line(src[p.Used:])
			if err != nil || size == 0 {
				return dst, p, err
			}
			switch {
			case body && bytes.Contains(text, []byte(`"seq":`)):
				body = false
				p.answer(true)
			case !body && bytes.HasPrefix(text, []byte("MSG ")):
				body = true
			case !body && bytes.HasPrefix(text, []byte("INFO ")):
			case !body && string(text) == "PING":
				dst = append(dst, "PONG\r\n"...)
			default:
				return dst, p, fmt.Errorf("the server sent %q, expected that a stream acknowledges a message", text)
			}
			p.Used += size
		}
	}}
}
