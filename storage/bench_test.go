package storage

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// benchPacket is the packet of every figure: an 8-byte key, 128 bytes of payload.
func benchPacket() Packet {
	return Packet{Key: make([]byte, 8), Payload: make([]byte, 128), EnqueuedAt: 1_800_000_000_000}
}

func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 64, 256, 1024} {
		b.Run(fmt.Sprintf("put/%d", size), func(b *testing.B) { benchApply(b, size, false, tuning{}) })
		b.Run(fmt.Sprintf("delete/%d", size), func(b *testing.B) { benchApply(b, size, true, tuning{}) })
	}
}

// BenchmarkApplyVariants sets what Apply does against what it could do.
func BenchmarkApplyVariants(b *testing.B) {
	variants := []struct {
		name string
		tune tuning
	}{
		{"badger-sync", tuning{badgerSync: true, noAdvice: true}},
		{"badger-sync+advice", tuning{badgerSync: true}},
		{"own-sync", tuning{noAdvice: true}},
		{"own-sync+advice", tuning{}},
	}
	for _, size := range []int{1, 16, 64, 256, 1024} {
		for _, v := range variants {
			b.Run(fmt.Sprintf("%d/%s", size, v.name), func(b *testing.B) { benchApply(b, size, false, v.tune) })
		}
	}
}

func benchApply(b *testing.B, size int, deletes bool, tune tuning) {
	s, err := Open(b.TempDir(), Options{tune: tune})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var batch Batch
	p := benchPacket()
	seq := uint64(1 << 63)
	put := func() {
		batch.Reset()
		for range size {
			seq++
			binary.BigEndian.PutUint64(p.Key, seq)
			batch.Put(PacketID{1, 5, seq}, &p)
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
			batch.Delete(PacketID{1, 5, next}, Removed{})
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

// filled is a store of n packets in one queue, flushed and reopened.
func filled(b *testing.B, n int) *Store {
	dir := b.TempDir()
	s, err := Open(dir, Options{Sync: SyncNever()})
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	p := benchPacket()
	for i := 0; i < n; {
		batch.Reset()
		for range min(4096, n-i) {
			binary.BigEndian.PutUint64(p.Key, uint64(i))
			batch.Put(PacketID{1, 5, uint64(i)}, &p)
			i++
		}
		if err := s.Apply(&batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if s, err = Open(dir, Options{}); err != nil {
		b.Fatal(err)
	}
	b.Logf("opened %d packets in %v", n, time.Since(start))
	b.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkRead(b *testing.B) {
	const n = 1_000_000
	s := filled(b, n)
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
			ids := make([]PacketID, c.count)
			i := 0
			for b.Loop() {
				for k := range ids {
					ids[k] = PacketID{1, 5, c.id(i, k)}
				}
				i++
				err := s.Read(ids, func(i int, rec []byte) error {
					if rec == nil {
						return fmt.Errorf("packet %v is not there", ids[i])
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.count), "ns/packet")
		})
	}
}

func BenchmarkAppendRecord(b *testing.B) {
	p := benchPacket()
	dst := make([]byte, 0, 512)
	for b.Loop() {
		dst = AppendRecord(dst[:0], &p)
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	p := benchPacket()
	rec := AppendRecord(nil, &p)
	for b.Loop() {
		if err := DecodeRecord(rec, &p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeMeta(b *testing.B) {
	p := benchPacket()
	rec := AppendRecord(nil, &p)
	var m Meta
	for b.Loop() {
		if err := decodeMeta(rec, &m); err != nil {
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
	d := Delivery{State: Claimed, Until: 1_900_000_000_000, Attempts: 1, Token: 1 << 63,
		FirstClaim: 1_800_000_000_000, LastClaim: 1_800_000_000_000, Consumer: "worker-1"}
	b.Run("put", func(b *testing.B) {
		var batch Batch
		stored := Stored(0)
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
			stored = StoredDelivery
		}
		b.ReportMetric(float64(cpuTime(b)-cpu)/all/float64(b.N), "cpu-ns/op")
	})
	b.Run("scan", func(b *testing.B) {
		cpu := cpuTime(b)
		for b.Loop() {
			if err := s.Deliveries(func(*Delivery, Stored) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpuTime(b)-cpu)/all/float64(b.N), "cpu-ns/op")
	})
}
