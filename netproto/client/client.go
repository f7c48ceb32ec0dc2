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

// Client is a client of one server. It keeps a pool of connections, and is safe for use by many
// goroutines.
type Client struct {
	// Logger gets what Consume meets and cannot return: handlers that fail, leases that are lost, a
	// server that is away. Set it before the first call; nil logs nothing.
	Logger *slog.Logger

	rdb      *redis.Client
	waiting  *redis.Client // a second pool: requests that wait leave rdb's connections to all others
	patience time.Duration // how long a connection or a prompt reply may take

	mu        sync.Mutex
	stopped   bool
	consumers map[*consumer]struct{}
}

// defaultPool is the most connections of a pool unless the options say it.
const defaultPool = 256

// New makes a client, which connects when it is first used. It has up to PoolSize connections, 256
// unless given. Calls with Block and Consume hold one each, of a second pool: of the same size, but
// at least 256. Without a ClientName the client gets one that no other has: the server shows it as
// the consumer, and gives exclusive roles to it.
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
	c := &Client{rdb: redis.NewClient(&o), consumers: make(map[*consumer]struct{})}
	o.PoolSize, o.MinIdleConns = max(o.PoolSize, defaultPool), 0
	c.waiting = redis.NewClient(&o)
	c.rdb.AddHook(oneLogin{})
	c.waiting.AddHook(oneLogin{})
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
func (c *Client) Close() error { return errors.Join(c.waiting.Close(), c.rdb.Close()) }

func (c *Client) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
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

// doOnce sends a request once.
func doOnce(ctx context.Context, p processor, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	if err := p.Process(ctx, once{cmd}); err != nil {
		return nil, unknownIfSent(refusal(err))
	}
	return cmd.Result()
}

// do sends a request that may be repeated, as it changes nothing or says what the result shall be.
func (c *Client) do(ctx context.Context, args ...any) (any, error) {
	v, err := c.rdb.Do(ctx, args...).Result()
	return v, refusal(err)
}
