package fuzz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/recovery"
)

// boardModel says what a board must answer. It is slow and simple: items in a slice, in the order
// in which they came to their pools. Its rules are those of netproto/barbershop/PROTOCOL.md.
type boardModel struct {
	items   []boardItem
	updates int
	v2      bool // dialect of the latest line with a word
}

type boardItem struct{ id, score uint64 }

// topScore and the score below it are one pool, shown as topScore.
const topScore = 1<<32 - 1

func pooled(score uint64) uint64 {
	if score >= topScore-1 {
		return topScore
	}
	return score
}

// answer is the reply to a whole stream. An unfinished line has none.
func (m *boardModel) answer(stream string) string {
	var out strings.Builder
	if stream != "" && stream[0] < ' ' && stream[0] != '\r' && stream[0] != '\n' {
		return "" // it may be a TLS hello: the connection is closed
	}
	for {
		line, rest, whole := strings.Cut(stream, "\n")
		if !whole {
			// A line that is too long is answered before its end comes. A CR at its end may belong
			// to the line end.
			if len(line) > barbershop.MaxLine+1 {
				out.WriteString(m.tooLong(line))
			}
			return out.String()
		}
		stream = rest
		line = strings.TrimSuffix(line, "\r")
		if len(line) > barbershop.MaxLine {
			out.WriteString(m.tooLong(line))
		} else {
			out.WriteString(m.line(line))
		}
		if isHTTP(line) { // the connection is closed
			return out.String()
		}
	}
}

// isHTTP says whether a browser sends such a line.
func isHTTP(line string) bool {
	words := split(line[:min(len(line), barbershop.MaxLine)])
	return len(words) > 0 && (strings.EqualFold(words[0], "POST") || strings.EqualFold(words[0], "Host:")) ||
		len(line) <= barbershop.MaxLine && (strings.HasSuffix(line, " HTTP/1.0") || strings.HasSuffix(line, " HTTP/1.1"))
}

const noHTTP = "HTTP is not spoken here: the connection is closed"

func (m *boardModel) tooLong(line string) string {
	m.dialect(split(line[:barbershop.MaxLine]))
	if isHTTP(line) {
		return m.client(noHTTP)
	}
	return m.client("line too long: expected at most 1024 bytes")
}

// split cuts a line at spaces only.
func split(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
}

func (m *boardModel) dialect(words []string) {
	if len(words) > 0 {
		m.v2 = strings.ContainsAny(words[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
			!strings.ContainsAny(words[0], "abcdefghijklmnopqrstuvwxyz")
	}
}

func (m *boardModel) client(why string) string {
	if m.v2 {
		return "-ERROR " + why + "\r\n"
	}
	return "CLIENT_ERROR " + why + "\r\n"
}

func (m *boardModel) line(line string) string {
	words := split(line)
	m.dialect(words)
	if isHTTP(line) {
		return m.client(noHTTP)
	}
	bad := "ERROR\r\n"
	if m.v2 {
		bad = "-ERROR\r\n"
	}
	if len(words) == 0 {
		return bad
	}
	name, n := words[0], len(words)
	switch {
	case name == "update" && n != 3:
		return m.client("wrong number of words: expected update <item> <score>")
	case (name == "next" || name == "stats") && n != 1:
		return m.client("wrong number of words: expected " + name + " alone")
	case name == "update":
		return m.update(words[1], words[2])
	case name == "next":
		return m.next(true) + "\r\n"
	case name == "stats":
		return m.stats()
	case name == "UPDATE" && n == 3:
		return m.updateV2(words[1], words[2])
	case name == "NEXT" && n == 1:
		return "+" + m.next(true) + "\r\n"
	case name == "PEEK" && n == 1:
		return "+" + m.next(false) + "\r\n"
	case name == "SCORE" && n == 2:
		return m.score(words[1])
	case name == "INFO" && n == 1:
		return fmt.Sprintf("uptime:0\r\nversion:v\r\nupdates:%d\r\nitems:%d\r\npools:%d\r\n", m.updates, len(m.items), m.pools())
	}
	return bad
}

// number reads digits only.
func number(word string) (uint64, bool) {
	for _, r := range []byte(word) {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(word, 10, 32)
	return n, err == nil
}

func (m *boardModel) update(item, score string) string {
	id, ok := number(item)
	if !ok {
		return m.client("item is not a number: expected digits, at most 4294967295")
	}
	by, ok := number(score)
	if !ok {
		return m.client("score is not a number: expected digits, at most 4294967295")
	}
	m.add(id, by)
	return "OK\r\n"
}

func (m *boardModel) updateV2(item, score string) string {
	id, ok := number(item)
	if !ok || id == 0 {
		return "-ERROR INVALID ITEM ID\r\n"
	}
	by, ok := number(score)
	if !ok || by == 0 {
		return "-ERROR INVALID SCORE\r\n"
	}
	m.add(id, by)
	return "+OK\r\n"
}

// add leaves an item where it is if its score does not change.
func (m *boardModel) add(id, by uint64) {
	m.updates++
	sum := pooled(by)
	for i, it := range m.items {
		if it.id != id {
			continue
		}
		if sum = pooled(it.score + by); sum == it.score {
			return
		}
		m.items = append(m.items[:i], m.items[i+1:]...)
		break
	}
	m.items = append(m.items, boardItem{id, sum})
}

// next is the item to be handed out; "-1" if there is none.
func (m *boardModel) next(take bool) string {
	best := -1
	for i, it := range m.items {
		if best < 0 || it.score > m.items[best].score {
			best = i
		}
	}
	if best < 0 {
		return "-1"
	}
	id := m.items[best].id
	if take {
		m.items = append(m.items[:best], m.items[best+1:]...)
	}
	return fmt.Sprint(id)
}

func (m *boardModel) score(item string) string {
	id, ok := number(item)
	if !ok || id == 0 {
		return "-ERROR INVALID ITEM ID\r\n"
	}
	for _, it := range m.items {
		if it.id == id {
			return fmt.Sprintf("+%d\r\n", it.score)
		}
	}
	return "+-1\r\n"
}

func (m *boardModel) pools() int {
	pools := make(map[uint64]bool)
	for _, it := range m.items {
		pools[it.score] = true
	}
	return len(pools)
}

func (m *boardModel) stats() string {
	return fmt.Sprintf("STAT uptime 0\r\nSTAT version v\r\nSTAT updates %d\r\nSTAT items %d\r\nSTAT items_gc %[2]d\r\n"+
		"STAT pools %d\r\nSTAT pools_gc %[3]d\r\nEND\r\n", m.updates, len(m.items), m.pools())
}

// boardServer is a board on a store in memory.
type boardServer struct {
	t      *testing.T
	store  *memStore
	loop   *netproto.Loop
	server *netproto.Server
	served chan error
}

func (b *boardServer) start() {
	state, err := recovery.Restore(b.store, recovery.Options{})
	if err != nil || len(state.Report.Findings) > 0 {
		b.t.Fatalf("recovery: %v %v", err, state.Report.Findings)
	}
	at := time.Unix(1_000_000, 0)
	b.loop, err = netproto.StartLoop(broker.New(b.store, state, broker.Options{Cache: 1}), b.store, netproto.LoopConfig{})
	if err != nil {
		b.t.Fatal(err)
	}
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.server = netproto.NewServer(l, netproto.Config{Loop: b.loop, Protocol: &barbershop.Protocol{
		Queue: "b", Version: "v", Since: at, Now: func() time.Time { return at },
	}})
	b.served = make(chan error, 1)
	go func() { b.served <- b.server.Serve() }() // ends with stop
}

func (b *boardServer) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), longWait)
	defer cancel()
	if err := errors.Join(b.server.Shutdown(ctx), <-b.served, b.loop.Close()); err != nil {
		b.t.Error(err)
	}
}

// say sends a stream in pieces and returns all that comes back until the connection ends.
func (b *boardServer) say(stream []byte, piece int) string {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(longWait))
	_ = conn.(*net.TCPConn).SetLinger(0) // otherwise ports would run out
	for rest := stream; len(rest) > 0; {
		n := min(piece, len(rest))
		if _, err := conn.Write(rest[:n]); err != nil {
			b.t.Fatal(err)
		}
		rest = rest[n:]
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(conn)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(got)
}

// boardLines turns bytes into lines that are mostly right, so that few of them are refused.
func boardLines(input []byte) []byte {
	var out bytes.Buffer
	scores := []uint64{0, 1, 2, 3, 1 << 31, topScore - 3, topScore - 2, topScore - 1, topScore, topScore + 1}
	for ; len(input) >= 3; input = input[3:] {
		a, b := input[1], input[2]
		switch input[0] % 12 {
		case 0, 1, 2, 3:
			fmt.Fprintf(&out, "update %d %d\r\n", a%16, scores[int(b)%len(scores)])
		case 4, 5:
			fmt.Fprintf(&out, "UPDATE %d %d\n", a%16, b%5)
		case 6, 7:
			out.WriteString("next\n")
		case 8:
			out.WriteString("NEXT\r\n")
		case 9:
			fmt.Fprintf(&out, "PEEK\nSCORE %d\n", a%16)
		case 10:
			out.WriteString("stats\r\nINFO\r\n")
		case 11:
			out.Write(input[:3])
			if b%8 == 0 {
				out.Write(bytes.Repeat(input[:2], barbershop.MaxLine/2-1+int(a)%4))
			}
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// longWait is how long a server may take for anything.
const longWait = 5 * time.Second

// FuzzBoard sends streams in pieces: the input itself, or lines made of it. It compares every byte
// of the answers with the model, before and after a restart.
func FuzzBoard(f *testing.F) {
	f.Add([]byte("update 5001 1\r\nupdate 5002 2\nnext\r\nstats\r\n"), uint16(1), false)
	f.Add([]byte("UPDATE 5001 1\r\nPEEK\r\nSCORE 5001\r\nINFO\nNEXT\r\n\r\nQUIT\r\nupdate"), uint16(7), false)
	f.Add([]byte(strings.Repeat("x", 1024)+"\r\n"+strings.Repeat("X", 1025)+"\nnext 1\n update  1 2 \n"), uint16(100), false)
	f.Add([]byte(strings.Repeat("update", 300)), uint16(0), false)
	f.Add([]byte("update 1 1\nPOST / HTTP/1.1\r\nHost: x\r\n\r\nupdate 2 1\n"), uint16(1), false)
	f.Add([]byte("GET / HTTP/1.1\r\nupdate 2 1\n"), uint16(0), false)
	f.Add([]byte("update 1 1\npost / HTTP/1.1\r\nupdate 2 1\n"), uint16(0), false)
	f.Add([]byte("\tupdate 1 1\nINFO\n"), uint16(1), false)
	seed := make([]byte, 600)
	for x, i := uint32(1), 0; i < len(seed); i++ {
		x = x*1664525 + 1013904223
		seed[i] = byte(x >> 24)
	}
	f.Add(seed, uint16(3), true)
	f.Fuzz(func(t *testing.T, input []byte, piece uint16, made bool) {
		if len(input) > 4<<10 {
			input = input[:4<<10]
		}
		if made {
			input = boardLines(input)
		}
		b := &boardServer{t: t, store: newMemStore()}
		b.start()
		var m boardModel
		step := max(int(piece), len(input)/50, 1) // few writes, because each is a system call
		if got, want := b.say(input, step), m.answer(string(input)); got != want {
			t.Fatalf("%q in pieces of %d was answered\n%q, expected\n%q", input, step, got, want)
		}
		b.stop()
		b.start() // this resets the counter of updates and the dialect, but not items, scores and order
		defer b.stop()
		m.updates, m.v2 = 0, false
		rest := "INFO\n"
		for _, it := range m.items { // a lost update may leave the order as it is
			rest += fmt.Sprintf("SCORE %d\n", it.id)
		}
		for range len(m.items) + 1 {
			rest += "PEEK\nnext\n"
		}
		if got, want := b.say([]byte(rest), len(rest)), m.answer(rest); got != want {
			t.Fatalf("after a restart the board of %q is\n%q, expected\n%q", input, got, want)
		}
	})
}
