package fuzz

import (
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// requestSeeds are streams of every request: whole, cut off, and followed by nonsense.
func requestSeeds() [][]byte {
	all := []byte("\x70\x00\x04\x00\x00\x01\x00\x01\x00\x05khellojobs" + "\x50\x00\x04jobs" +
		"\x73\x00\x00" + "\x41\x41" + "\x75\x00\x02ab")
	return [][]byte{
		nil, all, all[:7], all[:len(all)-1], append(bytes.Clone(all), 0xff, 0x41),
		[]byte("\x70\xff\xff\xff\xff\xff\xff\xff\xff\xff"), []byte("\x00"), []byte("GET / HTTP/1.1\r\n"),
		bytes.Repeat([]byte{0x41}, 100),
	}
}

// parsed is a request of a stream, with its bytes there.
type parsed struct {
	request pinpriq.Request
	bytes   []byte
}

// parseAll parses requests from the start of stream until one is incomplete or impossible. Its
// results share no memory with stream.
func parseAll(t *testing.T, stream []byte) (all []parsed, rest []byte, err error) {
	var r pinpriq.Request
	for {
		n, err := r.Parse(stream)
		if n > len(stream) || n < 0 || err == nil && n == 0 {
			t.Fatalf("parse took %d of %d bytes with error %v", n, len(stream), err)
		}
		if err != nil {
			if n != 0 || !errors.Is(err, pinpriq.ErrShort) && !errors.Is(err, pinpriq.ErrUnknownOp) {
				t.Fatalf("parse took %d bytes with error %v", n, err)
			}
			return all, stream, err
		}
		all = append(all, parsed{clone(r), bytes.Clone(stream[:n])})
		stream = stream[n:]
	}
}

func clone(r pinpriq.Request) pinpriq.Request {
	r.Queue = append([]byte{}, r.Queue...)
	r.Packet.Key = append([]byte{}, r.Packet.Key...)
	r.Packet.Payload = append([]byte{}, r.Packet.Payload...)
	return r
}

// FuzzRequests checks that a parsed request is encoded to the bytes it came from, and that a stream
// gives the same requests wherever it is cut in two.
func FuzzRequests(f *testing.F) {
	for _, seed := range requestSeeds() {
		f.Add(seed, uint16(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, split uint16) {
		whole, rest, err := parseAll(t, stream)
		for _, p := range whole {
			encoded, err := p.request.Append([]byte("before"))
			if err != nil || string(encoded) != "before"+string(p.bytes) {
				t.Fatalf("%+v was encoded to % x (%v), expected % x", p.request, encoded, err, p.bytes)
			}
		}
		at := int(split) % (len(stream) + 1)
		first, left, splitErr := parseAll(t, stream[:at])
		var second []parsed
		last, secondErr := append(bytes.Clone(left), stream[at:]...), splitErr
		if errors.Is(splitErr, pinpriq.ErrShort) { // otherwise the connection is closed by now
			second, last, secondErr = parseAll(t, last)
		}
		if both := append(first, second...); len(both) != len(whole) || len(both) > 0 && !reflect.DeepEqual(both, whole) {
			t.Fatalf("cut at %d the stream gives %+v, whole it gives %+v", at, both, whole)
		}
		if !bytes.Equal(last, rest) || (secondErr == nil) != (err == nil) || errors.Is(secondErr, pinpriq.ErrShort) != errors.Is(err, pinpriq.ErrShort) {
			t.Fatalf("cut at %d it ends with %v and % x, whole with %v and % x", at, secondErr, last, err, rest)
		}
	})
}

// FuzzReplies checks that a reply which the client reads is encoded to the bytes it came from, and
// that a reply without its end is never taken for a whole one.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("\x00\x00"), uint16(1))
	f.Add([]byte("\x00\x02\x00\x01\x00\x05khello\x00\x00\x00\x00"), uint16(8))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff"), uint16(2))
	f.Fuzz(func(t *testing.T, stream []byte, split uint16) {
		read := func(stream []byte) ([]pinpriq.Packet, error) {
			return pinpriq.NewClient(&fakeConn{in: bytes.NewReader(stream)}).Receive(t.Context())
		}
		wantCut := func(err error) {
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Fatalf("the client gives %v for a reply that is cut", err)
			}
		}
		packets, err := read(stream)
		if err != nil {
			wantCut(err)
			return
		}
		encoded := pinpriq.AppendCount(nil, len(packets))
		for _, p := range packets {
			if encoded, err = pinpriq.AppendPacket(encoded, p.Key, p.Payload); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(stream, encoded) {
			t.Fatalf("% x was encoded again to % x", stream, encoded)
		}
		_, err = read(encoded[:int(split)%len(encoded)])
		wantCut(err)
	})
}

// fakeConn is a connection whose peer has already sent everything.
type fakeConn struct {
	net.Conn
	in io.Reader
}

func (c *fakeConn) Read(b []byte) (int, error)      { return c.in.Read(b) }
func (c *fakeConn) Write(b []byte) (int, error)     { return len(b), nil }
func (c *fakeConn) Close() error                    { return nil }
func (c *fakeConn) SetReadDeadline(time.Time) error { return nil }

// allocated is how many bytes fn takes from the allocator.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSystemFramesTakeMemoryForWhatArrivedNotForWhatWasAnnounced(t *testing.T) {
	const bound = 1 << 20
	hostile := []byte("\xff\xff" + "\xff\xff\xff\xff" + "only a little")
	for name, read := range map[string]func(){
		"reply": func() { _, _ = pinpriq.NewClient(&fakeConn{in: bytes.NewReader(hostile)}).Receive(t.Context()) },
		"request": func() {
			var r pinpriq.Request
			_, _ = r.Parse([]byte("\x70\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
		},
	} {
		if n := allocated(read); n > bound {
			t.Errorf("%s took %d bytes, expected at most %d", name, n, bound)
		}
	}
}
