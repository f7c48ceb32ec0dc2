package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// workServer is the flags of a command that talks to the work queue of a server.
type workServer struct {
	Redis   string        `default:"127.0.0.1:6379" address:"127.0.0.1:6379" placeholder:"HOST:PORT" help:"Address of the server for Redis clients (default ${default})."`
	DB      int           `name:"db" default:"0" range:"0 15" placeholder:"N" help:"Database, 0 to 15: each has queues of its own. Clients of other protocols use 0 (default ${default})."`
	Timeout time.Duration `default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the server (default ${default})."`

	redisPassword
}

// redisPassword is the flags for the password of Redis clients.
type redisPassword struct {
	RedisPassword     string `xor:"password" placeholder:"TEXT" help:"Password of Redis clients. Others can see a flag of a process: better use the variable or a file."`
	RedisPasswordFile string `xor:"password" placeholder:"FILE" help:"File that holds that password, without a line break at its end."`
}

// password is what the flags say, "" for none.
func (r *redisPassword) password() (string, error) {
	if r.RedisPasswordFile == "" {
		return r.RedisPassword, nil
	}
	text, err := os.ReadFile(r.RedisPasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the Redis password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", fmt.Errorf("file %s of --redis-password-file is empty: expected a password", r.RedisPasswordFile)
	}
	return password, nil
}

// variables say to a command what the flags say.
func (s *workServer) variables() []string {
	all := []string{"HOLDFAST_REDIS=" + s.Redis, "HOLDFAST_DB=" + strconv.Itoa(s.DB)}
	if s.RedisPassword != "" {
		all = append(all, "HOLDFAST_REDIS_PASSWORD="+s.RedisPassword)
	}
	if s.RedisPasswordFile != "" {
		all = append(all, "HOLDFAST_REDIS_PASSWORD_FILE="+s.RedisPasswordFile)
	}
	return all
}

// call runs fn with a client. When ctx ends, an answer that is on its way is still waited for.
func (s *workServer) call(ctx context.Context, fn func(context.Context, *client.Client) error) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return s.explain(ctx, fn(ctx, c))
}

// connect makes a client, which connects when it is first used. Its connections end soon after ctx.
func (s *workServer) connect(ctx context.Context) (*client.Client, error) {
	password, err := s.password()
	if err != nil {
		return nil, err
	}
	logging.Disable() // what it says is in the errors, too
	return client.New(&redis.Options{
		Addr: s.Redis, DB: s.DB, Password: password,
		Dialer:      s.dialer(ctx),
		DialTimeout: s.Timeout, ReadTimeout: s.Timeout, WriteTimeout: s.Timeout,
		DialerRetries: 1, MaxRetries: -1, // whoever is at the terminal can do it again
	}), nil
}

// lastAnswer is how long an interrupted command waits for an answer. It is enough to tell the
// server that a wait is over, and to hear what came of it.
const lastAnswer = 500 * time.Millisecond

// dialer makes connections that fail soon after ctx has ended: the library waits for replies
// without a look at it.
func (s *workServer) dialer(ctx context.Context) func(context.Context, string, string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: s.Timeout}
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(dialing, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswer, func() { _ = conn.Close() }) })
		}
		return conn, err
	}
}

// kind is the word that begins an error of the server, for programs.
var kind = regexp.MustCompile(`^[A-Z]+ `)

// explain says in words what went wrong.
func (s *workServer) explain(ctx context.Context, err error) error {
	var answer redis.Error
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return &refusal{err, answer}
	case isDial(err) && ctx.Err() == nil:
		return dialError(err, s.Redis, "--redis")
	case errors.Is(err, client.ErrUnknown) && ctx.Err() != nil, errors.Is(err, net.ErrClosed):
		return errors.New("interrupted: the server may have carried out the request")
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("server at %s did not answer within %v: it may have carried out the request", s.Redis, s.Timeout)
	case errors.Is(err, syscall.EPIPE) && !errors.Is(err, client.ErrUnknown):
		return fmt.Errorf("server at %s is gone: the request was not sent", s.Redis)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w; check that --redis %s is the server's address for Redis clients", err, s.Redis)
	}
	return err
}

// refusal is an error of the server without the word that is for programs.
type refusal struct{ err, answer error }

func (r *refusal) Error() string {
	words := r.answer.Error()
	return strings.Replace(r.err.Error(), words, kind.ReplaceAllString(words, ""), 1)
}

func (r *refusal) Unwrap() error { return r.err }
