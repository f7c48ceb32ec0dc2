package wire

import (
	"bytes"
	"fmt"
	"net"
	"testing"
)

func TestTenThousandPushesInOneWrite(t *testing.T) {
	s := serve(t).dial(t)
	const many = 10_000
	var pushes, pops bytes.Buffer
	for i := range many {
		pushes.Write(push("q", packet{fmt.Sprint("key ", i), fmt.Sprint("payload ", i)}, 1, 0))
		pops.Write(pop("q"))
	}
	s.send(pushes.Bytes())
	go s.conn.Write(pops.Bytes()) // at the same time as the reads, because the replies fill both sockets; ends when they are read
	for i := many - 1; i >= 0; i-- {
		s.want(packet{fmt.Sprint("key ", i), fmt.Sprint("payload ", i)})
	}
	s.send(pop("q"))
	s.want()
}

func TestAFrameMayBeSplitAtEveryByte(t *testing.T) {
	server := serve(t)
	s, other := server.dial(t), server.dial(t)
	all := bytes.Join([][]byte{
		push("q", packet{"k", "payload"}, 1, 0), pop("q"), subscribe("q"), ready,
		push("q", packet{"k2", "delivered"}, 3, 60000), unsubscribe("q"), pop("q"),
	}, nil)
	for at := range len(all) + 1 {
		s.send(all[:at])
		other.barrier() // so that the server has most likely read the first part by itself
		s.send(all[at:])
		s.want(packet{"k", "payload"})
		s.want(packet{"k2", "delivered"})
		s.want()
	}
	for i := range all {
		s.send(all[i : i+1])
	}
	s.want(packet{"k", "payload"})
	s.want(packet{"k2", "delivered"})
	s.want()
	s.barrier()
}

func TestAnUnknownFirstByteClosesAndWhatCameBeforeCounts(t *testing.T) {
	server := serve(t)
	for _, unknown := range []byte{0x00, 0x40, 0x42, 0x51, 0x71, 'G', 0xff} {
		s, other := server.dial(t), server.dial(t)
		s.send(
			push("q", packet{"1", "before"}, 1, 0), push("q", packet{"2", "too"}, 2, 0), pop("q"), pop("empty"),
			[]byte{unknown}, push("q", packet{"3", "after"}, 1, 0), pop("q"))
		// A close with unread bytes would reset the connection, and the replies would be lost.
		_, _ = s.conn.Write(bytes.Repeat(pop("q"), 50_000))
		s.wantPayloads("before")
		s.want()
		s.wantEnd()
		s.conn.Close()
		other.send(pop("q"), pop("q"))
		other.wantPayloads("too")
		other.want()
	}
}

func TestAFrameThatIsCutDoesNothing(t *testing.T) {
	server := serve(t)
	whole := push("q", packet{"key", "payload"}, 1, 0)
	for at := 1; at < len(whole); at++ {
		s := server.dial(t)
		s.send(push("q", packet{"other", fmt.Sprint(at)}, 1, 0), whole[:at])
		s.hangUp()
	}
	other := server.dial(t)
	other.send(pop("q"))
	if got := other.reply(); len(got) != len(whole)-1 { // they share a key
		t.Fatalf("got %q, expected the %d packets before cut frames", got, len(whole)-1)
	}
}

func TestAHalfClosedConnectionGetsItsReplies(t *testing.T) {
	s := serve(t).dial(t)
	s.send(push("q", packet{"k", "p"}, 1, 0), pop("q"), pop("q"))
	if err := s.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.wantPayloads("p")
	s.want()
	s.wantEnd()
}

func TestPushesBeforeAHangUpCountWithoutAnyReply(t *testing.T) {
	server := serve(t)
	s, other := server.dial(t), server.dial(t)
	const many = 200
	for i := range many {
		s.send(push("q", packet{fmt.Sprint(i), "p"}, 1, 0))
	}
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	other.send(subscribe("q"))
	for range many {
		other.send(ready)
		if got := other.reply(); len(got) != 1 {
			t.Fatalf("got %q, expected one packet", got)
		}
	}
	other.barrier()
}

func TestDrainAnswersAllThatWasReceivedAndCloses(t *testing.T) {
	server := serve(t)
	s, idle, sub := server.dial(t), server.dial(t), server.dial(t)
	sub.send(subscribe("elsewhere"), ready)
	sub.barrier()
	const many = 300
	var all [][]byte
	for i := range many {
		all = append(all, push("q", packet{fmt.Sprint(i), fmt.Sprint(i)}, 1, 0), pop("q"))
	}
	all = append(all, push("q", packet{"k", "kept"}, 1, 0), push("cut", packet{"k", "cut"}, 1, 0)[:5])
	s.send(all...)
	server.drain()
	for i := range many {
		s.wantPayloads(fmt.Sprint(i))
	}
	s.wantEnd()
	idle.wantEnd()
	sub.wantEnd()
	server.stop(t)
	if conn, err := net.DialTimeout("tcp", server.addr, limit); err == nil {
		conn.Close()
		t.Error("a connection was accepted after the drain")
	}
	again := serveFolder(t, server.data).dial(t)
	again.send(pop("q"), pop("q"), pop("cut"))
	again.wantPayloads("kept")
	again.want()
	again.want()
}

func TestRestartKeepsPacketsInTheirOrder(t *testing.T) {
	server := serve(t)
	s := server.dial(t)
	s.send(
		push("q", packet{"a", "old"}, 2, 0), push("q", packet{"b", "new"}, 2, 0), push("q", packet{"c", "best"}, 1, 0),
		push("q", packet{"b", "zero"}, 0, 0), push("q", packet{"d", "popped"}, 1, 0), pop("q"))
	s.wantPayloads("popped")
	server.stop(t)
	s = serveFolder(t, server.data).dial(t)
	s.send(push("q", packet{"e", "newest"}, 2, 0), pop("q"), pop("q"), pop("q"), pop("q"), pop("q"))
	s.wantPayloads("best")
	s.wantPayloads("newest")
	s.wantPayloads("new", "zero")
	s.wantPayloads("old")
	s.want()
}
