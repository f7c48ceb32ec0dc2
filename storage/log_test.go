package storage

import (
	"errors"
	"testing"
)

// A memory table that is too small for a log ends the process, so this test
// can only pass or take all others with it.
func TestLogOfLargerMemoryTablesIsReadWithSmallOnes(t *testing.T) {
	rows := map[string]func(b *Batch, seq uint64){
		"large records": func(b *Batch, seq uint64) { b.Put(PacketID{1, 1, seq}, &Packet{Payload: make([]byte, 1000)}) },
		"small records": func(b *Batch, seq uint64) { b.Put(PacketID{1, 1, seq}, &Packet{}) },
		"deletes":       func(b *Batch, seq uint64) { b.Delete(PacketID{1, 1, seq}, Removed{Expires: true}) },
	}
	for name, op := range rows {
		t.Run(name, func(t *testing.T) {
			live, dir := t.TempDir(), t.TempDir()
			s := openTest(t, live, Options{MemTable: 16 << 20, Sync: SyncNever()})
			var b Batch
			for seq := uint64(0); ; seq++ {
				if op(&b, seq); b.Bytes() < 900_000 {
					continue
				}
				if err := s.Apply(&b); err != nil {
					t.Fatal(err)
				}
				b.Reset()
				if seq*(opBytes+packetKeyLen) > 7<<20 || seq*1000 > 13<<20 {
					break
				}
			}
			want := s.Control()
			copyFolder(t, live, dir)
			again, err := Open(dir, Options{MemTable: minMemTable})
			if err != nil {
				t.Fatal(err)
			}
			if c := again.Control(); c != want {
				t.Errorf("the control record is %+v, want %+v", c, want)
			}
			if err := errors.Join(again.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
