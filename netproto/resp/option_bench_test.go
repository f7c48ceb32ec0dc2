package resp

import (
	"strings"
	"testing"
)

// What it takes to read the options of a push and a claim.
func BenchmarkOptions(b *testing.B) {
	split := func(request string) (args [][]byte) {
		for w := range strings.SplitSeq(request, " ") {
			args = append(args, []byte(w))
		}
		return args
	}
	b.Run("push", func(b *testing.B) {
		args := split("PRIO 5 KEY order-17 TTL 60000 DELAY 1000 PRODUCER shop UNIQUE order-17 WINDOW 60000")
		for range b.N {
			var p push
			p.parse(args)
		}
	})
	b.Run("claim", func(b *testing.B) {
		args := split("QCLAIM jobs COUNT 10 NEWEST LEASE 60000 CONSUMER worker-3 BLOCK 0")
		for range b.N {
			t := take{claims: true}
			t.parse(nil, args)
		}
	})
	b.Run("short", func(b *testing.B) {
		args := split("PRIO 5")
		for range b.N {
			var p push
			p.parse(args)
		}
	})
}
