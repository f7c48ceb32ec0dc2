package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// numbers is an item: some numbers, and their squares.
type numbers struct{ in, out []int }

// squares are the stages that square 0 to n-1, a few in each item.
func squares(n int, deliver func(out []int) error) Stages[*numbers] {
	return Stages[*numbers]{
		New: func() *numbers { return &numbers{} },
		Read: func(next func() (*numbers, error)) error {
			item, err := next()
			for i := range n {
				if err != nil {
					return err
				}
				if item.in = append(item.in, i); len(item.in) == 3 || i == n-1 {
					item, err = next()
				}
			}
			return err
		},
		Work: func(item *numbers) {
			for _, i := range item.in {
				item.out = append(item.out, i*i)
			}
		},
		Deliver: func(item *numbers) error {
			err := deliver(item.out)
			item.in, item.out = item.in[:0], item.out[:0]
			return err
		},
	}
}

func TestItemsAreDeliveredInTheOrderInWhichTheyWereRead(t *testing.T) {
	var got, want []int
	for i := range 1000 {
		want = append(want, i*i)
	}
	err := Run(t.Context(), squares(len(want), func(out []int) error {
		got = append(got, out...)
		return nil
	}))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, got %v", err, got)
	}
}

func TestErrorOfDeliverEndsThePipeline(t *testing.T) {
	full := errors.New("full")
	calls := 0
	err := Run(t.Context(), squares(1_000_000, func([]int) error {
		if calls++; calls == 5 {
			return full
		}
		return nil
	}))
	if !errors.Is(err, full) || calls != 5 {
		t.Errorf("%v after %d calls, want the error of the fifth and no call after it", err, calls)
	}
}

func TestErrorOfReadIsReturnedAfterAllBeforeItIsDelivered(t *testing.T) {
	broken := errors.New("broken")
	delivered := 0
	s := squares(30, func(out []int) error { delivered += len(out); return nil })
	read := s.Read
	s.Read = func(next func() (*numbers, error)) error {
		return errors.Join(read(next), broken)
	}
	if err := Run(t.Context(), s); !errors.Is(err, broken) || delivered != 30 {
		t.Errorf("%v after %d numbers, want all 30 first", err, delivered)
	}
}

func TestEndOfTheContextEndsThePipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		ctx, cancel := context.WithCancel(t.Context())
		err := Run(ctx, squares(1_000_000, func(out []int) error {
			if out[0] > 100 {
				cancel()
			}
			return nil
		}))
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestFewItemsAreMadeForALongStream(t *testing.T) {
	var made atomic.Int64
	s := squares(100_000, func([]int) error { return nil })
	inner := s.New
	s.New = func() *numbers { made.Add(1); return inner() }
	if err := Run(t.Context(), s); err != nil || made.Load() > 1000 {
		t.Errorf("%v, %d items", err, made.Load())
	}
}
