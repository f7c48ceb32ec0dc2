package soak

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

var whole = flag.Bool("whole", false, "all attackers, not a sample, and requests at their limits, which fail where they hold others for too long")

// attackMemory is what a server under attack may take: what it keeps for clients, 256 MiB more of
// replies that are being read, as much again until the garbage is collected, and the rest.
const attackMemory = 2*(maxBuffers+256<<20) + 160<<20

// attacks are in the order in which they come.
var attacks = []struct {
	name string
	run  func(h *hostile)
}{
	{"5,000 are idle", (*hostile).idle}, // first, so that the server has no other garbage
	{"nobody", func(h *hostile) { h.last() }},
	{"2,500 send a byte now and then", (*hostile).sendSlowly},
	{"100 ask for much and never read", (*hostile).readNothing},
	{"8 ask for 1 M pops and never read", (*hostile).popUnread},
	{"50,000 come and go", (*hostile).comeAndGo},
	{"1 MiB comes byte by byte", (*hostile).sendBytes},
	{"1,000 close their side", (*hostile).halfClose},
	{"1,000 close with their last bytes", (*hostile).closeAtOnce},
}

// Times and rates are logged, not judged: they depend on the machine.
func TestAttacks(t *testing.T) {
	for _, driver := range []string{"", "1"} {
		t.Run(map[string]string{"": "loop", "1": "goroutines"}[driver], func(t *testing.T) {
			s := startServer(t, t.TempDir(), goroutines+"="+driver)
			h := &hostile{t: t, s: s}
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) {
					h.t = t
					h.attack(a.run)
				})
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// attack runs one attack beside a good client.
func (h *hostile) attack(run func(*hostile)) {
	before := h.descriptors()
	stop, times := make(chan struct{}), make(chan []time.Duration)
	var most int64
	go func() { times <- h.serveWell(stop) }() // ends with stop
	watched := make(chan struct{})
	go func() { // ends with stop
		defer close(watched)
		for {
			most = max(most, h.memory())
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	run(h)
	fds := h.descriptors() - before
	close(stop)
	waits := <-times
	<-watched
	slices.Sort(waits)
	at := func(part float64) int64 { return waits[int(part*float64(len(waits)-1))].Microseconds() }
	h.t.Logf("%6d requests of a good client take %d µs, %d at the 99th percentile, %d at most; the server has %d files more and takes %.0f MB at most",
		len(waits), at(0.5), at(0.99), at(1), fds, mb(most))
	if most > attackMemory {
		h.t.Errorf("the server takes %.0f MB, want %.0f at most", mb(most), mb(attackMemory))
	}
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
	const files = 32 // tables come and go
	h.await("connections stay open", func() bool { return h.descriptors() <= before+files })
}

// hostile is the attackers of one server.
type hostile struct {
	t     *testing.T
	s     *server
	conns []*net.TCPConn // closed when the attack is over

	filled bool
}

// of is how many attackers there are of so many, and at least some.
func of(n int) int {
	if *whole {
		return n
	}
	return max(n/20, 4)
}

// last has an attack go on for a while.
func (h *hostile) last() {
	d := 500 * time.Millisecond
	if *whole {
		d = 10 * time.Second
	}
	time.Sleep(d)
}

func (h *hostile) await(what string, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatal(what)
		}
	}
}

func (h *hostile) memory() int64 {
	u, err := loadgen.ReadUsage(h.s.cmd.Process.Pid)
	if err != nil {
		h.t.Error(err)
	}
	return u.Anon
}

func (h *hostile) descriptors() int {
	names, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(h.s.cmd.Process.Pid), "fd"))
	if err != nil {
		h.t.Error(err)
	}
	return len(names)
}

// dial connects; the connection is closed after the attack.
func (h *hostile) dial() *net.TCPConn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.s.redis)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	h.conns = append(h.conns, c.(*net.TCPConn))
	return c.(*net.TCPConn)
}

// want sends requests and compares what comes back.
func want(c net.Conn, send, reply string) error {
	if _, err := io.WriteString(c, send); err != nil {
		return err
	}
	got := make([]byte, len(reply))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != reply {
		return fmt.Errorf("%.40q is answered %.40q, %v, want %.40q", send, got[:n], err, reply)
	}
	return nil
}

func (h *hostile) want(c net.Conn, send, reply string) {
	h.t.Helper()
	if err := want(c, send, reply); err != nil {
		h.t.Error(err)
	}
}

// fill makes a list whose elements have 32 MiB, and one of many elements, unless they are there.
func (h *hostile) fill() {
	if h.filled {
		return
	}
	h.filled = true
	c := h.dial()
	large := strings.Repeat("x", 1<<20)
	for i := range 32 {
		h.want(c, "*3\r\n$5\r\nRPUSH\r\n$5\r\nlarge\r\n$1048576\r\n"+large+"\r\n", fmt.Sprintf(":%d\r\n", i+1))
	}
	many := "*1002\r\n$5\r\nRPUSH\r\n$4\r\nmany\r\n" + strings.Repeat("$100\r\n"+large[:100]+"\r\n", 1000)
	for i := range of(500) {
		h.want(c, many, fmt.Sprintf(":%d\r\n", (i+1)*1000))
	}
}

// serveWell is a good client, which gets all its replies, until stop. It returns how long each
// took.
func (h *hostile) serveWell(stop chan struct{}) (times []time.Duration) {
	c, err := net.Dial("tcp", h.s.redis)
	if err != nil {
		h.t.Error(err)
		return []time.Duration{0}
	}
	defer func() { _ = c.Close() }()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return times
		default:
		}
		n := fmt.Sprintf("%09d", i)
		for send, reply := range map[string]string{
			"SET text" + n + " " + n + "\r\n": "+OK\r\n", "LPUSH list" + n + " " + n + "\r\n": ":1\r\n", "PING\r\n": "+PONG\r\n",
		} {
			times = h.time(c, send, reply, times)
		}
		times = h.time(c, "GET text"+n+"\r\n", "$9\r\n"+n+"\r\n", times)
		times = h.time(c, "RPOP list"+n+"\r\n", "$9\r\n"+n+"\r\n", times)
		times = h.time(c, "DEL text"+n+"\r\n", ":1\r\n", times)
	}
}

func (h *hostile) time(c net.Conn, send, reply string, times []time.Duration) []time.Duration {
	began := time.Now()
	h.want(c, send, reply)
	return append(times, time.Since(began))
}

func (h *hostile) sendSlowly() {
	const request = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n"
	for range of(2500) {
		h.dial()
	}
	for i := range 20 {
		for _, c := range h.conns {
			if _, err := c.Write([]byte{request[i]}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	h.last()
}

func (h *hostile) readNothing() {
	h.fill()
	for range of(100) {
		c := h.dial()
		_ = c.SetReadBuffer(32 << 10)
		if _, err := io.WriteString(c, strings.Repeat("LRANGE large 0 -1\r\n", 10)); err != nil {
			h.t.Fatal(err)
		}
	}
	h.last()
}

func (h *hostile) popUnread() {
	h.fill()
	var all sync.WaitGroup
	for range of(8) {
		c := h.dial()
		all.Go(func() { // ends when the attack has lasted
			for range 1000 {
				if _, err := io.WriteString(c, strings.Repeat("RPOP many\r\n", 1000)); err != nil {
					return
				}
			}
		})
	}
	h.last()
	for _, c := range h.conns {
		_ = c.SetWriteDeadline(time.Now())
	}
	all.Wait()
}

func (h *hostile) idle() {
	before := h.memory()
	for range of(5000) - 1 { // beside the good client: the limit of open files may allow no more
		h.want(h.dial(), "PING\r\n", "+PONG\r\n")
	}
	h.last()
	h.t.Logf("an idle connection takes %.1f KiB", float64(h.memory()-before)/1024/float64(of(5000)))
}

func (h *hostile) comeAndGo() {
	h.fill()
	const clients = 8
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range of(50_000) / clients {
				c, err := net.Dial("tcp", h.s.redis)
				if err != nil {
					h.t.Error(err)
					return
				}
				switch i % 4 {
				case 0:
					h.want(c, "PING\r\n", "+PONG\r\n")
				case 1:
					_, _ = io.WriteString(c, "*2\r\n$4\r\nhalf of a request")
				case 2:
					_, _ = io.WriteString(c, "BLPOP nothing 0\r\n")
				case 3:
					_, _ = io.WriteString(c, "LRANGE many 0 99\r\n")
				}
				if i%3 == 0 {
					_ = c.(*net.TCPConn).SetLinger(0) // a reset
				}
				_ = c.Close()
			}
		})
	}
	all.Wait()
}

func (h *hostile) sendBytes() {
	c, value := h.dial(), strings.Repeat("v", of(1<<20))
	_ = c.SetNoDelay(true)
	for _, b := range []byte(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", len(value), value)) {
		if _, err := c.Write([]byte{b}); err != nil {
			h.t.Fatal(err)
		}
	}
	h.want(c, "GET k\r\n", fmt.Sprintf("+OK\r\n$%d\r\n%s\r\n", len(value), value))
}

func (h *hostile) halfClose() {
	for range of(1000) {
		c := h.dial()
		_, _ = io.WriteString(c, strings.Repeat("PING\r\n", 1000)+"GET cut")
		_ = c.CloseWrite()
	}
	for _, c := range h.conns {
		if got, err := io.ReadAll(c); err != nil || string(got) != strings.Repeat("+PONG\r\n", 1000) {
			h.t.Errorf("a client that closes its side gets %d bytes, %v", len(got), err)
		}
	}
}

func (h *hostile) closeAtOnce() {
	for i := range of(1000) {
		c := h.dial()
		raw, err := c.SyscallConn()
		if err == nil { // the segment waits for the end
			err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
		}
		if err != nil {
			h.t.Fatal(err)
		}
		_, _ = io.WriteString(c, "RPUSH last x\r\n")
		if i%2 == 0 {
			_ = c.Close()
			continue
		}
		_ = c.CloseWrite()
		if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), ":") {
			h.t.Errorf("a client that ends with its request gets %q, %v", got, err)
		}
	}
	c := h.dial()
	in := bufio.NewReader(c)
	h.await("pushes are lost whose clients closed at once", func() bool {
		_, _ = io.WriteString(c, "LLEN last\r\n")
		got, err := in.ReadString('\n')
		return err == nil && got == fmt.Sprintf(":%d\r\n", of(1000))
	})
}
