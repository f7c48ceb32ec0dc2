package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

// silent is an address where connections are taken and nobody says a word.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestAClientOfACellGoesToTheNodeThatAnswers(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ok(t, gone.Close())
	all := []string{gone.Addr().String(), silent(t), startServer(t, storage.SyncNever())}
	c := client.New(&redis.Options{Addr: strings.Join(all, ","), ReadTimeout: 200 * time.Millisecond})
	defer c.Close()
	must(c.Push(t.Context(), "q", nil))(t)
	want(t, "packets", must(c.Len(t.Context(), "q"))(t), 1)
}

func TestDialsThatFailTogetherLeaveANodeOnce(t *testing.T) {
	t.Parallel()
	const gone, dials = "gone:1", 3
	all := []string{gone, startServer(t, storage.SyncNever()), "other:1"}
	var failing sync.WaitGroup
	failing.Add(dials)
	var mu sync.Mutex
	dialled := make(map[string]int)
	c := client.New(&redis.Options{Addr: strings.Join(all, ","), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		dialled[addr]++
		isTogether := dialled[addr] <= dials
		mu.Unlock()
		if addr == all[1] {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
		if addr == gone && isTogether {
			failing.Done()
			failing.Wait()
		}
		return nil, errors.New("nobody is there")
	}})
	defer c.Close()
	var calls sync.WaitGroup
	for range dials {
		calls.Go(func() {
			if _, err := c.Len(t.Context(), "q"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	want(t, "dials of the node that is gone", dialled[gone], dials)
	want(t, "dials of the one behind it", dialled[all[1]], dials)
}

// A node that takes over ends the connections that wait in it. The stub ends two before it greets.
func TestWhatWasNotSentIsSentOnAnotherConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	go func() { // ends with l
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); n%3 == 2 && lines.Scan(); {
				switch lines.Text() {
				case "hello":
					fmt.Fprint(conn, "-ERR unknown command\r\n")
				case "client":
					fmt.Fprint(conn, "+OK\r\n")
				case "QPUSH":
					fmt.Fprint(conn, "+17\r\n")
				}
			}
			_ = conn.Close()
		}
	}()
	options := redis.Options{Addr: l.Addr().String(), Protocol: 2, DisableIdentity: true}
	c := client.New(&options)
	want(t, "id", must(c.Push(t.Context(), "q", nil))(t), "17")
	ok(t, c.Close())
	options.MaxRetries = -1
	c = client.New(&options)
	defer c.Close()
	if _, err := c.Push(t.Context(), "q", nil); err == nil || strings.Contains(err.Error(), client.ErrUnknown.Error()) {
		t.Errorf("without a greeting a push gives %v", err)
	}
}
