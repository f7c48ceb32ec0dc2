package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
)

// payloadSum is a set of large payloads: their number, and a sum that does not depend on the order.
type payloadSum struct{ n, sum uint64 }

func (s *payloadSum) add(queue uint32, seq uint64, size int64) {
	s.n++
	s.sum += storage.SetHash(storage.PacketID{Queue: queue, Priority: uint32(size), Seq: seq})
}

func (s *payloadSum) merge(other payloadSum) {
	s.n += other.n
	s.sum += other.sum
}

// payloadShare is how many payloads are held in memory at a time when some have no owner.
const payloadShare = 1 << 20

// checkPayloads compares the records of large payloads with what their packets say. Number and sum
// are enough where all is well; only if they differ the payloads are looked at one by one.
func (v *verifier) checkPayloads(ctx context.Context) error {
	var found payloadSum
	err := v.src.Payloads(func(queue uint32, seq uint64, size int64) error {
		found.add(queue, seq, size)
		return ctx.Err()
	})
	if err != nil || found == v.large {
		return err
	}
	if found.n < v.large.n {
		v.finding(storage.FindingOwner, "db", "%d large payloads belong to %d packets: some have lost theirs to another packet of the same sequence",
			found.n, v.large.n)
	}
	shares := found.n/payloadShare + 1
	for share := range shares {
		if err := v.findOwnerless(ctx, share, shares); err != nil {
			return err
		}
	}
	return nil
}

// findOwnerless finds payloads without a packet among one share of them.
func (v *verifier) findOwnerless(ctx context.Context, share, shares uint64) error {
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
	ownerless := slices.SortedFunc(maps.Keys(sizes), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.seq, b.seq))
	})
	for _, p := range ownerless {
		v.finding(storage.FindingOwner, fmt.Sprintf("%d/*/%d", p.queue, p.seq),
			"a payload of %d bytes belongs to no packet that can be read", sizes[p])
	}
	return nil
}
