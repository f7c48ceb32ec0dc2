package inmemory

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// applies is a store that may refuse a batch.
type applies struct {
	*storage.Store
	refuse error
}

func (a *applies) Apply(b *broker.Batch) error {
	if a.refuse != nil {
		return a.refuse
	}
	return a.Store.Apply(b)
}

// bench is a loop whose turns a test makes, with some clients.
type bench struct {
	t      *testing.T
	now    int64
	disk   *applies
	loop   netproto.Stepped
	server *netproto.Server
}

func newBench(t *testing.T) *bench {
	store, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: 1_000_000, disk: &applies{Store: store}}
	b.loop = netproto.NewStepped(broker.New(store, state, broker.Options{}), b.disk, netproto.LoopConfig{Clock: func() int64 { return b.now }})
	b.server = netproto.NewServer(nil, netproto.Config{Protocol: resp.New(resp.Config{}), Loop: b.loop.Loop})
	t.Cleanup(func() {
		if b.disk.refuse == nil {
			err = b.loop.End()
		}
		if err := errors.Join(err, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) connect() *Wire {
	b.t.Helper()
	w, err := Connect(b.server, netip.MustParseAddrPort("127.0.0.1:1000"))
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func (b *bench) turn() {
	b.t.Helper()
	if err := b.loop.Turn(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) want(w *Wire, want string) {
	b.t.Helper()
	if got := string(w.Take()); got != want {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnAnswerLeavesInTheTurnThatReadsTheRequestAndNotBefore(t *testing.T) {
	b := newBench(t)
	one, two := b.connect(), b.connect()
	one.Send([]byte("LPUSH q a\r\nLPUSH"))
	two.Send([]byte("BLPOP q r 0\r\n"))
	b.want(one, "")
	b.turn()
	b.want(one, ":1\r\n")
	b.want(two, "*2\r\n$1\r\nq\r\n$1\r\na\r\n")
	one.Send([]byte(" q b\r\n"))
	two.Send([]byte("BLPOP r 1\r\n"))
	b.turn()
	b.want(one, ":1\r\n")
	b.want(two, "")
	for b.loop.Idle() == 0 { // what a turn leaves to the next one
		b.turn()
	}
	if idle := b.loop.Idle().Milliseconds(); idle < 1 || idle > 1000 {
		t.Errorf("the loop would wait %d ms, want up to a second", idle)
	}
	b.now += 1000
	b.turn()
	b.want(two, "*-1\r\n")
}

func TestAClientThatTakesNothingGetsAllLater(t *testing.T) {
	b := newBench(t)
	w := b.connect()
	w.Stall(true)
	w.Send([]byte("PING\r\nPING\r\n"))
	b.turn()
	b.want(w, "")
	w.Stall(false)
	b.turn()
	b.want(w, strings.Repeat("+PONG\r\n", 2))
}

func TestAConnectionEndsWithItsClientAndWithTheLoop(t *testing.T) {
	b := newBench(t)
	w, other := b.connect(), b.connect()
	w.Send([]byte("PING\r\n"))
	w.HangUp()
	b.turn()
	b.turn()
	b.want(w, "+PONG\r\n")
	if !w.Closed() || other.Closed() {
		t.Errorf("closed: %v, and the other one: %v", w.Closed(), other.Closed())
	}
	other.Send([]byte("*1\r\n$-1\r\n")) // breaks the protocol
	b.turn()
	if !other.Ended() || other.Closed() {
		t.Error("it does not wait until its client has seen the end")
	}
	last := b.connect()
	b.turn()
	b.disk.refuse = errors.New("the device is gone")
	last.Send([]byte("SET k v\r\n"))
	if err := b.loop.Turn(); !errors.Is(err, b.disk.refuse) || b.loop.Turn() == nil {
		t.Errorf("the loop goes on: %v", err)
	}
	b.want(last, "")
	if err := b.loop.End(); !errors.Is(err, b.disk.refuse) || !last.Closed() {
		t.Errorf("it ends with %v", err)
	}
}
