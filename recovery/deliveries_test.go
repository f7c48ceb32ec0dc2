package recovery

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const base = 1 << 63

// triedSource is sound(n) with a delivery state for each packet, which change may change.
func triedSource(n int, change func(i int, d *content.Delivery)) *source {
	s := sound(n)
	for i := range n {
		d := content.Delivery{Identity: base + uint64(i), Attempts: 1, Token: base + 1000 + uint64(i), FirstClaim: 10, LastClaim: 20, Consumer: "w"}
		change(i, &d)
		s.try(d)
	}
	return s
}

// eachState hands one value out again and again, as the store does.
func (s *source) eachState(fn func(d *content.Delivery, stored content.Stored, damage error) error) error {
	var buf content.Delivery
	for i := range s.Tried {
		buf = s.Tried[i].Delivery
		stored := content.StoredDelivery
		if buf.Reason != "" {
			stored |= content.StoredReason
		}
		if buf.Progress != "" {
			stored |= content.StoredProgress
		}
		if err := fn(&buf, stored, nil); err != nil {
			return err
		}
		buf = content.Delivery{Consumer: "overwritten"}
	}
	return nil
}

// try adds a delivery state and counts it.
func (s *source) try(d content.Delivery) {
	s.Try(d)
	s.control.AddDelivery(d.Identity)
}

func restore(t *testing.T, s *source) *State {
	t.Helper()
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// found returns a packet by its identity.
func found(t *testing.T, state *State, identity uint64) (index.Packet, index.Delivery) {
	t.Helper()
	p, ok := state.Index.Find(identity)
	if !ok {
		t.Fatalf("packet %d is not in the index", identity-base)
	}
	return p, state.Index.Delivery(p.ID)
}

func TestPacketsStartInTheStateThatTheirDeliveryStatesSay(t *testing.T) {
	for name, c := range map[string]struct {
		state     content.State
		until     int64
		notBefore int64 // of the packet's own record
		want      index.State
		wantUntil int64
	}{
		"waiting":                            {content.Ready, 0, 0, index.Ready, 0},
		"waiting for a moment":               {content.Delayed, now + 5, 0, index.Delayed, now + 5},
		"waiting for a moment that has come": {content.Delayed, now, 0, index.Ready, 0},
		"waiting, and pushed with a delay":   {content.Delayed, now + 5, now + 9, index.Delayed, now + 5},
		"ready, and pushed with a delay":     {content.Ready, 0, now + 9, index.Ready, 0},
		"claimed":                            {content.Claimed, now + 1, 0, index.Claimed, now + 1},
		"claimed, with a lease without end":  {content.Claimed, 0, 0, index.Claimed, 0},
		"claimed, and the lease has ended":   {content.Claimed, now, 0, index.Claimed, now},
		"dead":                               {content.Dead, 5, now + 5, index.Dead, 5},
		"dead, and nobody has noted when":    {content.Dead, 0, now + 5, index.Dead, 20}, // its last claim
		"done":                               {content.Done, 0, now + 5, index.Done, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := triedSource(1, func(_ int, d *content.Delivery) { d.State, d.Until = c.state, c.until })
			s.packets[0].meta.NotBefore = c.notBefore
			p, d := found(t, restore(t, s), base)
			if p.State != c.want || p.Until != c.wantUntil {
				t.Errorf("the packet is %v until %d, want %v until %d", p.State, p.Until, c.want, c.wantUntil)
			}
			if d.Attempts != 1 || d.Token != base+1000 {
				t.Errorf("delivery %+v, want the attempt and its token", d)
			}
		})
	}
}

func TestAPacketKeepsAllThatWasTriedWithIt(t *testing.T) {
	s := triedSource(3, func(i int, d *content.Delivery) { d.Origin = 9 + uint32(i) })
	s.Tried[1].Attempts = 1 << 20
	s.Tried[1].Reason, s.Tried[1].Progress = "why", "\x28"
	s.packets[2].meta.Identity = base + 77 // it has moved
	s.Tried[2].Identity = base + 77
	s.recount()
	state := restore(t, s)
	_, got := found(t, state, base+1)
	want := index.Delivery{Token: base + 1001, FirstClaim: 10, LastClaim: 20, Consumer: 1, Origin: 10, Attempts: math.MaxUint16,
		Stored: uint8(content.StoredDelivery | content.StoredReason | content.StoredProgress)}
	if got != want {
		t.Errorf("delivery %+v, want %+v", got, want)
	}
	if _, got = found(t, state, base+77); got.Origin != 11 || got.Stored != uint8(content.StoredDelivery) {
		t.Errorf("delivery %+v of the packet with an identity of its own, want its own", got)
	}
}

func TestOnlyAClaimIsCancelled(t *testing.T) {
	s := triedSource(2, func(i int, d *content.Delivery) {
		d.Cancelled, d.State = true, []content.State{content.Claimed, content.Ready}[i]
	})
	state := restore(t, s)
	for i, want := range []bool{true, false} {
		if _, d := found(t, state, base+uint64(i)); d.Cancelled != want {
			t.Errorf("packet %d is cancelled: %v, want %v", i, d.Cancelled, want)
		}
	}
}

// recount counts the delivery states again.
func (s *source) recount() {
	s.control.Deliveries, s.control.DeliveryHash = 0, 0
	s.Tries.Tally(&s.control.Tally)
}

func TestAttemptsOfARecordCountUntilThereIsADeliveryState(t *testing.T) {
	s := sound(2)
	s.packets[0].meta.Attempts, s.packets[1].meta.Attempts = 4, 4
	s.try(content.Delivery{Identity: base + 1})
	state := restore(t, s)
	if _, d := found(t, state, base); d != (index.Delivery{Attempts: 4}) {
		t.Errorf("delivery %+v, want the attempts of the record", d)
	}
	if _, d := found(t, state, base+1); d.Attempts != 0 {
		t.Errorf("%d attempts, want those of the delivery state", d.Attempts)
	}
}

func TestWorkersAreThoseOfAQueue(t *testing.T) {
	s := triedSource(5, func(i int, d *content.Delivery) {
		d.Consumer, d.LastClaim = []string{"a", "b", "a", "", "a"}[i], int64(9-i)
	})
	s.queues = append(s.queues, content.Queue{ID: 8, Name: []byte("others")}, content.Queue{ID: 9, Name: []byte("gone"), Dropped: true})
	s.packets[2].id.Queue = 8 // b's neighbour
	s.packets[4].id.Queue = 9
	s.control.Tally = content.Tally{}
	for _, p := range s.packets {
		s.control.Add(p.id, p.meta.Expiry)
	}
	s.recount()
	state := restore(t, s)
	want := []Worker{{state.Queues[0].Index, "a", 1, 9}, {state.Queues[0].Index, "b", 1, 8}, {state.Queues[1].Index, "a", 1, 7}}
	if !slices.Equal(state.Workers, want) {
		t.Fatalf("workers %+v, want %+v", state.Workers, want)
	}
	for i, n := range []uint32{1, 2, 3, 0, 0} {
		if _, d := found(t, state, base+uint64(i)); d.Consumer != n {
			t.Errorf("packet %d names the consumer %d, want %d", i, d.Consumer, n)
		}
	}
}

func TestAnExpiredPacketStaysWithItsWorkerUntilTheLeaseEnds(t *testing.T) {
	s := sound(0)
	for i, lease := range []int64{now + 1, now} {
		s.put(content.PacketID{Queue: 7, Priority: 1, Seq: base + uint64(i)}, content.Meta{Expiry: now - 5})
		s.try(content.Delivery{Identity: base + uint64(i), State: content.Claimed, Until: lease})
	}
	state := restore(t, s)
	if p, _ := found(t, state, base); p.State != index.Claimed {
		t.Errorf("the packet is %v, want claimed", p.State)
	}
	if _, there := state.Index.Find(base + 1); there {
		t.Error("a packet that has expired is there, and its lease has ended")
	}
	gone := content.Removed{Stored: content.StoredDelivery, Identity: base + 1}
	if !slices.Equal(state.Orphans, []content.Removed{gone}) || len(state.Report.Findings) != 0 {
		t.Errorf("orphans %v, findings %q: want the delivery state of the expired packet to go in silence", state.Orphans, state.Report.Findings)
	}
	over := Expired{Queue: state.Queues[0].Index, From: s.packets[1].id, To: s.packets[1].id, Count: 1}
	if !slices.Equal(state.Expired, []Expired{over}) || !slices.Equal(state.Held, []content.PacketID{s.packets[0].id}) {
		t.Errorf("expired %v, held %v: want the packet without a lease to go, and the other one to stay", state.Expired, state.Held)
	}
}

func TestADeliveryStateWithoutItsPacketIsAnOrphan(t *testing.T) {
	s := triedSource(2, func(int, *content.Delivery) {})
	const lost, gone = maxSameFindings + 3, 2
	for i := range lost + gone {
		d := content.Delivery{Identity: base + 100 + uint64(i)}
		if i >= lost {
			d.Expiry = now + int64(i-lost) // the second one was deleted under a clock that was ahead
		}
		s.try(d)
	}
	state := restore(t, s)
	if len(state.Orphans) != lost+gone || state.Orphans[0].Identity != base+100 {
		t.Errorf("orphans %v, want all that have no packet", state.Orphans)
	}
	f := state.Report.Findings
	if len(f) != maxSameFindings+1 || !strings.Contains(f[0], fmt.Sprint(uint64(base+100))) || !strings.HasPrefix(f[maxSameFindings], "3 ") {
		t.Errorf("findings %q, want %d, and that there are 3 more", f, maxSameFindings)
	}
}

func TestADeliveryStateThatIsGoneIsALoss(t *testing.T) {
	s := triedSource(3, func(int, *content.Delivery) {})
	s.Tried = slices.Delete(s.Tried, 1, 2)
	if _, err := Restore(s, Options{Now: now}); !errors.Is(err, storage.ErrLoss) {
		t.Fatalf("got %v, want ErrLoss: an attempt is lost", err)
	}
	state, err := Restore(s, Options{Now: now, AcceptLoss: true})
	if err != nil || len(state.Report.Findings) != 1 {
		t.Fatalf("got %v, want the loss to be accepted", err)
	}
}

func TestOfTwoPacketsWithOneIdentityTheFirstHasTheDeliveryState(t *testing.T) {
	s := triedSource(2, func(int, *content.Delivery) {})
	s.packets[1].meta.Identity = base
	s.Tried = s.Tried[:1]
	s.recount()
	state := restore(t, s)
	if _, d := found(t, state, base); d.Attempts != 1 {
		t.Errorf("delivery %+v of the first packet, want what was tried", d)
	}
	if p, d := found(t, state, s.control.NextSeq); p.State != index.Damaged || d != (index.Delivery{}) {
		t.Errorf("the second packet is %v, with the delivery %+v, want damaged and nothing", p.State, d)
	}
	if f := state.Report.Findings; len(f) != 1 || !strings.Contains(f[0], "identity") {
		t.Errorf("findings %q, want that two packets have one identity", f)
	}
}

func TestSettingsAndCountersAreThoseOfTheDefinition(t *testing.T) {
	s := sound(1)
	name := []byte("dead")
	s.queues[0].Settings = &content.Settings{Lease: 7, DeadLetter: name}
	s.queues[0].Counters = content.Counters{Pushed: 9}
	q := restore(t, s).Queues[0]
	copy(name, "####") // it is valid during the call only
	if !reflect.DeepEqual(q.Settings, &content.Settings{Lease: 7, DeadLetter: []byte("dead")}) || q.Counters.Pushed != 9 {
		t.Errorf("settings %+v, counters %+v", q.Settings, q.Counters)
	}
}

// BenchmarkRestoreMillionClaims shows what a start takes when every packet is claimed.
func BenchmarkRestoreMillionClaims(b *testing.B) {
	const n = 1_000_000
	s := triedSource(n, func(i int, d *content.Delivery) {
		d.State, d.Until, d.Consumer = content.Claimed, now+1+int64(i), fmt.Sprint("worker ", i%1000)
	})
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		state, err := Restore(s, Options{Now: now})
		if err != nil || state.Report.Claimed != n {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/start")
	}
}
