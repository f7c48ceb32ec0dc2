package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
)

const (
	takeoverTime = 5 * time.Second        // that a client waits for an owner, as long as a takeover lasts
	retryTime    = 100 * time.Millisecond // between two attempts to reach the owner
	// maxReaching is how many clients try to reach the owner at a time; the others wait for them. One
	// that has just taken over has other things to do than thousands of handshakes.
	maxReaching = 16
	lastTime    = 5 * time.Second // for what a client may still say when the owner has ended

	minPiece = 1 << 10  // bytes that are read at a time, and kept by a connection at rest
	maxPiece = 16 << 10 // the same where much comes; a client must take as many in stallTime
)

// Forwarder passes the clients of a door on to the owner, connection by connection, byte for byte.
type Forwarder struct {
	Client   *Client
	Owner    *Owner
	Door     string
	MaxConns int          // 0: netproto.DefaultMaxConns
	Logger   *slog.Logger // of what clients cause
	// Own gets a client that still waits for an owner when ctx ends: this node may be it by then.
	Own func(client *net.TCPConn)

	reaching chan struct{} // holds one for each that tries to reach the owner
}

// Forward accepts until l is closed, and returns when the last connection has ended. When ctx ends
// it closes l and all connections. When the owner changes it closes all that were passed to it. A
// client that comes while there is none waits for five seconds, also when l is closed meanwhile.
func (f Forwarder) Forward(ctx context.Context, l *net.TCPListener) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	f.reaching = make(chan struct{}, maxReaching)
	places := make(chan struct{}, cmp.Or(f.MaxConns, netproto.DefaultMaxConns))
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // it may pass, such as that no descriptor is left
			f.Logger.Warn("accept failed: trying again", "protocol", f.Door, "error", err)
			time.Sleep(retryTime)
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			f.refuse(conn, fmt.Errorf("%d connections are open, which is the limit", cap(places)))
			continue
		}
		open.Go(func() { // ends with the connection
			defer func() { <-places }()
			f.pass(ctx, conn)
		})
	}
}

func (f *Forwarder) refuse(client *net.TCPConn, why error) {
	f.Logger.Warn("connection refused", "protocol", f.Door, "remote", client.RemoteAddr(), "error", why)
	_ = client.Close()
}

// pass serves a client until both sides have ended, or one has failed.
func (f *Forwarder) pass(ctx context.Context, client *net.TCPConn) {
	owner, term, err := f.reach(ctx, client.RemoteAddr().(*net.TCPAddr).AddrPort())
	if err != nil && ctx.Err() != nil && f.Own != nil {
		go f.Own(client) // ends within some seconds
		return
	}
	if err != nil {
		f.refuse(client, fmt.Errorf("it cannot be passed on to the owner: %w", err))
		return
	}
	end := func() {
		_ = client.Close()
		_ = owner.Close()
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	defer context.AfterFunc(term, end)()
	replied := make(chan struct{})
	go func() { // ends with the owner's side
		defer close(replied)
		if relay(brief{client}, owner) != nil {
			end()
		}
		_ = client.SetReadDeadline(time.Now().Add(lastTime))
	}()
	if relay(owner, client) != nil {
		end()
	}
	<-replied
}

// reach connects a client to the owner. term ends with that.
func (f *Forwarder) reach(ctx context.Context, client netip.AddrPort) (owner stream, term context.Context, err error) {
	ctx, cancel := context.WithTimeout(ctx, takeoverTime)
	defer cancel()
	err = errors.New("no node owns the queues")
	select {
	case f.reaching <- struct{}{}:
		defer func() { <-f.reaching }()
	case <-ctx.Done():
		return nil, nil, err
	}
	for {
		address, term := f.Owner.get()
		if address != "" {
			attempt, giveUp := context.WithCancel(ctx)
			stop := context.AfterFunc(term, giveUp)
			conn, refused := f.Client.Connect(attempt, address, f.Door, client)
			stop()
			giveUp()
			if refused == nil {
				return conn, term, nil
			}
			err = refused
		}
		select {
		case <-time.After(retryTime):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// brief is a client that must take what it gets in time.
type brief struct{ *net.TCPConn }

// Write implements io.Writer.
func (b brief) Write(p []byte) (int, error) {
	_ = b.SetWriteDeadline(time.Now().Add(stallTime))
	return b.TCPConn.Write(p)
}

// relay copies one side of a connection, and its end. The buffer is as long as what comes.
func relay(to stream, from io.Reader) error {
	buf := make([]byte, minPiece)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return to.CloseWrite()
		case err != nil:
			return err
		case n == len(buf) && n < maxPiece:
			buf = make([]byte, 2*n)
		case n < len(buf)/4 && len(buf) > minPiece:
			buf = make([]byte, len(buf)/2)
		}
	}
}
