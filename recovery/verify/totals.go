package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
)

// totals compares what was scanned with the control record, as a start does.
func (v *verifier) totals(context.Context) error {
	var mismatch *storage.MismatchError
	if v.hasControl() && errors.As(v.control.Check(v.tally, v.damages), &mismatch) {
		f := mismatch.Finding()
		v.finding(f.Kind, f.Key, "%s", f.What)
	}
	return nil
}

// payloadShare is how many payloads are looked at in one pass when some have no owner.
const payloadShare = 1 << 20

// payloads holds the records of large payloads against their packets: first by number and sum, and
// only if those differ one by one, a share of them at a time.
func (v *verifier) payloads(ctx context.Context) error {
	var found payloadSum
	err := v.src.Payloads(func(queue uint32, seq uint64, size int64) error {
		found.add(queue, seq, size)
		return ctx.Err()
	})
	if err != nil || found == v.large {
		return err
	}
	shares := found.n/payloadShare + 1
	for share := range shares {
		if err := v.ownerless(ctx, share, shares); err != nil {
			return err
		}
	}
	return nil
}

// ownerless finds payloads without a packet among one share of them.
func (v *verifier) ownerless(ctx context.Context, share, shares uint64) error {
	type place struct {
		queue uint32
		seq   uint64
	}
	sizes := make(map[place]int64)
	err := v.src.Payloads(func(queue uint32, seq uint64, size int64) error {
		if seq%shares == share {
			sizes[place{queue, seq}] = size
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	err = v.src.Packets(storage.QueueRange{}, func(id storage.PacketID, m *storage.Meta) error {
		if m.Large {
			delete(sizes, place{id.Queue, id.Seq})
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for p := range v.damaged {
		delete(sizes, place{p.Queue, p.Seq}) // its record cannot be read, so it may be the owner
	}
	left := slices.SortedFunc(maps.Keys(sizes), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.seq, b.seq))
	})
	for _, p := range left {
		v.finding(storage.FindingOwner, fmt.Sprintf("%d/*/%d", p.queue, p.seq), "a payload of %d bytes belongs to no packet", sizes[p])
	}
	return nil
}
