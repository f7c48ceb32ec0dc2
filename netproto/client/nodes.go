package client

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// silent counts the nodes of a cell that did not answer. A connection goes to the one that answered
// last, or else to those behind it.
type silent struct{ atomic.Uint32 }

// reachAll has the options' connections go to all addresses of Addr.
func reachAll(o *redis.Options) *silent {
	const usual = 5 * time.Second // as go-redis has it
	all, before := strings.Split(o.Addr, ","), new(silent)
	each, dial := *o, o.Dialer
	each.DialTimeout = cmp.Or(o.DialTimeout, usual) / time.Duration(len(all))
	if dial == nil {
		dial = redis.NewDialer(&each)
	}
	if dial = waitsOn(dial, cmp.Or(o.ReadTimeout, usual)); len(all) == 1 {
		o.Dialer = dial
		return before
	}
	o.Dialer = func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		for i, at := 0, before.Load(); i < len(all); i, at = i+1, at+1 {
			once, cancel := context.WithTimeout(ctx, each.DialTimeout)
			conn, err = dial(once, network, all[int(at)%len(all)])
			cancel()
			if err == nil {
				break
			}
			before.CompareAndSwap(at, at+1) // once, however many dials fail there
		}
		return conn, err
	}
	return before
}
