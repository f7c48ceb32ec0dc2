package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// packetSeeds are packets with all fields, with none, and at the edges.
func packetSeeds() []content.Packet {
	return []content.Packet{
		{},
		{Key: []byte{}, Payload: []byte("p")},
		{Key: []byte("key"), Payload: bytes.Repeat([]byte("x"), 2000), EnqueuedAt: 1_700_000_000_000},
		{
			Key: bytes.Repeat([]byte("k"), 300), Payload: []byte{0}, Expiry: math.MaxInt64, NotBefore: math.MinInt64,
			EnqueuedAt: -1, Tags: []content.Tag{{Name: "a", Value: "1"}, {Name: "b"}}, Attempts: math.MaxUint32, Producer: "p", Identity: 1 << 63,
			Unique: []byte("u"), Lease: -2, Meta: []byte("m"),
		},
	}
}

// FuzzRecord checks that arbitrary bytes are refused with ErrRecord, or decode to a packet that
// survives a round trip.
func FuzzRecord(f *testing.F) {
	for _, p := range packetSeeds() {
		f.Add(content.AppendRecord(nil, &p))
	}
	f.Add([]byte("\xdf\xff\xff\xff\xff"))
	f.Add([]byte("\x81\x09\xc6\xff\xff\xff\xff"))
	f.Add([]byte("\x81\x05\xdd\xff\xff\xff\xff"))
	f.Add([]byte("\x82\x20\x91\x91\x91\x91\x90\x09\xc4\x00"))
	f.Add([]byte("\x82\x10\x00\x0c\xc4\x01Z"))
	f.Add([]byte("\x81\x0a\x1b")) // a hash without a large payload
	f.Fuzz(func(t *testing.T, record []byte) {
		var p content.Packet
		if err := content.DecodeRecord(record, &p); err != nil {
			if !errors.Is(err, content.ErrRecord) {
				t.Fatalf("refused with %v, expected one that wraps ErrRecord", err)
			}
			return
		}
		if len(p.Key)+len(p.Payload) > len(record) {
			t.Fatalf("%d bytes of key and payload from a record of %d", len(p.Key)+len(p.Payload), len(record))
		}
		checkRoundTrip(t, &p)
	})
}

// FuzzPacket checks that every packet is read back as it was written, by our decoder and by the
// library.
func FuzzPacket(f *testing.F) {
	for _, p := range packetSeeds() {
		f.Add(p.Key, p.Key != nil, p.Payload, p.Expiry, p.NotBefore, p.EnqueuedAt, p.Attempts, p.Producer, "tag", uint8(len(p.Tags)))
	}
	f.Fuzz(func(t *testing.T, key []byte, keyed bool, payload []byte, expiry, notBefore, enqueued int64, attempts uint32,
		producer, tag string, tags uint8) {
		p := content.Packet{
			Payload: payload, Expiry: expiry, NotBefore: notBefore, EnqueuedAt: enqueued, Attempts: attempts, Producer: producer,
		}
		if keyed {
			p.Key = append([]byte{}, key...)
		}
		for i := range tags {
			p.Tags = append(p.Tags, content.Tag{Name: fmt.Sprint(tag, i), Value: tag})
		}
		checkRoundTrip(t, &p)
	})
}

// checkRoundTrip encodes p, decodes it and compares.
func checkRoundTrip(t *testing.T, p *content.Packet) {
	t.Helper()
	record := content.AppendRecord(nil, p)
	got := content.Packet{Key: []byte("left"), Tags: []content.Tag{{Name: "from"}}, Producer: "before"}
	if err := content.DecodeRecord(record, &got); err != nil {
		t.Fatalf("%+v was encoded to % x, which is refused: %v", p, record, err)
	}
	if !same(p, &got) {
		t.Fatalf("%+v came back as %+v", p, got)
	}
	if again := content.AppendRecord(nil, &got); !bytes.Equal(again, record) {
		t.Fatalf("encoded again it is % x instead of % x", again, record)
	}
	for _, cut := range []int{0, 1, len(record) / 2, len(record) - 1} {
		if cut < len(record) && content.DecodeRecord(record[:cut], &got) == nil {
			t.Fatalf("cut to %d of %d bytes the record is accepted", cut, len(record))
		}
	}
	fields, err := msgpack.NewDecoder(bytes.NewReader(record)).DecodeUntypedMap()
	if err != nil {
		t.Fatalf("the library cannot read % x: %v", record, err)
	}
	if want := fieldsOf(p); fmt.Sprint(normal(fields)) != fmt.Sprint(want) {
		t.Fatalf("the library reads %v, expected %v", normal(fields), want)
	}
}

func same(a, b *content.Packet) bool {
	x, y := *a, *b
	for _, p := range []*content.Packet{&x, &y} {
		if len(p.Payload) == 0 {
			p.Payload = nil
		}
		if len(p.Tags) == 0 {
			p.Tags = nil
		}
		if len(p.Unique) == 0 {
			p.Unique = nil
		}
		if len(p.Meta) == 0 {
			p.Meta = nil
		}
	}
	return reflect.DeepEqual(x, y)
}

// fieldsOf lists the fields of the record of p, by their numbers in FORMAT.md.
func fieldsOf(p *content.Packet) map[int]string {
	fields := map[int]string{}
	if p.Key != nil {
		fields[1] = fmt.Sprintf("%x", p.Key)
	}
	for number, v := range map[int]int64{2: p.Expiry, 3: p.NotBefore, 4: p.EnqueuedAt, 6: int64(p.Attempts), 13: p.Lease} {
		if v != 0 {
			fields[number] = fmt.Sprint(v)
		}
	}
	if len(p.Tags) > 0 {
		var tags []any
		for _, tag := range p.Tags {
			tags = append(tags, tag.Name, tag.Value)
		}
		fields[5] = fmt.Sprintf("%q", tags)
	}
	if p.Producer != "" {
		fields[7] = fmt.Sprintf("%q", p.Producer)
	}
	if p.Identity != 0 {
		fields[11] = fmt.Sprint(p.Identity)
	}
	if len(p.Unique) > 0 {
		fields[12] = fmt.Sprintf("%x", p.Unique)
	}
	if len(p.Meta) > 0 {
		fields[14] = fmt.Sprintf("%x", p.Meta)
	}
	if len(p.Payload) > 0 {
		fields[9] = fmt.Sprintf("%x", p.Payload)
	}
	return fields
}

// normal prints what the library has read as fieldsOf does.
func normal(fields map[any]any) map[int]string {
	out := map[int]string{}
	for number, v := range fields {
		var n int
		_, _ = fmt.Sscan(fmt.Sprint(number), &n)
		switch v := v.(type) {
		case []byte:
			out[n] = fmt.Sprintf("%x", v)
		case string, []any:
			out[n] = fmt.Sprintf("%q", v)
		default:
			out[n] = fmt.Sprint(v)
		}
	}
	return out
}

func TestSystemRecordsTakeMemoryForWhatIsThereNotForWhatIsAnnounced(t *testing.T) {
	const bound = 1 << 20
	for _, record := range []string{
		"\xdf\xff\xff\xff\xff", "\x81\x05\xdd\xff\xff\xff\xff", "\x81\x05\xdc\x08\x00", "\x81\x01\xc6\xff\xff\xff\xff",
		"\x81\x07\xdb\xff\xff\xff\xff", "\x81\x09\xc6\xff\xff\xff\xff", "\x81\x20\xdf\xff\xff\xff\xff\xdf\xff\xff\xff\xff",
	} {
		var p content.Packet
		var err error
		if n := allocated(func() { err = content.DecodeRecord([]byte(record), &p) }); n > bound {
			t.Errorf("% x took %d bytes, expected at most %d", record, n, bound)
		}
		if !errors.Is(err, content.ErrRecord) {
			t.Errorf("% x gave %v, expected one that wraps ErrRecord", record, err)
		}
	}
}
