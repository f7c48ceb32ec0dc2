package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// tagged returns tags from words of a name and a value.
func tagged(words string) (tags []broker.PacketTag) {
	for f := strings.Fields(words); len(f) > 0; f = f[2:] {
		tags = append(tags, broker.PacketTag{Name: f[0], Value: f[1]})
	}
	return tags
}

var ops = map[string]broker.Op{
	"eq": broker.Equal, "ne": broker.NotEqual, "lt": broker.Less, "le": broker.LessOrEqual, "gt": broker.Greater, "ge": broker.GreaterOrEqual,
}

// filtered returns a filter from words of a tag, an operator and a value.
func filtered(words string) *broker.Filter {
	f := &broker.Filter{}
	for w := strings.Fields(words); len(w) > 0; w = w[3:] {
		f.Terms = append(f.Terms, broker.Term{Tag: w[0], Op: ops[w[1]], Value: w[2]})
	}
	return f
}

// classes are zkmq's: a queue declares their order.
var classes = content.Order{Tag: "class", Values: []string{"low", "standard", "performance", "high"}}

// declare gives a queue an order of values.
func (w *work) declare(queue string, s broker.Settings, orders ...content.Order) {
	w.t.Helper()
	s.Lease, s.Orders = 1000, orders
	w.do(func(tx *broker.Tx) error { return tx.SetSettings([]byte(queue), s) })
}

// claims claims up to ten packets, the oldest first, and returns their payloads.
func (w *work) claims(filter string) (payloads []string) {
	w.t.Helper()
	s := broker.Selection{End: broker.Oldest, Count: 10, Filter: filtered(filter)}
	for _, j := range w.claim("q", broker.ClaimRequest{Selection: s}) {
		payloads = append(payloads, j.payload)
	}
	return payloads
}

func (w *work) addTagged(queue, tags, payload string) broker.ID {
	w.t.Helper()
	return w.add(broker.PushRequest{Queue: []byte(queue), Tags: tagged(tags), Payload: []byte(payload)})
}

func TestATakeWithAFilterLeavesWhatDoesNotMatch(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		for _, take := range []string{"claim", "claims", "pop", "pops"} {
			w := newWork(t)
			w.addTagged("q", "", "none")
			w.addTagged("q", "class low", "low")
			w.addTagged("q", "class high", "1")
			w.addTagged("q", "class high", "2")
			if restarts {
				w.restart()
			}
			s := broker.Selection{End: broker.Oldest, WithDetails: true, Filter: filtered("class eq high")}
			want := []string{"1"}
			if strings.HasSuffix(take, "s") {
				s.Count, want = 5, []string{"1", "2"}
			}
			got := w.replied(func(tx *broker.Tx) error {
				if take[0] == 'p' {
					return reply(w.c)(tx.Pop([]byte("q"), s))
				}
				return reply(w.c)(tx.Claim([]byte("q"), broker.ClaimRequest{Selection: s}))
			})
			if payloads := payloadsOf(got); !slices.Equal(payloads, want) {
				t.Errorf("%s took %q, want %q", take, payloads, want)
			}
			w.close()
		}
	}
}

func payloadsOf(jobs []job) (payloads []string) {
	for _, j := range jobs {
		payloads = append(payloads, j.payload)
	}
	return payloads
}

func TestAGroupComesWithThePacketThatMatches(t *testing.T) {
	w := newWork(t)
	defer w.close()
	for _, tags := range []string{"a 1", "a 2", ""} {
		w.add(broker.PushRequest{Tags: tagged(tags), Key: []byte("k"), Payload: []byte(tags)})
	}
	s := broker.Selection{End: broker.Oldest, Group: true, Filter: filtered("a eq 2")}
	if got := payloadsOf(w.claim("q", broker.ClaimRequest{Selection: s})); len(got) != 3 || got[0] != "a 2" {
		t.Errorf("claimed %q, want all three of the key, that with a 2 first", got)
	}
}

func TestTagsStayWithAPacketWhereverItGoes(t *testing.T) {
	ways := map[string]func(w *work, id broker.ID){
		"it is claimed and returned": func(w *work, id broker.ID) {
			w.nack(w.claimOne(), broker.Nack{})
		},
		"it gets another priority": func(w *work, id broker.ID) {
			w.do(func(tx *broker.Tx) error {
				_, err := tx.SetPriority([]byte("q"), id, 7)
				return err
			})
		},
		"it moves to another queue and back": func(w *work, id broker.ID) {
			for _, q := range []string{"q", "other"} {
				w.do(func(tx *broker.Tx) error {
					_, err := tx.MovePackets([]byte(q), []broker.ID{id}, []byte(map[string]string{"q": "other", "other": "q"}[q]))
					return err
				})
			}
		},
		"it dies and is redriven": func(w *work, id broker.ID) {
			w.declare("q", broker.Settings{DeadLetter: []byte("dead")})
			w.nack(w.claimOne(), broker.Nack{Dead: true})
			w.bulk(broker.Redrive([]byte("dead"), 0, nil))
		},
	}
	for name, way := range ways {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restarts), func(t *testing.T) {
				w := newWork(t)
				defer w.close()
				way(w, w.addTagged("q", "a 1 b 2", "x"))
				if restarts {
					w.restart()
				}
				if got := w.claims("a eq 1 b eq 2"); !slices.Equal(got, []string{"x"}) {
					t.Errorf("claimed %q by its tags", got)
				}
			})
		}
	}
}

func TestADeclaredOrderSaysWhatIsLess(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.addTagged("q", "class odd", "odd") // from before the order
	w.declare("q", broker.Settings{}, classes)
	for _, class := range []string{"high", "low", "standard"} {
		w.addTagged("q", "class "+class, class)
	}
	for _, c := range []struct {
		filter string
		want   []string
	}{{"class gt standard", []string{"high"}}, {"class ne standard", []string{"low"}}, {"class le performance", []string{"standard"}}} {
		if got := w.claims(c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s took %q, want %q", c.filter, got, c.want)
		}
	}
}

func TestAValueThatTheQueueDoesNotDeclareIsRefused(t *testing.T) {
	w := newWork(t)
	defer w.close()
	id := w.addTagged("other", "a 1 class odd", "x")
	w.declare("q", broker.Settings{}, classes)
	calls := map[string]func(tx *broker.Tx) error{
		"push": func(tx *broker.Tx) error {
			_, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Tags: tagged("class odd")})
			return err
		},
		"claim": func(tx *broker.Tx) error {
			s := broker.Selection{Filter: filtered("class lt odd")}
			return reply(w.c)(tx.Claim([]byte("q"), broker.ClaimRequest{Selection: s}))
		},
		"pop": func(tx *broker.Tx) error {
			return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{Filter: filtered("class lt odd")}))
		},
		"takeable": func(tx *broker.Tx) error {
			_, err := tx.Takeable([]byte("q"), broker.Selection{Filter: filtered("class lt odd")})
			return err
		},
		"move": func(tx *broker.Tx) error {
			_, err := tx.MovePackets([]byte("other"), []broker.ID{id}, []byte("q"))
			return err
		},
	}
	for name, fn := range calls {
		err := w.b.Do(fn)
		if !errors.Is(err, broker.ErrNotInOrder) || !strings.Contains(err.Error(), `tag "class", expected one of "low", "standard", "performance", "high", got "odd"`) {
			t.Errorf("%s: %v, want the values named", name, err)
		}
	}
	w.barrier()
	if n := w.b.Stats().Packets; n != 1 || len(w.box.replies) != 0 {
		t.Errorf("%d packets are queued and %d replies were given, want 1 and none", n, len(w.box.replies))
	}
}

func TestADeadPacketStaysWhereTheDeadLetterQueueDoesNotTakeItsTags(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.declare("dead", broker.Settings{}, classes)
	w.declare("q", broker.Settings{DeadLetter: []byte("dead")})
	w.addTagged("q", "class odd", "odd")
	w.nack(w.claimOne(), broker.Nack{Dead: true, Reason: []byte("broken")})
	if got := w.list("q", broker.Dead, 10); len(got) != 1 || string(got[0].Reason) != "broken" {
		t.Errorf("dead in its queue are %+v, want the packet with its reason", got)
	}
	err := w.b.Do(func(tx *broker.Tx) error {
		_, err := broker.Redrive([]byte("q"), 0, []byte("dead")).Slice(tx)
		return err
	})
	if got := w.list("q", broker.Dead, 10); !errors.Is(err, broker.ErrNotInOrder) || len(got) != 1 {
		t.Errorf("a redrive there gave %v, and left %d", err, len(got))
	}
}

func TestAQueueHasSoManySetsOfTags(t *testing.T) {
	w := newWork(t)
	defer w.close()
	set := func(i int) []broker.PacketTag { return tagged(fmt.Sprint("tenant ", i)) }
	for i := range broker.MaxLanes {
		w.add(broker.PushRequest{Tags: set(i)})
	}
	push := func(queue string, i int, payload string) error {
		return w.b.Do(func(tx *broker.Tx) error {
			_, err := tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1, Tags: set(i), Payload: []byte(payload)})
			return err
		})
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, broker.ErrTooManyLanes) || !strings.Contains(err.Error(), "the limit is 10000: ") {
			t.Errorf("%s: %v, want the limit named", what, err)
		}
	}
	refused("one more", push("q", broker.MaxLanes, ""))
	if err := errors.Join(push("q", 1, wide), push("other", broker.MaxLanes, ""), push("other", 1, "")); err != nil {
		t.Errorf("tags that are there: %v", err)
	}
	w.addTagged("q", "", "no tags")
	one, other := w.list("other", broker.Ready, 1), []broker.ID(nil)
	for _, j := range one {
		other = append(other, j.ID)
	}
	refused("a move", w.b.Do(func(tx *broker.Tx) error {
		_, err := tx.MovePackets([]byte("other"), other, []byte("q"))
		return err
	}))
	if got := w.list("other", broker.Ready, 1); len(got) != 2 {
		t.Errorf("%d packets are left after a move that was refused, want both", len(got))
	}
}
