package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// later is the time in these tests: so far off that no database drops what expires around it.
const later = 4_000_000_000_000

// first is the sequence of the first packet that a store hands out.
const first = 1 << 63

// fill makes a folder of queues and packets, and closes it.
func fill(t testing.TB, queues []storage.Queue, n int, packet func(i int) (storage.PacketID, storage.Packet)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var batches []func(b *storage.Batch)
	for from := 0; from < n || from == 0; from += 1000 {
		batches = append(batches, func(b *storage.Batch) {
			for _, q := range queues {
				b.PutQueue(q)
			}
			for i := from; i < min(from+1000, n); i++ {
				id, p := packet(i)
				b.Put(id, &p)
			}
			b.SetMarks(storage.Marks{NextSeq: first + uint64(n), LowSeq: first - 1, NextQueue: 8})
		})
	}
	tamper(t, dir, batches...)
	return dir
}

// manyPackets makes a folder of n packets in seven queues, three priorities each.
func manyPackets(t testing.TB, n int) (dir string) {
	t.Helper()
	var queues []storage.Queue
	for id := uint32(1); id <= 7; id++ {
		queues = append(queues, storage.Queue{ID: id, Name: fmt.Append(nil, "queue ", id)})
	}
	return fill(t, queues, n, func(i int) (storage.PacketID, storage.Packet) {
		return at(i, n), storage.Packet{Key: fmt.Append(nil, i), Payload: fmt.Append(nil, "payload ", i)}
	})
}

// at is the packet i of n of manyPackets.
func at(i, n int) storage.PacketID {
	return storage.PacketID{Queue: uint32(1 + i*7/n), Priority: uint32(1 + i*21/n), Seq: first + uint64(i)}
}

// tamper changes a closed folder, or a new one, with batches.
func tamper(t testing.TB, dir string, fns ...func(b *storage.Batch)) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{Unfinished: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range fns {
		var b storage.Batch
		fn(&b)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// flip changes one bit in the folder's table, some bytes after a payload begins.
func flip(t *testing.T, dir, payload string, after int) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tables {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte(payload)); i >= 0 {
			b[i+after] ^= 0x10
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no table holds %q", payload)
}
