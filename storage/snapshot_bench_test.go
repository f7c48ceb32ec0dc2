package storage

import (
	"errors"
	"testing"
)

// benchPackets is what the figures of a scan are taken of.
const benchPackets = 1_000_000

// BenchmarkPackets reads what an index needs of a million packets.
func BenchmarkPackets(b *testing.B) {
	benchScan(b, func(n *Snapshot) error {
		return n.Packets(QueueRange{}, func(PacketID, *Meta) error { return nil })
	})
}

// BenchmarkRecords reads a million packets whole.
func BenchmarkRecords(b *testing.B) {
	benchScan(b, func(n *Snapshot) error {
		return n.Records(QueueRange{}, func(_ PacketID, rec []byte, damage error) error { return damage })
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

func benchFolder(b *testing.B) string {
	dir := b.TempDir()
	s, err := Open(dir, Options{Sync: SyncNever()})
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	p := benchPacket()
	for seq := range uint64(benchPackets) {
		// Priorities as they come, so that the tables overlap as they do in use.
		batch.Put(PacketID{1, uint32(seq * 7919 % 251), 1<<63 + seq}, &p)
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
	if err := errors.Join(v.Close()); err != nil {
		b.Fatal(err)
	}
}
