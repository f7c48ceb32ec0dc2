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

// nodes are those of a cell. A connection goes to the one that answered last, or else to those
// behind it. Any goroutine may call its methods.
type nodes struct {
	addresses []string
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	timeout   time.Duration // for each
	first     atomic.Uint32 // counts nodes that did not answer
}

// nodesOf has the options' connections go to all addresses of Addr.
func nodesOf(o *redis.Options) *nodes {
	n := &nodes{addresses: strings.Split(o.Addr, ","), dial: o.Dialer}
	if len(n.addresses) == 1 {
		return n
	}
	n.timeout = cmp.Or(o.DialTimeout, 5*time.Second) / time.Duration(len(n.addresses)) // as go-redis has it
	if n.dial == nil {
		each := *o
		each.DialTimeout = n.timeout
		n.dial = redis.NewDialer(&each)
	}
	o.Dialer = n.connect
	return n
}

func (n *nodes) connect(ctx context.Context, network, _ string) (conn net.Conn, err error) {
	for range n.addresses {
		once, cancel := context.WithTimeout(ctx, n.timeout)
		conn, err = n.dial(once, network, n.addresses[int(n.first.Load())%len(n.addresses)])
		cancel()
		if err == nil {
			break
		}
		n.next()
	}
	return conn, err
}

// next has another node be the first, as this one does not answer.
func (n *nodes) next() { n.first.Add(1) }
