package broker_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// shareBy shares q out.
func (w *work) shareBy(by string) {
	w.t.Helper()
	s := broker.DefaultSettings()
	s.ShareBy = []byte(by)
	w.do(func(tx *broker.Tx) error { return tx.ForceSettings([]byte("q"), s) })
}

// tenant pushes a packet to q that says its tenant in its key and in a tag.
func (w *work) tenant(name string) broker.ID {
	w.t.Helper()
	return w.add(ofTenantNamed(name))
}

func ofTenantNamed(name string) broker.PushRequest {
	return broker.PushRequest{Key: []byte(name), Payload: []byte(name), Tags: []content.Tag{{Name: "app", Value: "web"}, {Name: "tenant", Value: name}}}
}

// tenants claims n packets of q, and says whose they are.
func (w *work) tenants(n int, f *broker.Filter) (names []string) {
	w.t.Helper()
	for _, j := range w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest, Count: n, Filter: f}}) {
		names = append(names, j.payload)
	}
	return names
}

func TestSharesTakeFairTurns(t *testing.T) {
	for _, by := range []string{"key", "tag:tenant"} {
		w := newWork(t)
		w.shareBy(by)
		for range 50 {
			w.tenant("large")
		}
		for range 3 {
			w.tenant("small")
		}
		if got := strings.Join(w.tenants(8, nil), " "); got != "large small large small large small large large" {
			t.Errorf("%s: one claim of 8 took %s", by, got)
		}
	}
}

// The claims that a share has count across a start.
func TestAShareThatHoldsClaimsWaitsForTheOthersAfterAStart(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	for range 10 {
		w.tenant("large")
	}
	w.tenants(4, nil)
	for range 10 {
		w.tenant("small")
	}
	w.restart()
	if got := strings.Join(w.tenants(6, nil), " "); got != "small small small small large small" && got != "small small small small small large" {
		t.Errorf("after the start a claim of 6 took %s", got)
	}
}

// share-by comes in the middle of an incident: the packets that are there follow.
func TestAFloodedQueueThatIsSharedOutServesTheOthers(t *testing.T) {
	w := newWork(t)
	for range 5000 {
		w.tenant("large")
	}
	w.tenant("small")
	w.shareBy("tag:tenant")
	for w.b.round() {
	}
	if got := w.tenants(2, nil); !slices.Contains(got, "small") {
		t.Errorf("the first two are %v", got)
	}
	w.shareBy("")
	for w.b.round() {
	}
	w.tenant("small")
	if got := w.tenants(3, nil); slices.Contains(got, "small") {
		t.Errorf("without share-by the first three are %v, want none that was pushed last", got)
	}
}

func TestAShareIsTakenListedAndPurgedByItsName(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	for range 3 {
		w.tenant("a")
		w.tenant("b")
	}
	w.add(broker.PushRequest{Payload: []byte("none")})
	for name, want := range map[string]string{"b": "b b", "": "none", "c": ""} {
		if got := strings.Join(w.tenants(2, &broker.Filter{Share: []byte(name)}), " "); got != want {
			t.Errorf("a claim of share %q took %q, want %q", name, got, want)
		}
	}
	listed := func(f *broker.Filter) (names string) {
		var from broker.Place
		for more := true; more; {
			var end broker.PageEnd
			got := w.replied(func(tx *broker.Tx) (err error) {
				var found broker.Found
				found, end, err = tx.List([]byte("q"), broker.Page{State: broker.Ready, After: from, Count: 1, Filter: f})
				return reply(w.c)(found, err)
			})
			for _, j := range got {
				names += j.payload
			}
			from, more = end.Last, end.More
		}
		return names
	}
	if got := listed(nil) + "/" + listed(&broker.Filter{Share: []byte("b")}); got != "aaab/b" {
		t.Errorf("listed %s", got)
	}
	purge := broker.Purge([]byte("q"), broker.Ready)
	purge.Filter = &broker.Filter{Share: []byte("a")}
	if n := w.bulk(purge); n != 3 || listed(nil) != "b" {
		t.Errorf("%d of share a were deleted, left is %s", n, listed(nil))
	}
}

func TestWhoWaitsForAShareGetsItsPackets(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	r := &inbox{}
	c := w.b.Attach(r, broker.Selection{})
	s := broker.Selection{Filter: &broker.Filter{Share: []byte("b")}}
	w.do(func(tx *broker.Tx) error {
		return wait(tx, c, &shareWaiter{&blocked{c: c, t: t}, s}, s, 0, []byte("q"))
	})
	w.tenant("a")
	w.barrier()
	wantGot(t, "who waits for share b, and a packet of share a comes", r, "[]")
	w.tenant("b")
	w.barrier()
	wantGot(t, "who waits for share b", r, "[[from q] [b]]")
}

// Packets that come to their share are new to those who wait for it.
func TestWhoWaitsForAShareGetsWhatAChangeBringsThere(t *testing.T) {
	w := newWork(t)
	w.shareBy("tag:team")
	for range 5000 {
		w.tenant("large")
	}
	w.tenant("small")
	r := &inbox{}
	c := w.b.Attach(r, broker.Selection{})
	s := broker.Selection{Filter: &broker.Filter{Share: []byte("small")}}
	w.do(func(tx *broker.Tx) error {
		return wait(tx, c, &shareWaiter{&blocked{c: c, t: t}, s}, s, 0, []byte("q"))
	})
	w.shareBy("key")
	w.barrier()
	wantGot(t, "who waits for share small", r, "[[from q] [small]]")
}

// shareWaiter is a blocked pop that takes what it selects.
type shareWaiter struct {
	*blocked
	s broker.Selection
}

func (w *shareWaiter) Ready(tx *broker.Tx, queue []byte) {
	boxOf(w.c).say("from " + string(queue))
	if err := reply(w.c)(tx.Pop(queue, w.s)); err != nil {
		w.t.Errorf("a waiter that is ready cannot take: %v", err)
	}
}

func TestWhatAQueueWithSharesRefuses(t *testing.T) {
	w := newWork(t)
	w.tenant("a")
	do := func(fn func(tx *broker.Tx) error) error {
		return w.b.Do(func(tx *broker.Tx) error { return tx.Atomic(func() error { return fn(tx) }) })
	}
	pop := func(f *broker.Filter) error {
		return do(func(tx *broker.Tx) error {
			_, err := tx.Pop([]byte("q"), broker.Selection{Filter: f})
			return err
		})
	}
	if err := pop(&broker.Filter{Share: []byte("a")}); !errors.Is(err, broker.ErrNoShares) {
		t.Errorf("without share-by a pop of a share: %v", err)
	}
	w.shareBy("key")
	var c broker.ListCursor
	for what, fn := range map[string]func(tx *broker.Tx) error{
		"Element":  func(tx *broker.Tx) error { _, err := tx.Element([]byte("q"), 0); return err },
		"Elements": func(tx *broker.Tx) error { return tx.Elements([]byte("q"), 0, 1, &c) },
		"SetAt":    func(tx *broker.Tx) error { _, err := tx.SetAt([]byte("q"), 0, []byte("x")); return err },
		"InsertAt": func(tx *broker.Tx) error { _, err := tx.InsertAt([]byte("q"), 0, []byte("x")); return err },
		"Trim":     func(tx *broker.Tx) error { return tx.Trim([]byte("q"), 0, 0) },
		"Find": func(tx *broker.Tx) error {
			_, err := tx.Find([]byte("q"), []byte("a"), broker.Newest, 0, 1, &c, nil)
			return err
		},
		"RemoveValue": func(tx *broker.Tx) error {
			_, err := tx.RemoveValue([]byte("q"), []byte("a"), broker.Newest, 0)
			return err
		},
	} {
		if err := do(fn); !errors.Is(err, broker.ErrByShares) {
			t.Errorf("%s: %v, want that places are not known", what, err)
		}
	}
	for i := range broker.MaxLanes + 5000 {
		w.add(broker.PushRequest{Key: fmt.Append(nil, i), Payload: []byte("job"), Tags: []content.Tag{{Name: "app", Value: "web"}}})
	}
	tag := broker.Term{Tag: "app", Value: "web"}
	if err := pop(&broker.Filter{Terms: []broker.Term{tag}}); !errors.Is(err, broker.ErrManyShares) {
		t.Errorf("a filter over more than %d shares: %v", broker.MaxLanes, err)
	}
	if err := pop(&broker.Filter{Terms: []broker.Term{tag}, Share: []byte("7")}); err != nil {
		t.Errorf("a filter in one share: %v", err)
	}
	s := broker.DefaultSettings()
	s.ShareBy = []byte("tag:tenant")
	if err := w.b.Do(func(tx *broker.Tx) error { return tx.ForceSettings([]byte("q"), s) }); err == nil || !strings.Contains(err.Error(), "take some first") {
		t.Errorf("share-by changes with more shares than may become one: %v", err)
	}
	s.ShareBy = nil
	if err := w.b.Do(func(tx *broker.Tx) error { return tx.SetSettings([]byte("q"), s) }); err == nil || !strings.Contains(err.Error(), "15000 packets would move") {
		t.Errorf("more packets than that move without leave: %v", err)
	}
}

// Takes of a queue that is shared out give the first packet of a share with the fewest claims,
// whatever else happens; each packet comes once.
func TestTakesGoByTheClaimsOfShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWork(t)
		defer func() { _ = w.b.Close() }()
		by := "key"
		w.shareBy(by)
		ready, claimed, weights := map[string][]broker.ID{}, map[string][]job{}, map[string]int{"a": 1, "b": 1, "c": 1}
		held := func(name string) int { return len(claimed[name]) / weights[name] }
		var most, ofShare int64                              // max-claimed and share-max-claimed; 0: no limit
		own, rests := map[string]int64{}, map[string]int64{} // limits, and until when on the steady clock
		cancelled, unique := map[broker.ID]bool{}, map[string]broker.ID{}
		limit := func(name string) int64 { return cmp.Or(own[name], ofShare) }
		room := func(limit int64, claims int) int {
			if limit == 0 {
				return math.MaxInt
			}
			return max(0, int(limit)-claims)
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
				ready[name] = append(ready[name], w.tenant(name))
			},
			"claim": func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "count")
				left, out := 0, 0
				for name, ids := range ready {
					if rests[name] <= w.steady.Load() {
						left += min(len(ids), room(limit(name), len(claimed[name])))
					}
					out += len(claimed[name])
				}
				left = min(left, room(most, out))
				got := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest, Count: n}, Lease: broker.MaxHold})
				if len(got) != min(n, left) {
					t.Fatalf("claimed %d of %d", len(got), left)
				}
				for _, j := range got {
					if rests[j.payload] > w.steady.Load() {
						t.Fatalf("a packet of %s was claimed, which rests", j.payload)
					}
					for other, ids := range ready {
						if len(ids) > 0 && rests[other] <= w.steady.Load() && room(limit(other), len(claimed[other])) > 0 && held(other) < held(j.payload) {
							t.Fatalf("a packet of %s was claimed, which holds %d turns, and %s waits with %d", j.payload, held(j.payload), other, held(other))
						}
					}
					if len(ready[j.payload]) == 0 || ready[j.payload][0] != j.ID {
						t.Fatalf("packet %d of %s was claimed, want the first of %v", j.ID, j.payload, ready[j.payload])
					}
					ready[j.payload], claimed[j.payload] = ready[j.payload][1:], append(claimed[j.payload], j)
				}
			},
			"end": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
				if len(claimed[name]) == 0 {
					t.Skip("holds nothing")
				}
				j := claimed[name][0]
				claimed[name] = claimed[name][1:]
				if rapid.Bool().Draw(t, "acknowledges") {
					if err := w.ack(j); err != nil {
						t.Fatal(err)
					}
					return
				}
				hold := rapid.SampledFrom([]int64{0, 0, 3, 20}).Draw(t, "hold")
				want := broker.Ready
				if cancelled[j.ID] {
					want = broker.Cancelled
				}
				w.nacked(j, broker.Nack{Uncounted: true, Hold: hold}, want)
				if hold > 0 {
					rests[name] = max(rests[name], w.steady.Load()+hold)
				}
				if cancelled[j.ID] {
					return
				}
				ready[name] = append(ready[name], j.ID)
				slices.Sort(ready[name])
			},
			"cancel": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
				var id broker.ID
				want := broker.Claimed
				switch n := len(ready[name]); {
				case n > 0 && rapid.Bool().Draw(t, "waits"):
					at := rapid.IntRange(0, n-1).Draw(t, "at")
					id, want = ready[name][at], broker.Ready
					ready[name] = slices.Delete(slices.Clone(ready[name]), at, at+1)
				case len(claimed[name]) > 0:
					id = rapid.SampledFrom(claimed[name]).Draw(t, "claim").ID
					cancelled[id] = true
				default:
					t.Skip("has nothing")
				}
				w.do(func(tx *broker.Tx) error {
					were, err := tx.Cancel([]byte("q"), []broker.ID{id})
					if !slices.Equal(were, []broker.State{want}) {
						t.Fatalf("packet %d of %s was %v when it was cancelled, want %v", id, name, were, want)
					}
					return err
				})
			},
			"replace": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
				want := "new"
				switch id := unique[name]; {
				case slices.Contains(ready[name], id):
					want = "replaced"
				case slices.ContainsFunc(claimed[name], func(j job) bool { return j.ID == id }):
					want = "claimed"
				}
				w.do(func(tx *broker.Tx) error {
					r := ofTenantNamed(name)
					r.Queue, r.Priority, r.Unique, r.Replace, r.Tell = []byte("q"), 100, []byte(name), true, true
					id, told, err := tx.PushTold(r)
					if told != want || (id == unique[name]) != (want != "new") {
						t.Fatalf("a push beside packet %d of %s is %s as %d, want %s", unique[name], name, told, id, want)
					}
					if unique[name] = id; want == "new" {
						ready[name] = append(ready[name], id)
					}
					return err
				})
			},
			"pass": func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 9).Draw(t, "ms")) * time.Millisecond) },
			"weigh": func(t *rapid.T) {
				name, weight := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"), rapid.IntRange(1, 4).Draw(t, "weight")
				weights[name], own[name] = weight, rapid.SampledFrom([]int64{0, 0, 1, 4}).Draw(t, "own limit")
				w.do(func(tx *broker.Tx) error {
					return tx.SetShare([]byte("q"), broker.Share{Name: []byte(name), Weight: uint32(weight), MaxClaimed: uint32(own[name])})
				})
				delete(rests, name)
			},
			"look": func(t *rapid.T) {
				for _, row := range w.shareRows("q", broker.ShareLook{Count: rapid.IntRange(3, 9).Draw(t, "rows")}) {
					name := string(row.Name)
					if row.Ready != len(ready[name]) || row.Claimed != len(claimed[name]) || int(row.Weight) != weights[name] || (row.Since == 0) != (row.Ready == 0) {
						t.Fatalf("share %s is %+v, want %d ready, %d claimed, weight %d", name, row, len(ready[name]), len(claimed[name]), weights[name])
					}
				}
			},
			"set": func(t *rapid.T) {
				by = rapid.SampledFrom([]string{"key", "tag:tenant"}).Draw(t, "by")
				most = rapid.SampledFrom([]int64{0, 0, 2, 5}).Draw(t, "max claimed")
				ofShare = rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "share max claimed")
				s := broker.DefaultSettings()
				s.ShareBy, s.MaxClaimed, s.ShareMaxClaimed = []byte(by), most, ofShare
				w.set(s)
				for w.b.round() {
				}
			},
			"restart": func(*rapid.T) { w.restart() },
		})
	})
}

// fill pushes packets of n tenants to a queue, many at once.
func (w *work) fill(queue string, from, n int, change func(i int, r *broker.PushRequest)) {
	w.t.Helper()
	for at := from; at < from+n; at += 500 {
		w.do(func(tx *broker.Tx) error {
			for i := at; i < min(at+500, from+n); i++ {
				r := broker.PushRequest{Queue: []byte(queue), Priority: 1, Payload: []byte("job")}
				change(i, &r)
				if _, err := tx.PushAll(r, [][]byte{r.Payload}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// ofTenant gives a packet one of many tenants, in its key and in a tag.
func ofTenant(i int, r *broker.PushRequest) {
	r.Key = fmt.Append(nil, i)
	r.Tags = []content.Tag{{Name: "tenant", Value: string(r.Key)}}
}

// A queue with very many packets keeps its shape, but not its other settings, until the next start.
func TestDefaultsChangeTheShapeOfQueuesWithFewPackets(t *testing.T) {
	w := newWork(t)
	ofFew := func(i int, r *broker.PushRequest) { ofTenant(i%5000, r) }
	w.fill("jobs.large", 0, broker.MaxMoves+1, ofFew)
	w.fill("jobs.small", 0, broker.MaxMoves, ofFew)
	defaults := func(change func(s *broker.Settings)) (kept []int) {
		w.b.told = nil
		w.o.Defaults = defaultsWith("jobs.", change)
		w.setDefaults(w.o.Defaults)
		for w.b.round() {
		}
		w.barrier()
		for _, e := range w.b.told {
			if e.Kind == broker.EventShape {
				kept = append(kept, e.Queues)
			}
		}
		return kept
	}
	keeps := func(queue string) (keeps bool, of broker.Settings) {
		w.do(func(tx *broker.Tx) error {
			s, _, err := tx.QueueStats([]byte(queue))
			if keeps = s.KeepsShape; err == nil {
				of, _, err = tx.Settings([]byte(queue))
			}
			return err
		})
		return keeps, of
	}
	for what, change := range map[string]func(s *broker.Settings){
		"share-by": func(s *broker.Settings) { s.ShareBy = []byte("tag:tenant") },
		"strict":   func(s *broker.Settings) { s.Strict, s.DeadLetter = true, []byte("graves") },
		"hold":     func(s *broker.Settings) { s.Strict, s.OnDead = true, broker.DeadHolds },
		"full": func(s *broker.Settings) {
			s.ShareBy, s.Strict, s.Full = []byte("key"), true, broker.FullDrop
		},
	} {
		with := func(s *broker.Settings) { change(s); s.Lease = 7000 }
		want := broker.DefaultSettings()
		if with(&want); !slices.Equal(defaults(with), []int{1}) {
			t.Errorf("%s: nobody is told that a queue keeps its shape", what)
		}
		if k, s := keeps("jobs.small"); k || !reflect.DeepEqual(s, want) {
			t.Errorf("%s: the small queue has %+v, keeps: %v", what, s, k)
		}
		was := broker.DefaultSettings()
		was.Lease, was.DeadLetter, was.Full = 7000, want.DeadLetter, want.Full // without shares that is no shape
		if k, s := keeps("jobs.large"); !k || !reflect.DeepEqual(s, was) {
			t.Errorf("%s: the large queue has %+v, keeps: %v", what, s, k)
		}
		w.restart()
		if k, s := keeps("jobs.large"); k || !reflect.DeepEqual(s, want) {
			t.Errorf("%s: after a start the large queue has %+v, keeps: %v", what, s, k)
		}
		err := w.b.Do(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("jobs.large"), []byte("plain")); return err })
		if err == nil || !strings.Contains(err.Error(), `QSET "jobs.large" strict `) {
			t.Errorf("%s: a rename that moves too many packets: %v", what, err)
		}
		w.o.Defaults = nil
		w.restart()
	}
}

// Of many queues that follow new defaults few follow in a turn, whatever has changed.
func TestDefaultsMoveFewPacketsInATurn(t *testing.T) {
	w := newWork(t)
	const queues, packets = 60, 1000
	for i := range queues {
		w.fill(fmt.Sprint("jobs.", i), 0, packets, ofTenant)
	}
	s := broker.DefaultSettings()
	for what, change := range []func(){
		func() { s.ShareBy = []byte("key") }, func() { s.Full = broker.FullDrop }, func() { s.Strict = true }, func() { s.OnDead = broker.DeadHolds }, func() { s.ShareBy = nil },
	} {
		change()
		rounds := 1
		for w.setDefaults(defaultsWith("jobs.", func(of *broker.Settings) { *of = s })); w.b.round(); rounds++ {
		}
		if rounds+2 < queues*packets/broker.MaxMoves { // two come with the call
			t.Errorf("change %d was done in %d turns", what, rounds)
		}
	}
}

// A walk over a queue meets each packet, though packets come to other shares behind its back.
func TestAWalkGoesOverAChangeOfTheShares(t *testing.T) {
	const n = 12_000
	slice := func(w *work, bk *broker.Bulk) {
		w.do(func(tx *broker.Tx) error { _, err := bk.Slice(tx); return err })
	}
	for name, begin := range map[string]func() *broker.Bulk{
		"purge":   func() *broker.Bulk { return broker.Purge([]byte("q"), broker.Ready) },
		"dry run": func() *broker.Bulk { bk := broker.Purge([]byte("q"), 0); bk.DryRun = true; return bk },
		"move":    func() *broker.Bulk { return broker.Move([]byte("q"), broker.Ready, 0, []byte("to")) },
		"share": func() *broker.Bulk {
			bk := broker.Purge([]byte("q"), 0)
			bk.Filter = &broker.Filter{Share: []byte("1")}
			return bk
		},
	} {
		for _, sorts := range []bool{true, false} { // between two slices, or while the walk goes on
			w := newWork(t)
			w.shareBy("tag:tenant")
			w.fill("q", 0, n, func(i int, r *broker.PushRequest) {
				ofTenant(i%30, r)
				r.Key = fmt.Append(nil, i%2)
			})
			bk, want := begin(), n
			if bk.Filter != nil {
				want = n / 2
			} else {
				slice(w, bk)
			}
			w.shareBy("key")
			for sorts && w.b.round() {
			}
			if got := w.bulk(bk); got != want {
				t.Errorf("%s, sorted between: %v: %d packets, want %d", name, sorts, got, want)
			}
			_ = w.b.Close()
		}
	}
}

// Of a page that others have come before, the next one could miss some.
func TestAPageAfterAChangeOfTheSharesIsRefused(t *testing.T) {
	w := newWork(t)
	w.fill("q", 0, 5000, ofTenant)
	page := func(after broker.Place) (end broker.PageEnd, err error) {
		err = w.b.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() (err error) {
				_, end, err = tx.List([]byte("q"), broker.Page{State: broker.Ready, Count: 10, After: after})
				return err
			})
		})
		return end, err
	}
	last := func() broker.Place {
		t.Helper()
		first, err := page(broker.Place{})
		if err != nil {
			t.Fatal(err)
		}
		next, err := page(first.Last)
		if err != nil {
			t.Fatal(err)
		}
		return next.Last
	}
	for _, by := range []string{"key", "", "tag:tenant"} {
		at := last()
		w.shareBy(by)
		for w.b.round() {
		}
		if _, err := page(at); !errors.Is(err, broker.ErrReshaped) {
			t.Errorf("a page after share-by %q was set: %v", by, err)
		}
	}
	w.shareBy("key")
	for w.b.round() {
	}
	at := last()
	w.pass(time.Second)
	w.restart()
	if _, err := page(at); !errors.Is(err, broker.ErrReshaped) {
		t.Errorf("a page after a start, which numbers shares anew: %v", err)
	}
	last()
}

func TestAFilterCostsTheSetsOfTheShareThatItNames(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	w.fill("q", 0, 300, ofTenant)
	w.fill("q", 300, 5, func(i int, r *broker.PushRequest) {
		ofTenant(i, r)
		r.Key = []byte("7")
	})
	for share, want := range map[string]int{"7": 7, "8": 2, "none": 1, "": 2} {
		w.do(func(tx *broker.Tx) error {
			f := &broker.Filter{Share: []byte(share), Terms: []broker.Term{{Tag: "tenant"}}}
			if n, err := tx.CheckFilter([][]byte{[]byte("q")}, f); n != want || err != nil {
				t.Errorf("share %q: %d sets of tags, %v, want %d", share, n, err, want)
			}
			return nil
		})
	}
}

// At the limit of shares a queue takes what comes to those that it has, by whatever door.
func TestAQueueAtTheLimitOfSharesTakesWhatNeedsNoMore(t *testing.T) {
	w := newWork(t)
	w.shareBy("tag:tenant")
	w.fill("q", 0, broker.MaxShareLanes-1, ofTenant)
	wide := make([]byte, broker.MaxNarrow+1)
	push := func(tenant int, payloads ...[]byte) error {
		r := broker.PushRequest{Queue: []byte("q"), Priority: 1}
		ofTenant(tenant, &r)
		return w.b.Do(func(tx *broker.Tx) error { _, err := tx.PushAll(r, payloads); return err })
	}
	move := func(tenant int) error {
		r := broker.PushRequest{Queue: []byte("other")}
		ofTenant(tenant, &r)
		id := w.add(r)
		return w.b.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error { _, err := tx.MovePackets([]byte("other"), []broker.ID{id}, []byte("q")); return err })
		})
	}
	load := func(tenant int) error {
		r := broker.LoadRequest{Queue: []byte("q"), Priority: 1, Packet: broker.Packet{EnqueuedAt: 1, Tags: []content.Tag{{Name: "tenant", Value: fmt.Sprint(tenant)}}}}
		return w.b.Do(func(tx *broker.Tx) error { _, _, err := tx.Load(&r); return err })
	}
	end := func(value []byte) error {
		return w.b.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error { _, err := tx.PushEnd([]byte("q"), broker.Newest, [][]byte{value}); return err })
		})
	}
	const some, other = 7, broker.MaxShareLanes
	for i, step := range []struct {
		what string
		err  error
		full bool
	}{
		{"a push of both widths to a share that is new", push(other, wide, nil), true},
		{"a push of both widths to one that is there", push(some, wide, nil), false},
		{"a push to a share that is new", push(other, nil), true},
		{"a wide value without a share", end(wide), true},
		{"a value without a share", end(nil), false},
		{"a packet that moves to a share that is there", move(some), false},
		{"a packet that moves to a share that is new", move(other), true},
		{"a packet that is loaded to a share that is there", load(some), false},
		{"a packet that is loaded to a share that is new", load(other), true},
	} {
		if errors.Is(step.err, broker.ErrFull) != step.full || !step.full && step.err != nil {
			t.Errorf("%d, %s: %v", i, step.what, step.err)
		}
	}
}

// Packets without further tags are none of the sets of tags.
func TestAQueueWithSharesHasAsManySetsOfTagsAsAnother(t *testing.T) {
	w := newWork(t)
	w.shareBy("tag:tenant")
	w.fill("q", 0, 3, ofTenant)
	further := func(i int, r *broker.PushRequest) {
		ofTenant(i%3, r)
		r.Tags = append(r.Tags, content.Tag{Name: "unit", Value: fmt.Sprint(i)})
	}
	w.fill("q", 0, broker.MaxLanes, further)
	r := broker.PushRequest{Queue: []byte("q"), Priority: 1}
	further(broker.MaxLanes, &r)
	if err := w.b.Do(func(tx *broker.Tx) error { _, err := tx.Push(r); return err }); !errors.Is(err, broker.ErrTooManyLanes) {
		t.Errorf("one set of tags more: %v", err)
	}
	w.fill("q", 9, 1, ofTenant)
}

// The order in which a full queue drops is kept from the start on: to make it of 250,000 shares
// takes 50 ms.
func TestSystemAQueueThatDropsKeepsTheOrderOfItsShares(t *testing.T) {
	const n = 20_000
	w := newWork(t)
	w.shareBy("key")
	w.change("q", func(s *broker.Settings) { s.Bound, s.Full = n, content.FullDrop })
	w.fill("q", 0, n, func(i int, r *broker.PushRequest) { r.Key, r.Priority = fmt.Append(nil, i), 5 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.fill("q", n, 1, func(i int, r *broker.PushRequest) { r.Key = []byte("better") })
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 10*n {
		t.Errorf("the first push to the full queue took %d bytes", bytes)
	}
	w.do(func(tx *broker.Tx) error {
		if n, err := tx.Len([]byte("q")); n > 20_000 || err != nil {
			t.Errorf("it holds %d, %v", n, err)
		}
		return nil
	})
}

// weigh gives a share of a queue a weight of its own; 0 takes it away.
func (w *work) weigh(queue, name string, weight uint32) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		return tx.SetShare([]byte(queue), broker.Share{Name: []byte(name), Weight: weight})
	})
}

// weightOf asks for the weight that a share has of its own.
func (w *work) weightOf(queue, name string) (weight uint32) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		s, err := tx.Share([]byte(queue), []byte(name))
		weight = s.Weight
		return err
	})
	return weight
}

// records is how many records of shares the store has.
func (w *work) records() (n int) {
	w.t.Helper()
	for w.b.round() {
	}
	w.barrier()
	return len(w.shareRecords())
}

func (w *work) shareRecords() (all []content.Share) {
	w.t.Helper()
	if err := w.store.Shares(func(s *content.Share) error { all = append(all, *s); return nil }); err != nil {
		w.t.Fatal(err)
	}
	return all
}

func TestAWeightGoesWithItsQueue(t *testing.T) {
	w := newWork(t)
	w.weigh("q", "a", 10) // which makes the queue, before it has share-by
	w.weigh("q", "b", 3)
	w.weigh("q", "b", 1)
	w.weigh("other", "a", 5)
	rename := func(from, to string) {
		w.do(func(tx *broker.Tx) error { _, err := tx.Rename([]byte(from), []byte(to)); return err })
	}
	rename("q", "p")
	w.do(func(tx *broker.Tx) error {
		_, err := tx.PushEnd([]byte("p"), broker.Newest, [][]byte{[]byte("x"), []byte("y")})
		return cmp.Or(err, tx.Trim([]byte("p"), 0, 0)) // the queue begins anew
	})
	w.restart()
	if a, b, old, n := w.weightOf("p", "a"), w.weightOf("p", "b"), w.weightOf("q", "a"), w.records(); a != 10 || b != 0 || old != 0 || n != 2 {
		t.Errorf("after a start the weights are %d, %d and %d, of %d records", a, b, old, n)
	}
	rename("p", "q")
	w.shareBy("key")
	for range 20 {
		w.tenant("b")
		w.tenant("a")
	}
	if got := strings.Join(w.tenants(12, nil), ""); strings.Count(got, "a") != 10 && strings.Count(got, "a") != 11 {
		t.Errorf("a has 10 turns where b has one, and 12 claims are of %s", got)
	}
	rename("q", "other") // whose record goes
	if a, n := w.weightOf("other", "a"), w.records(); a != 10 || n != 1 {
		t.Errorf("under its new name the weight is %d, and there are %d records", a, n)
	}
	for range 300 {
		w.add(broker.PushRequest{Queue: []byte("other"), Payload: []byte("x")})
	}
	for what, gone := range map[string]func(tx *broker.Tx) error{
		"deleted":   func(tx *broker.Tx) error { _, err := tx.Delete([]byte("other")); return err },
		"flushed":   func(tx *broker.Tx) error { return tx.Flush(false) },
		"forgotten": func(tx *broker.Tx) error { return tx.SetShare([]byte("other"), broker.Share{Name: []byte("a")}) },
	} {
		w.weigh("other", "a", 2)
		w.do(gone)
		if weight, n := w.weightOf("other", "a"), w.records(); weight != 0 || n != 0 {
			t.Errorf("when it was %s the weight is %d, and %d records are left", what, weight, n)
		}
	}
}

func TestAQueueKeepsSoManyWeights(t *testing.T) {
	w := newWork(t)
	for i := range broker.MaxShares {
		w.weigh("q", fmt.Sprint(i), 2)
	}
	set := func(name string) error {
		return w.b.Do(func(tx *broker.Tx) error {
			return tx.SetShare([]byte("q"), broker.Share{Name: []byte(name), Weight: 2})
		})
	}
	if err := set("more"); err == nil {
		t.Error("one more than the limit was taken")
	}
	if err := set("7"); err != nil {
		t.Errorf("one that is known was refused: %v", err)
	}
	w.weigh("q", "7", 0)
	if err := set("more"); err != nil {
		t.Errorf("after a reset: %v", err)
	}
	if err := set(strings.Repeat("x", broker.MaxShareName+1)); !errors.Is(err, broker.ErrTooLarge) {
		t.Errorf("a long name gives %v", err)
	}
}

// shareRows makes a look at shares, a slice in a turn. None may be long.
func (w *work) shareRows(queue string, l broker.ShareLook) []broker.ShareRow {
	w.t.Helper()
	for more := true; more; {
		w.do(func(tx *broker.Tx) (err error) {
			more, err = tx.Shares([]byte(queue), &l)
			return err
		})
	}
	return l.Rows
}

// A share that gets a weight between two pages is on one of them, also if another lost the last.
func TestEachShareIsOnAPageThoughWeightsComeMeanwhile(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	for _, name := range []string{"a", "b", "c", "d"} {
		w.tenant(name)
	}
	w.weigh("q", "a", 2)
	w.weigh("q", "none", 3)
	seen := make(map[string]int)
	l := broker.ShareLook{Count: 1}
	for page := 0; page == 0 || l.After != 0; page++ {
		l.Rows = nil
		w.do(func(tx *broker.Tx) error {
			for {
				if more, err := tx.Shares([]byte("q"), &l); !more {
					return err
				}
			}
		})
		for _, r := range l.Rows {
			seen[string(r.Name)]++
		}
		if page == 2 {
			w.weigh("q", "none", 1)
			w.weigh("q", "c", 5)
		}
	}
	if want := map[string]int{"a": 1, "none": 1, "b": 1, "c": 1, "d": 1}; !maps.Equal(seen, want) {
		t.Errorf("the pages have %v", seen)
	}
}

func TestPagesShowAllOfManyShares(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	const shares = 10_000
	for i := range shares {
		w.tenant(fmt.Sprint(i))
	}
	w.weigh("q", "none", 2)
	found := map[string]bool{}
	for l := (broker.ShareLook{Count: 999}); ; {
		w.do(func(tx *broker.Tx) (err error) { _, err = tx.Shares([]byte("q"), &l); return err })
		for _, row := range l.Rows {
			found[string(row.Name)] = true
		}
		if l.After == 0 {
			break
		}
		if len(l.Rows) == l.Count {
			l.Rows = nil
		}
	}
	if len(found) != shares+1 {
		t.Errorf("pages show %d shares, want %d", len(found), shares+1)
	}
}

// A packet that is replaced again and again keeps the turn of its share, which has no other.
func TestAReplacedPacketKeepsTheTurnOfItsShare(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	for range 10 {
		w.tenant("a")
	}
	replace := func() {
		r := ofTenantNamed("b")
		r.Unique, r.Replace = []byte("u"), true
		w.add(r)
	}
	replace()
	var taken []string
	for range 4 {
		replace()
		w.do(func(tx *broker.Tx) error {
			f, err := tx.Pop([]byte("q"), broker.Selection{Count: 1})
			taken = append(taken, string(f.Packets[0].Payload))
			return err
		})
	}
	if n := slices.Index(taken, "b"); n < 0 || n > 1 {
		t.Errorf("%v were taken, want b by the second turn", taken)
	}
}
