package verify

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// later is the time in these tests.
const later = recoverytest.Later

// first is the sequence of the first packet that a store hands out.
const first = 1 << 63

// fill makes a folder of queues and packets, and closes it.
func fill(t testing.TB, queues []content.Queue, n int, packet func(i int) (content.PacketID, content.Packet)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var batches []func(b *content.Batch)
	for from := 0; from < n || from == 0; from += 1000 {
		batches = append(batches, func(b *content.Batch) {
			for _, q := range queues {
				b.PutQueue(q)
			}
			for i := from; i < min(from+1000, n); i++ {
				id, p := packet(i)
				b.Put(id, &p)
			}
			b.SetMarks(content.Marks{NextSeq: first + uint64(n), LowSeq: first - 1, NextQueue: 8})
		})
	}
	recoverytest.Tamper(t, dir, batches...)
	return dir
}

// at is the packet i of n of recoverytest.Many.
func at(i, n int) content.PacketID {
	return content.PacketID{Queue: uint32(1 + i*7/n), Priority: uint32(1 + i*21/n), Seq: first + uint64(i)}
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
