package index

import "testing"

// dispatchBench is a dispatch with the test it belongs to.
type dispatchBench struct {
	*Dispatch
	t *testing.T
}

// waits fails the test unless a subscriber is the first in the wait list of a queue; 0 for nobody.
func (d *dispatchBench) waits(q QueueID, want SubscriberID) {
	d.t.Helper()
	if got, _ := d.Waiting(q, false); got != want {
		d.t.Fatalf("subscriber %d waits first, want %d", got, want)
	}
}

// checkDispatch runs each rule with two subscribers of its own.
func checkDispatch(t *testing.T, rules map[string]func(d *dispatchBench, a, b SubscriberID)) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			d := NewDispatch()
			rule(&dispatchBench{d, t}, d.Add(false), d.Add(true))
		})
	}
}

func TestReadyRules(t *testing.T) {
	const q = QueueID(7)
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
			if !d.Unsubscribe(a, q) || d.Unsubscribe(a, q) || len(d.waitLists) > 0 {
				d.t.Fatal("the subscription did not end at once")
			}
		},
	})
}

func TestWaitListRules(t *testing.T) {
	const q = QueueID(7)
	checkDispatch(t, map[string]func(d *dispatchBench, a, b SubscriberID){
		"the one that is ready longest comes first": func(d *dispatchBench, a, b SubscriberID) {
			d.Subscribe(a, q)
			d.Subscribe(b, q)
			d.Credit(b, 1)
			d.Credit(a, 1)
			d.waits(q, b)
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
		"a wide packet is for a wide subscriber, however long a narrow one has waited": func(d *dispatchBench, wide, narrow SubscriberID) {
			for _, s := range []SubscriberID{narrow, wide} {
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			d.waits(q, narrow)
			if got, _ := d.Waiting(q, true); got != wide {
				d.t.Fatalf("a wide packet is for subscriber %d, want %d", got, wide)
			}
		},
		"a paused subscriber is passed over and comes back last": func(d *dispatchBench, a, b SubscriberID) {
			for _, s := range []SubscriberID{a, b} {
				d.Subscribe(s, q)
				d.Credit(s, 1)
			}
			d.Pause(a)
			d.waits(q, b)
			d.Resume(a)
			d.waits(q, b)
			d.Remove(b)
			d.waits(q, a)
		},
	})
}
