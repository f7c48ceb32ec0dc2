package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Client is a client of one server, or of a cell of them. It keeps a pool of connections, and is
// safe for use by many goroutines.
type Client struct {
	// Logger gets what Consume meets and cannot return: handlers that fail, leases that are lost, a
	// server that is away. Set it before the first call; nil is slog.Default().
	Logger *slog.Logger

	rdb      *redis.Client
	silent   *silent
	waiting  *redis.Options // of pools of one connection: requests that wait leave rdb's to all others
	patience time.Duration  // how long a connection or a prompt reply may take

	mu        sync.Mutex
	stopped   bool
	consumers map[*consumer]struct{}
	pools     map[*redis.Client]struct{} // made of waiting, and not closed; nil after Close
	idle      []*redis.Client            // those of them that nobody waits with
}

// defaultPool is the most connections of a pool unless the options say it.
const defaultPool = 256

// New makes a client, which connects when it is first used. Addr may name the nodes of a cell, with
// commas between them: connections go to the first one that answers, until it does not. The client
// has up to PoolSize connections, 256 unless given. Calls with Block and Consume hold one more
// each, which others use after them. Without a ClientName the client gets one that no other has:
// the server shows it as the consumer, and gives exclusive roles to it.
func New(options *redis.Options) *Client {
	o := *options
	o.ContextTimeoutEnabled = true
	if o.ClientName == "" {
		o.ClientName = defaultName()
	}
	if o.PoolSize == 0 {
		o.PoolSize = defaultPool
	}
	if o.MaintNotificationsConfig == nil {
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	silent := reachAll(&o)
	c := &Client{rdb: redis.NewClient(&o), silent: silent, waiting: &o, consumers: make(map[*consumer]struct{}), pools: make(map[*redis.Client]struct{})}
	c.rdb.AddHook(oneHello{silent})
	o.PoolSize, o.MinIdleConns = 1, 0
	c.patience = max(c.rdb.Options().DialTimeout, c.rdb.Options().ReadTimeout)
	return c
}

// defaultName is a name that no other client has.
func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "client"
	}
	return fmt.Sprintf("%.64s-%d-%.6s", host, os.Getpid(), rand.Text())
}

// Redis returns the Redis client below, for every other command.
func (c *Client) Redis() *redis.Client { return c.rdb }

// Close closes the connections. What Consume holds is not returned: call Shutdown before.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.rdb.Close()
	for pool := range c.pools {
		err = errors.Join(err, pool.Close())
	}
	c.pools, c.idle = nil, nil
	return err
}

// lend returns a pool of one connection, to wait with.
func (c *Client) lend() (*redis.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools == nil {
		return nil, redis.ErrClosed
	}
	if last := len(c.idle) - 1; last >= 0 {
		pool := c.idle[last]
		c.idle = c.idle[:last]
		return pool, nil
	}
	pool := redis.NewClient(c.waiting)
	pool.AddHook(oneHello{c.silent})
	c.pools[pool] = struct{}{}
	return pool, nil
}

// takeBack has others use a pool that was lent, unless it was closed.
func (c *Client) takeBack(pool *redis.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.pools[pool]; open {
		c.idle = append(c.idle, pool)
	}
}

// cut closes a pool that is lent, with its connection.
func (c *Client) cut(pool *redis.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, pool)
	_ = pool.Close()
}

func (c *Client) log() *slog.Logger {
	if c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}

// once is a request that go-redis must not repeat when the connection is lost: it would do twice
// what was done already.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// processor is a pool or a connection.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// doOnce sends a request once. Where no connection was made go-redis's MaxRetries holds.
func doOnce(ctx context.Context, p processor, args []any) (any, error) {
	retries := 0
	if pool, ok := p.(*redis.Client); ok {
		retries = pool.Options().MaxRetries
	}
	for b := backoff(0); ; retries-- {
		v, err := within(ctx, func() (any, error) {
			cmd := redis.NewCmd(ctx, args...)
			err := p.Process(ctx, once{cmd})
			return cmd.Val(), err
		})
		if err == nil {
			return v, nil
		}
		if retries <= 0 || !errors.As(err, new(*noGreeting)) || ctx.Err() != nil {
			return nil, unknownIfSent(refusal(err))
		}
		b.sleep(ctx)
	}
}

// do sends a request that may be repeated, as it changes nothing or says what the result shall be.
func (c *Client) do(ctx context.Context, args ...any) (any, error) {
	v, err := within(ctx, func() (any, error) { return c.rdb.Do(ctx, args...).Result() })
	return v, refusal(err)
}
