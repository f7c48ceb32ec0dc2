package index

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelSubscriber is a subscriber in the naive model, with the moment it joined each line.
type modelSubscriber struct {
	credits uint32
	held    bool
	since   map[QueueID]int
}

func TestDispatchDoesWhatTheNaiveModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDispatch()
		held := map[SubscriberID]*modelSubscriber{}
		clock := 0
		// join puts a subscriber at the end of the lines of its queues.
		join := func(s *modelSubscriber) {
			clock++
			for q := range s.since {
				s.since[q] = clock
			}
		}
		waits := func(s *modelSubscriber) bool { return s.credits > 0 && !s.held }
		change := func(s *modelSubscriber, f func()) {
			was := waits(s)
			f()
			if !was && waits(s) {
				join(s)
			}
		}
		// pick names an unknown subscriber now and then.
		pick := func(t *rapid.T) (SubscriberID, *modelSubscriber) {
			id := SubscriberID(rapid.Uint32Range(0, 6).Draw(t, "subscriber"))
			return id, held[id]
		}
		queue := func(t *rapid.T) QueueID { return QueueID(rapid.Uint32Range(1, 3).Draw(t, "queue")) }
		t.Repeat(map[string]func(*rapid.T){
			"Add": func(t *rapid.T) {
				if len(held) == 5 {
					t.Skip("enough subscribers")
				}
				id := d.Add()
				if id == 0 || held[id] != nil {
					t.Fatalf("Add gave %d", id)
				}
				held[id] = &modelSubscriber{since: map[QueueID]int{}}
			},
			"Remove": func(t *rapid.T) {
				id, _ := pick(t)
				d.Remove(id)
				delete(held, id)
			},
			"Subscribe": func(t *rapid.T) {
				id, s := pick(t)
				q := queue(t)
				want := false
				if s != nil {
					_, has := s.since[q]
					want = !has
				}
				if got := d.Subscribe(id, q); got != want {
					t.Fatalf("Subscribe = %v, want %v", got, want)
				}
				if want {
					clock++
					s.since[q] = clock
				}
			},
			"Unsubscribe": func(t *rapid.T) {
				id, s := pick(t)
				q := queue(t)
				want := false
				if s != nil {
					_, want = s.since[q]
					delete(s.since, q)
				}
				if got := d.Unsubscribe(id, q); got != want {
					t.Fatalf("Unsubscribe = %v, want %v", got, want)
				}
			},
			"Credit": func(t *rapid.T) {
				id, s := pick(t)
				n := rapid.SampledFrom([]uint32{0, 1, 3, ^uint32(0)}).Draw(t, "n")
				d.Credit(id, n)
				if s != nil {
					change(s, func() { s.credits = uint32(min(uint64(s.credits)+uint64(n), 1<<32-1)) })
				}
			},
			"Spend": func(t *rapid.T) {
				id, s := pick(t)
				d.Spend(id)
				if s != nil && s.credits > 0 {
					if s.credits--; waits(s) {
						join(s)
					}
				}
			},
			"Hold": func(t *rapid.T) {
				id, s := pick(t)
				d.Hold(id)
				if s != nil {
					change(s, func() { s.held = true })
				}
			},
			"Resume": func(t *rapid.T) {
				id, s := pick(t)
				d.Resume(id)
				if s != nil {
					change(s, func() { s.held = false })
				}
			},
			"DropQueue": func(t *rapid.T) {
				q := queue(t)
				d.DropQueue(q)
				for _, s := range held {
					delete(s.since, q)
				}
			},
			"": func(t *rapid.T) {
				for q := QueueID(1); q <= 3; q++ {
					want, subscribed, best := SubscriberID(0), false, 0
					for id, s := range held {
						since, ok := s.since[q]
						subscribed = subscribed || ok
						if ok && waits(s) && (want == 0 || since < best) {
							want, best = id, since
						}
					}
					if got, ok := d.Waiting(q); got != want || ok != (want != 0) {
						t.Fatalf("Waiting(%d) = %d %v, want %d", q, got, ok, want)
					}
					if got := d.Subscribed(q); got != subscribed {
						t.Fatalf("Subscribed(%d) = %v", q, got)
					}
				}
				links := 0
				for id, s := range held {
					links += len(s.since)
					got := d.Queues(id, nil)
					slices.Sort(got)
					want := make([]QueueID, 0, 3)
					for q := range s.since {
						want = append(want, q)
					}
					slices.Sort(want)
					if !slices.Equal(got, want) || d.Credits(id) != s.credits {
						t.Fatalf("subscriber %d has queues %v and %d credits, want %v and %d", id, got, d.Credits(id), want, s.credits)
					}
				}
				if int(d.links.live) != links || len(d.byPair) != links || int(d.subscribers.live) != len(held) {
					t.Fatal("subscriptions or subscribers leaked")
				}
			},
		})
	})
}

func TestDispatchRules(t *testing.T) {
	const q = QueueID(7)
	waiting := func(t *testing.T, d *Dispatch, q QueueID, want SubscriberID) {
		t.Helper()
		if got, _ := d.Waiting(q); got != want {
			t.Fatalf("subscriber %d waits first, want %d", got, want)
		}
	}
	rules := map[string]func(t *testing.T, d *Dispatch, a, b SubscriberID){
		"a subscriber that is not ready gets nothing": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Subscribe(a, q)
			waiting(t, d, q, 0)
		},
		"a ready before the subscription counts": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Credit(a, 1)
			d.Subscribe(a, q)
			waiting(t, d, q, a)
		},
		"several readies are so many deliveries": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Credit(a, 1)
			d.Credit(a, 1)
			d.Spend(a)
			waiting(t, d, q, a)
			d.Spend(a)
			waiting(t, d, q, 0)
		},
		"a ready serves one delivery from any of the queues": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Subscribe(a, q+1)
			d.Credit(a, 1)
			waiting(t, d, q+1, a)
			d.Spend(a)
			waiting(t, d, q, 0)
			waiting(t, d, q+1, 0)
		},
		"a ready left at the end of a subscription stays": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Credit(a, 1)
			d.Unsubscribe(a, q)
			waiting(t, d, q, 0)
			d.Subscribe(a, q+1)
			waiting(t, d, q+1, a)
		},
		"the one that is ready longest comes first": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Subscribe(b, q)
			d.Credit(b, 1)
			d.Credit(a, 1)
			waiting(t, d, q, b)
		},
		"subscribers with many credits take turns": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			for _, s := range []SubscriberID{a, b} {
				d.Subscribe(s, q)
				d.Credit(s, 10)
			}
			for _, s := range []SubscriberID{a, b, a, b} {
				waiting(t, d, q, s)
				d.Spend(s)
			}
		},
		"one unsubscribe ends a redundant subscription": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			d.Subscribe(a, q)
			if d.Subscribe(a, q) {
				t.Fatal("the second subscription is not redundant")
			}
			if !d.Unsubscribe(a, q) || d.Unsubscribe(a, q) || d.Subscribed(q) {
				t.Fatal("the subscription did not end at once")
			}
		},
		"a held subscriber is passed over and comes back last": func(t *testing.T, d *Dispatch, a, b SubscriberID) {
			for _, s := range []SubscriberID{a, b} {
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			d.Hold(a)
			waiting(t, d, q, b)
			d.Resume(a)
			waiting(t, d, q, b)
			d.Remove(b)
			waiting(t, d, q, a)
		},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			d := NewDispatch()
			rule(t, d, d.Add(), d.Add())
		})
	}
}
