package wire

import (
	"fmt"
	"testing"
	"time"
)

// past returns when the moment has passed. Meanwhile only the server works.
func (s *socket) past(moment time.Time) {
	for !time.Now().After(moment) {
		s.barrier()
	}
}

// granularity is the most by which the two clocks may differ: the server counts whole milliseconds.
const granularity = 2 * time.Millisecond

func TestAPacketLivesAsLongAsItsTTLToTheMillisecond(t *testing.T) {
	s := serve(t).dial(t)
	// A pop whose reply comes before the time must have found the packet, and one that is sent
	// after it must not. Others prove nothing, so go on until both were seen often enough.
	const enough = 20
	alive, dead := 0, 0
	for i, end := 0, time.Now().Add(limit/2); alive < enough || dead < enough; i++ {
		if time.Now().After(end) {
			t.Fatalf("in %d rounds %d packets were looked at in time and %d after it, expected %d of each", i, alive, dead, enough)
		}
		ttl := time.Duration(5+i%40) * time.Millisecond
		queue := fmt.Sprint(i)
		sent := time.Now()
		s.send(push(queue, packet{"k", "p"}, 1, int(ttl.Milliseconds())))
		s.barrier()
		pushed := time.Now()
		if i%2 == 0 {
			s.past(sent.Add(ttl - 3*granularity))
		} else {
			s.past(pushed.Add(ttl + granularity))
		}
		asked := time.Now()
		s.send(pop(queue))
		found := len(s.reply()) == 1
		answered := time.Now()
		switch {
		case asked.After(pushed.Add(ttl + granularity)):
			if dead++; found {
				t.Fatalf("a packet of %v was given %v after its push", ttl, asked.Sub(pushed))
			}
		case answered.Before(sent.Add(ttl - granularity)):
			if alive++; !found {
				t.Fatalf("a packet of %v was gone %v after its push", ttl, answered.Sub(sent))
			}
		}
	}
}

func TestTTLZeroNeverExpiresAndTheLongestOutlivesShortOnes(t *testing.T) {
	s := serve(t).dial(t)
	s.send(
		push("q", packet{"1", "for ever"}, 1, 0), push("q", packet{"2", "65,535 ms"}, 2, 65535),
		push("q", packet{"3", "1 ms"}, 3, 1))
	s.barrier()
	s.past(time.Now().Add(50 * time.Millisecond))
	s.send(pop("q"), pop("q"), pop("q"))
	s.wantPayloads("for ever")
	s.wantPayloads("65,535 ms")
	s.want()
}

func TestAnExpiredPacketDoesNotComeWithItsKey(t *testing.T) {
	s := serve(t).dial(t)
	s.send(
		push("q", packet{"k", "expires"}, 1, 1), push("q", packet{"k", "expires too"}, 0, 1),
		push("q", packet{"k", "stays"}, 5, 0))
	s.barrier()
	s.past(time.Now().Add(granularity))
	s.send(pop("q"), pop("q"))
	s.wantPayloads("stays")
	s.want()
}

func TestAnExpiredPacketDoesNotLiftItsGroup(t *testing.T) {
	s := serve(t).dial(t)
	s.send(push("q", packet{"k", "expires"}, 1, 1), push("q", packet{"k", "zero"}, 0, 0))
	s.barrier()
	s.past(time.Now().Add(granularity))
	s.send(pop("q"))
	s.want()
	s.send(push("q", packet{"k", "lifter"}, 1, 0), pop("q"))
	s.wantPayloads("lifter", "zero")
}

func TestAnExpiredPacketIsNotDelivered(t *testing.T) {
	server := serve(t)
	s := server.dial(t)
	s.send(push("q", packet{"1", "expires"}, 1, 1), push("q", packet{"2", "stays"}, 2, 0))
	s.barrier()
	s.past(time.Now().Add(granularity))
	s.send(subscribe("q"), ready, ready)
	s.wantPayloads("stays")
	s.barrier()
}

func TestTimeToLiveRunsOnWhileTheServerIsDown(t *testing.T) {
	server := serve(t)
	s := server.dial(t)
	s.send(
		push("q", packet{"1", "300 ms"}, 1, 300), push("q", packet{"2", "65,535 ms"}, 2, 65535),
		push("q", packet{"3", "for ever"}, 3, 0))
	s.barrier()
	pushed := time.Now()
	server.stop(t)
	server = serveFolder(t, server.data)
	s = server.dial(t)
	s.past(pushed.Add(300*time.Millisecond + granularity))
	s.send(pop("q"), pop("q"), pop("q"))
	s.wantPayloads("65,535 ms")
	s.wantPayloads("for ever")
	s.want()
}
