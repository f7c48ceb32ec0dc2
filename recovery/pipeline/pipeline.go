// Package pipeline works on a stream with all processors and keeps its order: one goroutine reads,
// several work, and the caller takes the results in the order in which they were read.
package pipeline

import (
	"cmp"
	"context"
	"runtime"
)

// Stages are the three steps of a pipeline over items of type T. An item is a buffer: a few are
// made, and each goes round again and again, so memory does not depend on the length of the stream.
type Stages[T any] struct {
	// New makes an empty item.
	New func() T

	// Read fills one item after another until the stream ends, on a goroutine of its own. next
	// hands on the item it returned before and returns an empty one; the first call only returns
	// one. Its error means that no more items are wanted, and Read returns it.
	Read func(next func() (T, error)) error

	// Alone, if not nil, says that an item takes much memory: none is read behind it before it was
	// delivered.
	Alone func(T) bool

	// Work works on one item, on a goroutine of its own.
	Work func(T)

	// Deliver takes the items in the order of Read, on the caller's goroutine, and empties them for
	// the next round. Its error ends the pipeline.
	Deliver func(T) error
}

// job is an item on its way.
type job[T any] struct {
	item T
	done chan struct{} // holds one token once the item is worked on
}

// Run runs the stages until the stream ends. It returns the first error in the order of the stream:
// Deliver's, or else Read's, after all that Read handed over was delivered. When it returns, all
// its goroutines have ended.
func Run[T any](ctx context.Context, s Stages[T]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 2*runtime.GOMAXPROCS(0) + 2
	free, order := make(chan *job[T], n), make(chan *job[T], n) // each has room for every item there is
	for range n {
		free <- &job[T]{s.New(), make(chan struct{}, 1)}
	}
	var filled *job[T]
	next := func() (none T, err error) {
		if j := filled; j != nil {
			alone := s.Alone != nil && s.Alone(j.item)
			go func() { // ends before Run takes the token
				s.Work(j.item)
				j.done <- struct{}{}
			}()
			order <- j
			filled = nil
			if alone {
				await(ctx, free, n)
			}
		}
		if ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case filled = <-free:
				return filled.item, nil
			}
		}
		return none, ctx.Err()
	}
	var readErr error
	go func() { // ends with the stream, or at the first call of next after ctx has ended
		readErr = s.Read(next)
		close(order)
	}()
	var err error
	for j := range order {
		<-j.done
		if err = cmp.Or(err, ctx.Err()); err == nil {
			if err = s.Deliver(j.item); err != nil {
				cancel()
			}
		}
		free <- j
	}
	return cmp.Or(err, readErr)
}

// await returns when all items are free, or ctx has ended.
func await[T any](ctx context.Context, free chan T, n int) {
	var all []T
	for len(all) < n && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case item := <-free:
			all = append(all, item)
		}
	}
	for _, item := range all {
		free <- item
	}
}
