package storage

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestWhatSharesHaveIsWrittenReadAndDeleted(t *testing.T) {
	dir := t.TempDir()
	s := openUniques(t, dir)
	b := new(content.Batch)
	share := func(queue uint32, number uint64, weight uint32) *content.Share {
		return &content.Share{ShareID: content.ShareID{Queue: queue, Number: number}, Name: []byte("acme"), Weight: weight}
	}
	holds := func(want ...*content.Share) {
		t.Helper()
		var all []*content.Share
		err := settled(t, s).Walk(Visitor{Share: func(s *content.Share) error { all = append(all, new(*s)); return nil }})
		if err != nil || !reflect.DeepEqual(all, want) {
			t.Errorf("%v are there, %v, want %v", all, err, want)
		}
	}
	b.PutShare(share(2, 1, 10), true)
	b.PutShare(share(1, 300, 2), true)
	b.PutShare(share(1, 2, 1000), true)
	b.PutShare(share(1, 3, 1000), true)
	b.DeleteShare(content.ShareID{Queue: 1, Number: 3})
	if b.Len() != 3 {
		t.Errorf("the batch has %d entries, want 3", b.Len())
	}
	var ops []content.OpKind
	b.SetFlush(content.Flush{{Keys: 1}})
	b.Each(func(op content.Op) { ops = append(ops, op.Kind) })
	if want := []content.OpKind{content.OpPutShare, content.OpPutShare, content.OpPutShare, content.OpSetFlush}; !reflect.DeepEqual(ops, want) {
		t.Errorf("the batch has the operations %v, want %v", ops, want)
	}
	applied(t, s, b)
	holds(share(1, 2, 1000), share(1, 300, 2), share(2, 1, 10))
	b.PutShare(share(1, 300, 3), false)
	b.DeleteShare(content.ShareID{Queue: 2, Number: 1})
	applied(t, s, b)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openUniques(t, dir)
	holds(share(1, 2, 1000), share(1, 300, 3))
}

func TestARecordOfAShareKeepsWhatItDoesNotKnow(t *testing.T) {
	rec, _ := hex.DecodeString(strings.ReplaceAll("89 01 c4 01 61 02 0a 03 07 04 cd 01 00 05 c4 04 31 2f 31 73 06 cd 01 2c 07 09 1e cd 01 00 7d a1 78", " ", ""))
	var s content.Share
	if err := content.DecodeShare(rec, &s); err != nil || s.Weight != 10 || s.MaxClaimed != 7 || s.HeldUntil != 256 || s.Due != 300 || s.DueGap != 9 || string(s.Rate) != "1/1s" || s.Rest.Fields != 2 {
		t.Fatalf("it reads as %+v, %v", s, err)
	}
	if again := content.AppendShare(nil, &s); string(again) != string(rec) {
		t.Errorf("it is written again as % x", again)
	}
	if name := content.DescribeKey(content.AppendShareKey(nil, content.ShareID{Queue: 7, Number: 8})); name != "share 7/8" {
		t.Errorf("its key is that of %s", name)
	}
}
