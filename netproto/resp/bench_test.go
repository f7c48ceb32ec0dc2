package resp

import (
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// What users cost: pushes and pops of one connection, 64 at a time.
func BenchmarkUsers(b *testing.B) {
	const depth = 64
	for name, users := range map[string]*access.Control{"none": nil, "some": control(b)} {
		b.Run(name, func(b *testing.B) {
			c := newDoor(b, Config{Users: users}).dial()
			if users != nil {
				c.ask("AUTH manager manager", "+OK\r\n")
			}
			requests := strings.Repeat(request("RPUSH", "q", "0123456789")+request("LPOP", "q"), depth/2)
			replies := make([]byte, depth/2*len(":1\r\n$10\r\n0123456789\r\n"))
			b.ResetTimer()
			for range b.N {
				c.send(requests)
				if _, err := io.ReadFull(c, replies); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*depth)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
