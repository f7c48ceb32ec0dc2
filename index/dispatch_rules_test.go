package index

import (
	"slices"
	"strings"
	"testing"
)

// dispatchBench is a dispatch with the test it belongs to.
type dispatchBench struct {
	*Dispatch
	t *testing.T
}

// first returns the first in a wait list whose class is one of these.
func (d *dispatchBench) first(q WaitListID, classes ...Class) SubscriberID {
	s, _ := d.Waiting(q, 3, func(c Class, asked uint64) (uint64, bool) { return asked, slices.Contains(classes, c) })
	return s
}

// waits fails the test unless a subscriber is the first in a wait list; 0 for nobody.
func (d *dispatchBench) waits(q WaitListID, want SubscriberID) {
	d.t.Helper()
	if got := d.first(q, 0, 1); got != want {
		d.t.Fatalf("subscriber %d waits first, want %d", got, want)
	}
}

// checkDispatch runs each rule with two subscribers of its own.
func checkDispatch(t *testing.T, rules map[string]func(d *dispatchBench, a, b SubscriberID)) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			keys := func(c Class) Key { return Key{By: []string{"all", strings.Repeat("k", int(c/2))}[:min(c/2, 1)*2]} }
			d := NewDispatch(keys)
			d.AddList()
			d.AddList()
			rule(&dispatchBench{d, t}, d.Add(0), d.Add(1))
		})
	}
}

func TestReadyRules(t *testing.T) {
	const q = WaitListID(1)
	checkDispatch(t, map[string]func(d *dispatchBench, a, b SubscriberID){
		"a subscriber that is not ready gets nothing": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.waits(q, 0)
		},
		"a ready before the subscription counts": func(d *dispatchBench, a, b SubscriberID) {
			d.Credit(a, 1)
			d.Subscribe(a, q)
			d.waits(q, a)
		},
		"several readies are so many deliveries": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Credit(a, 1)
			d.Credit(a, 1)
			d.Spend(a)
			d.waits(q, a)
			d.Spend(a)
			d.waits(q, 0)
		},
		"a ready serves one delivery from any of the queues": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Subscribe(a, q+1)
			d.Credit(a, 1)
			d.waits(q+1, a)
			d.Spend(a)
			d.waits(q, 0)
			d.waits(q+1, 0)
		},
		"a ready left at the end of a subscription stays": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Credit(a, 1)
			d.Unsubscribe(a, q)
			d.waits(q, 0)
			d.Subscribe(a, q+1)
			d.waits(q+1, a)
		},
		"one unsubscribe ends a redundant subscription": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			if d.Subscribe(a, q) {
				d.t.Fatal("the second subscription is not redundant")
			}
			if !d.Unsubscribe(a, q) || d.Unsubscribe(a, q) || !d.IsEmpty(q) {
				d.t.Fatal("the subscription did not end at once")
			}
		},
	})
}

func TestWaitListRules(t *testing.T) {
	const q = WaitListID(1)
	checkDispatch(t, map[string]func(d *dispatchBench, a, b SubscriberID){
		"the one that is ready longest comes first": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Subscribe(b, q)
			d.Credit(b, 1)
			d.Credit(a, 1)
			d.waits(q, b)
		},
		"who waited longer stands first, though it subscribed later": func(d *dispatchBench, a, b SubscriberID) {
			d.Credit(a, 1)
			d.Credit(b, 1)
			d.Subscribe(b, q)
			d.Subscribe(a, q)
			d.waits(q, a)
		},
		"a class is asked from the start when another queue has the name": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Credit(a, 1)
			for _, want := range []uint64{0, 7} {
				d.Waiting(q, 3, func(_ Class, asked uint64) (uint64, bool) {
					if asked != want {
						d.t.Errorf("asked with %d, want %d", asked, want)
					}
					return 7, false
				})
			}
			d.AskAnew(q)
			d.Waiting(q, 3, func(_ Class, asked uint64) (uint64, bool) {
				if asked != 0 {
					d.t.Errorf("asked anew with %d", asked)
				}
				return 7, false
			})
		},
		"subscribers with many credits take turns": func(d *dispatchBench, a, b SubscriberID) {
			for _, s := range []SubscriberID{a, b} {
				d.Subscribe(s, q)
				d.Credit(s, 10)
			}
			for _, s := range []SubscriberID{a, b, a, b} {
				d.waits(q, s)
				d.Spend(s)
			}
		},
		"a packet is for a subscriber whose class takes it, however long others have waited": func(d *dispatchBench, wide, narrow SubscriberID) {
			for _, s := range []SubscriberID{narrow, wide} {
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			d.waits(q, narrow)
			if got := d.first(q, 0); got != wide {
				d.t.Fatalf("a wide packet is for subscriber %d, want %d", got, wide)
			}
		},
		"a class is asked from where it was asked last, while somebody of it waits": func(d *dispatchBench, a, b SubscriberID) {
			ask := func(want uint64) {
				d.t.Helper()
				d.Waiting(q, 3, func(c Class, asked uint64) (uint64, bool) {
					if asked != want {
						d.t.Errorf("asked with %d, want %d", asked, want)
					}
					return asked + 7, false
				})
			}
			other := d.Add(0)
			for _, s := range []SubscriberID{a, other} {
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			ask(0)
			ask(7)
			d.Remove(a)
			ask(14)
			d.Remove(other)
			next := d.Add(0)
			d.Subscribe(next, q)
			d.Credit(next, 1)
			ask(0)
		},
		"of many classes with keys of their own only those are asked that are woken": func(d *dispatchBench, a, b SubscriberID) {
			const many = 1000
			for c := range Class(many) {
				s := d.Add(2 * (c + 1))
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			ask := func(want int) {
				d.t.Helper()
				asked := 0
				d.Waiting(q, 3, func(Class, uint64) (uint64, bool) { asked++; return 7, false })
				if asked != want {
					d.t.Errorf("%d classes are asked, want %d", asked, want)
				}
			}
			ask(many)
			ask(0)
			d.Wake(q, []byte("kk"), 8)
			d.Wake(q, []byte("kkk"), 8)
			d.Wake(q, []byte("other"), 8)
			ask(2)
			d.Wake(q, []byte("all"), 8)
			ask(1) // the first, when nothing else was found by it
			d.AskAnew(q)
			ask(many)
		},
		"a paused subscriber is passed over and comes back last": func(d *dispatchBench, a, b SubscriberID) {
			for _, s := range []SubscriberID{a, b} {
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			d.SetPaused(a, true)
			d.waits(q, b)
			d.SetPaused(a, false)
			d.waits(q, b)
			d.Remove(b)
			d.waits(q, a)
		},
	})
}
