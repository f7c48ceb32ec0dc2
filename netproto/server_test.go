package netproto

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// patience bounds every wait: far longer than any should take.
const patience = time.Minute

// lines is a protocol that echoes lines, but answers "big" with bigReply bytes and "bad" with an
// error.
type lines struct {
	mu    sync.Mutex
	peers []*Peer
}

func (p *lines) Name() string { return "lines" }

func (p *lines) Delivery() broker.Selection { return broker.Selection{} }

func (p *lines) Open(peer *Peer) Session {
	p.mu.Lock()
	p.peers = append(p.peers, peer)
	p.mu.Unlock()
	return lineSession{peer}
}

// unsent is how many bytes the first connection has to send, if there is one.
func (p *lines) unsent(s *Server) (n int64) {
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.peers) > 0 {
			n = p.peers[0].Unsent()
		}
		return nil
	})
	return n
}

// waitConns waits until the server has so many connections.
func (s *Server) waitConns(t *testing.T, want int) {
	t.Helper()
	waitFor(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.conns == want
	})
}

type lineSession struct{ peer *Peer }

const bigReply = 6 << 20

func (s lineSession) Serve(_ *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	for {
		end := bytes.IndexByte(buf[n:], '\n')
		if end < 0 {
			return n, Incomplete, nil
		}
		line := buf[n : n+end+1]
		n += end + 1
		switch string(line) {
		case "bad\n":
			return n, Incomplete, errors.New("bad line")
		case "big\n":
			s.peer.Out = append(s.peer.Out, make([]byte, bigReply)...)
			return n, More, nil // let it leave first
		default:
			s.peer.Out = append(s.peer.Out, line...)
		}
	}
}

func serveLines(t *testing.T, c Config) (*Server, *lines) {
	t.Helper()
	p := &lines{}
	c.Protocol = p
	return serve(t, c), p
}

// serve serves the protocol of c until the test ends.
func serve(t *testing.T, c Config) *Server {
	t.Helper()
	if c.Loop == nil {
		c.Loop = newLoop(t, LoopConfig{})
	}
	if c.TLS == nil && encrypted() {
		c.TLS = common().server
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(l, c)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		s.open.Wait()
	})
	return s
}

// goroutines has all connections read and written by goroutines. "make gate" runs both ways. Go's
// cache of results knows of variables that are read while a test runs.
func goroutines() bool { return os.Getenv("HOLDFAST_GOROUTINES") != "" }

// openStore opens a store in a folder of the test, with the state that is in it.
func openStore(t *testing.T) (*storage.Store, *recovery.State) {
	t.Helper()
	store, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store, state
}

// newLoop is a loop that is closed after the test's server.
func newLoop(t *testing.T, c LoopConfig) *Loop {
	t.Helper()
	store, state := openStore(t)
	m := broker.New(store, state, broker.Options{})
	c.Goroutines = goroutines()
	l, err := StartLoop(m, store, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func dial(t *testing.T, s *Server) *socket {
	t.Helper()
	if encrypted() {
		c, err := dialTLS(t, s, common().client)
		if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") { // as where there are too many
			t.Fatal(err)
		}
		return c
	}
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &socket{TCPConn: c.(*net.TCPConn)}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func wantRead(t *testing.T, c io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func wantEnd(t *testing.T, c io.Reader) {
	t.Helper()
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{c}); n != 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("read %d more bytes, %v; want the end", n, err)
	}
}

func TestRequestSplitAtEveryByteIsServedWhole(t *testing.T) {
	s, _ := serveLines(t, Config{})
	c := dial(t, s)
	_ = c.SetNoDelay(true)
	for _, b := range []byte("hello\n") {
		send(t, c, string(b))
	}
	wantRead(t, c, "hello\n")
}

func TestRequestsOfOneSegmentAreAllServed(t *testing.T) {
	s, _ := serveLines(t, Config{})
	c := dial(t, s)
	text := strings.Repeat("abc\n", 50_000)
	go func() { _, _ = io.WriteString(c, text) }()
	wantRead(t, c, text)
}

func TestHalfClosedPeerGetsItsReplies(t *testing.T) {
	s, _ := serveLines(t, Config{})
	c := dial(t, s)
	send(t, c, "a\nb\ncut")
	_ = c.CloseWrite()
	wantRead(t, c, "a\nb\n")
	wantEnd(t, c)
}

func TestRepliesBeforeAnErrorArriveAndTheConnectionEnds(t *testing.T) {
	s, _ := serveLines(t, Config{})
	c := dial(t, s)
	send(t, c, "a\nbad\n"+strings.Repeat("x", 100_000)) // bytes that the server does not read must not reset the connection
	wantRead(t, c, "a\n")
	wantEnd(t, c)
}

func TestConnectionLivesOnLongAfterASlowPeerCaughtUp(t *testing.T) {
	loop, pass := newLoopAtRest(t)
	s, p := serveLines(t, Config{Loop: loop})
	c := dial(t, s)
	send(t, c, "big\n")
	if _, err := io.ReadFull(c, make([]byte, bigReply)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return p.unsent(s) == 0 })
	pass(2 * DefaultWriteTimeout) // the deadline of the big write
	send(t, c, "still here\n")
	wantRead(t, c, "still here\n")
}

func TestPeerThatReadsNothingIsCutAfterTheWriteTimeout(t *testing.T) {
	s, _ := serveLines(t, Config{WriteTimeout: 50 * time.Millisecond})
	c := dial(t, s)
	_ = c.SetReadBuffer(32 << 10)
	send(t, c, "a\n")
	wantRead(t, c, "a\n")
	send(t, c, strings.Repeat("big\n", 8))
	s.waitConns(t, 0)
}

func TestRequestsOfAPeerThatDoesNotReadWait(t *testing.T) {
	s, p := serveLines(t, Config{MaxOutstandingBytes: 1 << 20})
	c := dial(t, s)
	const replies = 20
	go func() { _, _ = io.WriteString(c, strings.Repeat("big\n", replies)) }()
	waitFor(t, func() bool { return p.unsent(s) > 0 })
	r := bufio.NewReaderSize(c, 1<<20)
	for range replies * bigReply / (1 << 20) {
		if n := p.unsent(s); n > 2*bigReply {
			t.Fatalf("%d bytes are pending for a peer that does not keep up", n)
		}
		if _, err := r.Discard(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnfinishedFrameIsCutInTimeButAnIdleConnectionIsNot(t *testing.T) {
	s, _ := serveLines(t, Config{FrameTimeout: 100 * time.Millisecond})
	idle, slow, long := dial(t, s), dial(t, s), dial(t, s)
	send(t, idle, "a\n")
	wantRead(t, idle, "a\n")
	send(t, slow, "half a li")
	send(t, long, strings.Repeat("l", 200<<10))
	wantEnd(t, slow)
	wantEnd(t, long)
	send(t, idle, "b\n")
	wantRead(t, idle, "b\n")
}

func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	s, _ := serveLines(t, Config{MaxConns: 2})
	a, b := dial(t, s), dial(t, s)
	for _, c := range []*socket{a, b} {
		send(t, c, "x\n")
		wantRead(t, c, "x\n")
	}
	wantEnd(t, dial(t, s))
	_ = a.Close()
	s.waitConns(t, 1)
	c := dial(t, s)
	send(t, c, "x\n")
	wantRead(t, c, "x\n")
}

func TestShutdownServesWhatHasArrived(t *testing.T) {
	s, _ := serveLines(t, Config{})
	c := dial(t, s)
	send(t, c, "a\n")
	wantRead(t, c, "a\n")
	text := strings.Repeat("in flight\n", 1000)
	send(t, c, text)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantRead(t, c, text)
	wantEnd(t, c)
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Fatal("connected to a server that has shut down")
	}
}

func TestShutdownCutsWhatDoesNotFinishInTime(t *testing.T) {
	s, p := serveLines(t, Config{})
	c := dial(t, s)
	_ = c.SetReadBuffer(32 << 10)
	for range 8 {
		send(t, c, "big\n")
	}
	waitFor(t, func() bool { return p.unsent(s) > 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Shutdown gave %v, want that its time was over", err)
	}
}

// waitFor polls a condition that another goroutine brings about.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("condition did not come true in %v", patience)
		}
	}
}

// halfClosed serves a connection that asks for more than the socket holds, and reads nothing.
// Nothing keeps its few bytes and its end from being read.
func halfClosed(t *testing.T, config Config) (*Server, *socket) {
	t.Helper()
	config.MaxOutstandingBytes = 4 * bigReply
	s, _ := serveLines(t, config)
	c := dial(t, s)
	_ = c.SetReadBuffer(32 << 10)
	send(t, c, "big\nbig\n")
	_ = c.CloseWrite()
	waitFor(t, func() (finished bool) {
		_ = s.config.Loop.Do(func(*broker.Tx) error {
			for c := range s.config.Loop.conns {
				finished = c.phase >= finishing && c.Unsent() > 0
			}
			return nil
		})
		return finished
	})
	return s, c
}

// waitGone waits until no connection is left.
func (s *Server) waitGone(t *testing.T) {
	t.Helper()
	waitFor(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.conns == 0 })
}

func TestAResetEndsAConnectionThatIsSentItsLastReplies(t *testing.T) {
	s, c := halfClosed(t, Config{})
	_ = c.SetLinger(0)
	_ = c.Close()
	s.waitGone(t)
}

func TestTheWriteTimeoutEndsAConnectionThatIsSentItsLastReplies(t *testing.T) {
	loop, pass := newLoopAtRest(t)
	s, _ := halfClosed(t, Config{Loop: loop})
	waitFor(t, func() bool {
		pass(DefaultWriteTimeout) // again, where some has left late
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.conns == 0
	})
}

func TestReadersAreNotCutForWhatTheirRepliesTake(t *testing.T) {
	loop, _ := newLoopAtRest(t) // for which no reader takes nothing for a while
	s, _ := serveLines(t, Config{Loop: loop, Buffers: NewBuffers(1 << 20)})
	var readers sync.WaitGroup
	for range 8 {
		c := dial(t, s)
		send(t, c, "big\nend\n")
		readers.Go(func() {
			if n, err := io.CopyN(io.Discard, c, bigReply+int64(len("end\n"))); err != nil {
				t.Errorf("a reader got %d bytes, %v", n, err)
			}
		})
	}
	readers.Wait()
}

func TestAPeerAtItsEndThatDoesNotReadIsCutForWhatItTakes(t *testing.T) {
	loop, pass := newLoopAtRest(t)
	s, _ := halfClosed(t, Config{Loop: loop, Buffers: NewBuffers(maxReadBuffer), WriteTimeout: 100 * 24 * time.Hour})
	other := dial(t, s)
	waitFor(t, func() bool {
		pass(stallTime) // again, where some has left late
		send(t, other, "hello\n")
		wantRead(t, other, "hello\n")
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.conns == 1
	})
}

func TestAKillJustBeforeTheLoopLooksAtTheLinkEndsTheConnection(t *testing.T) {
	s, p := serveLines(t, Config{})
	c := dial(t, s)
	send(t, c, "a\n")
	wantRead(t, c, "a\n")
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		p.peers[0].Kill()
		if f, ok := p.peers[0].c.link.(*fed); ok {
			s.config.Loop.tell(f) // as when a write has ended
		}
		return nil
	})
	s.waitConns(t, 0)
}

func TestAConnectionThatIsAcceptedAsADrainBeginsEnds(t *testing.T) {
	s, _ := serveLines(t, Config{})
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()
	nc, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	c := &conn{loop: s.config.Loop, server: s, remote: netip.MustParseAddrPort("127.0.0.1:1")}
	if err := s.add(c); err != nil { // as start does before the drain, and the rest behind it
		t.Fatal(err)
	}
	ended := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { ended <- s.Shutdown(ctx) }()
	waitFor(t, s.isClosing)
	_ = s.config.Loop.Do(func(*broker.Tx) error { return nil }) // behind what the drain does
	if c.link, err = newLink(nc, c); err != nil {
		t.Fatal(err)
	}
	c.loop.post(c.start)
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
