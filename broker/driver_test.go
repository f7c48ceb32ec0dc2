package broker_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// driver drives a machine on a memStore, without a goroutine. What calls change goes to disk at
// moments that look random and are the same in each run: calls find it in the open batch, on its
// way, on disk before the machine knows, and there.
type driver struct {
	*broker.Machine
	store   driven
	clocks  func() (now, steady int64)
	onWay   *content.Batch
	applied bool // onWay is on disk, and the machine does not know
	stuck   bool // onWay finds no room on the disk
	held    bool // nothing goes to disk, see hold
	closed  bool
	pace    uint32
	err     error // why a commit failed
	told    []broker.Event
}

// driven is what a driver needs of a storage.
type driven interface {
	broker.Store
	Apply(b *content.Batch) error
	Space() storage.Space
}

func newDriver(s driven, state *recovery.State, o broker.Options, clocks func() (now, steady int64)) *driver {
	return &driver{Machine: broker.New(s, state, o), store: s, clocks: clocks}
}

func (d *driver) turn() *broker.Tx {
	d.told = append(d.told, d.Events()...)
	now, steady := d.clocks()
	return d.Turn(now, steady, d.store.Space())
}

// begin begins a turn in which calls find room in the batch, unless that is held.
func (d *driver) begin() *broker.Tx {
	d.retry()
	tx := d.turn()
	for tx.Full() && !d.held && !d.stuck && !d.closed {
		d.commit()
		tx = d.turn()
	}
	return tx
}

// Do makes calls.
func (d *driver) Do(fn func(tx *broker.Tx) error) error {
	tx := d.begin()
	err := fn(tx)
	tx.Settle()
	if left := d.Astray(); left != "" {
		panic("after a call the index holds " + left)
	}
	if !d.held {
		d.Work()
	}
	d.pace = d.pace*1664525 + 1013904223
	for range max(0, int(d.pace>>29)-4) {
		d.advance()
	}
	return err
}

// round does what a turn without calls does, and leaves nothing on its way to the disk.
func (d *driver) round() (more bool) {
	d.begin()
	more = d.Work()
	d.commit()
	return more
}

// advance brings what is open one step nearer to the disk.
func (d *driver) advance() {
	switch {
	case d.held || d.err != nil:
	case d.onWay == nil:
		d.onWay = d.Take()
	case !d.applied:
		d.apply()
	default:
		d.done()
	}
}

func (d *driver) done() {
	d.Done()
	d.onWay, d.applied = nil, false
}

// apply brings the batch on its way to disk.
func (d *driver) apply() {
	switch err := d.store.Apply(d.onWay); {
	case err == nil:
		d.applied, d.stuck = true, false
	case errors.Is(err, storage.ErrFull):
		d.Stuck()
		d.stuck = true
	default:
		d.err, d.closed = fmt.Errorf("commit failed: %w", err), true
		d.Machine.Close()
	}
}

// retry tries a batch again that found no room.
func (d *driver) retry() {
	if d.stuck {
		d.commit()
	}
}

// commit brings all that is open to disk.
func (d *driver) commit() {
	for d.err == nil && !d.held {
		if d.onWay == nil {
			if d.onWay = d.Take(); d.onWay == nil {
				return
			}
		}
		if !d.applied {
			if d.apply(); !d.applied {
				return
			}
		}
		d.done()
	}
}

// hold lets what fn brings be on its way to the disk, and nothing more until release. What calls
// change until then is in one batch.
func (d *driver) hold(fn func()) {
	d.commit()
	d.held = true
	fn()
	d.onWay = d.Take()
}

func (d *driver) release() { d.held = false }

// Close ends the machine. It returns why a commit failed.
func (d *driver) Close() error {
	d.held = false
	for more := !d.closed; more && d.err == nil; {
		d.turn()
		more = d.Machine.Close()
		d.commit()
	}
	d.closed = true
	return d.err
}
