package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// faultyStore is a store whose faults are planted while it is in use.
type faultyStore struct {
	Store
	level   atomic.Int32     // of the disk, beyond the real one
	full    atomic.Bool      // no batch finds room
	hold    chan struct{}    // if not nil, a batch waits until it is closed
	entered chan struct{}    // gets a value when one waits
	packet  func(before int) // if not nil, called before each packet that recovery reads
}

func (s *faultyStore) Space() storage.Space {
	space := s.Store.Space()
	space.Level = max(space.Level, storage.Level(s.level.Load()))
	return space
}

func (s *faultyStore) Apply(b *content.Batch) error {
	if s.full.Load() {
		return fmt.Errorf("no room: %w", storage.ErrFull)
	}
	if s.hold != nil {
		s.entered <- struct{}{}
		<-s.hold
	}
	return s.Store.Apply(b)
}

func (s *faultyStore) Walk(v storage.Visitor) error {
	n := 0
	if packet := v.Packet; packet != nil && s.packet != nil {
		v.Packet = func(id content.PacketID, m *content.Meta, rec []byte, damage error) error {
			s.packet(n)
			n++
			return packet(id, m, rec, damage)
		}
	}
	return s.Store.Walk(v)
}

// ask returns the status and the body of what the operator's port answers.
func ask(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience}
	answer, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// waitForAnswer asks until the answer is as wanted.
func waitForAnswer(t *testing.T, addr, path string, code int, want string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		got, body := ask(t, addr, path)
		if got == code && strings.Contains(body, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still answers %d, %q; want %d and %q", path, got, body, code, want)
		}
	}
}

func TestTheOperatorSeesHowFarRecoveryIs(t *testing.T) {
	const packets, read = 70_000, 1 << 16
	data := t.TempDir()
	r := run(t, Config{Data: data, Sync: storage.SyncNever()})
	client := dialClient(t, r.addrs["pinpriq"])
	for range packets {
		if err := client.Push("q", nil, pinpriq.PushOptions{Priority: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if err := r.end(t); err != nil {
		t.Fatal(err)
	}

	release := make(chan struct{})
	store := &faultyStore{packet: func(before int) {
		if before == packets-1 {
			<-release
		}
	}}
	operator, ended, ctx := make(chan string, 1), make(chan error, 1), t.Context()
	go func() { // ends with ctx
		ended <- Run(ctx, Config{
			Data: data, Pinpriq: "127.0.0.1:0", Admin: "127.0.0.1:0",
			WrapStore: func(s Store) Store { store.Store = s; return store },
			Listening: func(protocol string, addr net.Addr) {
				if protocol == "admin" {
					operator <- addr.String()
				}
			},
		})
	}()
	var addr string
	select {
	case addr = <-operator:
	case err := <-ended:
		t.Fatalf("the server did not start: %v", err)
	}
	waitForAnswer(t, addr, "/readyz", 503, fmt.Sprintf("recovering: %d of about %d records", read, packets))
	if code, body := ask(t, addr, "/livez"); code != 200 || body != "ok\n" {
		t.Errorf("/livez answers %d, %q while the server recovers", code, body)
	}
	if code, body := ask(t, addr, "/backup"); code != 503 || !strings.Contains(body, "recovering") {
		t.Errorf("/backup answers %d, %q while the server recovers", code, body)
	}
	var released atomic.Bool
	health := make(chan string, 1)
	go func() { // ends with the answer
		answer, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			answer.Body.Close()
			health <- fmt.Sprint(answer.StatusCode, released.Load())
		} else {
			health <- err.Error()
		}
	}()
	waitForAnswer(t, addr, "/readyz", 503, "recovering")
	released.Store(true)
	close(release)
	waitForAnswer(t, addr, "/readyz", 200, "ok\n")
	if got := <-health; got != "200 true" {
		t.Errorf("/healthz answered %s, want 200 when the server serves, and not before", got)
	}
	if code, _ := ask(t, addr, "/backup"); code != 200 {
		t.Errorf("/backup answers %d when the server serves", code)
	}
}

func TestTheServerIsNotReadyWhileTakesAreRefused(t *testing.T) {
	store := &faultyStore{}
	r := run(t, Config{Data: t.TempDir(), WrapStore: func(s Store) Store { store.Store = s; return store }})
	addr := r.addrs["admin"]
	waitForAnswer(t, addr, "/readyz", 200, "ok\n")
	store.level.Store(int32(storage.NoPush))
	waitForAnswer(t, addr, "/readyz?push", 503, "pushes are refused")
	waitForAnswer(t, addr, "/readyz", 200, "ok\n") // those who take free the room
	store.level.Store(int32(storage.Stop))
	waitForAnswer(t, addr, "/readyz", 503, "disk is full")
	store.level.Store(int32(storage.Normal))
	waitForAnswer(t, addr, "/readyz?push", 200, "ok\n")

	store.full.Store(true)
	client := dialClient(t, r.addrs["pinpriq"])
	if err := errors.Join(client.Push("q", nil, pinpriq.PushOptions{Priority: 1}), client.Flush()); err != nil {
		t.Fatal(err)
	}
	waitForAnswer(t, addr, "/readyz", 503, "disk is full")
	for _, path := range []string{"/livez", "/owner", "/healthz", "/backup"} {
		if code, body := ask(t, addr, path); code != 200 {
			t.Errorf("%s answers %d, %q while the disk is full", path, code, body)
		}
	}
	store.full.Store(false)
	waitForAnswer(t, addr, "/readyz", 200, "ok\n")
}

func TestWithoutMemoryTheServerIsReadyForTakesAlone(t *testing.T) {
	r := run(t, Config{Data: t.TempDir(), MaxMemory: 16 << 20}) // less than any server needs
	waitForAnswer(t, r.addrs["admin"], "/readyz?push", 503, "memory is nearly full")
	waitForAnswer(t, r.addrs["admin"], "/readyz", 200, "ok\n")
	client := dialClient(t, r.addrs["pinpriq"])
	if err := errors.Join(client.Push("q", nil, pinpriq.PushOptions{Priority: 1}), client.Flush()); err != nil {
		t.Fatal(err)
	}
	if client.Sync(t.Context()) == nil {
		t.Error("a push was taken")
	}
}

func TestTheServerIsNotReadyWhileItDrains(t *testing.T) {
	store := &faultyStore{hold: make(chan struct{}), entered: make(chan struct{}, 1)}
	r := run(t, Config{Data: t.TempDir(), Drain: patience, WrapStore: func(s Store) Store { store.Store = s; return store }})
	client := dialClient(t, r.addrs["pinpriq"])
	if err := errors.Join(client.Push("q", nil, pinpriq.PushOptions{Priority: 1}), client.Flush()); err != nil {
		t.Fatal(err)
	}
	<-store.entered
	r.stop()
	waitForAnswer(t, r.addrs["admin"], "/readyz", 503, "draining")
	waitForAnswer(t, r.addrs["admin"], "/owner", 503, "draining")
	close(store.hold)
	if err := r.end(t); err != nil {
		t.Errorf("Run gave %v", err)
	}
}

func TestALoopThatDoesNotTurnIsNotAlive(t *testing.T) {
	h := newHealth()
	if err := h.Live(); err != nil {
		t.Errorf("before there is a loop: %v", err)
	}
	h.phase.Store(int32(serving))
	h.pulse.Store(&pulse{at: time.Now()})
	if err := errors.Join(h.Live(), h.Ready()); err != nil {
		t.Errorf("with a pulse: %v", err)
	}
	h.pulse.Store(&pulse{at: time.Now().Add(-stuckAfter - time.Second)})
	for name, err := range map[string]error{"Live": h.Live(), "Ready": h.Ready()} {
		if err == nil || !strings.Contains(err.Error(), "stuck: ") {
			t.Errorf("%s of a loop without a pulse says %v", name, err)
		}
	}
}

func TestAMachineThatFollowsIsReadyWhileThereIsAnOwnerWhichItIsNot(t *testing.T) {
	h, none := newHealth(), errors.New("no node owns")
	says := func(what, ready, owns string) {
		t.Helper()
		if gotReady, gotOwns := fmt.Sprint(h.Ready()), fmt.Sprint(h.Owns()); gotReady != ready || gotOwns != owns {
			t.Errorf("%s: Ready is %s, Owns %s; want %s and %s", what, gotReady, gotOwns, ready, owns)
		}
	}
	h.follow(func() (string, error) { return "node b", nil })
	says("behind an owner", "<nil>", "following: node b owns the queues")
	h.follow(func() (string, error) { return "", none })
	says("without an owner", "no node owns", "no node owns")
	held := func() bool { return true }
	h.held.Store(&held)
	h.pulse.Store(&pulse{at: time.Now()})
	h.enter(serving)
	says("the owner", "<nil>", "<nil>")
	held = func() bool { return false }
	says("an owner that may be one no more", "<nil>", netproto.ErrNotHeld.Error())
	h.pulse.Store(&pulse{at: time.Now().Add(-time.Hour)})
	h.rest() // the folder may take long
	says("between two roles", "starting: the data folder is being opened", "starting: the data folder is being opened")
	if err := h.Live(); err != nil {
		t.Errorf("between two roles it is not alive: %v", err)
	}
}

// hungStore is a store whose disk does not answer until release is closed.
type hungStore struct {
	Store
	entered, release chan struct{}
}

func (s hungStore) Apply(*content.Batch) error {
	close(s.entered)
	<-s.release
	return nil
}

func TestALoopThatWaitsForTheDiskIsAliveButNotReady(t *testing.T) {
	h, disk, done := newHealth(), hungStore{entered: make(chan struct{}), release: make(chan struct{})}, make(chan error)
	h.phase.Store(int32(serving))
	h.pulse.Store(&pulse{at: time.Now().Add(-time.Minute)})
	go func() { done <- loopStore{Store: disk, health: h}.Apply(nil) }() // ends when the disk answers
	<-disk.entered
	if err := h.Live(); err != nil {
		t.Errorf("Live says %v of a slow disk", err)
	}
	if err := h.Ready(); err == nil || !strings.Contains(err.Error(), "the disk has not answered for about 1m0s") {
		t.Errorf("Ready says %v", err)
	}
	h.pulse.Store(&pulse{at: time.Now().Add(-hungAfter - time.Second)})
	if h.Live() == nil {
		t.Error("the server is alive on a disk that never answers")
	}
	h.pulse.Store(&pulse{at: time.Now().Add(-time.Minute)})
	close(disk.release)
	if err := <-done; err != nil || h.Live() == nil {
		t.Errorf("Apply gave %v, and Live %v of a loop that is busy without the disk", err, h.Live())
	}
}

// spaceStore is a store whose disk has a state.
type spaceStore struct {
	Store
	space storage.Space
}

func (s spaceStore) Space() storage.Space { return s.space }

func TestTheLoopHasTheRoomOfTheDiskAndOfTheOtherMachines(t *testing.T) {
	memory := watermark{limit: 1000, phase: new(atomic.Int32)}
	memory.look(890)
	known := storage.Memory{Used: 890, Limit: 1000, Level: storage.NoPush}
	own := storage.Space{Free: 7, Level: storage.NoPush, Wait: time.Second, Memory: known}
	for _, c := range []struct {
		level storage.Level
		wait  time.Duration
		want  storage.Space
	}{
		{storage.Normal, 0, own},
		{storage.Stop, time.Minute, storage.Space{Free: 7, Level: storage.Stop, Wait: time.Minute, Memory: known}},
	} {
		s := loopStore{Store: spaceStore{space: own}, room: func() (storage.Level, time.Duration) { return c.level, c.wait }, memory: &memory}
		if got := s.Space(); got != c.want {
			t.Errorf("%v and %v: %+v, want %+v", c.level, c.wait, got, c.want)
		}
	}
	if got := (loopStore{Store: spaceStore{space: own}, memory: &memory}).Space(); got != own {
		t.Errorf("alone: %+v", got)
	}
}

// notified is what systemd was told, one text for each time.
func notified(t *testing.T) *net.UnixConn {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "") // the path of a socket has less than 104 bytes, and t.TempDir may be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	_ = socket.SetReadDeadline(time.Now().Add(patience))
	t.Setenv("NOTIFY_SOCKET", path)
	return socket
}

// waitForNotice reads until a text has what is wanted, and returns that text.
func waitForNotice(t *testing.T, socket *net.UnixConn, want string) string {
	t.Helper()
	b := make([]byte, 4096)
	for {
		n, err := socket.Read(b)
		if err != nil {
			t.Fatalf("%q was not told: %v", want, err)
		}
		if strings.Contains(string(b[:n]), want) {
			return string(b[:n])
		}
	}
}

func TestSystemdIsToldHowTheRunGoes(t *testing.T) {
	socket := notified(t)
	t.Setenv("WATCHDOG_USEC", "100000")
	r := run(t, Config{Data: t.TempDir(), Drain: 3 * time.Second})
	for _, want := range []string{
		"STATUS=starting: the data folder is being opened\nEXTEND_TIMEOUT_USEC=60000000",
		"READY=1",
		"STATUS=serving\nWATCHDOG=1",
		"WATCHDOG=1",
	} {
		waitForNotice(t, socket, want)
	}
	r.stop()
	waitForNotice(t, socket, "STOPPING=1\nEXTEND_TIMEOUT_USEC=63000000")
	if err := r.end(t); err != nil {
		t.Errorf("Run gave %v", err)
	}
}

func TestSystemdDoesNotHearOfALoopThatIsStuck(t *testing.T) {
	socket := notified(t)
	h := newHealth()
	close(h.served)
	h.phase.Store(int32(serving))
	h.pulse.Store(&pulse{at: time.Now().Add(-time.Hour)})
	h.tellState(t.Context(), true)
	if got := waitForNotice(t, socket, "STATUS=stuck"); strings.Contains(got, "WATCHDOG") {
		t.Errorf("systemd was told %q", got)
	}
}

func TestAStartThatIsToEndAsksForNoMoreTime(t *testing.T) {
	socket := notified(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	newHealth().tellState(ctx, true)
	if got := waitForNotice(t, socket, "STATUS=starting"); strings.Contains(got, "EXTEND") {
		t.Errorf("systemd was told %q", got)
	}
}

func TestSystemdIsToldOfAReload(t *testing.T) {
	socket := notified(t)
	Reloading(func() { tell("STATUS=in the middle") })
	for _, want := range []string{"RELOADING=1\nMONOTONIC_USEC=", "in the middle", "READY=1"} {
		waitForNotice(t, socket, want)
	}
}

func TestALoopThatDoesNotTurnYetHasSomeTime(t *testing.T) {
	for name, c := range map[string]struct {
		is   phase
		ago  time.Duration
		want bool
	}{
		"it makes its queues":       {recovering, newTime / 2, true},
		"it makes them for ever":    {recovering, newTime + time.Second, false},
		"it serves, and was silent": {serving, newTime / 2, false},
	} {
		s := &Server{health: newHealth()}
		s.health.phase.Store(int32(c.is))
		s.health.got.Store(time.Now().Add(-c.ago).UnixNano())
		if got := s.GotOn(time.Second); got != c.want {
			t.Errorf("%s: it gets on: %v", name, got)
		}
	}
}
