// Package pipeline works on a stream with all processors and keeps its order: one goroutine reads,
// several work, and the caller takes the results in the order in which they were read.
package pipeline

import (
	"context"
	"runtime"
	"sync"
)

// Stages are the three steps of a pipeline over items of type T. An item is a buffer: a few are
// made, and each goes round again and again, so memory does not depend on the length of the stream.
type Stages[T any] struct {
	// New makes an empty item.
	New func() T

	// Read fills one item after another until the stream ends, on a goroutine of its own. next
	// hands the item it returned before to the workers and returns an empty one; the first call
	// only returns one. Its error means that no more items are wanted, and Read returns it. ctx
	// ends then, too.
	Read func(ctx context.Context, next func() (T, error)) error

	// Work makes the function of one worker, which may keep what it uses from item to item.
	Work func() func(T)

	// Deliver takes the items in the order of Read, on the caller's goroutine, and empties them for
	// the next round. Its error ends the pipeline.
	Deliver func(T) error
}

// job is an item on its way.
type job[T any] struct {
	item T
	done chan struct{} // holds one token once a worker is done with the item
}

// Run runs the stages until the stream ends. It returns the first error in the order of the stream:
// that of Deliver, or else that of Read after all that Read handed over was delivered. When it
// returns, all its goroutines have ended.
func Run[T any](ctx context.Context, s Stages[T]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	n := 2*workers + 2
	free, work, order := make(chan *job[T], n), make(chan *job[T], n), make(chan *job[T], n)
	for range n {
		free <- &job[T]{s.New(), make(chan struct{}, 1)}
	}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() { // ends when work is closed
			do := s.Work()
			for j := range work {
				do(j.item)
				j.done <- struct{}{}
			}
		})
	}
	var readErr error
	wait.Go(func() { // ends with the stream, or at the first call of next after ctx has ended
		defer close(order)
		defer close(work)
		readErr = read(ctx, s, free, work, order)
	})
	var err error
	for j := range order {
		<-j.done
		if err == nil {
			if err = ctx.Err(); err == nil {
				err = s.Deliver(j.item)
			}
			if err != nil {
				cancel()
			}
		}
		free <- j
	}
	wait.Wait()
	if err == nil {
		err = readErr
	}
	return err
}

// read calls the stage that reads. Both work and order have room for every item there is.
func read[T any](ctx context.Context, s Stages[T], free <-chan *job[T], work, order chan<- *job[T]) error {
	var filled *job[T]
	return s.Read(ctx, func() (T, error) {
		if filled != nil {
			work <- filled
			order <- filled
			filled = nil
		}
		if err := ctx.Err(); err != nil {
			return *new(T), err
		}
		select {
		case <-ctx.Done():
			return *new(T), ctx.Err()
		case filled = <-free:
			return filled.item, nil
		}
	})
}
