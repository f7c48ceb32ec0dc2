package pinpriq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// limit bounds every wait: far longer than any should take.
const limit = 30 * time.Second

// logText is a log as one text.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), words)
}

func (l *logText) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

// serve runs a server on a store of its own until the test ends. The batch, if not nil, is in the
// store when it starts.
func serve(t *testing.T, batch *content.Batch) (addr string, log *logText) {
	t.Helper()
	return serveTo(t, batch, access.Plain{})
}

// serveTo serves users.
func serveTo(t *testing.T, batch *content.Batch, users access.Plain) (addr string, log *logText) {
	t.Helper()
	store, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	if batch != nil {
		if err := store.Apply(batch); err != nil {
			t.Fatal(err)
		}
	}
	state, err := recovery.Restore(store, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	log = &logText{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	m := broker.New(store, state, broker.Options{Logger: logger})
	loop, err := netproto.StartLoop(m, store, netproto.LoopConfig{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := netproto.NewServer(l, netproto.Config{
		Protocol: pinpriq.Protocol{Users: users}, Loop: loop, Logger: logger,
	})
	if users.Control != nil {
		users.Control.Watch(server.Review)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }() // ends with the test
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served, loop.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.Addr().String(), log
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(limit))
	return conn
}

// frames encodes requests.
func frames(t *testing.T, requests ...pinpriq.Request) (all []byte) {
	t.Helper()
	for i := range requests {
		var err error
		if all, err = requests[i].Append(all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// wideBatch holds queue q with small packets and one of 100 KiB, two of the small ones with its
// key, and queue wide with nothing small.
func wideBatch() *content.Batch {
	b := new(content.Batch)
	for i, name := range []string{"q", "wide"} {
		b.PutQueue(content.Queue{ID: uint32(i) + 1, Name: []byte(name), New: true})
	}
	long := bytes.Repeat([]byte("x"), 100<<10)
	for i, p := range []struct {
		queue, priority uint32
		key, payload    []byte
	}{
		{1, 1, []byte("k"), []byte("one")},
		{1, 1, []byte("k"), long},
		{1, 2, []byte("k"), []byte("two")},
		{1, 1, []byte("other"), long},
		{1, 3, []byte("other"), []byte("three")},
		{2, 1, long[:pinpriq.MaxKey+1], []byte("long key")},
	} {
		id := content.PacketID{Queue: p.queue, Priority: p.priority, Seq: uint64(i) + 1}
		b.Put(id, &content.Packet{Key: p.key, Payload: p.payload})
	}
	b.SetMarks(content.Marks{NextSeq: 100, NextQueue: 3})
	return b
}

func TestPacketsThatDoNotFitStayQueuedAndTheStreamStaysInStep(t *testing.T) {
	addr, log := serve(t, wideBatch())
	client := pinpriq.NewClient(dial(t, addr))
	for _, row := range []struct {
		queue string
		want  []string
	}{
		{"q", []string{"one", "two"}}, {"q", []string{"three"}}, {"q", nil}, {"wide", nil}, {"wide", nil},
	} {
		packets, err := client.Pop(t.Context(), row.queue)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range packets {
			got = append(got, string(p.Payload))
		}
		if !slices.Equal(got, row.want) {
			t.Fatalf("a pop of %s gave %.20q, want %q", row.queue, got, row.want)
		}
	}
	subscriber := pinpriq.NewClient(dial(t, addr))
	err := errors.Join(subscriber.Subscribe("q"), subscriber.Subscribe("wide"), subscriber.Ready(), subscriber.Flush(),
		client.Push("wide", []byte("small"), pinpriq.PushOptions{Priority: 1}), client.Flush())
	if err != nil {
		t.Fatal(err)
	}
	got, err := subscriber.Receive(t.Context())
	if err != nil || len(got) != 1 || string(got[0].Payload) != "small" {
		t.Fatalf("delivered %d packets (%v), want the small one", len(got), err)
	}
	for _, q := range []string{"q", "wide"} {
		if n := log.count("queue=" + q + " "); n != 1 {
			t.Errorf("%d lines in the log about queue %s, want 1", n, q)
		}
	}
}

// gatedBatch holds the queue paused with a packet, the queue closed, and the queue mine, of one
// client.
func gatedBatch() *content.Batch {
	b := new(content.Batch)
	b.PutQueue(content.Queue{ID: 1, Name: []byte("paused"), New: true, Settings: &content.Settings{PauseOut: true}})
	b.PutQueue(content.Queue{ID: 2, Name: []byte("closed"), New: true, Settings: &content.Settings{Closed: true}})
	b.PutQueue(content.Queue{ID: 3, Name: []byte("mine"), New: true, Settings: &content.Settings{ExclusiveProducer: true, ExclusiveConsumer: true}})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Key: []byte("k"), Payload: []byte("x")})
	b.SetMarks(content.Marks{NextSeq: 100, NextQueue: 4})
	return b
}

func TestAQueueThatIsPausedClosedOrAnothersRefusesAsTheDocumentSays(t *testing.T) {
	addr, log := serve(t, gatedBatch())
	first := dial(t, addr)
	owner := pinpriq.NewClient(first)
	if err := owner.Push("mine", []byte("m"), pinpriq.PushOptions{Priority: 1}); err != nil {
		t.Fatal(err)
	}
	for queue, want := range map[string]int{"paused": 0, "closed": 0, "mine": 1} {
		if got, err := owner.Pop(t.Context(), queue); err != nil || len(got) != want {
			t.Errorf("a pop of %s gave %d packets (%v), want %d", queue, len(got), err, want)
		}
	}
	for request, why := range map[*pinpriq.Request]string{
		{Op: pinpriq.OpPush, Queue: []byte("closed"), Priority: 1}: "queue is closed",
		{Op: pinpriq.OpPush, Queue: []byte("mine"), Priority: 1}:   "is its only producer",
		{Op: pinpriq.OpPop, Queue: []byte("mine")}:                 "is its only consumer",
		{Op: pinpriq.OpSubscribe, Queue: []byte("mine")}:           "is its only consumer",
	} {
		conn := dial(t, addr)
		before := log.count(why)
		if _, err := conn.Write(frames(t, *request)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%+v is answered, want the end of the connection", *request)
		}
		for log.count(why) == before {
		}
		if !log.has(first.LocalAddr().String()) && strings.Contains(why, "only") {
			t.Errorf("the log does not name the client that has the queue")
		}
	}
}

// groupBatch holds the queue q with a packet that can be selected, and members of its group that
// cannot.
func groupBatch(members uint64) *content.Batch {
	b := new(content.Batch)
	b.PutQueue(content.Queue{ID: 1, Name: []byte("q"), New: true})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: members + 1}, &content.Packet{Key: []byte("k")})
	for i := range members {
		b.Put(content.PacketID{Queue: 1, Seq: i + 1}, &content.Packet{Key: []byte("k")})
	}
	b.SetMarks(content.Marks{NextSeq: members + 2, NextQueue: 2})
	return b
}

func TestAPopTakesAWholeGroup(t *testing.T) {
	addr, _ := serve(t, groupBatch(3*broker.MaxChanged))
	client := pinpriq.NewClient(dial(t, addr))
	for _, want := range []int{3*broker.MaxChanged + 1, 0} {
		got, err := client.Pop(t.Context(), "q")
		if err != nil || len(got) != want {
			t.Fatalf("a pop gave %d packets (%v), want %d", len(got), err, want)
		}
	}
}

func TestAPopGoesOnWhereTheHeadOfTheQueueHasExpired(t *testing.T) {
	const many = 20_000 // more than a take deletes
	b := new(content.Batch)
	b.PutQueue(content.Queue{ID: 1, Name: []byte("q"), New: true})
	soon := time.Now().Add(300 * time.Millisecond).UnixMilli()
	for i := range uint64(many) {
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: i + 1}, &content.Packet{Key: strconv.AppendUint(nil, i, 10), Expiry: soon})
	}
	b.Put(content.PacketID{Queue: 1, Priority: 9, Seq: many + 1}, &content.Packet{Payload: []byte("alive")})
	b.SetMarks(content.Marks{NextSeq: many + 2, NextQueue: 2})
	addr, _ := serve(t, b)
	client := pinpriq.NewClient(dial(t, addr))
	for alive := false; !alive; { // the first pops are before that moment
		got, err := client.Pop(t.Context(), "q")
		if err != nil || len(got) != 1 {
			t.Fatalf("a pop gave %d packets (%v), want one", len(got), err)
		}
		alive = string(got[0].Payload) == "alive"
	}
}
