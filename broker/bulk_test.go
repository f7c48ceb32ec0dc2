package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// bulk makes all slices of a bulk and returns how many packets it changed.
func (w *work) bulk(bk *broker.Bulk) int {
	w.t.Helper()
	for more := true; more; {
		w.do(func(tx *broker.Tx) (err error) {
			more, err = bk.Slice(tx)
			return err
		})
	}
	return bk.Done
}

// list returns all packets of a queue in one state, page by page.
func (w *work) list(queue string, s broker.State, page int) (all []job) {
	w.t.Helper()
	p := broker.Page{State: s, Count: page}
	for end := (broker.PageEnd{More: true}); end.More; p.After = end.Last {
		got := w.replied(func(tx *broker.Tx) error {
			return tx.Atomic(func() (err error) {
				end, err = listed(w.c)(tx.List([]byte(queue), p))
				return err
			})
		})
		if len(got) != end.Packets || len(got) > page {
			w.t.Fatalf("%d packets are listed, %d announced, at most %d wanted", len(got), end.Packets, page)
		}
		all = append(all, got...)
	}
	return all
}

func (w *work) show(queue string, id broker.ID) (job, bool) {
	w.t.Helper()
	got := w.replied(func(tx *broker.Tx) error {
		return reply(w.c)(tx.Show([]byte(queue), id))
	})
	if len(got) == 0 {
		return job{}, false
	}
	return got[0], true
}

func ids(jobs []job) (list []broker.ID) {
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}

func TestAClaimedPacketIsListedWhenTheStoreHasDroppedItsRecord(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Priority: 1, TTL: time.Second, Payload: []byte("x")})
	claimed := w.claim("q", broker.ClaimRequest{Lease: 1 << 30})[0]
	w.barrier()
	w.restart() // nothing is cached any more
	w.pass(time.Hour)
	clear(w.store.packets) // as the database does some time after the expiry
	if got := ids(w.list("q", broker.Claimed, 7)); !slices.Equal(got, []broker.ID{claimed.ID}) {
		t.Fatalf("listed %v, want %v", got, claimed.ID)
	}
	if got, ok := w.show("q", claimed.ID); !ok || got.Token != claimed.Token {
		t.Fatalf("shown %+v, want the claim %+v", got, claimed)
	}
	w.do(func(tx *broker.Tx) error {
		if ok, err := tx.SetPriority([]byte("q"), claimed.ID, 7); ok || err != nil {
			t.Errorf("a new priority gave %v, %v", ok, err)
		}
		return nil
	})
	w.barrier()
	if err := w.ack(claimed); err != nil {
		t.Fatalf("ack: %v", err)
	}
}

func TestListsGoPageByPageInTheOrderOfPriorityAndAge(t *testing.T) {
	w := newWork(t)
	var want []broker.ID
	for i := range 30 {
		want = append(want, w.add(broker.PushRequest{Priority: uint32(1 + i/10), Payload: []byte("x")}))
	}
	w.barrier()
	w.restart()
	if got := ids(w.list("q", broker.Ready, 7)); !slices.Equal(got, want) {
		t.Fatalf("listed %v, want %v", got, want)
	}
	if got := w.list("q", broker.Dead, 7); len(got) != 0 {
		t.Fatalf("listed %v as dead", got)
	}
	w.claimOne()
	if j, ok := w.show("q", want[5]); !ok || j.Behind != 4 || j.State != broker.Ready {
		t.Fatalf("showed %+v, %v", j, ok)
	}
	if j, ok := w.show("q", want[0]); !ok || j.Behind != -1 || j.State != broker.Claimed {
		t.Fatalf("showed %+v, %v", j, ok)
	}
	if _, ok := w.show("q", 999); ok {
		t.Fatal("showed a packet that is not there")
	}
}

func TestTheListsOfOneRunAreBoundedTogether(t *testing.T) {
	w := newWork(t)
	const n, size = 60, 250_000
	for range n {
		w.add(broker.PushRequest{Payload: make([]byte, size)})
	}
	w.barrier()
	w.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error {
			for lists := range broker.MaxAtomicReply/(n*size) + 1 {
				_, end, err := tx.List([]byte("q"), broker.Page{State: broker.Ready, Count: n})
				if errors.Is(err, broker.ErrReplyTooLarge) && lists > 0 {
					return nil
				}
				if err != nil || end.Packets != n {
					t.Errorf("list %d has %d packets, %v", lists, end.Packets, err)
					return err
				}
			}
			t.Error("the lists go beyond what one run may reply")
			return nil
		})
	})
}

func TestDetailsCountInAReply(t *testing.T) {
	w := newWork(t)
	name := strings.Repeat("n", 60_000)
	for range 500 {
		w.add(broker.PushRequest{Queue: []byte(name)})
	}
	w.barrier()
	most := broker.MaxGroupBytes / len(name)
	for i, fn := range []func(tx *broker.Tx) error{
		func(tx *broker.Tx) error {
			_, err := listed(w.c)(tx.List([]byte(name), broker.Page{State: broker.Ready, Count: 1000}))
			return err
		},
		func(tx *broker.Tx) error { return reply(w.c)(tx.Peek([]byte(name), 1000)) },
		func(tx *broker.Tx) error {
			return reply(w.c)(tx.Claim([]byte(name), broker.ClaimRequest{Selection: broker.Selection{Count: 1000}}))
		},
	} {
		if got := len(w.replied(fn)); got == 0 || got > most {
			t.Errorf("reply %d has %d packets with a long name, at most %d were expected", i, got, most)
		}
	}
	for range 300 {
		w.add(broker.PushRequest{Queue: []byte(name)})
	}
	w.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error {
			for all := 0; ; {
				f, err := tx.Peek([]byte(name), 1000)
				if errors.Is(err, broker.ErrReplyTooLarge) {
					return nil
				}
				if all += len(f.Packets) * len(name); len(f.Packets) < most/2 || all > broker.MaxAtomicReply {
					t.Errorf("a look finds %d packets, and with those before %d bytes, %v", len(f.Packets), all, err)
					return err
				}
			}
		})
	})
}

func TestAPurgeDeletesOneStateInSlices(t *testing.T) {
	w := newWork(t)
	w.set(broker.DefaultSettings())
	for range 1200 {
		w.add(broker.PushRequest{Payload: []byte("x")})
	}
	w.add(broker.PushRequest{Delay: 60_000})
	held := w.claimOne()
	if n := w.bulk(broker.Purge([]byte("q"), broker.Ready)); n != 1199 {
		t.Fatalf("purged %d", n)
	}
	w.restart()
	if got := w.stored(); got != "2 packets, 1 delivery states" {
		t.Fatalf("the store holds %s", got)
	}
	if n := w.bulk(broker.Purge([]byte("q"), 0)); n != 2 {
		t.Fatalf("purged %d", n)
	}
	if err := w.ack(held); !errors.Is(err, broker.ErrStale) {
		t.Fatalf("the ack of a purged packet gave %v", err)
	}
	if got := w.stored(); got != "0 packets, 0 delivery states" {
		t.Fatalf("the store holds %s", got)
	}
}

func TestAHarvestReturnsOldClaims(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("old")})
	old := w.claimOne()
	w.pass(10 * time.Second)
	w.add(broker.PushRequest{Payload: []byte("young")})
	young := w.claimOne()
	if n := w.bulk(broker.Harvest([]byte("q"), 10_000, "")); n != 1 {
		t.Fatalf("harvested %d", n)
	}
	if err := w.ack(old); !errors.Is(err, broker.ErrStale) {
		t.Fatalf("the harvested claim's ack gave %v", err)
	}
	w.restart()
	if again := w.claimOne(); again.payload != "old" || again.Attempts != 2 || string(again.Reason) != "harvested" {
		t.Fatalf("claimed %+v", again)
	}
	if err := w.ack(young); err != nil {
		t.Fatal(err)
	}
}

func TestAHarvestOfAConsumerLeavesTheClaimsOfOthers(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("a")})
	w.add(broker.PushRequest{Payload: []byte("b")})
	held := w.claimOne()
	other := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest}, Consumer: []byte("other")})[0]
	if n := w.bulk(broker.Harvest([]byte("q"), 0, "nobody")); n != 0 {
		t.Fatalf("harvested %d of nobody", n)
	}
	if n := w.bulk(broker.Harvest([]byte("q"), 0, held.Consumer)); n != 1 {
		t.Fatalf("harvested %d", n)
	}
	if err := w.ack(other); err != nil {
		t.Fatalf("the claim of the other consumer has ended: %v", err)
	}
	if err := w.ack(held); !errors.Is(err, broker.ErrStale) {
		t.Fatalf("the harvested claim's ack gave %v", err)
	}
}

func TestAHarvestOfAllTakesClaimsThatAreYoungerThanTheWallClock(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{})
	w.claimOne()
	w.now.Add(-1) // the wall clock is put back
	if n := w.bulk(broker.Harvest([]byte("q"), 0, "")); n != 1 {
		t.Fatalf("harvested %d", n)
	}
}

func TestARedriveReturnsTheDeadWhereTheyDied(t *testing.T) {
	for name, c := range map[string]struct{ letter, from, to, want string }{
		"in the queue itself":      {"", "q", "", "q"},
		"to another queue":         {"", "q", "other", "other"},
		"from a dead-letter queue": {"graveyard", "graveyard", "", "q"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			s := broker.DefaultSettings()
			s.MaxAttempts, s.DeadLetter = 1, []byte(c.letter)
			w.set(s)
			payload := bytes.Repeat([]byte("x"), 2000)
			var want []broker.ID
			for range 3 {
				want = append(want, w.add(broker.PushRequest{Payload: payload}))
				if _, err := w.nack(w.claimOne(), broker.Nack{Reason: []byte("boom")}); err != nil {
					t.Fatal(err)
				}
			}
			w.restart()
			var to []byte
			if c.to != "" {
				to = []byte(c.to)
			}
			if n := w.bulk(broker.Redrive([]byte(c.from), 2, to)); n != 2 {
				t.Fatalf("redrove %d, want 2", n)
			}
			w.restart()
			if n := w.bulk(broker.Redrive([]byte(c.from), 0, to)); n != 1 {
				t.Fatalf("redrove %d, want the last one", n)
			}
			w.restart()
			got := w.claim(c.want, broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest, Count: 5}})
			if !slices.Equal(ids(got), want) || got[0].Attempts != 1 || got[0].Origin != "" || len(got[2].payload) != len(payload) {
				t.Fatalf("claimed %+v", got)
			}
			if got[0].Reason == nil {
				t.Fatal("the reason is lost")
			}
		})
	}
}

func TestARedriveToAQueueThatIsGoneChangesNothing(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.MaxAttempts, s.DeadLetter = 1, []byte("graveyard")
	w.set(s)
	id := w.add(broker.PushRequest{Payload: []byte("x")})
	if _, err := w.nack(w.claimOne(), broker.Nack{}); err != nil {
		t.Fatal(err)
	}
	w.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error {
			_, err := tx.Delete([]byte("q"))
			return err
		})
	})
	bk, more, err := broker.Redrive([]byte("graveyard"), 0, nil), true, error(nil)
	for more && err == nil {
		err = w.b.Do(func(tx *broker.Tx) (err error) {
			more, err = bk.Slice(tx)
			return err
		})
	}
	if !errors.Is(err, broker.ErrNoOrigin) {
		t.Fatalf("redrive gave %v", err)
	}
	if j, ok := w.show("graveyard", id); !ok || j.State != broker.Ready || j.Origin != "" {
		t.Fatalf("showed %+v, %v", j, ok)
	}
}

func TestARedriveGoesPastPacketsWhoseOriginIsGone(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.MaxAttempts, s.DeadLetter = 1, []byte("graveyard")
	die := func(queue string) (id broker.ID) {
		t.Helper()
		w.do(func(tx *broker.Tx) error { return tx.SetSettings([]byte(queue), s) })
		id = w.add(broker.PushRequest{Queue: []byte(queue), Payload: []byte("x")})
		j := w.claim(queue, broker.ClaimRequest{})[0]
		w.do(func(tx *broker.Tx) error {
			_, err := tx.Nack([]byte(queue), broker.Receipt{ID: j.ID, Token: j.Token}, broker.Nack{})
			return err
		})
		return id
	}
	lost, first, second := die("gone"), die("q"), die("q")
	w.do(func(tx *broker.Tx) error {
		_, err := tx.Delete([]byte("gone"))
		return err
	})
	for _, want := range []int{1, 1} {
		if n := w.bulk(broker.Redrive([]byte("graveyard"), 1, nil)); n != want {
			t.Fatalf("redrove %d, want %d", n, want)
		}
	}
	if got := ids(w.list("q", broker.Ready, 5)); !slices.Equal(got, []broker.ID{first, second}) {
		t.Fatalf("%v are back", got)
	}
	if got := ids(w.list("graveyard", broker.Ready, 5)); !slices.Equal(got, []broker.ID{lost}) {
		t.Fatalf("%v stayed", got)
	}
}

func TestPacketsMoveWithTheirStateAndPlace(t *testing.T) {
	w := newWork(t)
	large := bytes.Repeat([]byte("x"), 3000)
	first := w.add(broker.PushRequest{Payload: large})
	delayed := w.add(broker.PushRequest{Payload: []byte("d"), Delay: 60_000})
	held := w.claimOne()
	w.add(broker.PushRequest{Queue: []byte("other"), Payload: []byte("younger")})
	w.restart()
	move := func(list ...broker.ID) (n int) {
		w.do(func(tx *broker.Tx) error {
			return tx.Atomic(func() (err error) {
				n, err = tx.MovePackets([]byte("q"), list, []byte("other"))
				return err
			})
		})
		return n
	}
	if n := move(first, delayed, delayed, 77); n != 1 {
		t.Fatalf("moved %d packets, want only the one that is not claimed", n)
	}
	if _, err := w.nack(held, broker.Nack{}); err != nil {
		t.Fatal(err)
	}
	if n := move(first); n != 1 {
		t.Fatalf("moved %d packets", n)
	}
	w.restart()
	if j, ok := w.show("other", delayed); !ok || j.State != broker.Delayed || j.NotBefore != startTime+60_000 {
		t.Fatalf("showed %+v, %v", j, ok)
	}
	got := w.claim("other", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest}})
	if got[0].ID != first || got[0].Attempts != 2 || got[0].payload != string(large) {
		t.Fatalf("claimed %+v", got)
	}
}

func TestManyPacketsMoveInSlicesWithTheirStateAndPlace(t *testing.T) {
	w := newWork(t)
	w.set(broker.DefaultSettings())
	var want []broker.ID
	for range 1200 {
		want = append(want, w.add(broker.PushRequest{Payload: []byte("x")}))
	}
	delayed := w.add(broker.PushRequest{Delay: 60_000})
	held := w.claimOne()
	w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
	w.restart()
	if n := w.bulk(broker.Move([]byte("q"), broker.Ready, 700, []byte("other"))); n != 700 {
		t.Fatalf("moved %d, want as many as were wanted", n)
	}
	if n := w.bulk(broker.Move([]byte("q"), 0, 0, []byte("other"))); n != 500 {
		t.Fatalf("moved %d, want the other 498, the delayed and the dead one", n)
	}
	w.restart()
	if got := ids(w.list("other", broker.Ready, 1000)); !slices.Equal(got, want[2:]) {
		t.Fatalf("%d packets are ready there, want %d in their order", len(got), len(want)-2)
	}
	for id, state := range map[broker.ID]broker.State{delayed: broker.Delayed, want[1]: broker.Dead} {
		if j, ok := w.show("other", id); !ok || j.State != state {
			t.Errorf("packet %d is %v there, want %v", id, j.State, state)
		}
	}
	if err := w.ack(held); err != nil {
		t.Errorf("the ack of a claim that was to stay gave %v", err)
	}
}

func TestADryRunCountsWhatWouldBeChanged(t *testing.T) {
	q := []byte("q")
	for name, c := range map[string]struct {
		bulk func() *broker.Bulk
		want int
	}{
		"purge":          {func() *broker.Bulk { return broker.Purge(q, 0) }, 604},
		"of one state":   {func() *broker.Bulk { return broker.Purge(q, broker.Dead) }, 2},
		"harvest":        {func() *broker.Bulk { return broker.Harvest(q, 0, "") }, 2},
		"redrive":        {func() *broker.Bulk { return broker.Redrive(q, 0, nil) }, 2},
		"redrive of 1":   {func() *broker.Bulk { return broker.Redrive(q, 1, nil) }, 1},
		"move":           {func() *broker.Bulk { return broker.Move(q, 0, 0, []byte("other")) }, 602},
		"move of 501":    {func() *broker.Bulk { return broker.Move(q, 0, 501, []byte("other")) }, 501},
		"move of claims": {func() *broker.Bulk { return broker.Move(q, broker.Claimed, 0, []byte("other")) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			for range 604 {
				w.add(broker.PushRequest{})
			}
			for range 2 {
				w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
			}
			w.claimOne()
			w.claimOne()
			states := func() (all []int) {
				for s := broker.Ready; s <= broker.Done; s++ {
					all = append(all, len(w.list("q", s, 1000)))
				}
				return all
			}
			before, dry := states(), c.bulk()
			dry.DryRun = true
			if n := w.bulk(dry); n != c.want {
				t.Errorf("counted %d, want %d", n, c.want)
			}
			if got := states(); !slices.Equal(got, before) {
				t.Errorf("the packets by state are %v, were %v", got, before)
			}
			if n := w.bulk(c.bulk()); n != c.want {
				t.Errorf("changed %d, want %d", n, c.want)
			}
		})
	}
}

func TestAPriorityChangesInAnyState(t *testing.T) {
	w := newWork(t)
	id := w.add(broker.PushRequest{Payload: []byte("x")})
	w.add(broker.PushRequest{Priority: 50, Payload: []byte("y")})
	set := func(priority uint32) error {
		return w.b.Do(func(tx *broker.Tx) error {
			_, err := tx.SetPriority([]byte("q"), id, priority)
			return err
		})
	}
	if err := set(1); err != nil {
		t.Fatal(err)
	}
	j := w.claimOne()
	if j.ID != id || j.Priority != 1 {
		t.Fatalf("claimed %+v", j)
	}
	if err := set(0); !errors.Is(err, broker.ErrNoKey) {
		t.Fatalf("priority 0 without a key gave %v", err)
	}
	if err := set(2); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.ack(j); err != nil {
		t.Fatal(err)
	}
}

func TestWorkersAreThoseThatHoldPacketsOrCalledLately(t *testing.T) {
	w := newWork(t)
	w.set(broker.DefaultSettings())
	for range 3 {
		w.add(broker.PushRequest{Payload: []byte("x")})
	}
	claim := func(name string, n int) []job {
		return w.claim("q", broker.ClaimRequest{
			Selection: broker.Selection{End: broker.Oldest, Count: n}, Consumer: []byte(name), Lease: 3_600_000,
		})
	}
	held := claim("busy", 2)
	w.pass(time.Second)
	if err := w.ack(claim("idle", 1)[0]); err != nil {
		t.Fatal(err)
	}
	workers := func() (got string) {
		w.do(func(tx *broker.Tx) error {
			list, err := allConsumers(tx, []byte("q"))
			for _, k := range list {
				got += fmt.Sprintf("%s %d %v %d; ", k.Name, k.Claimed, k.IDs, k.Since)
			}
			return err
		})
		return got
	}
	busy := fmt.Sprintf("busy 2 %v %d; ", ids(held), startTime)
	if got := workers(); got != busy+"idle 0 [] 0; " {
		t.Fatalf("workers are %q", got)
	}
	w.pass(broker.ConsumerTime * time.Millisecond)
	if got := workers(); got != busy {
		t.Fatalf("later the workers are %q", got)
	}
	w.restart()
	if got := workers(); got != busy {
		t.Fatalf("after a restart the workers are %q", got)
	}
}

func TestADroppedQueueLeavesNoDeliveryStates(t *testing.T) {
	for _, n := range []int{3, 1500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWork(t)
			s := broker.DefaultSettings()
			s.MaxAttempts = 1
			w.set(s)
			for range n {
				w.add(broker.PushRequest{Payload: []byte("x")})
			}
			for _, j := range w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: n}}) {
				if j.ID%2 == 0 {
					if _, err := w.nack(j, broker.Nack{Reason: []byte("boom")}); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.add(broker.PushRequest{Delay: 1000})
			w.do(func(tx *broker.Tx) error {
				_, err := tx.Delete([]byte("q"))
				return err
			})
			w.restart()
			w.comesTrue(func() bool { return w.stored() == "0 packets, 0 delivery states" })
			w.do(func(tx *broker.Tx) error {
				if _, ok, err := tx.Settings([]byte("q")); ok || err != nil {
					t.Errorf("the settings are still there: %v", err)
				}
				return nil
			})
		})
	}
}

func TestAPurgeMeetsAPacketWhoseClaimEndsMeanwhile(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("job")})
	w.claim("q", broker.ClaimRequest{Lease: 1000})
	w.change("q", func(s *broker.Settings) { s.BackoffMin, s.BackoffMax = 0, 0 })
	w.fill("q", 0, 1000, func(int, *broker.PushRequest) {})
	bk := broker.Purge([]byte("q"), 0)
	w.do(func(tx *broker.Tx) error { _, err := bk.Slice(tx); return err })
	w.pass(2 * time.Second)
	w.barrier()
	if n := w.bulk(bk); n != 1001 {
		t.Errorf("%d packets were deleted, want 1001", n)
	}
}
