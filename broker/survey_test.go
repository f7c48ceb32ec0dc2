package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// surveyed is a survey of all queues, by their names, and in how many slices.
func (h *harness) surveyed() (all map[string]broker.Surveyed, slices int) {
	all = make(map[string]broker.Surveyed)
	for cursor, more := 0, true; more; slices++ {
		h.do(func(tx *broker.Tx) error {
			var found []broker.Surveyed
			found, cursor = tx.Survey(cursor, nil, false)
			for _, s := range found {
				all[fmt.Sprintf("%d %s", s.Database, s.Name)] = s
			}
			more = cursor != 0
			return nil
		})
	}
	return all, slices
}

func TestASurveyShowsEachQueueOnceInSlices(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for i := range 3000 {
		h.push(fmt.Sprint("q", i), 1, 0, "", "x")
	}
	h.in(3, func(tx *broker.Tx) error { return pushError(tx.Push(broker.PushRequest{Queue: []byte("q0")})) })
	h.pop(h.b.Attach(&inbox{}, groups), "q17") // and no longer exists
	all, slices := h.surveyed()
	if len(all) != 3000 || slices < 3 {
		t.Fatalf("%d queues in %d slices, want 3000 in 3 or more", len(all), slices)
	}
	h.do(func(tx *broker.Tx) error {
		emptied, _ := tx.Survey(0, nil, true)
		if q := emptied[17]; q.Name != "q17" || q.Number <= emptied[16].Number || q.Popped != 1 {
			t.Errorf("with those that are empty: %+v", q)
		}
		return nil
	})
	q, other := all["0 q0"], all["3 q0"]
	if q.Ready != 1 || q.Bytes != 1 || q.Pushed != 1 || other.Hidden != 1 || other.Since != 0 {
		t.Errorf("queue %+v, that of database 3 %+v", q, other)
	}
	h.do(func(tx *broker.Tx) error {
		if f := tx.Figures(); f.Totals.Pushed != 3001 || f.Totals.Popped != 1 || f.Cache != 1<<16 || f.RefusesPushes {
			t.Errorf("figures %+v", f)
		}
		return nil
	})
}

func TestASurveyTellsHowLongPacketsHaveBeenReady(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	start := h.now.Load()
	at := func(d time.Duration) { h.now.Store(start + d.Milliseconds()) }
	want := make(map[string]time.Duration)
	push := func(queue string, d time.Duration) {
		at(d)
		h.push(queue, 1, 0, "", "x")
		if _, known := want[queue]; !known {
			want[queue] = d
		}
	}
	for i := range 10_000 { // more seconds than there are times
		push(fmt.Sprint("second", i/100), time.Duration(i)*time.Second)
	}
	push("month", 30*24*time.Hour)
	push("day", 31*24*time.Hour)
	h.barrier()
	at(31*24*time.Hour + time.Hour)
	h.do(func(tx *broker.Tx) error {
		_, err := tx.PushEnd([]byte("list"), broker.Oldest, [][]byte{[]byte("x")})
		return err
	})
	want["list"] = 31*24*time.Hour + time.Hour
	push("second0", 31*24*time.Hour+2*time.Hour)
	for _, restarted := range []bool{false, true} {
		if restarted {
			h.restart()
		}
		all, _ := h.surveyed()
		for queue, pushed := range want {
			since := time.Duration(all["0 "+queue].Since-start) * time.Millisecond
			age := time.Duration(h.now.Load()-start)*time.Millisecond - pushed
			if early := pushed - since; early < 0 || early > time.Second+age/50 {
				t.Errorf("queue %s, restarted %v: since %v, want %v", queue, restarted, since, pushed)
			}
		}
	}
}

func TestASurveyTellsWhenPacketsWereLastTaken(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	begun := h.now.Load()
	for _, queue := range []string{"popped", "claimed", "neither"} {
		h.push(queue, 1, 0, "", "x")
		h.push(queue, 1, 0, "", "x")
	}
	popped := h.now.Add(5000)
	h.do(func(tx *broker.Tx) error {
		_, err := tx.Pop([]byte("popped"), broker.Selection{Count: 1})
		return err
	})
	claimed := h.now.Add(5000)
	h.do(func(tx *broker.Tx) error {
		_, err := tx.Claim([]byte("claimed"), broker.ClaimRequest{})
		return err
	})
	h.now.Add(5000)
	h.barrier()
	all, _ := h.surveyed()
	if got, want := [...]int64{all["0 popped"].Taken, all["0 claimed"].Taken, all["0 neither"].Taken}, [...]int64{popped, claimed, begun}; got != want {
		t.Errorf("taken at %v, want %v", got, want)
	}
	begun = h.now.Load()
	h.restart()
	if all, _ = h.surveyed(); all["0 popped"].Taken != begun {
		t.Errorf("after a restart at %d: %+v", begun, all["0 popped"])
	}
}

func TestASurveyTellsInWhichStateQueuesAre(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for queue, change := range map[string]func(s *broker.Settings){
		"in":      func(s *broker.Settings) { s.PauseIn = true },
		"out":     func(s *broker.Settings) { s.PauseOut = true },
		"packets": func(s *broker.Settings) { s.Bound, s.BoundBytes = 4, 100 },
		"bytes":   func(s *broker.Settings) { s.Bound, s.BoundBytes = 100, 4 },
		"beyond":  func(s *broker.Settings) { s.Bound = 1 },
		"closed":  func(s *broker.Settings) { s.Closed = true },
		"late":    func(s *broker.Settings) { s.AlertAge = 4000 },
		"none":    func(s *broker.Settings) { s.AlertAge = 9000 },
	} {
		h.push(queue, 1, 0, "", "x")
		h.push(queue, 1, 0, "", "x")
		h.barrier()
		h.do(func(tx *broker.Tx) error {
			s := broker.DefaultSettings()
			change(&s)
			return tx.SetSettings([]byte(queue), s)
		})
	}
	h.now.Add(6000)
	h.barrier()
	all, _ := h.surveyed()
	type states struct {
		in, out, full, closed, overdue bool
		bound                          float64
	}
	for queue, want := range map[string]states{
		"in": {in: true}, "out": {out: true}, "packets": {bound: 0.5}, "bytes": {bound: 0.5}, "beyond": {full: true, bound: 2},
		"closed": {closed: true}, "late": {overdue: true}, "none": {},
	} {
		q := all["0 "+queue]
		if got := (states{q.PausedIn, q.PausedOut, q.Full, q.Closed, q.Overdue, q.BoundRatio}); got != want {
			t.Errorf("queue %s: %+v, want %+v", queue, got, want)
		}
	}
}

func TestASurveyTellsThatAConsumerHoldsPacketsAndIsNotHeardOf(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const lease = 24 * 60 * 60 * 1000
	for _, queue := range []string{"stuck", "alive", "nameless", "returned", "behind", "many"} {
		for range map[bool]int{true: 100, false: 2}[queue == "behind" || queue == "many"] {
			h.push(queue, 1, 0, "", "x")
		}
	}
	claim := func(queue, consumer string, count int) (receipts []broker.Receipt) {
		h.do(func(tx *broker.Tx) error {
			found, err := tx.Claim([]byte(queue), broker.ClaimRequest{Selection: broker.Selection{Count: count}, Lease: lease, Consumer: []byte(consumer)})
			for _, d := range found.Details {
				receipts = append(receipts, broker.Receipt{ID: d.ID, Token: d.Token})
			}
			return err
		})
		return receipts
	}
	claim("stuck", "s", 1)
	alive := claim("alive", "a", 1)
	claim("nameless", "", 1)
	returned := claim("returned", "r", 1)
	claim("behind", "b", 64)
	for i := range 100 {
		claim("many", fmt.Sprint("m", i), 1)
	}
	h.now.Add(broker.ConsumerTime - 1)
	claim("stuck", "t", 1)
	h.do(func(tx *broker.Tx) error {
		_, err := tx.Extend([]byte("alive"), alive[0], lease)
		_, wrong := tx.Nack([]byte("returned"), returned[0], broker.Nack{})
		return errors.Join(err, wrong)
	})
	for _, want := range []map[string]bool{{}, {"stuck": true, "behind": true, "many": true}} {
		all, _ := h.surveyed()
		for queue := range all {
			if name := queue[2:]; all[queue].Held != want[name] {
				t.Errorf("queue %s: held %v", name, all[queue].Held)
			}
		}
		h.now.Add(1)
		h.barrier()
	}
	h.restart() // nobody knows who called before that
	if all, _ := h.surveyed(); all["0 stuck"].Held {
		t.Error("after a restart the consumer is lost at once")
	}
	h.now.Add(broker.ConsumerTime)
	h.barrier()
	if all, _ := h.surveyed(); !all["0 stuck"].Held {
		t.Error("ten minutes after a restart the consumer is not lost")
	}
}

func TestASliceOfASurveyCountsConsumersThatItLooksAt(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for i := range 50 {
		queue := fmt.Sprint("q", i)
		h.push(queue, 1, 0, "", "x")
		for c := range 60 { // only the first one gets a packet
			h.do(func(tx *broker.Tx) error {
				_, err := tx.Claim([]byte(queue), broker.ClaimRequest{Selection: broker.Selection{Count: 1}, Lease: 60_000, Consumer: fmt.Append(nil, "c", c)})
				return err
			})
		}
	}
	if all, slices := h.surveyed(); len(all) != 50 || slices < 3 {
		t.Errorf("%d queues with 60 consumers each in %d slices, want 3 or more", len(all), slices)
	}
}

func TestAPacketAgesAfterTheClockHasSteppedBack(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.push("before", 1, 0, "", "x")
	h.barrier()
	pushed := h.now.Add(-time.Hour.Milliseconds())
	h.barrier()
	h.push("q", 1, 0, "", "x")
	h.barrier()
	h.now.Add(time.Minute.Milliseconds())
	if all, _ := h.surveyed(); all["0 q"].Since > pushed {
		t.Errorf("the packet was pushed at %d, and is said to be ready since %d", pushed, all["0 q"].Since)
	}
}

// BenchmarkSurvey is a slice of a survey of 10,000 queues.
func BenchmarkSurvey(b *testing.B) {
	for _, priorities := range []uint32{1, 20} {
		b.Run(fmt.Sprintf("priorities=%d", priorities), func(b *testing.B) {
			br := benchBroker(b)
			defer br.Close()
			for i := range 10_000 {
				err := br.Do(func(tx *broker.Tx) error {
					for n := range priorities {
						if err := pushError(tx.Push(broker.PushRequest{Queue: fmt.Appendf(nil, "queue-%d", i), Priority: 1 + n})); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			var all []broker.Surveyed
			cursor := 0
			for b.Loop() {
				_ = br.Do(func(tx *broker.Tx) error {
					all, cursor = tx.Survey(cursor, all[:0], false)
					return nil
				})
			}
		})
	}
}
