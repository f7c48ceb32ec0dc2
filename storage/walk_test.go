package storage

import (
	"errors"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestAWalkOfEachKindTellsItsStepsAndEndsWithTheirError(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Sync: SyncNever()})
	var b content.Batch
	for i := range uint64(5000) {
		b.PutQueue(content.Queue{ID: uint32(i + 1), Name: []byte("q")})
		b.PutShare(&content.Share{ShareID: content.ShareID{Queue: uint32(i + 1), Number: 1}, Name: []byte("s"), Weight: 2}, true)
		b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 1, Identity: i + 1}, ID: []byte("u")})
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: i + 1}, &content.Packet{Identity: i + 1})
		b.PutDelivery(&content.Delivery{Identity: i + 1, Attempts: 1}, 0)
		b.PutHead(&content.Head{ID: i + 1, Kind: content.String, Version: 1, Name: []byte("h")}, content.Mark{})
		if b.Len() > 5000 {
			applied(t, s, &b)
		}
	}
	applied(t, s, &b)
	for kind, v := range map[string]Visitor{
		"queues":  {Queue: func(content.Queue) error { return nil }},
		"shares":  {Share: func(*content.Share) error { return nil }},
		"uniques": {Unique: func(*content.Unique) error { return nil }},
		"states":  {State: func(*content.Delivery, content.Stored, error) error { return nil }},
		"packets": {Packet: func(content.PacketID, *content.Meta, []byte, error) error { return nil }},
		"items":   {Item: func(content.ValueID, *content.Head, *content.Field, error) error { return nil }},
	} {
		v.Uncounted, v.Step = true, func() error { return ErrClosed }
		if err := s.Walk(v); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: the walk ends with %v", kind, err)
		}
	}
}
