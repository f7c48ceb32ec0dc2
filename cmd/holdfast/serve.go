package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
)

// serveCmd runs the server.
type serveCmd struct {
	Data            folder        `default:"./holdfast-data" placeholder:"DIR" help:"Data folder; made if it does not exist (default ${default})."`
	Pinpriq         string        `default:"127.0.0.1:7070" placeholder:"HOST:PORT" help:"Address for pinpriq, or off. Port 0 takes a free port, which the log names (default ${default})."`
	Barbershop      string        `default:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address for barbershop, or off (default ${default})."`
	BarbershopQueue string        `default:"barbershop" placeholder:"NAME" help:"Queue that holds the items of barbershop (default ${default})."`
	Redis           string        `default:"127.0.0.1:6379" placeholder:"HOST:PORT" help:"Address for Redis clients, or off (default ${default})."`
	RedisDisable    []string      `placeholder:"NAME" help:"Redis commands to switch off, such as FLUSHALL,KEYS."`
	Admin           string        `default:"127.0.0.1:7072" placeholder:"HOST:PORT" help:"Address for the operator's HTTP requests, or off: GET /backup (for holdfast backup) and GET /healthz (default ${default})."`
	Sync            string        `default:"always" placeholder:"MODE" help:"When to force writes to the disk: always, interval:50ms (1ms to 1m) or never. kill -9 loses nothing in any mode. A power cut loses nothing, the last interval, or what the system had not written out (default ${default})."`
	Cache           byteSize      `default:"16MiB" placeholder:"SIZE" help:"Memory for recent payloads, 64KiB to 32GiB, rounded up to a power of two (default ${default})."`
	MaxConns        int           `default:"10000" range:"1 1048576" placeholder:"N" help:"Most connections at a time, for each protocol (default ${default})."`
	MaxBuffers      byteSize      `placeholder:"SIZE" help:"Memory for requests that have begun, transactions, watched names, channels and replies that are not read, on all connections together, 16MiB to 1024GiB (default a quarter of the machine's, 256MiB or more)."`
	Drain           time.Duration `default:"8s" range:"1ms 3650d" placeholder:"TIME" help:"How long connections may take to finish after a signal (default ${default})."`
	Loop            bool          `default:"true" negatable:"" help:"Have one loop read and write all connections (Linux). With --no-loop goroutines do."`
	Insecure        bool          `help:"Allow addresses that other machines can reach. There is no encryption, and no login but the Redis password."`
	AcceptLoss      bool          `help:"Start although acknowledged packets are missing, and give those up."`
	Log             string        `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Format of the log on standard error: text or json (default ${default})."`
	LogLevel        string        `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"Least important level to log: debug, info, warn or error (default ${default})."`

	redisPassword
}

func (c *serveCmd) Help() string {
	return `Logs a line "listening" for each address once it serves there. SIGTERM, SIGINT or SIGHUP makes it drain: it takes no new connections, answers what it has received, and ends with exit code 0. A second signal, half a second later or more, ends it at once. Neither loses anything that was acknowledged.

Examples:

    holdfast serve
    holdfast serve --data /var/lib/holdfast --pinpriq 127.0.0.1:7171 --admin off
    holdfast serve --pinpriq 0.0.0.0:7070 --barbershop off --insecure --log json
    HOLDFAST_SYNC=interval:50ms holdfast serve`
}

// The ranges of --cache and --max-buffers.
const (
	minCache   = byteSize(64 << 10)
	maxCache   = byteSize(32 << 30)
	minBuffers = byteSize(16 << 20)
	maxBuffers = byteSize(1 << 40)
)

func (c *serveCmd) Validate() error {
	if _, err := storage.ParseSync(c.Sync); err != nil {
		return err
	}
	if c.Cache < minCache || c.Cache > maxCache {
		return fmt.Errorf("--cache %v: expected %v to %v", c.Cache, minCache, maxCache)
	}
	if c.MaxBuffers != 0 && (c.MaxBuffers < minBuffers || c.MaxBuffers > maxBuffers) {
		return fmt.Errorf("--max-buffers %v: expected %v to %v", c.MaxBuffers, minBuffers, maxBuffers)
	}
	return nil
}

func (c *serveCmd) Run(ctx context.Context, p *program) error {
	sync, err := storage.ParseSync(c.Sync)
	if err != nil {
		return err
	}
	if err := c.Data.check(false); err != nil {
		return err
	}
	password, err := c.password()
	if err != nil {
		return err
	}
	err = daemon.Run(ctx, daemon.Config{
		Data:            string(c.Data),
		Pinpriq:         c.Pinpriq,
		Barbershop:      c.Barbershop,
		BarbershopQueue: c.BarbershopQueue,
		Redis:           c.Redis,
		RedisPassword:   password,
		RedisDisable:    c.RedisDisable,
		Version:         thisBuild().Version,
		Admin:           c.Admin,
		Sync:            sync,
		Cache:           int64(c.Cache),
		MaxConns:        c.MaxConns,
		MaxBuffers:      int64(c.MaxBuffers),
		Drain:           c.Drain,
		Goroutines:      !c.Loop,
		Insecure:        c.Insecure,
		AcceptLoss:      c.AcceptLoss,
		Logger:          p.logger(c.Log, c.LogLevel),
	})
	var listen *daemon.ListenError
	if errors.As(err, &listen) && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("address %s is taken: stop what listens there, or choose another with --%s (port 0 picks a free one, off does without)",
			listen.Address, listen.Protocol)
	}
	return err
}

// logger logs to standard error. JSON has no times: there they are milliseconds.
func (p *program) logger(format, level string) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the flag allows only what it understands
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				return slog.Int64(a.Key+"_ms", a.Value.Duration().Milliseconds())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(p.stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.stderr, options))
}
