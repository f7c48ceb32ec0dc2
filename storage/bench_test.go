package storage

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"golang.org/x/sys/unix"
)

// benchPacket is the packet of every figure: an 8-byte key, 128 bytes of payload.
func benchPacket() content.Packet {
	return content.Packet{Key: make([]byte, 8), Payload: make([]byte, 128), EnqueuedAt: 1_800_000_000_000}
}

func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 64, 256, 1024} {
		b.Run(fmt.Sprintf("put/%d", size), func(b *testing.B) { benchApply(b, size, false) })
		b.Run(fmt.Sprintf("delete/%d", size), func(b *testing.B) { benchApply(b, size, true) })
	}
}

func benchApply(b *testing.B, size int, deletes bool) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var batch content.Batch
	p := benchPacket()
	seq := uint64(1 << 63)
	put := func() {
		batch.Reset()
		for range size {
			seq++
			binary.BigEndian.PutUint64(p.Key, seq)
			batch.Put(content.PacketID{Queue: 1, Priority: 5, Seq: seq}, &p)
		}
		if err := s.Apply(&batch); err != nil {
			b.Fatal(err)
		}
	}
	next := seq
	before, cpu := deviceBytes(b), cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if !deletes {
			put()
			continue
		}
		if next == seq {
			b.StopTimer()
			for range 64 {
				put()
			}
			b.StartTimer()
		}
		batch.Reset()
		for range size {
			next++
			batch.Delete(content.PacketID{Queue: 1, Priority: 5, Seq: next}, content.Removed{})
		}
		if err := s.Apply(&batch); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	ops := float64(size) * float64(b.N)
	b.ReportMetric(ops/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(cpu)/ops, "cpu-ns/op")
	b.ReportMetric(float64(deviceBytes(b)-before)/ops, "device-B/op")
}

// cpuTime returns the processor time this process took so far, in
// nanoseconds: a steadier figure than the clock where others work too.
func cpuTime(b *testing.B) int64 {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}

// deviceBytes returns what was written so far to the device below the
// temporary folder, by anybody. Not /proc/self/io: it counts dirtied pages of
// 4 KiB, and the kernel writes the whole folio.
func deviceBytes(b *testing.B) int64 {
	var st unix.Stat_t
	if err := unix.Stat(b.TempDir(), &st); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	sectors, err := strconv.ParseInt(fields[6], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return sectors * 512
}

func BenchmarkRead(b *testing.B) {
	const n = benchPackets
	start := time.Now()
	s, err := Open(benchFolder(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Logf("opened %d packets in %v", n, time.Since(start))
	for _, c := range []struct {
		name  string
		count int
		id    func(i, k int) uint64
	}{
		{"adjacent", 1, func(i, k int) uint64 { return uint64(i * 7919 % n) }},
		{"adjacent", 64, func(i, k int) uint64 { return uint64((i*64 + k) % n) }},
		{"adjacent", 1024, func(i, k int) uint64 { return uint64((i*1024 + k) % n) }},
		{"random", 4, func(i, k int) uint64 { return uint64((i*64 + k) * 7919 % n) }},
		{"random", 8, func(i, k int) uint64 { return uint64((i*64 + k) * 7919 % n) }},
		{"random", 16, func(i, k int) uint64 { return uint64((i*64 + k) * 7919 % n) }},
		{"random", 64, func(i, k int) uint64 { return uint64((i*64 + k) * 7919 % n) }},
	} {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.count), func(b *testing.B) {
			ids := make([]content.PacketID, c.count)
			i := 0
			for b.Loop() {
				for k := range ids {
					ids[k] = benchID(c.id(i, k))
				}
				i++
				s.Read(ids, func(_ int, _ []byte, damage error) {
					if damage != nil {
						b.Fatal(damage)
					}
				})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.count), "ns/packet")
		})
	}
}

func BenchmarkAppendRecord(b *testing.B) {
	p := benchPacket()
	dst := make([]byte, 0, 512)
	for b.Loop() {
		dst = content.AppendRecord(dst[:0], &p)
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	p := benchPacket()
	rec := content.AppendRecord(nil, &p)
	for b.Loop() {
		if err := content.DecodeRecord(rec, &p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeMeta(b *testing.B) {
	p := benchPacket()
	rec := content.AppendRecord(nil, &p)
	var m content.Meta
	for b.Loop() {
		if err := content.DecodeMeta(rec, &m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeliveries writes a delivery state for each of many packets, then reads all of them as a
// start does.
func BenchmarkDeliveries(b *testing.B) {
	const all, size = 200_000, 1000
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	d := content.Delivery{State: content.Claimed, Until: 1_900_000_000_000, Attempts: 1, Token: 1 << 63,
		FirstClaim: 1_800_000_000_000, LastClaim: 1_800_000_000_000, Consumer: "worker-1"}
	b.Run("put", func(b *testing.B) {
		var batch content.Batch
		stored := content.Stored(0)
		cpu := cpuTime(b)
		for b.Loop() {
			d.Identity = 1 << 63
			for range all / size {
				batch.Reset()
				for range size {
					d.Identity++
					batch.PutDelivery(&d, stored)
				}
				if err := s.Apply(&batch); err != nil {
					b.Fatal(err)
				}
			}
			stored = content.StoredDelivery
		}
		b.ReportMetric(float64(cpuTime(b)-cpu)/all/float64(b.N), "cpu-ns/op")
	})
	b.Run("scan", func(b *testing.B) {
		settled(b, s)
		cpu := cpuTime(b)
		for b.Loop() {
			if err := s.Deliveries(func(*content.Delivery, content.Stored) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpuTime(b)-cpu)/all/float64(b.N), "cpu-ns/op")
	})
}

// benchPackets is what the figures of a scan are taken of.
const benchPackets = 1_000_000

// BenchmarkPackets reads what an index needs of a million packets.
func BenchmarkPackets(b *testing.B) {
	benchScan(b, func(n *Snapshot) error {
		return n.Packets(func(content.PacketID, *content.Meta) error { return nil })
	})
}

// BenchmarkRecords reads a million packets whole.
func BenchmarkRecords(b *testing.B) {
	benchScan(b, func(n *Snapshot) error {
		return n.Records(QueueRange{}, func(_ content.PacketID, rec []byte, damage error) error { return damage })
	})
}

// BenchmarkOpenView opens a folder of a million packets, and deeply.
func BenchmarkOpenView(b *testing.B) {
	dir := benchFolder(b)
	for name, o := range map[string]ViewOptions{"start": {}, "tolerant": {Tolerant: true}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				v, err := OpenView(dir, o)
				if err != nil {
					b.Fatal(err)
				}
				if err := v.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchID spreads packets over priorities as they come, so that windows overlap as they do in use.
func benchID(seq uint64) content.PacketID {
	return content.PacketID{Queue: 1, Priority: uint32(seq >> 10 & 15), Seq: 1<<63 + seq}
}

func benchFolder(b *testing.B) string {
	dir := b.TempDir()
	s, err := Open(dir, Options{Sync: SyncNever()})
	if err != nil {
		b.Fatal(err)
	}
	var batch content.Batch
	p := benchPacket()
	for seq := range uint64(benchPackets) {
		batch.Put(benchID(seq), &p)
		if batch.Len() == 4000 || seq == benchPackets-1 {
			if err := s.Apply(&batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

func benchScan(b *testing.B, scan func(*Snapshot) error) {
	v, err := OpenView(benchFolder(b), ViewOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	cpu := cpuTime(b)
	for b.Loop() {
		if err := scan(v.Snapshot); err != nil {
			b.Fatal(err)
		}
	}
	cpu = cpuTime(b) - cpu
	n := float64(b.N) * benchPackets
	b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(cpu)/n, "cpu-ns/packet")
	if err := v.Close(); err != nil {
		b.Fatal(err)
	}
}
