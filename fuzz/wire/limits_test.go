package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// longest is the most that a length field of the document can say.
const longest = 65535

func TestKeyPayloadAndNameMayBeAsLongAsTheirLengthFieldsSay(t *testing.T) {
	server := serve(t)
	s := server.dial(t)
	name, key, payload := strings.Repeat("n", longest), strings.Repeat("k", longest), strings.Repeat("p", longest)
	s.send(push(name, packet{key, payload}, 1, 0), push(name, packet{key, ""}, 0, 0), push(name, packet{"", payload}, 2, 0))
	s.barrier()
	server.stop(t) // so that they come from disk
	s = serveFolder(t, server.data).dial(t)
	s.send(pop(name), pop(name), pop(name))
	got := s.reply()
	if len(got) != 2 || got[0] != (packet{key, payload}) || got[1] != (packet{key, ""}) {
		t.Fatalf("got %d packets, expected the two of the longest key", len(got))
	}
	if got := s.reply(); len(got) != 1 || got[0] != (packet{"", payload}) {
		t.Fatalf("got %d packets, expected the one without a key", len(got))
	}
	s.want()
	s.send(subscribe(name), ready, unsubscribe(name))
	s.barrier()
}

// drainGroup pops until nothing is left, and returns how many packets each reply had.
func drainGroup(t *testing.T, s *socket, queue string) (counts []int, bytes []int) {
	t.Helper()
	for {
		s.send(pop(queue))
		got := s.reply()
		if len(got) == 0 {
			return counts, bytes
		}
		sum := 0
		for _, p := range got {
			sum += len(p.key) + len(p.payload)
		}
		counts, bytes = append(counts, len(got)), append(bytes, sum)
	}
}

func TestAGroupLongerThanAReplyComesInSeveralInOrder(t *testing.T) {
	s := serve(t).dial(t)
	const many = longest + 100
	var all bytes.Buffer
	for i := range many {
		all.Write(push("q", packet{"k", fmt.Sprint(i)}, 1, 0))
	}
	s.send(all.Bytes())
	replies := 0
	for next := many - 1; next >= 0; replies++ {
		s.send(pop("q"))
		got := s.reply()
		if len(got) == 0 {
			t.Fatalf("nothing was left after packet %d", next+1)
		}
		for _, p := range got {
			if p.payload != fmt.Sprint(next) {
				t.Fatalf("got packet %s, expected %d", p.payload, next)
			}
			next--
		}
	}
	if replies < 2 {
		t.Errorf("%d packets came in one reply, which cannot count them", many)
	}
	s.send(pop("q"))
	s.want()
}

func TestAGroupOverSixteenMebibytesComesInSeveral(t *testing.T) {
	s := serve(t).dial(t)
	const many, size = 300, 60_000
	for i := range many {
		s.send(push("q", packet{"k", fmt.Sprintf("%0*d", size, i)}, 1, 0))
	}
	counts, sizes := drainGroup(t, s, "q")
	sum := 0
	for i, n := range counts {
		sum += n
		if sizes[i] > 16<<20 {
			t.Errorf("a reply had %d bytes of packets, expected at most %d", sizes[i], 16<<20)
		}
	}
	if len(counts) < 2 || sum != many || sizes[0] < 15<<20 {
		t.Errorf("replies had %v packets of %v bytes, expected %d in all and nearly %d in the first", counts, sizes, many, 16<<20)
	}
}

func TestAPeerThatDoesNotReadStallsNobodyAndTakesLittle(t *testing.T) {
	server := serve(t)
	slow, other := server.dial(t), server.dial(t)
	const many, size = 1500, 60_000 // 90 MB, far more than the buffers between it and the server
	filler := strings.Repeat("x", size)
	for i := range many {
		other.send(push("q", packet{fmt.Sprint(i), filler}, 1, 0))
	}
	other.barrier()
	for range many {
		slow.send(pop("q"))
	}
	slow.send(subscribe("q"), ready)
	// The others are still served while the server sends the slow one as much as it ever will.
	for range 150 {
		other.send(push("quick", packet{"k", "p"}, 1, 0), pop("quick"), pop("q"))
		other.wantPayloads("p")
		other.reply()
	}
	slow.conn.Close()
	left := 0
	for {
		other.send(pop("q"))
		if len(other.reply()) == 0 {
			break
		}
		left++
	}
	// What the slow one was sent is lost with it: the server and the sockets held that much.
	if left < many/2 {
		t.Errorf("only %d of %d packets are left: a peer that reads nothing was given the others", left, many)
	}
}

func TestASubscriberThatDoesNotReadIsNotGivenEverything(t *testing.T) {
	server := serve(t)
	slow, other := server.dial(t), server.dial(t)
	slow.send(subscribe("q"), bytes.Repeat(ready, 2000))
	slow.barrier()
	const many, size = 1000, 60_000
	filler := strings.Repeat("x", size)
	for i := range many {
		other.send(push("q", packet{fmt.Sprint(i), filler}, 1, 0))
	}
	other.barrier()
	left := 0
	for {
		other.send(pop("q"))
		if len(other.reply()) == 0 {
			break
		}
		left++
	}
	if left < many/2 {
		t.Errorf("only %d of %d packets are left: a subscriber that reads nothing was given the others", left, many)
	}
	// As soon as it reads, it gets what it was sent, and then goes on.
	for range many - left {
		slow.reply()
	}
	other.send(push("q", packet{"k", "fresh"}, 1, 0))
	slow.wantPayloads("fresh")
}

func TestManyConnectionsComeAndGo(t *testing.T) {
	server := serve(t)
	for range 5 {
		var all []*socket
		for i := range 100 {
			s := server.dial(t)
			s.send(push("q", packet{fmt.Sprint(i), "p"}, 1, 0), subscribe("q"), ready)
			all = append(all, s)
		}
		for _, s := range all {
			if got := s.reply(); len(got) != 1 {
				t.Fatalf("got %q, expected one packet", got)
			}
			s.conn.Close()
		}
	}
	s := server.dial(t)
	s.past(time.Now())
	s.send(pop("q"))
	s.want()
}
