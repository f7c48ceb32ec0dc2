package storage

import (
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"testing"
	"time"
)

func TestTheTimeOfBatchesRunsBackWhereAStartSaysSo(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	begun := time.Now().UnixMilli()
	applied(t, s, one(1, content.Packet{}))
	if at := s.Control().Time; at < begun || at > time.Now().UnixMilli() {
		t.Errorf("a batch of %d is of %d", begun, at)
	}
	future := begun + 1_000_000
	s.mu.Lock()
	s.control.Time = future // as if the clock had been ahead
	s.mu.Unlock()
	applied(t, s, one(2, content.Packet{}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = smallStore(t, dir)
	applied(t, s, one(3, content.Packet{}))
	if at := s.Control().Time; at != future {
		t.Errorf("with the clock set back a batch is of %d, the one before of %d", at, future)
	}
	for _, row := range []struct{ clock, want int64 }{{future - 60_000, future}, {future - 60_001, future - 60_001}, {future, future}} {
		s.GoBy(func() int64 { return row.clock })
		applied(t, s, one(4, content.Packet{}))
		if at := s.Control().Time; at != row.want {
			t.Errorf("by a clock at %d a batch is of %d, want %d", row.clock, at, row.want)
		}
	}
}

func TestAppliedBatchIsThereAfterReopening(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	var b content.Batch
	large := make([]byte, 5000)
	large[4999] = 7
	for i := range 10 {
		p := content.Packet{Key: fmt.Append(nil, "key", i), Payload: fmt.Append(nil, "payload", i)}
		if i == 5 {
			p.Payload = large
		}
		b.Put(content.PacketID{Queue: 1, Priority: uint32(i), Seq: 1<<63 + uint64(i)}, &p)
	}
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true})
	marks := content.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: 2}
	b.SetMarks(marks)
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	b.Delete(content.PacketID{Queue: 1, Priority: 3, Seq: 1<<63 + 3}, content.Removed{})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = smallStore(t, dir)
	if got := s.Control(); got.Marks != marks || got.Batch != 2 || got.Epoch != 1 || got.Live != 9 {
		t.Errorf("control record is %+v", got)
	}
	ids, tally := scanned(t, s)
	if len(ids) != 9 {
		t.Errorf("%d packets, want 9", len(ids))
	}
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
	var mismatch *content.MismatchError
	if err := s.Verify(content.Tally{Live: tally.Live - 1, Hash: tally.Hash}); !errors.As(err, &mismatch) {
		t.Errorf("a missing packet gives %v", err)
	}
	var p content.Packet
	s.Read([]content.PacketID{{Queue: 1, Priority: 5, Seq: 1<<63 + 5}, {Queue: 1, Priority: 3, Seq: 1<<63 + 3}}, func(i int, rec []byte, _ error) {
		if i == 1 {
			if rec != nil {
				t.Error("the deleted packet is there")
			}
			return
		}
		if err := content.DecodeRecord(rec, &p); err != nil {
			t.Error(err)
		}
		if len(p.Payload) != 5000 || p.Payload[4999] != 7 || string(p.Key) != "key5" {
			t.Errorf("packet 5 came back as %d bytes, key %q", len(p.Payload), p.Key)
		}
	})
}

func TestFolderInUseIsRefusedWithTheHolder(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir)
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrInUse) {
		t.Fatal(err)
	}
	t.Log(err)
}
