package broker_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
)

// startClocks are clocks that stand still.
func startClocks() (now, steady int64) { return startTime, startTime }

// benchBroker is a machine without a disk.
func benchBroker(b *testing.B) *driver {
	store := newMemStore()
	state, err := recovery.Restore(store, recovery.Options{Now: startTime})
	if err != nil {
		b.Fatal(err)
	}
	return newDriver(nullStore{store}, state, broker.Options{}, startClocks)
}

// BenchmarkPushPop is the cost of a packet that goes in and out, 16 in a call, behind 1000 others.
func BenchmarkPushPop(b *testing.B) { benchPushPop(b, nil) }

// BenchmarkPushPopBound is BenchmarkPushPop where the queue has settings: full with each call if it
// has a bound.
func BenchmarkPushPopBound(b *testing.B) {
	unbounded, bounded := broker.DefaultSettings(), broker.DefaultSettings()
	bounded.Bound, bounded.BoundBytes = 1016, 1016*131
	b.Run("unbounded", func(b *testing.B) { benchPushPop(b, &unbounded) })
	b.Run("bounded", func(b *testing.B) { benchPushPop(b, &bounded) })
}

func benchPushPop(b *testing.B, s *broker.Settings) {
	br := benchBroker(b)
	defer br.Close()
	r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: []byte("key"), Payload: bytes.Repeat([]byte("x"), 128)}
	some := broker.Selection{End: broker.Oldest}
	push := func(tx *broker.Tx, n int) error {
		for range n {
			if err := pushError(tx.Push(r)); err != nil {
				return err
			}
		}
		return nil
	}
	if s != nil {
		if err := br.Do(func(tx *broker.Tx) error { return tx.SetSettings(r.Queue, *s) }); err != nil {
			b.Fatal(err)
		}
	}
	if err := br.Do(func(tx *broker.Tx) error { return push(tx, 1000) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := br.Do(func(tx *broker.Tx) error {
			if err := push(tx, 16); err != nil {
				return err
			}
			for range 16 {
				if _, err := tx.Pop(r.Queue, some); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPushToAFullQueue is a push that drops the worst packet of many, of which some have tags.
func BenchmarkPushToAFullQueue(b *testing.B) {
	for _, lanes := range []int{1, 10_000} {
		b.Run(fmt.Sprint(lanes, " lanes"), func(b *testing.B) {
			br := benchBroker(b)
			defer br.Close()
			s := broker.DefaultSettings()
			s.Bound, s.Full = 100_000, broker.FullDrop
			if err := br.Do(func(tx *broker.Tx) error { return tx.SetSettings([]byte("q"), s) }); err != nil {
				b.Fatal(err)
			}
			n := uint32(1 << 30)
			push := func(tx *broker.Tx) error {
				n--
				r := broker.PushRequest{Queue: []byte("q"), Priority: n, Payload: []byte("payload")}
				if lane := int(n) % lanes; lane > 0 {
					r.Tags = []broker.PacketTag{{Name: "lane", Value: fmt.Sprint(lane)}}
				}
				return pushError(tx.Push(r))
			}
			for range s.Bound {
				if err := br.Do(push); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := br.Do(push); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSetGet is one SET and one GET, 16 of each in a run, of 1,000 small strings.
func BenchmarkSetGet(b *testing.B) {
	br := benchBroker(b)
	defer br.Close()
	names := make([][]byte, 1000)
	for i := range names {
		names[i] = fmt.Appendf(nil, "key:%012d", i)
	}
	value, i := bytes.Repeat([]byte("x"), 128), 0
	for b.Loop() {
		err := br.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error {
				for range 16 {
					i = (i + 7) % len(names)
					if err := tx.SetString(names[i], value, 0); err != nil {
						return err
					}
					if _, _, err := tx.String(names[i]); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/pair")
}

// BenchmarkClaim is the cost of a packet that comes, is claimed and acknowledged, behind a million
// others: without a filter, and with one that accepts no other.
func BenchmarkClaim(b *testing.B) {
	const others = 1_000_000
	for _, lanes := range []int{10, broker.MaxLanes - 1} {
		br := benchBroker(b)
		defer br.Close()
		tags := make([][]broker.PacketTag, lanes)
		for i := range tags {
			tags[i] = []broker.PacketTag{{Name: "tenant", Value: fmt.Sprint("tenant", i)}}
		}
		r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: bytes.Repeat([]byte("x"), 128)}
		for i := range others {
			r.Tags = tags[i%lanes]
			if err := br.Do(func(tx *broker.Tx) error { return pushError(tx.Push(r)) }); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			const run = 100 // of each, in turn
			var took [2]time.Duration
			for b.Loop() {
				for i, filter := range []*broker.Filter{nil, filtered("tenant eq wanted")} {
					if r.Tags, r.Priority = tags[0], 1; filter != nil {
						r.Tags, r.Priority = tagged("tenant wanted"), 2 // all others come before it
					}
					s := broker.Selection{WithDetails: true, Filter: filter}
					start := time.Now()
					for range run {
						if err := br.Do(func(tx *broker.Tx) error { return claimed(tx, r, s) }); err != nil {
							b.Fatal(err)
						}
					}
					took[i] += time.Since(start)
				}
			}
			for i, unit := range []string{"ns/claim", "ns/filtered"} {
				b.ReportMetric(float64(took[i].Nanoseconds())/float64(b.N*run), unit)
			}
		})
	}
}

// claimed pushes a packet, claims it and acknowledges it.
func claimed(tx *broker.Tx, r broker.PushRequest, s broker.Selection) error {
	id, err := tx.Push(r)
	if err == nil {
		_, err = tx.Claim(r.Queue, broker.ClaimRequest{Selection: s, Consumer: []byte("w")})
	}
	if err == nil {
		_, err = tx.Ack(r.Queue, []broker.Receipt{{ID: id, Token: int64(id) + 1}})
	}
	return err
}

// BenchmarkPushBesideThoseWhoWaitForTheirOwn is a push while 10 and 10,000 wait, each for a share
// or a value of a tag of its own: for nobody, and for one of them, who then waits again. Where all
// wait for any packet each push is for one of them.
func BenchmarkPushBesideThoseWhoWaitForTheirOwn(b *testing.B) {
	for _, what := range []string{"any", "share", "tag"} {
		b.Run(what, func(b *testing.B) {
			var beside [2]*besideWaiters
			for i, n := range []int{10, 10_000} {
				beside[i] = newBesideWaiters(b, n, what)
				defer beside[i].br.Close()
			}
			for b.Loop() {
				for _, x := range beside {
					x.push(b, 0, "none")
					x.push(b, 1, fmt.Sprint("tenant", x.at*7919%x.n))
				}
			}
			for i, unit := range []string{"nobody", "one"} {
				few, many := median(beside[0].took[i]), median(beside[1].took[i])
				b.ReportMetric(few, "ns/"+unit+"-few")
				b.ReportMetric(many, "ns/"+unit+"-many")
				b.ReportMetric(many/few, unit+"-ratio")
			}
		})
	}
}

// besideWaiters measures pushes beside n pops that wait, each for its own.
type besideWaiters struct {
	br    *driver
	n, at int
	took  [2][]time.Duration
	next  func(tx *broker.Tx) error // what becomes of the last push
}

// median is what half of the pushes stay below: others have the processor, too.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds())
}

func newBesideWaiters(b *testing.B, n int, what string) *besideWaiters {
	x := &besideWaiters{br: benchBroker(b), n: n}
	s := broker.DefaultSettings()
	if what == "share" {
		s.ShareBy = []byte("tag:tenant")
	}
	x.do(b, func(tx *broker.Tx) error { return tx.SetSettings([]byte("q"), s) })
	for i := range n {
		c, f := x.br.Attach(&inbox{}, broker.Selection{}), &broker.Filter{Share: fmt.Append(nil, "tenant", i)}
		switch what {
		case "any":
			f = nil
		case "tag":
			f = filtered(fmt.Sprint("tenant eq tenant", i))
		}
		park := func(tx *broker.Tx) error {
			return tx.Park(c, broker.Parking{Queues: [][]byte{[]byte("q")}, Filter: f})
		}
		boxOf(c).waits(func(tx *broker.Tx, _ bool) {
			if got, err := tx.Pop([]byte("q"), broker.Selection{Filter: f}); err != nil || len(got.Packets) != 1 {
				b.Errorf("who waits gets %+v, %v", got, err)
			}
			x.next = park
		})
		x.do(b, park)
	}
	return x
}

func (x *besideWaiters) do(b *testing.B, fn func(tx *broker.Tx) error) {
	if err := x.br.Do(fn); err != nil {
		b.Fatal(err)
	}
}

// push measures one push.
func (x *besideWaiters) push(b *testing.B, which int, tenant string) {
	x.at++
	x.next = func(tx *broker.Tx) error { _, err := tx.Pop([]byte("q"), broker.Selection{}); return err }
	r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("x"), Tags: tagged("tenant " + tenant)}
	start := time.Now()
	x.do(b, func(tx *broker.Tx) error { return pushError(tx.Push(r)) })
	x.took[which] = append(x.took[which], time.Since(start))
	x.do(b, x.next)
}

// BenchmarkPushBesideThoseWhoFill is a push and a pop of its packet while 1,000 claims wait to fill
// a batch.
func BenchmarkPushBesideThoseWhoFill(b *testing.B) {
	for _, x := range []struct {
		name             string
		n                int
		counts, filtered bool
	}{{"nobody", 0, false, false}, {"alike", 1000, false, false}, {"counts", 1000, true, false}, {"filters", 1000, false, true}} {
		b.Run(x.name, func(b *testing.B) {
			br := benchBroker(b)
			defer br.Close()
			if err := br.Do(func(tx *broker.Tx) error {
				for i := range x.n {
					w := &classWaiter{box: &workbox{}, queues: []string{"q"}, fill: 10}
					if w.s = (broker.Selection{End: broker.Oldest, Count: 1000, WithDetails: true, MustFind: true}); x.counts {
						w.s.Count = 2 + i%999
					}
					if w.s.Least = w.s.Count; x.filtered {
						w.s.Filter = filtered(fmt.Sprintf("n lt %d", i+10))
					}
					w.c = br.Attach(w.box, broker.Selection{})
					w.box.waits(func(tx *broker.Tx, _ bool) { _ = tx.Atomic(func() error { return w.claim(tx) }) })
					if err := w.claim(tx); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("x"), Tags: tagged("n 1")}
			for b.Loop() {
				err := br.Do(func(tx *broker.Tx) error { return pushError(tx.Push(r)) })
				if err == nil {
					err = br.Do(func(tx *broker.Tx) error { _, err := tx.Pop(r.Queue, broker.Selection{}); return err })
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
