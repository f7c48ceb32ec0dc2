package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// WorkQueue is the flags of a command that talks to the work queue of a server.
type WorkQueue struct {
	Redis   string        `group:"Connection" default:"127.0.0.1:6379" address:"127.0.0.1:6379" several:"" placeholder:"HOST:PORT" help:"Address of the server for Redis clients, or those of the nodes of a cell, with commas between (default ${default})."`
	DB      int           `group:"Connection" name:"db" default:"0" range:"0 15" placeholder:"N" help:"Database, 0 to 15: each has queues of its own. Clients of other protocols use 0 (default ${default})."`
	Timeout time.Duration `group:"Connection" default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the server (default ${default})."`

	Encryption `group:"Connection"`
	Login      `group:"Connection"`

	Empty bool `help:"Take an empty name of a queue for what it is. Without this flag it is refused."`
}

// Variables say to a command what the flags say: NAME=VALUE, as in os.Environ. An empty one takes
// the place of one that this program has, so that nothing else counts.
func (s *WorkQueue) Variables() []string {
	all := map[string]string{
		"redis": s.Redis, "db": strconv.Itoa(s.DB), "user": s.User, "password": s.Password.Text, "password-file": s.Password.File,
		"tls": "", "tls-ca": s.TLSCA, "tls-cert": s.TLSCert, "tls-key": s.TLSKey,
	}
	if s.TLS {
		all["tls"] = "true"
	}
	var env []string
	for flag, value := range all {
		env = append(env, config.VariableOf(flag)+"="+value)
	}
	return env
}

// Call runs fn with a client. When ctx ends, an answer that is on its way is still waited for.
// The error says in words what went wrong.
func (s *WorkQueue) Call(ctx context.Context, fn func(context.Context, *client.Client) error) error {
	c, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return s.Explain(ctx, fn(ctx, c))
}

// Connect makes a client, which connects when it is first used. Its connections end soon after ctx.
func (s *WorkQueue) Connect(ctx context.Context) (*client.Client, error) {
	user, password, err := s.Login.Read()
	if err != nil {
		return nil, err
	}
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	logging.Disable() // what it says is in the errors, too
	return client.New(&redis.Options{
		Addr: s.Redis, DB: s.DB, Username: user, Password: password,
		Dialer:      s.dialer(ctx, config),
		DialTimeout: s.Timeout, ReadTimeout: s.Timeout, WriteTimeout: s.Timeout,
		DialerRetries: 1, MaxRetries: -1, // whoever is at the terminal can do it again
	}), nil
}

// lastAnswer is how long an interrupted command waits for an answer. It is enough to tell the
// server that a wait is over, and to hear what came of it.
const lastAnswer = 500 * time.Millisecond

// dialer makes connections that fail soon after ctx has ended: the library waits for replies
// without a look at it.
func (s *WorkQueue) dialer(ctx context.Context, config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(dialing context.Context, _, address string) (net.Conn, error) {
		conn, err := connect(dialing, address, s.Timeout, config)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswer, func() { _ = conn.Close() }) })
		return conn, nil
	}
}

// LongerPayloads is what to do where a server finds a payload too large.
const LongerPayloads = "for longer payloads the server needs a larger --max-payload"

// kind is the word that begins an error of the server, for programs.
var kind = regexp.MustCompile(`^[A-Z]+ `)

// Explain says in words what went wrong in a call; nil if nothing did.
func (s *WorkQueue) Explain(ctx context.Context, err error) error {
	var answer redis.Error
	var network net.Error
	unknown := errors.Is(err, client.ErrUnknown)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		words := answer.Error() // people need not see the one for programs
		text := strings.Replace(err.Error(), words, kind.ReplaceAllString(words, ""), 1)
		text = strings.Replace(text, "as QPUSH replies with it", `as "holdfast push --id" and "holdfast list" print it`, 1)
		return s.Encryption.Explain(terminal.Reword(text, err), s.Redis)
	case isDial(err) && ctx.Err() == nil:
		return dialError(err, s.Redis, "--redis")
	case certificateError(err, s.Redis) != nil:
		return certificateError(err, s.Redis)
	case unknown && ctx.Err() != nil, errors.Is(err, net.ErrClosed):
		return errors.New("interrupted: the server may have carried out the request")
	case errors.As(err, &network) && network.Timeout():
		err := fmt.Errorf("server at %s did not answer within %v", s.Redis, s.Timeout)
		if unknown {
			err = fmt.Errorf("%w: it may have carried out the request", err)
		}
		return err
	case errors.Is(err, syscall.EPIPE) && !unknown:
		return fmt.Errorf("server at %s is gone: the request was not sent", s.Redis)
	case strings.Contains(err.Error(), `"HTTP/1.`): // in answer to the first words, before any request
		return fmt.Errorf("the server at %s speaks HTTP, and nothing was done: give its address for Redis clients with --redis", s.Redis)
	case errors.Is(err, io.EOF):
		return s.Encryption.Explain(fmt.Errorf("%w; check that --redis %s is the server's address for Redis clients", err, s.Redis), s.Redis)
	}
	return err
}
