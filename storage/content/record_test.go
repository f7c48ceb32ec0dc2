package content

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// drawPacket draws a packet of any shape.
func drawPacket(t *rapid.T) Packet {
	p := Packet{
		Expiry:     rapid.SampledFrom([]int64{0, 0, 1, 1_800_000_000_123, math.MaxInt64, -1, -200, -70_000, math.MinInt64}).Draw(t, "expiry"),
		NotBefore:  rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(t, "not before"),
		EnqueuedAt: rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(t, "enqueued at"),
		Attempts:   rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32()).Draw(t, "attempts"),
		Identity:   rapid.SampledFrom([]uint64{0, 0, 1, 1 << 63, math.MaxUint64}).Draw(t, "identity"),
		Lease:      rapid.SampledFrom([]int64{0, 0, 1, 30_000, math.MaxInt64}).Draw(t, "lease"),
		Meta:       make([]byte, rapid.SampledFrom([]int{0, 0, 1, 4096}).Draw(t, "meta")),
		Producer:   strings.Repeat("é", rapid.SampledFrom([]int{0, 1, 15, 16, 127, 128, 40_000}).Draw(t, "producer")),
		Payload:    make([]byte, rapid.SampledFrom([]int{0, 1, 31, 255, 256, 1024, 1025, 65535, 65536}).Draw(t, "payload")),
	}
	if len(p.Payload) > 0 {
		p.Payload[0], p.Payload[len(p.Payload)-1] = 1, 2
	}
	if rapid.Bool().Draw(t, "has key") {
		p.Key = bytes.Repeat([]byte{0, 0xff}, rapid.SampledFrom([]int{0, 1, 127, 128, 40_000}).Draw(t, "key"))
	}
	for i := range rapid.SampledFrom([]int{0, 0, 1, 3, 8, 20}).Draw(t, "tags") {
		p.Tags = append(p.Tags, Tag{fmt.Sprintf("name%02d", i), rapid.SampledFrom([]string{"", "a", strings.Repeat("v", 31), strings.Repeat("w", 32)}).Draw(t, "value")})
	}
	return p
}

// same compares packets; no tags and no payload have two forms.
func same(a, b Packet) bool {
	return bytes.Equal(a.Key, b.Key) && (a.Key == nil) == (b.Key == nil) && bytes.Equal(a.Payload, b.Payload) &&
		a.Expiry == b.Expiry && a.NotBefore == b.NotBefore && a.EnqueuedAt == b.EnqueuedAt &&
		slices.Equal(a.Tags, b.Tags) && a.Attempts == b.Attempts && a.Producer == b.Producer &&
		a.Identity == b.Identity && a.Lease == b.Lease && bytes.Equal(a.Meta, b.Meta) && bytes.Equal(a.Unique, b.Unique)
}

func TestRecordReadsBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got Packet
		for range 3 { // the same packet decoded into again
			want := drawPacket(t)
			rec := AppendRecord([]byte("before"), &want)[len("before"):]
			if err := DecodeRecord(rec, &got); err != nil {
				t.Fatal(err)
			}
			if !same(want, got) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			var m Meta
			head := appendHead(nil, &want)
			for name, rec := range map[string][]byte{"full": rec, "head": head} {
				if err := DecodeMeta(rec, &m); err != nil {
					t.Fatal(name, err)
				}
				wantMeta := Meta{want.Expiry, want.NotBefore, want.EnqueuedAt, want.Key, m.Tags, want.Attempts,
					uint32(len(want.Key) + len(want.Payload)), m.Hash, name == "head", want.Identity, uint32(len(want.Meta)),
					uint32(ExtraBytes(&Packet{Tags: want.Tags, Producer: want.Producer, Lease: want.Lease}))}
				if !reflect.DeepEqual(m, wantMeta) || !slices.Equal(m.Tags, want.Tags) {
					t.Fatalf("%s: got %+v, want %+v", name, m, wantMeta)
				}
			}
			var x MetaRest
			if err := ReadRecord(head, &m, &x, false); err != nil || !m.Large || int(x.Size) != len(want.Payload) || m.Expiry != want.Expiry {
				t.Fatal(m, x, err)
			}
			if joined := AppendJoined(nil, head, x.At, want.Payload); len(want.Payload) > 0 && !bytes.Equal(joined, rec) {
				t.Fatalf("joined %x, full %x", joined, rec)
			}
		}
	})
}

// libraryRecord writes a record with the msgpack library.
func libraryRecord(p *Packet) ([]byte, error) {
	fields := []struct {
		number int8
		has    bool
		put    func(*msgpack.Encoder) error
	}{
		{fieldKey, p.Key != nil, func(e *msgpack.Encoder) error { return e.EncodeBytes(p.Key) }},
		{fieldExpiry, p.Expiry != 0, func(e *msgpack.Encoder) error { return e.EncodeInt(p.Expiry) }},
		{fieldNotBefore, p.NotBefore != 0, func(e *msgpack.Encoder) error { return e.EncodeInt(p.NotBefore) }},
		{fieldEnqueuedAt, p.EnqueuedAt != 0, func(e *msgpack.Encoder) error { return e.EncodeInt(p.EnqueuedAt) }},
		{fieldTags, len(p.Tags) > 0, func(e *msgpack.Encoder) error {
			if err := e.EncodeArrayLen(2 * len(p.Tags)); err != nil {
				return err
			}
			for _, tag := range p.Tags {
				if err := errors.Join(e.EncodeString(tag.Name), e.EncodeString(tag.Value)); err != nil {
					return err
				}
			}
			return nil
		}},
		{fieldAttempts, p.Attempts != 0, func(e *msgpack.Encoder) error { return e.EncodeUint(uint64(p.Attempts)) }},
		{fieldProducer, p.Producer != "", func(e *msgpack.Encoder) error { return e.EncodeString(p.Producer) }},
		{fieldIdentity, p.Identity != 0, func(e *msgpack.Encoder) error { return e.EncodeUint(p.Identity) }},
		{fieldLease, p.Lease != 0, func(e *msgpack.Encoder) error { return e.EncodeInt(p.Lease) }},
		{fieldMeta, len(p.Meta) > 0, func(e *msgpack.Encoder) error { return e.EncodeBytes(p.Meta) }},
		{fieldPayload, len(p.Payload) > 0, func(e *msgpack.Encoder) error { return e.EncodeBytes(p.Payload) }},
	}
	n := 0
	for _, f := range fields {
		if f.has {
			n++
		}
	}
	var out bytes.Buffer
	e := msgpack.NewEncoder(&out)
	err := e.EncodeMapLen(n)
	for _, f := range fields {
		if f.has && err == nil {
			err = errors.Join(e.EncodeInt(int64(f.number)), f.put(e))
		}
	}
	return out.Bytes(), err
}

func TestRecordIsByteForByteWhatTheMsgpackLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		want, err := libraryRecord(&p)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendRecord(nil, &p); !bytes.Equal(got, want) {
			t.Fatalf("got  %x\nwant %x", got, want)
		}
	})
}

func TestRecordIsReadByTheMsgpackLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		d := msgpack.NewDecoder(bytes.NewReader(AppendRecord(nil, &p)))
		m, err := d.DecodeUntypedMap()
		if err != nil {
			t.Fatal(err)
		}
		if key, has := m[int8(fieldKey)]; has != (p.Key != nil) || has && !bytes.Equal(key.([]byte), p.Key) {
			t.Fatalf("key %v, want %v", key, p.Key)
		}
		if payload, has := m[int8(fieldPayload)]; has != (len(p.Payload) > 0) || has && !bytes.Equal(payload.([]byte), p.Payload) {
			t.Fatal("payload differs")
		}
	})
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	values := map[string]any{
		"nil": nil, "bool": true, "float": 1.5, "float32": float32(1.5), "negative": -5, "int64": int64(math.MinInt64),
		"uint64": uint64(math.MaxUint64), "string": strings.Repeat("x", 40), "long string": strings.Repeat("x", 300),
		"bin": []byte{1, 2}, "array": []any{1, "a", []any{2}}, "map": map[string]any{"a": map[string]int{"b": 1}},
		"long array": make([]int, 20), "empty": []any{},
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			raw, err := msgpack.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			rec := []byte{formMap | 4, fieldKey, formBin8, 1, 'k', 21}
			rec = append(rec, raw...)
			rec = append(rec, 0xcd, 0x03, 0xe8) // a field number of three bytes
			rec = append(rec, raw...)
			rec = append(rec, fieldPayload, formBin8, 1, 'p')
			var p Packet
			if err := DecodeRecord(rec, &p); err != nil || string(p.Key) != "k" || string(p.Payload) != "p" {
				t.Errorf("%+v, %v", p, err)
			}
			var m Meta
			if err := DecodeMeta(rec, &m); err != nil || m.Size != 2 || m.Extra != uint32(4+2*len(raw)) {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

func TestBytesThatAreNoRecordAreRefused(t *testing.T) {
	deep := append([]byte{0x81, 20}, bytes.Repeat([]byte{0x91}, 40)...)
	deep = append(deep, 1)
	rows := map[string][]byte{
		"nothing":                         {},
		"not a map":                       {0x91, 1},
		"a map longer than the record":    {0x8f, 1, 0xc4, 1, 'k'},
		"a map of 4 G fields":             {0xdf, 0xff, 0xff, 0xff, 0xff},
		"bytes after the last field":      {0x81, 1, 0xc4, 1, 'k', 0},
		"a key cut short":                 {0x81, 1, 0xc4, 9, 'k'},
		"a key of 4 GiB":                  {0x81, 1, 0xc6, 0xff, 0xff, 0xff, 0xff, 1},
		"a key that is a string":          {0x81, 1, 0xa1, 'k'},
		"a payload before another field":  {0x82, 9, 0xc4, 1, 'p', 1, 0xc4, 1, 'k'},
		"attempts over 32 bits":           {0x81, 6, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0},
		"negative attempts":               {0x81, 6, 0xff},
		"an expiry over 63 bits":          {0x81, 2, 0xcf, 0xff, 0, 0, 0, 0, 0, 0, 0},
		"an odd number of tag strings":    {0x81, 5, 0x91, 0xa1, 'a'},
		"tags of 4 G strings":             {0x81, 5, 0xdd, 0xff, 0xff, 0xff, 0xfe},
		"a field name that is no number":  {0x81, 0xa1, 'x', 1},
		"a value nested too deep":         deep,
		"a code that msgpack never gives": {0x81, 20, 0xc1},
	}
	for name, rec := range rows {
		t.Run(name, func(t *testing.T) {
			var p Packet
			if err := DecodeRecord(rec, &p); !errors.Is(err, ErrRecord) {
				t.Errorf("DecodeRecord gives %v", err)
			}
			var m Meta
			if err := DecodeMeta(rec, &m); !errors.Is(err, ErrRecord) {
				t.Errorf("decodeMeta gives %v", err)
			}
		})
	}
	var p Packet
	if err := DecodeRecord(appendHead(nil, &Packet{Payload: make([]byte, 2000)}), &p); !errors.Is(err, ErrRecord) {
		t.Errorf("a record without its payload gives %v", err)
	}
}

func TestEveryCutOfARecordIsRefused(t *testing.T) {
	p := Packet{Key: []byte("key"), Payload: []byte("payload"), Expiry: 5, Tags: []Tag{{"a", "b"}}, Producer: "me", Attempts: 300}
	rec := AppendRecord(nil, &p)
	for n := range rec {
		var got Packet
		if err := DecodeRecord(rec[:n], &got); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a record", n, len(rec))
		}
		var m Meta
		if err := DecodeMeta(rec[:n], &m); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a record by a scan", n, len(rec))
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(AppendRecord(nil, &Packet{Key: []byte("key"), Payload: []byte("payload"), Tags: []Tag{{"a", "b"}}, Producer: "me"}))
	f.Add(appendHead(nil, &Packet{Key: []byte{}, Payload: make([]byte, 2000)}))
	f.Add(AppendItem(nil, &Item{Kind: String, Name: []byte("name"), Version: 7, Expiry: 5, Value: []byte("value")}))
	f.Add(AppendFlush(nil, Flush{{Keys: 300, Queues: 7}}))
	f.Add(AppendDelivery(nil, &Delivery{State: Claimed, Until: 1 << 40, Attempts: 7, Token: 1 << 63, Consumer: "me", Origin: 9, Cancelled: true}))
	f.Add(AppendQueue(nil, &Queue{Name: []byte("q"), Settings: &Settings{
		MaxAttempts: 5, DeadLetter: []byte("dead"), Bound: 1000, Full: FullDrop, Closed: true, Orders: []Order{{"class", []string{"low", "high"}}},
	}}))
	f.Fuzz(func(t *testing.T, rec []byte) {
		var p, again Packet
		if DecodeRecord(rec, &p) == nil {
			if err := DecodeRecord(AppendRecord(nil, &p), &again); err != nil || !same(p, again) {
				t.Errorf("%+v becomes %+v, %v", p, again, err)
			}
		}
		var m Meta
		_ = DecodeMeta(rec, &m)
		_ = DecodeControl(rec, new(Control))
		if changed, err := AppendChanged(nil, rec, 5, 7); err == nil && DecodeRecord(rec, &p) == nil {
			p.Expiry, p.Identity = 5, 7
			if err := DecodeRecord(changed, &again); err != nil || !same(p, again) {
				t.Errorf("%+v is changed to %+v, %v", p, again, err)
			}
		}
		var d, sameD Delivery
		if DecodeDelivery(rec, 7, &d) == nil {
			if err := DecodeDelivery(AppendDelivery(nil, &d), 7, &sameD); err != nil || d != sameD {
				t.Errorf("%+v becomes %+v, %v", d, sameD, err)
			}
		}
		var q, sameQ Queue
		if DecodeQueue(rec, &q) == nil {
			again := AppendQueue(nil, &q)
			if err := DecodeQueue(again, &sameQ); err != nil || !bytes.Equal(AppendQueue(nil, &sameQ), again) {
				t.Errorf("%+v becomes %+v, %v", q, sameQ, err)
			}
		}
		_, _ = DecodeFlush(rec)
		_ = EachEntry([][]byte{rec[:len(rec)/2], rec[len(rec)/2:]}, 3, func(Entry) {})
		var i, same Item
		if DecodeItem(rec, &i) == nil {
			if err := DecodeItem(AppendItem(nil, &i), &same); err != nil || !sameItem(i, same) || i.Size != same.Size {
				t.Errorf("%+v becomes %+v, %v", i, same, err)
			}
		}
	})
}

func TestDecodingTakesNoMemory(t *testing.T) {
	p := Packet{Key: []byte("key"), Payload: []byte("payload"), Expiry: 5, Tags: []Tag{{"a", "b"}}, Producer: "me"}
	rec := AppendRecord(nil, &p)
	var m Meta
	if n := testing.AllocsPerRun(100, func() {
		if DecodeRecord(rec, &p) != nil || DecodeMeta(rec, &m) != nil {
			t.Fatal("not decoded")
		}
	}); n > 1 { // the tags of the first round
		t.Errorf("%v allocations", n)
	}
}

func TestQueueKeepsFieldsOfANewerVersion(t *testing.T) {
	rec := []byte{formMap | 3, fieldName, formBin8, 4, 'j', 'o', 'b', 's', 100, 0xcd, 0x01, 0x00, 101, 0xa1, 'x'}
	q := Queue{ID: 5}
	if err := DecodeQueue(rec, &q); err != nil {
		t.Fatal(err)
	}
	if q.ID != 5 || string(q.Name) != "jobs" || q.Rest.Fields != 2 {
		t.Errorf("%+v", q)
	}
	if got := AppendQueue(nil, &q); !bytes.Equal(got, rec) {
		t.Errorf("written back as %x, was %x", got, rec)
	}
}

func TestStatesHeadsAndFieldsKeepWhatALaterVersionWrote(t *testing.T) {
	rest := Rest{Bytes: "\x1b\xcd\x01\x00\x1d\xa1x", Fields: 2}
	for _, d := range []Delivery{{Identity: 1, State: Claimed, Until: 5, Attempts: 1, Token: 7, Consumer: "me"}, {Identity: 2, State: Ready}, {Identity: 3, State: Claimed, Cancelled: true}} {
		d.Rest = rest
		var got Delivery
		if err := DecodeDelivery(AppendDelivery(nil, &d), d.Identity, &got); err != nil || got != d {
			t.Errorf("%+v is read as %+v, %v", d, got, err)
		}
	}
	for v, i := range []Item{
		{Kind: String, Database: 3, Name: []byte("name"), Version: 7, Expiry: 5, Value: []byte("value")},
		{Kind: Hash, Name: []byte{}, Version: 1, Value: []byte{}},
		{Name: []byte("field"), Version: 9, Size: 5000, Large: true},
	} {
		var got Item
		i.Rest = rest
		if err := DecodeItem(AppendItem(nil, &i), &got); err != nil || !sameItem(i, got) || got.Rest != rest {
			t.Errorf("%v is read as %+v, %v", v, got, err)
		}
	}
}

func TestQueueWithoutANameHasTheEmptyOne(t *testing.T) {
	if got, want := AppendQueue(nil, &Queue{}), []byte{formMap | 1, fieldName, formBin8, 0}; !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestControlRecordReadsBackAndSkipsUnknownFields(t *testing.T) {
	want := Control{Epoch: 3, Batch: 1 << 40, Tally: Tally{Live: 7, Hash: math.MaxUint64}, Marks: Marks{1 << 63, 1<<63 - 1, 9, 77}}
	rec := AppendControl(nil, &want)
	newer := append([]byte(nil), rec...)
	newer[0]++
	newer = append(newer, 20, 0xa1, 'x')
	for _, rec := range [][]byte{rec, newer} {
		var got Control
		if err := DecodeControl(rec, &got); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for n := range rec {
		if DecodeControl(rec[:n], new(Control)) == nil {
			t.Errorf("the first %d bytes are taken for a control record", n)
		}
	}
	missing := append([]byte{rec[0] - 1}, rec[3:]...) // without the format
	if DecodeControl(missing, new(Control)) == nil {
		t.Error("a control record without a field is taken")
	}
	later := slices.Concat(rec[:2], []byte{FormatVersion + 1}, rec[3:])
	if err := DecodeControl(later, new(Control)); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), "install the newer version") {
		t.Errorf("a record of the next format: %v", err)
	}
}

func TestChangedRecordDiffersInExpiryAndIdentityOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		rec := AppendRecord(nil, &p)
		p.Expiry = rapid.SampledFrom([]int64{0, 1, -5, 4_000_000_000_123}).Draw(t, "new expiry")
		p.Identity = rapid.SampledFrom([]uint64{0, 1, 1<<63 + 7}).Draw(t, "new identity")
		got, err := AppendChanged([]byte("before"), rec, p.Expiry, p.Identity)
		if want := AppendRecord([]byte("before"), &p); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, %v, want %x", got, err, want)
		}
		if _, err := AppendChanged(nil, rec[:rapid.IntRange(0, len(rec)-1).Draw(t, "cut")], 1, 1); !errors.Is(err, ErrRecord) {
			t.Fatalf("a cut record gives %v", err)
		}
	})
}

func TestDefinitionOfAQueueWithTheLongestSettingsReadsBack(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 70_000)
	for _, q := range []Queue{
		{},
		{Name: long, Expiry: -1 << 63, Dropped: true, Counters: Counters{1 << 63, 1 << 63, 1 << 63, 1 << 63, 1 << 63, 1 << 63, 1 << 63, 1 << 63},
			Settings: &Settings{MaxAttempts: 1<<32 - 1, Lease: 1 << 62, BackoffMin: 1 << 62, BackoffMax: 1 << 62, DeadLetter: long, Retain: 1 << 62,
				Bound: 1 << 62, BoundBytes: 1 << 62, Full: 255, ExclusiveProducer: true, ExclusiveConsumer: true, PauseIn: true, PauseOut: true, Closed: true,
				Orders: []Order{{string(long), make([]string, 1<<16)}, {string(long), []string{string(long), string(long)}}}}},
	} {
		rec := AppendQueue(nil, &q)
		var got Queue
		if err := DecodeQueue(rec, &got); err != nil || !reflect.DeepEqual(got.Settings, q.Settings) {
			t.Errorf("it reads as %.200v, %v", got, err)
		}
	}
}

func TestItemRecordsReadBackAndSkipUnknownFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Item{
			Kind:     Kind(rapid.IntRange(0, 2).Draw(t, "kind")),
			Database: uint8(rapid.IntRange(0, Databases-1).Draw(t, "database")),
			Name:     rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "name"),
			Version:  rapid.Uint64Range(1, math.MaxUint64).Draw(t, "version"),
			Expiry:   rapid.Int64().Draw(t, "expiry"),
			Value:    rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "value"),
		}
		if want.Large = rapid.Bool().Draw(t, "large"); want.Large {
			want.Value, want.Size = nil, rapid.Uint64Range(1, math.MaxUint32).Draw(t, "size")
		}
		rec := AppendItem(nil, &want)
		if m, err := msgpack.NewDecoder(bytes.NewReader(rec)).DecodeUntypedMap(); err != nil || len(m) != int(rec[0]&0x0f) {
			t.Fatalf("the library reads %v, %v", m, err)
		}
		rec[0]++
		rec = append(rec, 99, 0xa1, 'x')
		var got Item
		if err := DecodeItem(rec, &got); err != nil || !sameItem(got, want) || got.Large != want.Large || got.Size != want.Size {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
		for n := range rec {
			if DecodeItem(rec[:n], &got) == nil {
				t.Fatalf("%d of %d bytes are a record", n, len(rec))
			}
		}
	})
}

func TestAFlushRecordReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want Flush
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			want[rapid.IntRange(0, Databases-1).Draw(t, "database")] = FlushMark{Keys: rapid.Uint64().Draw(t, "keys"), Queues: rapid.Uint32().Draw(t, "queues")}
		}
		rec := AppendFlush(nil, want)
		if got, err := DecodeFlush(rec); err != nil || got != want {
			t.Fatalf("%d bytes read back as %v, %v, want %v", len(rec), got, err, want)
		}
	})
	if _, err := DecodeFlush(append([]byte{0x81, 3, 0xdc, 0, 17}, bytes.Repeat([]byte{0x92, 1, 1}, 17)...)); err == nil {
		t.Error("a record with marks of 17 databases is read")
	}
}

func TestOnlyOldQueuesAndKeysAreDroppedByAFlush(t *testing.T) {
	f := Flush{{Keys: 10, Queues: 5}}
	if !f.Drops(&Head{ID: 9}) || f.Drops(&Head{ID: 10}) || f.Drops(&Head{ID: 9, Database: 1}) || f.DropsQueue(&Queue{ID: 4, Database: 15}) || !f.DropsQueue(&Queue{ID: 4}) || f.DropsQueue(&Queue{ID: 5}) || !new(Flush).DropsQueue(&Queue{ID: 5, Dropped: true}) {
		t.Error("what is numbered below is dropped, and nothing else")
	}
}

func sameItem(a, b Item) bool {
	return a.Kind == b.Kind && a.Database == b.Database && bytes.Equal(a.Name, b.Name) && a.Version == b.Version && a.Expiry == b.Expiry && bytes.Equal(a.Value, b.Value)
}

// appendHead appends the record of a packet whose payload is kept apart.
func appendHead(dst []byte, p *Packet) []byte {
	w := newWriter(dst)
	w.packet(p)
	w.b = appendUint(w.field(fieldSize), uint64(len(p.Payload)))
	return w.end()
}
