package broker

import (
	"cmp"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// Full says that the open batch is full: calls should wait for the next.
func (tx *Tx) Full() bool { return tx.m.open.full(tx.m.limits) }

// Atomic runs fn as one: what its calls change reaches the disk all in one batch or not at all.
// Whoever waits gets what fn brought when fn is done. It returns fn's error; what fn did before an
// error stays done. An Atomic inside another is part of that: either refused with ErrTooMuchOpen
// before it begins, or not, however much it brings.
func (tx *Tx) Atomic(fn func() error) error {
	if tx.atomic {
		if bytes := tx.m.open.memory(); bytes > MaxOpen {
			return fmt.Errorf("%w, and has %d already", ErrTooMuchOpen, bytes)
		}
		return fn()
	}
	if err := tx.begin(); err != nil {
		return err
	}
	tx.atomic, tx.reply, tx.looked, tx.changed, tx.dropped, tx.ahead = true, MaxAtomicReply, -tx.m.ix.Passed(), 0, 0, 0
	err := fn()
	tx.atomic = false
	tx.made++
	tx.m.settle()
	return err
}

// Made returns how many times Atomic ran since the Turn: looks need none.
func (tx *Tx) Made() int { return tx.made }

// begin makes sure that the machine accepts a call. Inside Atomic it does.
func (tx *Tx) begin() error {
	switch m := tx.m; {
	case m.closing:
		return ErrClosed
	case m.stuck:
		return ErrStopped
	}
	return nil
}

// canTake returns the error that any change gets because of the disk's free space.
func (tx *Tx) canTake() error {
	if tx.m.stuck || tx.m.space.Level >= storage.Stop {
		return ErrStopped
	}
	return nil
}

// fewClaims is how many packets of a queue can be claimed however little memory is left: so workers
// go on, who alone may empty it.
const fewClaims = 1024

// mayTake is canTake of a selection from a queue, which may be nil. What it claims takes memory.
// What the Atomic has claimed itself does not count.
func (tx *Tx) mayTake(q *queue, s *Selection) error {
	if s.claims && tx.m.space.Memory.Level == storage.Stop && q != nil {
		claimed := tx.m.ix.Counts(q.ix).Claimed
		if tx.atomic {
			claimed -= tx.changed
		}
		if claimed >= fewClaims {
			return cmp.Or(tx.canTake(), ErrNoClaim)
		}
	}
	return tx.canTake()
}

// CanClaim returns the error that a claim from a queue would get because of the memory, or of the
// disk's free space. Without one no claim of the next Atomic gets such an error.
func (tx *Tx) CanClaim(name []byte) error {
	return tx.mayTake(tx.m.queueNamed(name), &Selection{claims: true})
}

// CanStore returns the error that a push or a write would get because of the disk's free space, or
// of the memory. It does not change within a transaction.
func (tx *Tx) CanStore() error {
	switch s := &tx.m.space; {
	case s.Level == storage.NoPush:
		return noRoom(s.Why)
	case s.Level == storage.Normal && s.Memory.Level != storage.Normal && !tx.m.stuck:
		return ErrNoMemory
	}
	return tx.canTake()
}

// FreeBytes returns how much memory packets and queues that are gone have left to those that come.
func (tx *Tx) FreeBytes() int64 { return tx.m.ix.FreeBytes() }

// Space returns the state of the disk, and of the memory.
func (tx *Tx) Space() storage.Space { return tx.m.space }

// Damaged returns how many packets were set aside since New, because they cannot be read.
func (tx *Tx) Damaged() int { return tx.m.damaged }

// useReply takes bytes of packets that are answered from what one Atomic may answer with. Outside
// of one it does nothing.
func (tx *Tx) useReply(bytes int) error {
	err := tx.mayReply(bytes)
	if err == nil && tx.atomic {
		tx.reply -= bytes
	}
	return err
}

// mayReply is useReply that takes nothing: whoever reads much asks before.
func (tx *Tx) mayReply(bytes int) error {
	if tx.atomic && bytes > tx.reply {
		return fmt.Errorf("%w: %d bytes, the limit for the replies of one run is %d", ErrReplyTooLarge, bytes, MaxAtomicReply)
	}
	return nil
}

// MayChange returns how many more elements the Atomic may take, remove or move.
func (tx *Tx) MayChange() int { return max(0, MaxChanged-tx.changed) }

// change notes that n elements are about to be taken, removed or moved. Outside of an Atomic it
// does nothing.
func (tx *Tx) change(n int) error {
	if !tx.atomic {
		return nil
	}
	if n > tx.MayChange() {
		return ErrTooManyChanged
	}
	tx.changed += n
	return nil
}

// Looked notes what a look has cost that is not the broker's; see MaxLooks.
func (tx *Tx) Looked(units int) { tx.looked += units }

// MayLook says that the looks of the Atomic have not cost too much.
func (tx *Tx) MayLook() bool { return tx.mayPass(0) }

// mayPass says whether a look of the Atomic may cost units more.
func (tx *Tx) mayPass(units int) bool { return tx.looked+tx.m.ix.Passed()+units < MaxLooks }

// lookedAt notes a look at elements or fields, for which bytes were read.
func (tx *Tx) lookedAt(elements, bytes int) {
	tx.looked += elements*lookElement + bytes*lookKiB>>10
}

// lookedAtSettings notes that settings were read, changed and brought to disk.
func (tx *Tx) lookedAtSettings(s *Settings) {
	tx.looked += lookValue * len(s.DeadLetter) >> 7
	for _, o := range s.Orders {
		tx.looked += len(o.Values) * lookValue
	}
}

// refusesDelivery says that no delivery may be made now: the machine is ending, the disk is full,
// or an Atomic is under way, which may take the packets itself.
func (m *Machine) refusesDelivery() bool {
	return m.closing || m.stuck || m.space.Level >= storage.Stop || m.tx.atomic
}
