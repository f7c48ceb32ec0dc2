package daemon

import (
	"net"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// sentinelBuffers bounds what the clients of Sentinel make the server keep, in bytes.
const sentinelBuffers = 16 << 20

// lookout answers the clients of Redis Sentinel. Its loop has no queues, so it answers whatever
// those do.
type lookout struct {
	loop     *netproto.Loop // nil: Sentinel is not served
	protocol *resp.Protocol
}

// serveSentinel serves the listener of Sentinel, if there is one. It tells the address of
// Config.Owner.
func (s *Server) serveSentinel() error {
	for _, l := range s.all.of(resp.SentinelName) {
		state, err := recovery.Restore(noQueues{}, recovery.Options{Now: time.Now().UnixMilli()})
		if err != nil {
			return err
		}
		machine := broker.New(noQueues{}, state, broker.Options{Cache: 1}) // as little as there is
		loop, err := netproto.StartLoop(machine, noQueues{}, netproto.LoopConfig{Logger: s.c.Logger, Goroutines: s.c.Goroutines})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, func() { _ = loop.Close() })
		cell := resp.Cell{Name: s.c.Cell, Owner: s.c.Owner}
		if cell.Owner == nil {
			host, _, _ := net.SplitHostPort(s.c.Redis) // a name stays one: certificates have names
			own := net.JoinHostPort(host, strconv.Itoa(s.all.of(resp.Name)[0].socket.Addr().(*net.TCPAddr).Port))
			cell.Owner = func() string {
				if !s.Serves() {
					return ""
				}
				return own
			}
		}
		s.lookout = lookout{loop, resp.NewSentinel(resp.Config{Users: s.live.users, Version: s.c.Version, Logger: s.log}, cell)}
		l.server = netproto.NewServer(l.socket, netproto.Config{
			Protocol: s.lookout.protocol, Loop: loop, TLS: l.tls, Logger: s.log, MaxConns: s.c.MaxConns, Buffers: netproto.NewBuffers(sentinelBuffers),
		})
		l.accept(&s.c, s.ended)
	}
	return nil
}

// Switched tells those who listen at Sentinel that another machine serves the queues.
func (s *Server) Switched() {
	if s.lookout.loop != nil {
		_ = s.lookout.loop.Do(func(*broker.Tx) error { // it fails where the server ends
			s.lookout.protocol.Switched()
			return nil
		})
	}
}

// noQueues is the store of a loop without queues: it is empty, and stays so.
type noQueues struct{}

func (noQueues) Control() content.Control                               { return content.Control{} }
func (noQueues) Flush() content.Flush                                   { return content.Flush{} }
func (noQueues) Walk(storage.Visitor) error                             { return nil }
func (noQueues) Verify(content.Tally) error                             { return nil }
func (noQueues) Read([]content.PacketID, func(int, []byte, error))      {}
func (noQueues) ReadValues([]content.ValueID, func(int, []byte, error)) {}
func (noQueues) ReadNotes([]content.NoteID, func(int, []byte, error))   {}
func (noQueues) Limits() content.Limits                                 { return content.Limits{MaxOps: 1, MaxBytes: 1} }
func (noQueues) Apply(*broker.Batch) error                              { return nil }
func (noQueues) Space() storage.Space                                   { return storage.Space{} }

func (noQueues) Some(content.PacketID, int, func(content.PacketID, *content.Meta)) (next content.PacketID, more bool, err error) {
	return next, false, nil
}
