package client

import (
	"context"
	"crypto/rand"
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
	// Logger gets what Consume meets and cannot return. Set it before the first call; nil logs
	// nothing.
	Logger *slog.Logger

	rdb     *redis.Client
	slow    *redis.Client // the same pool, for replies that take their time
	waiting *redis.Client // the same pool, for a turn of waiting
	owned   bool

	mu        sync.Mutex
	stopped   bool
	consumers map[*consumer]struct{}
}

// defaultPool is the most connections unless the options say it. Each call that waits holds one.
const defaultPool = 256

// New makes a client. It connects when it is first used. Without a ClientName it gets one of its
// own: the server shows it as the consumer, and gives exclusive roles to it.
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
	c := Wrap(redis.NewClient(&o))
	c.owned = true
	return c
}

// Wrap makes a client of a Redis client that exists. Close does not close that. It should have
// ContextTimeoutEnabled, and a ClientName, as without one each of its connections is a consumer of
// its own.
func Wrap(rdb *redis.Client) *Client {
	return &Client{
		rdb:       rdb,
		slow:      rdb.WithTimeout(-1),
		waiting:   rdb.WithTimeout(turn + max(rdb.Options().ReadTimeout, time.Second)),
		consumers: make(map[*consumer]struct{}),
	}
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
	if !c.owned {
		return nil
	}
	return c.rdb.Close()
}

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
