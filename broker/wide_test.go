package broker_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// narrow is what a consumer takes whose protocol has 16-bit lengths.
var narrow = broker.Selection{End: broker.Newest, Group: true, Fits16: true}

// wide is a payload, and a key, that such a consumer cannot be given.
var wide = strings.Repeat("w", broker.MaxNarrow+1)

// gets fails the test unless an inbox has got these replies since the last call.
func (h *harness) gets(r *inbox, want ...[]string) {
	h.t.Helper()
	h.barrier()
	if !slices.EqualFunc(r.got, want, slices.Equal) {
		short := func(replies [][]string) (all [][]string) {
			for _, reply := range replies {
				all = append(all, nil)
				for _, p := range reply {
					all[len(all)-1] = append(all[len(all)-1], p[:min(len(p), 9)])
				}
			}
			return all
		}
		h.t.Fatalf("got %q, want %q", short(r.got), short(want))
	}
	r.got = nil
}

func TestANarrowPopLeavesWidePackets(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.push("q", 1, 0, "a", wide)
	h.push("q", 1, 0, wide, "long key")
	h.push("q", 2, 0, "a", "small")
	h.push("q", 2, 0, "b", wide[1:])
	h.push("wide only", 1, 0, "a", wide)
	h.barrier()
	for range 2 { // the second time on the index that recovery builds
		r := &inbox{}
		c := h.b.Attach(r, narrow)
		h.do(func(tx *broker.Tx) error {
			for _, q := range []string{"q", "q", "q", "wide only"} {
				if err := reply(c)(tx.Pop([]byte(q), narrow)); err != nil {
					return err
				}
			}
			return nil
		})
		h.gets(r, []string{wide[1:]}, []string{"small"}, []string{}, []string{})
		h.push("q", 2, 0, "a", "small")
		h.push("q", 2, 0, "b", wide[1:])
		h.restart()
	}
	r := &inbox{}
	c := h.b.Attach(r, groups)
	for range 3 {
		h.pop(c, "q")
	}
	h.gets(r, []string{"long key"}, []string{wide, "small"}, []string{wide[1:]})
}

func TestWidePacketsAreDeliveredOnlyToSubscribersThatTakeThem(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	small, all := &inbox{}, &inbox{}
	first, second := h.b.Attach(small, narrow), h.b.Attach(all, groups)
	h.push("q", 1, 0, "a", wide)
	for _, c := range []*broker.Conn{first, second} {
		h.do(func(tx *broker.Tx) error {
			if err := tx.Subscribe(c, []byte("q")); err != nil {
				return err
			}
			return tx.Ready(c, 2)
		})
	}
	h.gets(small)
	h.gets(all, []string{wide})
	h.push("q", 1, 0, "b", wide)
	h.push("q", 1, 0, "b", wide)
	h.push("q", 1, 0, "b", "small")
	h.gets(all, []string{wide})
	h.gets(small, []string{"small"})
	h.do(func(tx *broker.Tx) error { return tx.Ready(second, 1) })
	h.gets(all, []string{wide})
}

func TestWhatANarrowConsumerLeavesIsLoggedOnceAQueue(t *testing.T) {
	h := newHarness(t)
	var log bytes.Buffer
	h.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	h.restart()
	c := h.b.Attach(&inbox{}, narrow)
	count := func(queue string) int { return strings.Count(log.String(), "queue="+queue+" ") }
	for _, call := range []func(){
		func() { h.do(func(tx *broker.Tx) error { return reply(c)(tx.Pop([]byte("popped"), narrow)) }) },
		func() { h.push("popped", 1, 0, "a", wide) },
		func() { h.pop(h.b.Attach(&inbox{}, groups), "popped") },
		func() { h.push("popped", 1, 0, "a", wide) },
	} {
		call()
		if n := count("popped"); n > 0 {
			t.Fatalf("%d lines in the log before a narrow consumer asked", n)
		}
	}
	for range 3 {
		h.do(func(tx *broker.Tx) error { return reply(c)(tx.Pop([]byte("popped"), narrow)) })
	}
	h.push("filled", 1, 0, "a", wide)
	h.do(func(tx *broker.Tx) error {
		for _, q := range []string{"filled", "delivered"} {
			if err := tx.Subscribe(c, []byte(q)); err != nil {
				return err
			}
		}
		return tx.Ready(c, 1)
	})
	h.push("delivered", 1, 0, "a", wide)
	h.push("delivered", 1, 0, "a", wide)
	if err := h.b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"popped", "filled", "delivered"} {
		if n := count(q); n != 1 {
			t.Errorf("%d lines in the log about queue %s, want 1:\n%s", n, q, log.String())
		}
	}
}

func TestANarrowSubscriberGetsAWideElementThatBecomesNarrow(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	h.subscribe(h.b.Attach(r, narrow), 1, "q")
	h.pushEnd("q", broker.Newest, wide)
	h.together(func(tx *broker.Tx) error {
		_, err := tx.SetAt([]byte("q"), 0, []byte("small"))
		return err
	})
	h.gets(r, []string{"small"})
}
