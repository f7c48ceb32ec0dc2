package load

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// benchPackets is how many packets of 128 bytes a benchmark handles in one round.
const benchPackets = 1_000_000

// benchFolder is a folder of n packets of one queue, closed.
func benchFolder(b testing.TB, n int) string {
	dir := b.TempDir()
	s, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		b.Fatal(err)
	}
	var batch content.Batch
	p := content.Packet{Key: make([]byte, 8), Payload: make([]byte, 128), EnqueuedAt: 1_800_000_000_000}
	for i := range p.Payload {
		p.Payload[i] = 'a' + byte(i%26)
	}
	const at = 4096
	for i := 0; i < n; {
		batch.Reset()
		batch.PutQueue(content.Queue{ID: 1, Name: []byte("jobs")})
		for range min(at, n-i) {
			copy(p.Key, "00000000")
			for d, v := 7, i; v > 0; d, v = d-1, v/10 {
				p.Key[d] = '0' + byte(v%10)
			}
			batch.Put(content.PacketID{Queue: 1, Priority: 5, Seq: 1<<63 + uint64(i)}, &p)
			i++
		}
		batch.SetMarks(content.Marks{NextSeq: 1<<63 + uint64(i), LowSeq: 1<<63 - 1, NextQueue: 2})
		if err := s.Apply(&batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

// measure runs a round after another and reports packets a second and the processor's share.
func measure(b *testing.B, packets int, round func()) {
	cpu := cpuTime(b)
	b.ResetTimer()
	for b.Loop() {
		round()
	}
	n := float64(packets) * float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(cpuTime(b)-cpu)/n, "cpu-ns/packet")
}

// cpuTime is a steadier figure than the clock where others work too.
func cpuTime(b *testing.B) int64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}

func BenchmarkDump(b *testing.B) {
	dir := benchFolder(b, benchPackets)
	view, err := storage.OpenView(dir, storage.ViewOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer view.Close()
	for _, format := range []dump.Format{dump.JSONL, dump.Msgpack} {
		b.Run(string(format), func(b *testing.B) {
			measure(b, benchPackets, func() {
				report, err := dump.Dump(view.Snapshot, io.Discard, dump.Options{Format: format, Now: recoverytest.Later})
				if err != nil || report.Packets != benchPackets {
					b.Fatal(report, err)
				}
			})
		})
	}
}

// benchDump is the dump of a folder of n packets.
func benchDump(b testing.TB, n int, format dump.Format) []byte {
	view, err := storage.OpenView(benchFolder(b, n), storage.ViewOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer view.Close()
	out, _ := dumpOf(b, view.Snapshot, dump.Options{Format: format})
	return out
}

func BenchmarkReadDump(b *testing.B) {
	for _, format := range []dump.Format{dump.JSONL, dump.Msgpack} {
		text := benchDump(b, benchPackets, format)
		b.Run(string(format), func(b *testing.B) {
			measure(b, benchPackets, func() {
				report, err := dump.Read(b.Context(), bytes.NewReader(text), nil, nil)
				if err != nil || report.Packets != benchPackets {
					b.Fatal(report, err)
				}
			})
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, format := range []dump.Format{dump.JSONL, dump.Msgpack} {
		text := benchDump(b, benchPackets, format)
		b.Run(string(format), func(b *testing.B) {
			round := 0
			measure(b, benchPackets, func() {
				round++
				dir := filepath.Join(b.TempDir(), strconv.Itoa(round))
				report, err := Load(b.Context(), dir, bytes.NewReader(text), Options{Now: recoverytest.Later})
				if err != nil || report.Packets != benchPackets {
					b.Fatal(report, err)
				}
			})
		})
	}
}
