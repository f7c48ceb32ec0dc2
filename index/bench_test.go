package index

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// fill pushes n packets with unique 8-byte keys and ten priorities, and returns the index and its
// queue.
func fill(n int) (*Index, QueueID) {
	x := New()
	q := x.AddQueue()
	for i := range n {
		pushUnique(x, q, uint64(i)+1)
	}
	return x, q
}

func pushUnique(x *Index, q QueueID, seq uint64) ID {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], seq*0x9e3779b97f4a7c15)
	return x.Push(Entry{Queue: q, Priority: uint32(seq*0x9e3779b97f4a7c15>>32)%10 + 1, Seq: seq, Key: key[:], Size: 128}, 0)
}

// BenchmarkPushPop shows the cost of one push and one pop, each, at a steady length.
func BenchmarkPushPop(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 10_000_000} {
		x, q := fill(n)
		seq := uint64(n)
		for _, end := range []End{Newest, Oldest} {
			b.Run(fmt.Sprintf("queued=%d/end=%d", n, end), func(b *testing.B) {
				var dst []Packet
				for range b.N {
					seq++
					pushUnique(x, q, seq)
					dst = x.Pop(q, Selection{End: end, Group: true}, dst[:0])
				}
			})
		}
	}
}

// BenchmarkFillDrain reports the cost of a push while a queue grows to a length, and of a pop from
// there to empty.
func BenchmarkFillDrain(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 10_000_000} {
		for _, end := range []End{Newest, Oldest} {
			b.Run(fmt.Sprintf("queued=%d/end=%d", n, end), func(b *testing.B) {
				var push, pop time.Duration
				var dst []Packet
				for range b.N {
					start := time.Now()
					x, q := fill(n)
					filled := time.Now()
					for range n {
						dst = x.Pop(q, Selection{End: end, Group: true}, dst[:0])
					}
					push += filled.Sub(start)
					pop += time.Since(filled)
				}
				b.ReportMetric(float64(push.Nanoseconds())/float64(n)/float64(b.N), "ns/push")
				b.ReportMetric(float64(pop.Nanoseconds())/float64(n)/float64(b.N), "ns/pop")
			})
		}
	}
}

// BenchmarkMemory reports the bytes held for each packet with a unique 8-byte key, by Memory and by
// the runtime.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1_000_000, 5_000_000} {
		b.Run(fmt.Sprintf("queued=%d", n), func(b *testing.B) {
			for range b.N {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				x, _ := fill(n)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(x.Memory())/float64(n), "slab-B/packet")
				b.ReportMetric(float64(after.HeapInuse-before.HeapInuse)/float64(n), "heap-B/packet")
				runtime.KeepAlive(x)
			}
		})
	}
}

// BenchmarkMemoryClaimed reports the bytes held for each packet without a key: ready, claimed, and
// claimed when packets are found by identity; and how long the first search takes.
func BenchmarkMemoryClaimed(b *testing.B) {
	const n = 1_000_000
	for range b.N {
		x, q := fillList(n)
		b.ReportMetric(float64(x.Memory())/n, "ready-B/packet")
		claimAll(x, q, 1000)
		b.ReportMetric(float64(x.Memory())/n, "claimed-B/packet")
		start := time.Now()
		x.Find(1)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "first-find-ms")
		b.ReportMetric(float64(x.Memory())/n, "found-B/packet")
	}
}

// BenchmarkClaim shows the cost of a packet's whole way beside others that are ready or claimed:
// push, claim, find, and remove at its answer.
func BenchmarkClaim(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		for _, claimed := range []bool{false, true} {
			b.Run(fmt.Sprintf("queued=%d/claimed=%v", n, claimed), func(b *testing.B) {
				x, q := fillList(n)
				if claimed {
					claimAll(x, q, 1<<40)
				}
				x.Find(1)
				seq := 1<<63 + uint64(n)
				b.ResetTimer()
				for range b.N {
					pushItem(x, q, seq)
					p, _ := x.Best(q, Selection{End: Oldest})
					x.SetState(p.ID, Claimed, int64(seq-1<<63))
					x.SetDelivery(p.ID, Delivery{Token: seq, FirstClaim: 1, LastClaim: 1, Consumer: 1, Attempts: 1, Stored: 1})
					p, _ = x.Find(p.Identity)
					x.Remove(p.ID)
					seq++
				}
			})
		}
	}
}

// BenchmarkExtend shows the cost of finding one of a million claims and extending it.
func BenchmarkExtend(b *testing.B) {
	const n = 1_000_000
	x, q := fillList(n)
	claimAll(x, q, 1)
	chance := rand.New(rand.NewPCG(1, 2))
	x.Find(1)
	for end := int64(2); b.Loop(); end++ {
		p, _ := x.Find(1<<63 + chance.Uint64N(n))
		x.SetState(p.ID, Claimed, end)
	}
}

// BenchmarkMove shows the cost of finding a random key and moving its packet up a little, as a
// board of scores does. It also reports the processor time, which other work of the machine
// disturbs less.
func BenchmarkMove(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000, 5_000_000} {
		b.Run(fmt.Sprintf("queued=%d", n), func(b *testing.B) {
			x := New()
			q := x.AddQueue()
			chance := rand.New(rand.NewPCG(1, 2))
			var key []byte
			for i := range n {
				key = strconv.AppendInt(key[:0], int64(i), 10)
				x.Push(Entry{Queue: q, Priority: 1<<31 - chance.Uint32N(1_000_000), Seq: uint64(i) + 1, Key: key, Size: uint32(len(key))}, 0)
			}
			seq := uint64(n)
			b.ResetTimer()
			before := processorTime(b)
			for range b.N {
				key = strconv.AppendInt(key[:0], chance.Int64N(int64(n)), 10)
				p, _ := x.Only(q, key)
				seq++
				p.Priority, p.Seq = p.Priority-1-chance.Uint32N(100), seq
				x.Move(p)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is the processor time of this process so far, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// fillList is a queue of n packets without a key in one priority, with different values.
func fillList(n int) (*Index, QueueID) {
	x := New()
	q := x.AddQueue()
	for i := range uint64(n) {
		pushItem(x, q, 1<<63+i)
	}
	return x, q
}

func pushItem(x *Index, q QueueID, seq uint64) ID {
	return x.Push(Entry{Queue: q, Priority: 128, Seq: seq, Size: 128, Hash: seq*0x9e3779b97f4a7c15 | 1}, 0)
}

// BenchmarkList shows the cost of a push and a pop, each, of packets without a key, before and
// after the queue was searched.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		x, q := fillList(n)
		seq := 1<<63 + uint64(n)
		for _, searched := range []bool{false, true} {
			if searched {
				start := time.Now()
				x.FindValue(q, 1, Newest, Place{}, 0, nil)
				b.Logf("the first search of %d took %v", n, time.Since(start))
			}
			b.Run(fmt.Sprintf("queued=%d/searched=%v", n, searched), func(b *testing.B) {
				var dst []Packet
				for range b.N {
					pushItem(x, q, seq)
					seq++
					dst = x.Pop(q, Selection{End: Oldest}, dst[:0])
				}
			})
		}
	}
}

// BenchmarkFindValue shows the cost of finding a random value in a list and removing it.
func BenchmarkFindValue(b *testing.B) {
	const n = 1_000_000
	x, q := fillList(n)
	chance := rand.New(rand.NewPCG(1, 2))
	var dst []Packet
	x.FindValue(q, 1, Newest, Place{}, 0, nil)
	for b.Loop() {
		hash := (1<<63+chance.Uint64N(n))*0x9e3779b97f4a7c15 | 1
		found, _ := x.FindValue(q, hash, Newest, Place{}, 1, dst[:0])
		for _, p := range found {
			x.Remove(p.ID)
			pushItem(x, q, p.Seq)
		}
	}
}

// BenchmarkElements shows the cost of reading one packet of a long list at a position, and of
// finding the position of a packet.
func BenchmarkElements(b *testing.B) {
	const n = 1_000_000
	x, q := fillList(n)
	var dst []Packet
	for _, at := range []int{0, n / 100, n / 2, n - 1} {
		b.Run(fmt.Sprintf("at=%d", at), func(b *testing.B) {
			for range b.N {
				dst = x.Elements(q, at, 1, dst[:0])
			}
		})
		b.Run(fmt.Sprintf("position=%d", at), func(b *testing.B) {
			for range b.N {
				x.Position(dst[0].ID)
			}
		})
	}
}

// BenchmarkShares shows the cost of one push, claim and end of a packet in a queue with many
// shares, each with three packets that wait. Of 0 shares it is a queue that is not shared out.
func BenchmarkShares(b *testing.B) {
	for _, shares := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("shares=%d", shares), func(b *testing.B) {
			x := New()
			q := x.AddQueue()
			if shares > 0 {
				x.ShareBy(q, &ShareRule{})
			}
			n := max(shares, 1000)
			keys := make([][]byte, n)
			for i := range keys {
				keys[i] = fmt.Append(nil, "tenant ", i)
			}
			seq := uint64(0)
			push := func() {
				seq++
				x.Push(Entry{Queue: q, Priority: 1, Seq: seq, Key: keys[seq*7919%uint64(n)], Size: 128}, 0)
			}
			for range 3 * n {
				push()
			}
			s := Selection{End: Oldest, Claims: true}
			b.ResetTimer()
			for range b.N {
				push()
				p, _ := x.Best(q, s)
				x.Take(p.ID)
				x.SetState(p.ID, Claimed, 1)
				x.Remove(p.ID)
			}
		})
	}
}
