package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// limit bounds every wait. It is far longer than any should take.
const limit = 30 * time.Second

// server is a daemon in this process.
type server struct {
	addr  string // of the pinpriq listener
	board string // of the barbershop listener, if the configuration asks for one
	data  string
	drain func()     // what SIGTERM does
	done  chan error // what Run returned
}

// serve starts a server on an empty folder.
func serve(t *testing.T) *server {
	t.Helper()
	return serveFolder(t, t.TempDir())
}

func serveFolder(t *testing.T, data string) *server {
	t.Helper()
	return serveConfig(t, daemon.Config{Data: data})
}

func serveConfig(t *testing.T, config daemon.Config) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	type listener struct{ protocol, addr string }
	listening := make(chan listener, 2)
	config.Pinpriq = "127.0.0.1:0"
	config.Listening = func(protocol string, a net.Addr) { listening <- listener{protocol, a.String()} }
	s := &server{data: config.Data, drain: cancel, done: make(chan error, 1)}
	go func() { s.done <- daemon.Run(ctx, config) }() // ends when cancel is called
	for s.addr == "" || s.board == "" && config.Barbershop != "" {
		select {
		case l := <-listening:
			if l.protocol == "pinpriq" {
				s.addr = l.addr
			} else {
				s.board = l.addr
			}
		case err := <-s.done:
			t.Fatalf("server did not start: %v", err)
		case <-time.After(limit):
			t.Fatal("server did not start in time")
		}
	}
	t.Cleanup(func() { s.stop(t) })
	return s
}

// stop drains the server and waits for its end. A second call does nothing.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.drain()
	select {
	case err, first := <-s.done:
		if err != nil && first {
			t.Errorf("server ended with an error: %v", err)
		}
		if first {
			close(s.done)
		}
	case <-time.After(limit):
		t.Error("server did not end in time")
	}
}

// socket is a raw connection.
type socket struct {
	t    *testing.T
	conn *net.TCPConn
}

func (s *server) dial(t *testing.T) *socket {
	t.Helper()
	return dialAddr(t, s.addr)
}

func dialAddr(t *testing.T, addr string) *socket {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return &socket{t, conn.(*net.TCPConn)}
}

// packet is a key and a payload.
type packet struct{ key, payload string }

// push is the bytes of a push: 70 | name length | TTL | priority | key length | payload length |
// key | payload | name.
func push(queue string, p packet, priority byte, ttl int) []byte {
	b := []byte{0x70}
	b = binary.BigEndian.AppendUint16(b, uint16(len(queue)))
	b = binary.BigEndian.AppendUint16(b, uint16(ttl))
	b = append(b, priority)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.key)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.payload)))
	b = append(b, p.key...)
	b = append(b, p.payload...)
	return append(b, queue...)
}

func named(op byte, queue string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{op}, uint16(len(queue)))
	return append(b, queue...)
}

func pop(queue string) []byte         { return named(0x50, queue) }
func subscribe(queue string) []byte   { return named(0x73, queue) }
func unsubscribe(queue string) []byte { return named(0x75, queue) }

var ready = []byte{0x41}

// send writes requests, in one write.
func (s *socket) send(requests ...[]byte) {
	s.t.Helper()
	if _, err := s.conn.Write(bytes.Join(requests, nil)); err != nil {
		s.t.Fatalf("send: %v", err)
	}
}

// bytes reads exactly n bytes.
func (s *socket) bytes(n int) []byte {
	s.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(s.conn, b); err != nil {
		s.t.Fatalf("read: %v", err)
	}
	return b
}

func (s *socket) uint16() int { s.t.Helper(); return int(binary.BigEndian.Uint16(s.bytes(2))) }

// reply reads one reply or delivery.
func (s *socket) reply() []packet {
	s.t.Helper()
	all := make([]packet, s.uint16())
	for i := range all {
		key, payload := s.uint16(), s.uint16()
		all[i] = packet{string(s.bytes(key)), string(s.bytes(payload))}
	}
	return all
}

// want reads one reply and compares it.
func (s *socket) want(packets ...packet) {
	s.t.Helper()
	got := s.reply()
	if fmt.Sprint(got) != fmt.Sprint(packets) {
		s.t.Fatalf("got %q, expected %q", got, packets)
	}
}

// wantPayloads reads one reply and compares its payloads.
func (s *socket) wantPayloads(payloads ...string) {
	s.t.Helper()
	var got []string
	for _, p := range s.reply() {
		got = append(got, p.payload)
	}
	if fmt.Sprint(got) != fmt.Sprint(payloads) {
		s.t.Fatalf("got %q, expected %q", got, payloads)
	}
}

// barrier returns when everything sent before it is carried out, and fails if anything else
// arrives first.
func (s *socket) barrier() {
	s.t.Helper()
	s.send(pop("nothing is ever pushed here"))
	if n := s.uint16(); n != 0 {
		s.t.Fatalf("something with %d packets arrived, expected nothing", n)
	}
}

// wantEnd expects that the server closes the connection, with nothing more before that.
func (s *socket) wantEnd() {
	s.t.Helper()
	rest, err := io.ReadAll(s.conn)
	if err != nil && !errors.Is(err, io.EOF) {
		s.t.Fatalf("read to the end: %v", err)
	}
	if len(rest) > 0 {
		s.t.Fatalf("%d bytes before the end, expected none: % x", len(rest), rest[:min(len(rest), 64)])
	}
}

// hangUp closes the sending half and waits until the server has closed its own.
func (s *socket) hangUp() {
	s.t.Helper()
	if err := s.conn.CloseWrite(); err != nil {
		s.t.Fatal(err)
	}
	s.wantEnd()
	s.conn.Close()
}
