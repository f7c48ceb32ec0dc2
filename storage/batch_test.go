package storage

import (
	"github.com/holdfast-queue/holdfast/storage/content"
	"reflect"
	"slices"
	"testing"
)

func TestCancelledPutIsNotWrittenButStillReadable(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var b content.Batch
	kept := b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Payload: []byte("kept")})
	gone := b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 2}, &content.Packet{Payload: make([]byte, 5000)})
	small := b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 3}, &content.Packet{})
	length, size := b.Len(), b.Bytes()
	b.Cancel(gone)
	b.Cancel(gone)
	b.Cancel(small)
	if length != 4 || b.Len() != 1 || b.Bytes() >= size-5000 {
		t.Errorf("%d entries and %d bytes before, %d and %d after", length, size, b.Len(), b.Bytes())
	}
	var p content.Packet
	if err := content.DecodeRecord(b.Record(gone), &p); err != nil || len(p.Payload) != 5000 {
		t.Errorf("the cancelled record: %v", err)
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if ids, _ := scanned(t, s); !slices.Equal(ids, []content.PacketID{{Queue: 1, Priority: 1, Seq: 1}}) {
		t.Errorf("%v are there", ids)
	}
	if err := content.DecodeRecord(b.Record(kept), &p); err != nil || string(p.Payload) != "kept" {
		t.Errorf("the record after Apply: %q, %v", p.Payload, err)
	}
}

func TestReplacedPacketIsThereOnceAndItsOldPayloadIsNot(t *testing.T) {
	small, large := []byte("x"), make([]byte, 1100)
	for name, row := range map[string]struct {
		old, new content.Packet
		entries  int
	}{
		"small by small":              {content.Packet{Payload: small}, content.Packet{}, 1},
		"small by large":              {content.Packet{Payload: small}, content.Packet{Payload: large}, 2},
		"large by small":              {content.Packet{Payload: large}, content.Packet{Payload: small}, 2},
		"large by large":              {content.Packet{Payload: large}, content.Packet{Payload: large[1:]}, 2},
		"one without expiry by one":   {content.Packet{}, content.Packet{Expiry: 4_000_000_000_000}, 1},
		"one with expiry by one less": {content.Packet{Expiry: 4_000_000_000_000}, content.Packet{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := smallStore(t, t.TempDir())
			id, removed := content.PacketID{Queue: 1, Priority: 1, Seq: 1}, content.Removed{Expires: row.old.Expiry != 0, Large: content.IsLarge(len(row.old.Payload))}
			var b content.Batch
			apply := func(want ...content.PacketID) {
				t.Helper()
				if err := s.Apply(&b); err != nil {
					t.Fatal(err)
				}
				b.Reset()
				got, sum := scanned(t, s)
				if err := s.Verify(sum); err != nil || !slices.Equal(got, want) {
					t.Errorf("%v are there, want %v; %v", got, want, err)
				}
			}
			payloads := func() (n int) {
				if err := each(s, content.PayloadPrefix, func() { n++ }); err != nil {
					t.Fatal(err)
				}
				return n
			}
			b.Put(id, &row.old)
			apply(id)
			b.Replace(id, &row.new, removed)
			if b.Len() != row.entries {
				t.Errorf("%d entries, want %d", b.Len(), row.entries)
			}
			apply(id)
			s.Read([]content.PacketID{id}, func(_ int, rec []byte, _ error) {
				var p content.Packet
				if err := content.DecodeRecord(rec, &p); err != nil || !same(p, row.new) {
					t.Errorf("it reads as %+v, %v", p, err)
				}
			})
			if n := payloads(); n != len(row.new.Payload)/1000 {
				t.Errorf("%d payload records", n)
			}
			b.Cancel(b.Replace(id, &row.old, content.Removed{Expires: row.new.Expiry != 0, Large: content.IsLarge(len(row.new.Payload))}))
			if b.Len() > 2 || b.Bytes() > 200 {
				t.Errorf("a replace that was taken back has %d entries and %d bytes", b.Len(), b.Bytes())
			}
			apply()
			if n := payloads(); n != 0 {
				t.Errorf("%d payload records are left", n)
			}
		})
	}
}

func TestBatchWithNothingToWriteTouchesNoDiskUnlessItMust(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var b content.Batch
	b.Cancel(b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{}))
	b.PutQueue(content.Queue{ID: 1, Name: []byte("q"), New: true})
	b.DeleteQueue(1)
	b.SetMarks(content.Marks{NextSeq: 5, LowSeq: 5, NextQueue: 5})
	if b.Len() != 0 || b.Bytes() != 0 {
		t.Errorf("%d entries, %d bytes", b.Len(), b.Bytes())
	}
	before := s.Control()
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if s.Control() != before {
		t.Errorf("the control record became %+v", s.Control())
	}
	b.MustWrite()
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	marks, _ := b.Marks()
	if got := s.Control(); got.Batch != before.Batch+1 || got.Marks != marks {
		t.Errorf("the control record of a batch that must be written is %+v", got)
	}
}

func TestCountersGoWithTheirQueue(t *testing.T) {
	s := smallStore(t, t.TempDir())
	counts := content.Counters{Pushed: 1, Popped: 2, Acked: 3, Nacked: 4, Expired: 5, Dead: 6, Dropped: 1 << 63, Cancelled: 8}
	apply := func(fill func(b *content.Batch)) {
		t.Helper()
		var b content.Batch
		fill(&b)
		applied(t, s, &b)
	}
	want := func(all ...content.Queue) {
		t.Helper()
		var got []content.Queue
		n, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		for _, queues := range []func(func(content.Queue) error) error{s.Queues, n.Queues} {
			got = nil
			if err := queues(func(q content.Queue) error { got = append(got, q); return nil }); err != nil || !reflect.DeepEqual(got, all) {
				t.Fatalf("queues %+v, %v, want %+v", got, err, all)
			}
		}
	}
	q := func(id uint32, c content.Counters) content.Queue {
		return content.Queue{ID: id, Name: []byte("q"), Counters: c}
	}
	apply(func(b *content.Batch) { b.PutQueue(q(1, counts)); b.PutQueue(q(2, content.Counters{})) })
	want(q(1, counts), q(2, content.Counters{}))
	apply(func(b *content.Batch) { b.PutCounters(2, content.Counters{Dead: 7}) })
	apply(func(b *content.Batch) { b.PutQueue(q(2, content.Counters{})) }) // it says nothing of them
	want(q(1, counts), q(2, content.Counters{Dead: 7}))
	apply(func(b *content.Batch) { b.DeleteQueue(1); b.DeleteQueue(2); b.PutQueue(q(2, content.Counters{})) })
	want(q(2, content.Counters{}))
	apply(func(b *content.Batch) { b.PutQueue(q(1, content.Counters{})) }) // its number is used again
	want(q(1, content.Counters{}), q(2, content.Counters{}))
}
