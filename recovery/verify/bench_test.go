package verify

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// BenchmarkFolder verifies a folder of a million packets of 128 bytes in one queue. The processor's
// share is a steadier figure than the clock where others work too.
func BenchmarkFolder(b *testing.B) {
	const packets = 1_000_000
	payload := bytes.Repeat([]byte("payload "), 16)
	dir := fill(b, []content.Queue{{ID: 1, Name: []byte("jobs")}}, packets, func(i int) (content.PacketID, content.Packet) {
		return content.PacketID{Queue: 1, Priority: 5, Seq: first + uint64(i)},
			content.Packet{Key: []byte("00000000"), Payload: payload, EnqueuedAt: 1_800_000_000_000}
	})
	cpu := cpuTime(b)
	for b.Loop() {
		report, err := Folder(b.Context(), dir, Options{Now: later})
		if err != nil || report.Packets != packets || !report.Sound() {
			b.Fatal(report, err)
		}
	}
	n := packets * float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(cpuTime(b)-cpu)/n, "cpu-ns/packet")
}

func cpuTime(b *testing.B) int64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}
