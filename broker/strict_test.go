package broker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// strict gives q strict order.
func (w *work) strict(change func(s *broker.Settings)) {
	w.t.Helper()
	s := broker.DefaultSettings()
	if s.Strict, s.MaxAttempts = true, 0; change != nil {
		change(&s)
	}
	w.set(s)
	for w.b.round() {
	}
}

func (w *work) keyed(key, payload string) broker.ID {
	w.t.Helper()
	return w.add(broker.PushRequest{Key: []byte(key), Payload: []byte(payload)})
}

// wantPayloads claims up to nine packets, and wants these.
func (w *work) wantPayloads(when string, want ...string) (got []job) {
	w.t.Helper()
	got = w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest, Count: 9}})
	var payloads []string
	for _, j := range got {
		payloads = append(payloads, j.payload)
	}
	if fmt.Sprint(payloads) != fmt.Sprint(want) {
		w.t.Errorf("%s %v can be claimed, want %v", when, payloads, want)
	}
	return got
}

// Workers answer well, badly or never, one of them is killed, and the broker starts anew in the
// midst: no key ever has two packets out, and each gives them in their order.
func TestKeysKeepTheirOrderWhateverBecomesOfWorkers(t *testing.T) {
	const keys, n, workers = 10, 100, 7
	for _, by := range []string{"", "key"} {
		w := newWork(t)
		w.strict(func(s *broker.Settings) { s.ShareBy, s.Lease = []byte(by), 50 })
		for i := range keys * n {
			w.keyed(fmt.Sprint("k", i%keys), fmt.Sprint(i))
		}
		rng := rand.New(rand.NewPCG(1, 2))
		next, out, acked, retried := [keys]int{}, make(map[int]job), 0, 0
		for step := 0; acked < keys*n; step++ {
			if step > 100_000 {
				t.Fatalf("%d packets are done after %d steps", acked, step)
			}
			for key, j := range out {
				if j.LeaseEnd <= w.now.Load() {
					delete(out, key)
					retried++
				}
			}
			worker := rng.IntN(workers)
			switch action := rng.IntN(100); {
			case action < 2:
				w.restart()
			case action < 10:
				w.pass(time.Duration(rng.IntN(9)) * time.Millisecond)
			case action < 50:
				r := broker.ClaimRequest{Consumer: fmt.Append(nil, worker), Selection: broker.Selection{End: broker.Oldest, Count: 1 + rng.IntN(4), WithDetails: true}}
				for _, j := range w.claim("q", r) {
					i := 0
					_, _ = fmt.Sscan(j.payload, &i)
					if other, is := out[i%keys]; is || i/keys != next[i%keys] {
						t.Fatalf("step %d: packet %d is out beside %v, %q; want packet %d of its key", step, i, is, other.payload, next[i%keys])
					}
					out[i%keys] = j
				}
			default:
				for key, j := range out { // any of them
					switch answer := rng.IntN(4); {
					case j.Consumer == "3": // it was killed
						continue
					case answer > 1:
						if err := w.ack(j); err != nil {
							t.Fatal(err)
						}
						next[key]++
						acked++
					default:
						if _, err := w.nack(j, broker.Nack{Delay: int64(answer * 5)}); err != nil {
							t.Fatal(err)
						}
						retried++
					}
					delete(out, key)
					break
				}
			}
		}
		if retried < 100 {
			t.Errorf("%d packets were tried again, want many", retried)
		}
	}
}

func TestADeadPacketHoldsItsKeyWhereTheQueueSaysSo(t *testing.T) {
	for end, want := range map[string]string{"go on": "[behind]", "deleted": "[behind]", "redriven": "[first]", "kept for long enough": "[behind]", "settings": "[behind]"} {
		w := newWork(t)
		w.strict(func(s *broker.Settings) {
			if s.RetainDead = 1000; end != "go on" {
				s.OnDead = broker.DeadHolds
			}
		})
		w.keyed("k", "first")
		behind := w.keyed("k", "behind")
		j := w.wantPayloads("at first", "first")[0]
		w.nacked(j, broker.Nack{Dead: true}, broker.Dead)
		if end != "go on" {
			w.wantPayloads("behind a dead one")
			w.restart()
			w.wantPayloads("after a start")
			if got, _ := w.show("q", behind); got.HeldBack != fmt.Sprintf("waits for packet %d of its key", j.ID) {
				t.Errorf("behind a dead one: %q", got.HeldBack)
			}
		}
		switch end {
		case "deleted":
			w.do(func(tx *broker.Tx) error { _, err := tx.DeletePackets([]byte("q"), []broker.ID{j.ID}); return err })
		case "redriven":
			w.do(func(tx *broker.Tx) error { _, err := tx.RedrivePacket([]byte("q"), j.ID); return err })
		case "kept for long enough":
			w.pass(time.Second)
		case "settings":
			w.strict(nil)
		}
		if got := w.wantPayloads(end, want[1:len(want)-1]); end == "redriven" && len(got) == 1 {
			w.wantPayloads("behind one that is tried again")
		}
	}
}

// A group is out as a whole, a delay before the first claim holds nobody, and a better packet is
// the first.
func TestWhatIsOutOfAKey(t *testing.T) {
	w := newWork(t)
	w.strict(nil)
	w.add(broker.PushRequest{Key: []byte("k"), Payload: []byte("delayed"), Delay: 60_000})
	w.keyed("k", "one")
	w.keyed("k", "two")
	w.keyed("", "of an empty key")
	w.add(broker.PushRequest{Payload: []byte("of none")})
	w.add(broker.PushRequest{Payload: []byte("of none")})
	w.add(broker.PushRequest{Key: []byte("k"), Payload: []byte("better"), Priority: 99})
	claimed := w.wantPayloads("with priorities", "better", "of an empty key", "of none", "of none")
	w.wantPayloads("while all are out")
	if err := w.ack(claimed[0]); err != nil {
		t.Fatal(err)
	}
	group := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Group: true, WithDetails: true}})
	if len(group) != 2 {
		t.Fatalf("the group has %d packets, want 2", len(group))
	}
	w.keyed("k", "three")
	if err := w.ack(group[0]); err != nil {
		t.Fatal(err)
	}
	w.wantPayloads("while a part of the group is out")
	w.nacked(group[1], broker.Nack{Delay: 1000}, broker.Delayed)
	w.wantPayloads("while one is to be tried again")
	w.pass(time.Second)
	w.wantPayloads("when it is due", group[1].payload)
}

// An order that comes later holds once all packets have followed; one that goes is gone at once.
// Defaults hold from a start on.
func TestTheOrderOfAQueueMayChange(t *testing.T) {
	w := newWork(t)
	for i := range 5000 {
		w.keyed(fmt.Sprint(i%2), fmt.Sprint(i))
	}
	got := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest, Count: 3}})
	w.strict(nil)
	w.wantPayloads("while both keys are out")
	for _, j := range got[:2] {
		if err := w.ack(j); err != nil {
			t.Fatal(err)
		}
	}
	w.wantPayloads("while one is", "3")
	s := broker.DefaultSettings()
	w.set(s)
	w.wantPayloads("without the order", "4", "5", "6", "7", "8", "9", "10", "11", "12")
	w.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err })

	w.o.Defaults = defaultsWith("q", func(s *broker.Settings) { s.Strict = true })
	w.setDefaults(w.o.Defaults)
	w.keyed("k", "first")
	w.keyed("k", "behind")
	w.claimOne()
	w.restart()
	w.wantPayloads("after a start with defaults")
}

// A take in strict order drops what has expired, also behind the first of a key. It looks at so
// many packets at most, even where few of them have expired.
func TestATakeInStrictOrderLooksAtABoundedNumberForWhatHasExpired(t *testing.T) {
	const n, most = 3000, 1 << 16
	for name, c := range map[string]struct {
		expired, alive func(i int) string // keys of packets that expire, and of others that are before them
		looks, takes   int                // of a take at most, and until one finds what is alive behind
	}{
		"of one key":             {func(int) string { return "k" }, nil, 4 * n, 1},
		"of many keys":           {func(i int) string { return fmt.Sprint("k", i) }, nil, 4 * n, 1},
		"behind one that is out": {func(i int) string { return fmt.Sprint("k", i) }, func(int) string { return "out" }, most + 2048, 2 * n * 1024 / most},
	} {
		w := newWork(t)
		w.strict(nil)
		push := func(key string, priority uint32, ttl time.Duration) {
			w.add(broker.PushRequest{Key: []byte(key), Payload: []byte(key), Priority: priority, TTL: ttl})
		}
		if c.alive != nil {
			for i := range n {
				push(c.alive(i), 1, 0)
			}
			w.claimOne()
		}
		for i := range n {
			push(c.expired(i), 2, time.Second)
		}
		push("last", 3, 0)
		w.now.Add(1000)
		takes := 0
		for found := 0; found == 0 && takes <= c.takes; takes++ {
			w.do(func(tx *broker.Tx) error {
				passed := tx.Passed()
				f, err := tx.Pop([]byte("q"), broker.Selection{Count: 1})
				if found = len(f.Packets); found == 1 && string(f.Packets[0].Payload) != "last" {
					t.Errorf("%s: %q was taken", name, f.Packets[0].Payload)
				}
				if passed = tx.Passed() - passed; passed > c.looks {
					t.Errorf("%s: a take looked at %d packets", name, passed)
				}
				return err
			})
		}
		if takes > c.takes {
			t.Errorf("%s: %d takes found nothing", name, takes)
		}
	}
}
