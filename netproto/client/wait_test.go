package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestConsumersThatWaitLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	addr := startServer(t, storage.SyncNever())
	c, other, ctx := client.New(&redis.Options{Addr: addr, PoolSize: 1}), connect(t, addr), t.Context()
	defer c.Close()
	done := make(chan struct{}, 1)
	var ended []<-chan error
	for _, queue := range []string{"a", "b"} {
		ended = append(ended, consume(ctx, c, queue, func(context.Context, *client.Packet) error {
			done <- struct{}{}
			return nil
		}, client.Concurrency(2)))
		must(other.Push(ctx, queue, nil))(t)
		receive(t, done)
	}
	drain(t, c)
	for i := range ended {
		ok(t, receive(t, ended[i]))
	}
	want(t, "left", len(must(other.Queues(ctx, ""))(t)), 0)
}

// A server that is stopped keeps its connections, and answers nothing.
func TestAWaitEndsWithItsContextThoughTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := startVictim(t, t.TempDir(), "127.0.0.1:0")
	const soon = 2 * time.Second
	c := client.New(&redis.Options{Addr: server.addr, DialTimeout: soon, ReadTimeout: soon, MaxRetries: -1})
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	popped := make(chan error, 1)
	go func() { // ends with ctx
		_, err := c.Pop(ctx, "q", client.Block(0))
		popped <- err
	}()
	blocked(t, connect(t, server.addr))
	ok(t, server.cmd.Process.Signal(syscall.SIGSTOP))
	must(syscall.Wait4(server.cmd.Process.Pid, nil, syscall.WUNTRACED, nil))(t) // it has stopped
	cancel()
	if err := receive(t, popped); !errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("the pop gives %v, want ErrUnknown for the end of its context", err)
	}
}

// The connection that waits is of another user than the one that ends waits.
func TestAWaitThatTheServerMayNotEndTakesNothingMore(t *testing.T) {
	t.Parallel()
	user := func(name string) access.User {
		return access.User{Name: name, Password: name, Grants: access.Everything()}
	}
	addr := startServer(t, storage.SyncNever(), user("a"), user("b"))
	var logins atomic.Int32
	c, boss := client.New(&redis.Options{Addr: addr, CredentialsProvider: func() (name, password string) {
		name = []string{"a", "b"}[logins.Add(1)-1]
		return name, name
	}}), connectAs(t, addr, "a")
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	popped := make(chan error, 1)
	go func() { // ends with ctx
		_, err := c.Pop(ctx, "q", client.Block(0))
		popped <- err
	}()
	blocked(t, boss)
	cancel()
	if err := receive(t, popped); !errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("the pop gives %v, want ErrUnknown for the end of its context", err)
	}
	awaitBlocked(t, boss, false)
	must(boss.Push(t.Context(), "q", nil))(t)
	want(t, "packets", must(boss.Len(t.Context(), "q"))(t), 1)
}

// Each start has the same connections in the same order.
func TestAnIDOfBeforeARestartIsThatOfNoConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var old []int64
	for range 3 {
		addr, stop, err := serve(daemon.Config{Data: dir, Sync: storage.SyncNever()})
		ok(t, err)
		waits, c := connect(t, addr).Redis().Conn(), connect(t, addr)
		id := must(waits.ClientID(t.Context()).Result())(t)
		ended := make(chan error, 1)
		go func() { ended <- waits.BLPop(t.Context(), 0, "q").Err() }() // ends with the push
		blocked(t, c)
		for _, id := range old {
			want(t, "unblocked", must(c.Redis().ClientUnblock(t.Context(), id).Result())(t), 0)
			want(t, "killed", must(c.Redis().ClientKillByFilter(t.Context(), "ID", fmt.Sprint(id)).Result())(t), 0)
		}
		must(c.Push(t.Context(), "q", nil))(t)
		ok(t, receive(t, ended))
		ok(t, stop())
		old = append(old, id)
	}
}

// A stub shows what is asked for.
func TestAPushAsksForAllOfItsWaitAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	asked := make(chan string, 1)
	go func() { // ends with the connection
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			switch lines.Text() {
			case "hello":
				fmt.Fprint(conn, "-ERR unknown command\r\n")
			case "client":
				lines.Scan()
				lines.Scan()
				fmt.Fprint(conn, map[string]string{"setname": "+OK\r\n", "id": ":1\r\n"}[lines.Text()])
			case "BLOCK":
				lines.Scan()
				lines.Scan()
				asked <- lines.Text()
				fmt.Fprint(conn, "+17\r\n")
			}
		}
	}()
	c := client.New(&redis.Options{Addr: l.Addr().String(), Protocol: 2, DisableIdentity: true})
	defer c.Close()
	want(t, "id", must(c.Push(t.Context(), "q", nil, client.Block(5*time.Minute)))(t), "17")
	want(t, "milliseconds", receive(t, asked), "300000")
}
