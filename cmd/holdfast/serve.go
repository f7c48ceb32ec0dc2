package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/holdfast-queue/holdfast/cmd/cluster"
	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// serveCmd runs the server.
type serveCmd struct {
	config.Server
}

func (c *serveCmd) Help() string {
	return `Logs a line "listening" for each address once it serves there. SIGTERM or SIGINT makes it drain: it takes no new connections, answers what it has received, and ends with exit code 0. A second signal, half a second later or more, ends it at once. Neither loses anything that was acknowledged.

SIGHUP, or "holdfast reload", reloads what can change while it runs: users, passwords, certificates, the log level and the defaults of queues, all or nothing. The log says "reloaded" or "reload failed", and which keys of the config file have changed that need a restart.

Examples:

    holdfast serve
    holdfast serve --data /var/lib/holdfast --pinpriq 127.0.0.1:7171 --admin off
    holdfast serve --pinpriq 0.0.0.0:7070 --barbershop off --insecure --log json
    holdfast serve --config /etc/holdfast/holdfast.toml
    holdfast serve --redis 0.0.0.0:6379 --tls-cert certs/server.pem --tls-key certs/server-key.pem --redis-password-file password
    HOLDFAST_SYNC=interval:50ms holdfast serve`
}

func (c *serveCmd) Run(ctx context.Context, p *program, s *config.Sources) error {
	if err := c.Data.Check(false); err != nil {
		return err
	}
	settings, err := s.Daemon(&c.Server)
	if err != nil {
		return s.Locate(err)
	}
	level := new(slog.LevelVar)
	level.Set(c.Level())
	settings.Version = thisBuild().Version
	settings.Logger = p.logger(c.Log, level)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.hangups != nil {
		s.Follow(ctx, p.hangups(), p.args, &settings, level)
	}
	node, err := c.Cluster()
	switch {
	case err != nil:
	case node != nil:
		err = cluster.Run(ctx, settings, *node)
	default:
		err = daemon.Run(ctx, settings)
	}
	var listen *daemon.ListenError
	if errors.As(err, &listen) && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("address %s is taken: stop what listens there, or choose another with --%s (port 0 picks a free one, off does without)",
			listen.Address, listen.Protocol)
	}
	if errors.Is(err, peer.ErrPlain) {
		err = fmt.Errorf("%w: make them with \"holdfast tls init cell --nodes …\", and name this node's folder with --cluster-tls", err)
	}
	if err != nil {
		err = s.Locate(err)
	}
	return err
}

// logger logs to standard error. JSON has no times: there they are milliseconds.
func (p *program) logger(format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				return slog.Int64(a.Key+"_ms", a.Value.Duration().Milliseconds())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(p.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, options))
}
