package client_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// noise is so many bytes that nothing can guess, but by their number.
func noise(n int) []byte {
	b := make([]byte, n+8)
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for at := 0; at < n; at += 8 {
		binary.LittleEndian.PutUint64(b[at:], random.Uint64())
	}
	return b[:n]
}

// sameBytes says so if a packet has not the payload.
func sameBytes(t testing.TB, what string, packets []*client.Packet, payload []byte) {
	t.Helper()
	if len(packets) != 1 || !bytes.Equal(packets[0].Payload, payload) {
		t.Errorf("%s: got %d packets, want one with %d bytes", what, len(packets), len(payload))
	}
}

func TestPayloadsOfEverySizeComeBackWhole(t *testing.T) {
	const mib = 1 << 20
	most := 8 * mib // in make sweep the longest of all
	if inject.Runs() >= 100 {
		most = broker.MaxPayload
	}
	sizes := []int{mib - 1, mib, mib + 1, most}
	for _, goroutines := range []bool{false, true} {
		t.Run(fmt.Sprint("goroutines ", goroutines), func(t *testing.T) {
			config := daemon.Config{Data: t.TempDir(), Sync: storage.SyncNever(), MaxPayload: int64(most), Goroutines: goroutines}
			addr, stop, err := serve(config)
			ok(t, err)
			c, ctx := connect(t, addr), t.Context()
			for _, n := range sizes {
				payload := noise(n)
				must(c.Push(ctx, "pop", payload))(t)
				sameBytes(t, "peek", must(c.Peek(ctx, "pop", 1))(t), payload)
				sameBytes(t, "pop", must(c.Pop(ctx, "pop"))(t), payload)
				must(c.Push(ctx, "claim", payload, client.Key("key"), client.Priority(uint32(n))))(t)
			}
			if _, err := c.Push(ctx, "pop", noise(most+1)); !errors.Is(err, client.ErrTooLarge) {
				t.Errorf("a payload of one byte more: got %v, want ErrTooLarge", err)
			}
			ok(t, stop())
			config.MaxPayload = mib // what is stored is served all the same
			addr, stop, err = serve(config)
			ok(t, err)
			c = connect(t, addr)
			if _, err := c.Push(ctx, "pop", noise(mib+1)); !errors.Is(err, client.ErrTooLarge) {
				t.Errorf("a payload of one byte more than 1 MiB: got %v, want ErrTooLarge", err)
			}
			for _, n := range sizes {
				packets := must(c.Claim(ctx, "claim"))(t)
				sameBytes(t, "claim", packets, noise(n))
				must(packets[0].Nack(ctx, client.RetryIn(0, errors.New("again"))))(t)
				packets = must(c.Claim(ctx, "claim"))(t)
				sameBytes(t, "the second claim", packets, noise(n))
				ok(t, packets[0].Ack(ctx))
			}
			want(t, "packets that are left", len(must(c.Queues(ctx, ""))(t)), 0)
			ok(t, stop())
		})
	}
}

// Each producer knows of its last push only that it may be there.
func TestSystemLongPayloadsSurviveAKillWholeOrNotAtAll(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	const producers, kills, size = 3, 3, 12 << 20
	acked, next := make(map[uint64]bool), uint64(0)
	var mu sync.Mutex
	server := startVictim(t, dir, "127.0.0.1:0")
	for range kills {
		var all sync.WaitGroup
		step := make(chan struct{}, 1000)
		for range producers {
			c := connect(t, server.addr)
			all.Go(func() { // ends with the server
				payload := noise(size)
				for {
					mu.Lock()
					next++
					id := next
					mu.Unlock()
					binary.LittleEndian.PutUint64(payload, id)
					if _, err := c.Push(ctx, "q", payload); err != nil {
						return
					}
					mu.Lock()
					acked[id] = true
					mu.Unlock()
					step <- struct{}{}
				}
			})
		}
		receive(t, step)
		receive(t, step)
		<-time.After(rand.N(50 * time.Millisecond)) // a kill comes at any moment
		server.kill()
		all.Wait()
		server = startVictim(t, dir, server.addr)
	}
	c, found := connect(t, server.addr), 0
	for {
		packets := must(c.Pop(ctx, "q"))(t)
		if len(packets) == 0 {
			break
		}
		payload := packets[0].Payload
		id, whole := binary.LittleEndian.Uint64(payload), noise(size)
		if copy(whole, payload[:8]); !bytes.Equal(payload, whole) {
			t.Errorf("packet %d came back with other bytes", id)
		}
		delete(acked, id)
		found++
	}
	if len(acked) > 0 || found == 0 {
		t.Errorf("%d packets are there, and %d that were acknowledged are not", found, len(acked))
	}
}

// pieces is a connection that brings an answer in small pieces, as a slow line does. It counts
// those that are read under the deadline of the piece before.
type pieces struct {
	net.Conn
	fresh bool
	late  *atomic.Int64
	all   *atomic.Int64
}

func (c *pieces) SetReadDeadline(at time.Time) error {
	c.fresh = true
	return c.Conn.SetReadDeadline(at)
}

func (c *pieces) Read(b []byte) (int, error) {
	if c.all.Add(1); !c.fresh {
		c.late.Add(1)
	}
	c.fresh = false
	return c.Conn.Read(b[:min(len(b), 4096)])
}

func TestALongAnswerOverASlowLineIsWaitedFor(t *testing.T) {
	var late, all atomic.Int64
	c, ctx := client.New(&redis.Options{
		Addr: startServer(t, storage.SyncNever()),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &pieces{Conn: conn, late: &late, all: &all}, err
		},
	}), t.Context()
	defer c.Close()
	must(c.PushBatch(ctx, "q", slices.Repeat([][]byte{noise(64 << 10)}, 16)))(t)
	for _, block := range [][]client.Option{{}, {client.Block(limit)}} {
		before := all.Load()
		want(t, "packets", len(must(c.Pop(ctx, "q", append(block, client.Count(8))...))(t)), 8)
		if n := all.Load() - before; n < 128 {
			t.Errorf("the answer came in %d pieces, want 128 or more", n)
		}
	}
	want(t, "pieces that had no time of their own", late.Load(), 0)
}

// A stub answers a pop without an end.
func TestADeadlineEndsAnAnswerThatStillComes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	go func() { // ends with l
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					switch strings.ToLower(lines.Text()) {
					case "hello":
						fmt.Fprint(conn, "%0\r\n")
					case "client":
						fmt.Fprint(conn, "+OK\r\n")
					case "qpop":
						for _, err := fmt.Fprint(conn, "*1000000\r\n"); err == nil; _, err = fmt.Fprint(conn, ":1\r\n") {
							<-time.After(time.Millisecond) // as a slow line has it
						}
					}
				}
			}()
		}
	}()
	c := client.New(&redis.Options{Addr: l.Addr().String(), ReadTimeout: 200 * time.Millisecond, DisableIdentity: true, MaxRetries: -1})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- second(c.Pop(ctx, "q")) }() // ends with ctx
	if err := receive(t, ended); !errors.Is(err, client.ErrUnknown) {
		t.Errorf("a pop whose time is over gives %v, want ErrUnknown", err)
	}
}
