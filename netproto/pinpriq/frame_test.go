package pinpriq

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// golden holds every kind of request as the pinpriq document draws it. The bytes never change.
var golden = map[string]struct {
	request Request
	bytes   string // hexadecimal; spaces separate the fields
}{
	"push": {
		Request{Op: OpPush, Queue: []byte("jobs"), TTL: 0x1234, Priority: 7, Packet: Packet{Key: []byte("key"), Payload: []byte("hello")}},
		"70 0004 1234 07 0003 0005 6b6579 68656c6c6f 6a6f6273",
	},
	"push of empty fields": {
		Request{Op: OpPush, Queue: []byte{}, Packet: Packet{Key: []byte{}, Payload: []byte{}}},
		"70 0000 0000 00 0000 0000",
	},
	"push that lives longest at the last priority": {
		Request{Op: OpPush, Queue: []byte{0}, TTL: MaxTTL, Priority: 255, Packet: Packet{Key: []byte{0xff}, Payload: []byte{0}}},
		"70 0001 ffff ff 0001 0001 ff 00 00",
	},
	"pop":             {Request{Op: OpPop, Queue: []byte("jobs")}, "50 0004 6a6f6273"},
	"pop of no name":  {Request{Op: OpPop, Queue: []byte{}}, "50 0000"},
	"subscribe":       {Request{Op: OpSubscribe, Queue: []byte("jobs")}, "73 0004 6a6f6273"},
	"unsubscribe":     {Request{Op: OpUnsubscribe, Queue: []byte("jobs")}, "75 0004 6a6f6273"},
	"ready":           {Request{Op: OpReady}, "41"},
	"pop of 256 byte": {Request{Op: OpPop, Queue: bytes.Repeat([]byte{'q'}, 256)}, "50 0100 " + strings.Repeat("71", 256)},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRequestsHaveTheBytesOfTheDocument(t *testing.T) {
	for name, row := range golden {
		t.Run(name, func(t *testing.T) {
			want := unhex(t, row.bytes)
			got, err := row.request.Append([]byte("x"))
			if err != nil || string(got) != "x"+string(want) {
				t.Fatalf("encoded to % x, %v; want % x", got[1:], err, want)
			}
			var r Request
			n, err := r.Parse(append(want, "rest"...))
			if err != nil || n != len(want) || !reflect.DeepEqual(r, row.request) {
				t.Fatalf("decoded to %+v, %d bytes, %v; want %+v", r, n, err, row.request)
			}
			for cut := range want {
				if n, err := r.Parse(want[:cut]); n != 0 || !errors.Is(err, ErrShort) {
					t.Fatalf("cut at %d: %d bytes, %v; want ErrShort", cut, n, err)
				}
			}
		})
	}
}

func TestRepliesHaveTheBytesOfTheDocument(t *testing.T) {
	for name, row := range map[string]struct {
		packets []Packet
		bytes   string
	}{
		"nothing":     {[]Packet{}, "0000"},
		"one packet":  {[]Packet{{Key: []byte("k"), Payload: []byte("hello")}}, "0001 0001 0005 6b 68656c6c6f"},
		"a key group": {[]Packet{{Key: []byte("k"), Payload: []byte{}}, {Key: []byte("k"), Payload: []byte("b")}}, "0002 0001 0000 6b 0001 0001 6b 62"},
	} {
		t.Run(name, func(t *testing.T) {
			want := unhex(t, row.bytes)
			got := AppendCount(nil, len(row.packets))
			for _, p := range row.packets {
				var err error
				if got, err = AppendPacket(got, p.Key, p.Payload); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("encoded to % x, want % x", got, want)
			}
			in := bufio.NewReader(bytes.NewReader(append(want, "rest"...)))
			packets, err := ReadReply(in)
			if err != nil || !reflect.DeepEqual(packets, row.packets) {
				t.Fatalf("decoded to %+v, %v; want %+v", packets, err, row.packets)
			}
			if rest, _ := io.ReadAll(in); string(rest) != "rest" {
				t.Fatalf("%q is left, want what came behind the reply", rest)
			}
			for cut := range want {
				_, err := ReadReply(bufio.NewReader(bytes.NewReader(want[:cut])))
				if !errors.Is(err, io.ErrUnexpectedEOF) && (cut > 0 || !errors.Is(err, io.EOF)) {
					t.Fatalf("cut at %d: %v; want that it is cut short", cut, err)
				}
			}
		})
	}
}

func TestOnlyTheFiveRequestBytesAreKnown(t *testing.T) {
	known := 0
	for b := range 256 {
		var r Request
		_, err := r.Parse([]byte{byte(b), 0, 0, 0, 0, 0, 0, 0, 0, 0})
		if err == nil {
			known++
		} else if !errors.Is(err, ErrUnknownOp) {
			t.Fatalf("first byte %#x gave %v, want ErrUnknownOp", b, err)
		}
	}
	if known != 5 {
		t.Fatalf("%d first bytes are known, want five", known)
	}
}

func TestFieldsOverTheirLengthAreRefused(t *testing.T) {
	long := make([]byte, 0x10000)
	for name, r := range map[string]Request{
		"queue name": {Op: OpPop, Queue: long},
		"key":        {Op: OpPush, Packet: Packet{Key: long}},
		"payload":    {Op: OpPush, Packet: Packet{Payload: long}},
	} {
		if got, err := r.Append(nil); !errors.Is(err, ErrTooLong) || len(got) != 0 || !strings.Contains(err.Error(), name) {
			t.Errorf("%s of 65,536 bytes gave %d bytes, %v; want ErrTooLong", name, len(got), err)
		}
	}
}

func TestAPacketOverItsLengthIsRefusedAndWritesNothing(t *testing.T) {
	long := make([]byte, 0x10000)
	for name, p := range map[string]Packet{"key": {Key: long}, "payload": {Payload: long}} {
		got, err := AppendPacket([]byte("before"), p.Key, p.Payload)
		if !errors.Is(err, ErrTooLong) || string(got) != "before" || !strings.Contains(err.Error(), name) {
			t.Errorf("%s of 65,536 bytes gave %d bytes, %v; want ErrTooLong", name, len(got), err)
		}
	}
	if got, err := AppendPacket(nil, long[1:], long[1:]); err != nil || len(got) != packetHeader+2*0xffff {
		t.Errorf("a packet of twice 65,535 bytes gave %d bytes, %v", len(got), err)
	}
}

func TestAReplyStaysInStepWhateverItIsGiven(t *testing.T) {
	long := make([]byte, 0x10000)
	s := &session{peer: &netproto.Peer{}}
	s.Deliver([]broker.Packet{{Payload: long}, {Payload: []byte("fits")}, {Key: long}})
	in := bufio.NewReader(bytes.NewReader(s.peer.Out))
	packets, err := ReadReply(in)
	if _, end := in.ReadByte(); err != nil || end != io.EOF || len(packets) != 1 || string(packets[0].Payload) != "fits" {
		t.Fatalf("%d packets (%v), then %v; want the one that fits, then the end", len(packets), err, end)
	}
}
