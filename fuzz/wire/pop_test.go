package wire

import (
	"strings"
	"testing"
)

func TestPopOfAnUnknownQueueGivesTwoZeroBytes(t *testing.T) {
	s := serve(t).dial(t)
	s.send(pop("unknown"))
	if got := s.bytes(2); got[0] != 0 || got[1] != 0 {
		t.Fatalf("got % x, expected 00 00", got)
	}
	s.barrier()
}

func TestPopGivesTheExactBytesOfTheDocument(t *testing.T) {
	s := serve(t).dial(t)
	s.send([]byte("\x70\x00\x04\x00\x00\x01\x00\x01\x00\x05khellojobs"))
	s.send([]byte("\x50\x00\x04jobs"))
	if got := string(s.bytes(12)); got != "\x00\x01\x00\x01\x00\x05khello" {
		t.Fatalf("got %q", got)
	}
	s.barrier()
}

func TestPopSelectsTheBestPriority(t *testing.T) {
	s := serve(t).dial(t)
	for _, priority := range []byte{7, 255, 1, 3, 2} {
		s.send(push("q", packet{string(priority), string('a' + rune(priority)%26)}, priority, 0))
	}
	for _, priority := range []byte{1, 2, 3, 7, 255} {
		s.send(pop("q"))
		s.want(packet{string(priority), string('a' + rune(priority)%26)})
	}
	s.send(pop("q"))
	s.want()
}

func TestPopSelectsTheNewestOfAPriority(t *testing.T) {
	s := serve(t).dial(t)
	for _, p := range []string{"first", "second", "third"} {
		s.send(push("q", packet{p, p}, 4, 0))
	}
	for _, p := range []string{"third", "second", "first"} {
		s.send(pop("q"))
		s.wantPayloads(p)
	}
}

func TestPriorityZeroIsNeverSelected(t *testing.T) {
	s := serve(t).dial(t)
	s.send(push("q", packet{"k", "zero"}, 0, 0), pop("q"), pop("q"))
	s.want()
	s.want()
	s.send(push("q", packet{"other", "one"}, 9, 0), pop("q"), pop("q"))
	s.wantPayloads("one")
	s.want()
	s.send(push("q", packet{"k", "lifter"}, 200, 0), pop("q"), pop("q"))
	s.wantPayloads("lifter", "zero")
	s.want()
}

func TestPopTakesTheWholeGroupInItsOrder(t *testing.T) {
	s := serve(t).dial(t)
	s.send(
		push("q", packet{"k", "five"}, 5, 0),
		push("q", packet{"k", "zero, older"}, 0, 0),
		push("q", packet{"other", "stays"}, 3, 0),
		push("q", packet{"k", "three, older"}, 3, 0),
		push("q", packet{"k", "selected"}, 2, 0),
		push("q", packet{"k", "zero, newer"}, 0, 0),
		push("q", packet{"k", "three, newer"}, 3, 0),
		push("elsewhere", packet{"k", "another queue's"}, 1, 0),
		pop("q"), pop("q"), pop("q"), pop("elsewhere"))
	s.wantPayloads("selected", "three, newer", "three, older", "five", "zero, newer", "zero, older")
	s.wantPayloads("stays")
	s.want()
	s.wantPayloads("another queue's")
}

func TestAGroupOfManyKeepsItsOrder(t *testing.T) {
	s := serve(t).dial(t)
	const many = 500
	var want []string
	for i := range many {
		s.send(push("q", packet{"k", strings.Repeat("x", i)}, 1, 0))
		want = append([]string{strings.Repeat("x", i)}, want...)
	}
	s.send(pop("q"), pop("q"))
	s.wantPayloads(want...)
	s.want()
}

func TestEmptyKeysAreEqual(t *testing.T) {
	s := serve(t).dial(t)
	s.send(push("q", packet{"", "a"}, 2, 0), push("q", packet{"", "b"}, 1, 0), pop("q"), pop("q"))
	s.want(packet{"", "b"}, packet{"", "a"})
	s.want()
}

func TestKeysAreComparedWhole(t *testing.T) {
	s := serve(t).dial(t)
	long := strings.Repeat("k", 100)
	for _, key := range []string{"k", "k\x00", "K", long, long + "k", "\x00"} {
		s.send(push("q", packet{key, "p"}, 1, 0))
	}
	for _, key := range []string{"\x00", long + "k", long, "K", "k\x00", "k"} {
		s.send(pop("q"))
		s.want(packet{key, "p"})
	}
}

func TestQueueNamesAreBytesComparedWhole(t *testing.T) {
	s := serve(t).dial(t)
	names := []string{"", "q", "Q", "q\x00", "\xff\xfe", strings.Repeat("q", 300)}
	for _, name := range names {
		s.send(push(name, packet{"k", "in " + name}, 1, 0))
	}
	for _, name := range names {
		s.send(pop(name), pop(name))
		s.wantPayloads("in " + name)
		s.want()
	}
}

func TestAnIdenticalPacketIsKeptTwice(t *testing.T) {
	s := serve(t).dial(t)
	p := packet{"k", "same"}
	s.send(push("q", p, 1, 0), push("q", p, 1, 0), pop("q"))
	s.want(p, p)
}

func TestAPacketMayBeEmpty(t *testing.T) {
	s := serve(t).dial(t)
	s.send(push("", packet{}, 1, 0), pop(""), pop(""))
	s.want(packet{})
	s.want()
}

func TestPoppedPacketsAreGoneForAllConnections(t *testing.T) {
	server := serve(t)
	a, b := server.dial(t), server.dial(t)
	a.send(push("q", packet{"1", "one"}, 1, 0), push("q", packet{"2", "two"}, 2, 0))
	a.barrier()
	b.send(pop("q"))
	b.wantPayloads("one")
	a.send(pop("q"), pop("q"))
	a.wantPayloads("two")
	a.want()
}
