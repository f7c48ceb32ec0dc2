package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/recovery/dump"
)

// patience is how long a test waits for what must happen; only a failing one waits that long.
const patience = 30 * time.Second

// running is a server inside the test.
type running struct {
	addrs map[string]string // by protocol
	stop  context.CancelFunc
	ended chan error // what Run returned
}

// run starts a server on all protocols and on free ports, and returns when it listens on all.
// Sentinel is served if the configuration says so.
func run(t *testing.T, c Config) *running {
	t.Helper()
	type found struct{ protocol, addr string }
	listeners := 4
	if c.Sentinel != "" {
		listeners++
	}
	listening := make(chan found, listeners)
	c.Pinpriq, c.Barbershop, c.Redis, c.Admin = "127.0.0.1:0", "127.0.0.1:0", cmp.Or(c.Redis, "127.0.0.1:0"), "127.0.0.1:0"
	c.Listening = func(protocol string, addr net.Addr) { listening <- found{protocol, addr.String()} }
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{addrs: make(map[string]string), stop: cancel, ended: make(chan error, 1)}
	over := make(chan struct{})
	go func() { r.ended <- Run(ctx, c); close(over) }() // ends with ctx
	t.Cleanup(func() {                                  // before the folder goes, in which it still writes
		cancel()
		<-over
	})
	for range cap(listening) {
		select {
		case f := <-listening:
			r.addrs[f.protocol] = f.addr
		case err := <-r.ended:
			t.Fatalf("the server did not start: %v", err)
		}
	}
	return r
}

func TestTheLogNamesThePageAndTheEnd(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1:72": "http://127.0.0.1:72/", "[::1]:72": "http://[::1]:72/", "0.0.0.0:72": "http://localhost:72/", "[::]:72": "http://localhost:72/"} {
		if got := pageAddress(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)), false); got != want {
			t.Errorf("the page at %s is %s, want %s", address, got, want)
		}
	}
	var log lockedBuffer
	r := run(t, Config{Data: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r.stop()
	if err := r.end(t); err != nil {
		t.Fatal(err)
	}
	if said := log.String(); !strings.Contains(said, `msg="serving the page" open=http://`+r.addrs["admin"]+"/\n") || !strings.HasSuffix(said, "msg=stopped\n") {
		t.Errorf("the log is\n%s\nwant the address of the page, and at last that the server has stopped", said)
	}
}

// end waits for the end of the server.
func (r *running) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		t.Fatal("the server is still running")
		return nil
	}
}

func TestAllProtocolsServeTheSameQueues(t *testing.T) {
	r := run(t, Config{Data: t.TempDir(), BarbershopQueue: "board", Version: "v1"})
	client := dialClient(t, r.addrs["pinpriq"])
	if err := errors.Join(client.Push("board", nil, pinpriq.PushOptions{Key: []byte("17"), Priority: 1}), client.Sync(t.Context())); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.addrs["barbershop"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	const want = "OK\r\n"
	got := make([]byte, len(want))
	if _, err := io.WriteString(conn, "update 18 5\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("update: %q, %v", got, err)
	}
	body, err := (&admin.Client{Address: r.addrs["admin"], Timeout: patience}).Fetch(t.Context(), admin.Request{Format: admin.FormatMsgpack})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	report, err := dump.Read(t.Context(), body, nil, nil)
	if err != nil || report.Packets != 2 || report.Queues != 1 {
		t.Errorf("backup %+v, %v; want what came through both protocols", report, err)
	}
	if body.Packets != report.Packets {
		t.Errorf("%d packets were announced, want %d", body.Packets, report.Packets)
	}
	r.stop()
	if err := r.end(t); err != nil {
		t.Errorf("Run gave %v", err)
	}
	for protocol, addr := range r.addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			t.Errorf("%s still listens", protocol)
		}
	}
}

func TestAWrongPatternIsTheClientsMistake(t *testing.T) {
	r := run(t, Config{Data: t.TempDir()})
	_, err := (&admin.Client{Address: r.addrs["admin"], Timeout: patience}).Fetch(t.Context(), admin.Request{Format: admin.FormatJSONL, Queues: []string{"["}})
	if err == nil || !strings.Contains(err.Error(), "bad request") {
		t.Errorf("error %v, want one that says that the request is bad", err)
	}
}

func TestAReaderOfABackupThatStallsDoesNotKeepTheServer(t *testing.T) {
	r := run(t, Config{Data: t.TempDir(), Drain: patience})
	client := dialClient(t, r.addrs["pinpriq"])
	for i := range 300 { // more than the buffers between server and client hold
		if err := client.Push("q", make([]byte, pinpriq.MaxPayload), pinpriq.PushOptions{Priority: 1, Key: []byte{byte(i), byte(i >> 8)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.addrs["admin"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it has begun, and nothing more is read
		t.Fatal(err)
	}
	began := time.Now()
	r.stop()
	if err := r.end(t); err != nil {
		t.Errorf("Run gave %v", err)
	}
	if took := time.Since(began); took >= patience {
		t.Errorf("the server ended after %v, not before its time to drain was over", took)
	}
}

func TestNothingIsOpenedWhenAnAddressIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for protocol, c := range map[string]Config{
		"pinpriq":    {Pinpriq: taken.Addr().String()},
		"barbershop": {Pinpriq: "127.0.0.1:0", Barbershop: taken.Addr().String()},
		"redis":      {Pinpriq: "127.0.0.1:0", Redis: taken.Addr().String()},
		"admin":      {Pinpriq: "127.0.0.1:0", Admin: taken.Addr().String()},
		"sentinel":   {Redis: "127.0.0.1:0", Sentinel: taken.Addr().String()},
	} {
		c.Data = filepath.Join(t.TempDir(), "data")
		err := Run(t.Context(), c)
		var listen *ListenError
		if !errors.As(err, &listen) || listen.Protocol != protocol || !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: error %v, want one that names it", protocol, err)
		}
		if _, err := os.Stat(c.Data); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder was opened: %v", protocol, err)
		}
	}
}

func TestListenersAreClosedWhenAnotherCannotBeOpened(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	c := Config{Data: t.TempDir(), Pinpriq: addr, Admin: first.Addr().String()}
	if err := Run(t.Context(), c); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("error %v, want that an address is taken", err)
	}
	again, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("the first address is still taken: %v", err)
	}
	_ = again.Close()
}

func TestAddressesAreCheckedBeforeAnyIsOpened(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		want   string
	}{
		"none at all":                {Config{}, "no protocol is served"},
		"all off":                    {Config{Pinpriq: Off, Barbershop: Off, Admin: Off}, "no protocol is served"},
		"only the operator's":        {Config{Admin: "127.0.0.1:0"}, "no protocol is served"},
		"sentinel without redis":     {Config{Pinpriq: "127.0.0.1:0", Redis: Off, Sentinel: "127.0.0.1:0"}, "--sentinel tells the address of --redis, which is off"},
		"no host of sentinel":        {Config{Redis: "127.0.0.1:0", Sentinel: "26379"}, "--sentinel: expected HOST:PORT, such as 127.0.0.1:26379,"},
		"no port":                    {Config{Pinpriq: "127.0.0.1"}, "--pinpriq: expected HOST:PORT, such as 127.0.0.1:7070,"},
		"no host of the board":       {Config{Barbershop: "8002"}, "--barbershop: expected HOST:PORT, such as 127.0.0.1:8002,"},
		"no host of redis":           {Config{Redis: "6379"}, "--redis: expected HOST:PORT, such as 127.0.0.1:6379,"},
		"redis open to strangers":    {Config{Redis: "0.0.0.0:0", RedisPassword: "secret"}, `--redis: "0.0.0.0:0" can be reached`},
		"no command to disable":      {Config{Redis: "127.0.0.1:0", RedisDisable: []string{"KEYS", "NONSENSE"}}, "NONSENSE"},
		"no host of the operator's":  {Config{Admin: "7072"}, "--admin: expected HOST:PORT, such as 127.0.0.1:7072,"},
		"board with a name too long": {Config{Barbershop: "127.0.0.1:0", BarbershopQueue: strings.Repeat("x", 1<<16)}, "has 65536 bytes: expected at most 65535"},
		"board open to strangers":    {Config{Pinpriq: "127.0.0.1:0", Barbershop: "0.0.0.0:0"}, `--barbershop: "0.0.0.0:0" can be reached`},
		"backup open to strangers":   {Config{Pinpriq: "127.0.0.1:0", Admin: ":0"}, `--admin: ":0" can be reached`},
		"a name of another":          {Config{Pinpriq: "example.com:0"}, `--pinpriq: "example.com:0" can be reached`},
	} {
		row.config.Data = filepath.Join(t.TempDir(), "data")
		if err := Run(t.Context(), row.config); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}
