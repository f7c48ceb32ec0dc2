package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// talker is a door that speaks first, and then says what it hears.
type talker struct{}

// Pass is a Door.
func (talker) Pass(conn net.Conn, remote netip.AddrPort) {
	defer conn.Close()
	_, _ = io.WriteString(conn, remote.String()+" ")
	_, _ = io.Copy(conn, conn)
}

func TestADoorGetsTheConnectionAndTheAddressOfItsClient(t *testing.T) {
	address := serveNode(t, Config{Door: func(name string) (Door, error) {
		if name != "redis" {
			return nil, errors.New("no such door")
		}
		return talker{}.Pass, nil
	}})
	conn, err := NewClient(nil).Connect(t.Context(), address, "redis", netip.MustParseAddrPort("[2001:db8::1]:7"))
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "hello")
	must(t, errors.Join(err, conn.CloseWrite()))
	if got, err := io.ReadAll(conn); string(got) != "[2001:db8::1]:7 hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestANodeThatServesNoClientsSaysWhy(t *testing.T) {
	address := serveNode(t, Config{Door: func(string) (Door, error) { return nil, errors.New("this node follows") }})
	for client, want := range map[netip.AddrPort]string{netip.MustParseAddrPort("192.0.2.1:7"): "this node follows", {}: "expected the address of the client"} {
		if _, err := NewClient(nil).Connect(t.Context(), address, "redis", client); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAnAnswerThatUpgradesNothingIsRefused(t *testing.T) {
	other := listen(t)
	go func() { // ends with the answer
		conn, err := other.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, maxHeader))
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
	}()
	_, err := NewClient(nil).Connect(t.Context(), other.Addr().String(), "redis", netip.MustParseAddrPort("192.0.2.1:7"))
	if err == nil || !strings.Contains(err.Error(), "does not upgrade") {
		t.Errorf("got %v", err)
	}
}

func TestAnAttemptToConnectEndsWithItsContext(t *testing.T) {
	silent := listen(t) // accepts, and says nothing
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { // ends with ctx
		_, err := NewClient(nil).Connect(ctx, silent.Addr().String(), "redis", netip.MustParseAddrPort("192.0.2.1:7"))
		failed <- err
	}()
	conn, err := silent.Accept()
	must(t, err)
	defer conn.Close()
	cancel()
	if <-failed == nil {
		t.Error("it is connected")
	}
}
