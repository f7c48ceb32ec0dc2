package recovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
)

// totals holds what was scanned against the control record, as a start does.
func (v *verifier) totals(ctx context.Context) error {
	if !v.hasControl() {
		return nil
	}
	c := census{live: v.live, hash: v.hash}
	if v.damages > 0 {
		if err := c.recount(ctx, v.src, v.scanned, maps.Clone(v.damaged)); err != nil {
			return err
		}
	}
	kind, what := c.differs(&v.control)
	switch {
	case kind == "":
	case c.unknown == 0 && c.live+1 == v.control.Live:
		return v.oneLost(ctx, v.control.Hash-c.hash)
	case c.unknown == 0 && c.live == v.control.Live+1:
		return v.oneBack(ctx, c.hash-v.control.Hash)
	default:
		v.finding(kind, "packets", "%s", what)
	}
	return nil
}

// oneLost names the packet that is lost, if its place can be found by the hash that is missing.
func (v *verifier) oneLost(ctx context.Context, missing uint64) error {
	id, ok, err := v.search(ctx, missing)
	if err != nil {
		return err
	}
	const what = "the control record counts %d packets without expiry, the scan found %d"
	if !ok {
		v.finding(FindingLost, "packets", "one packet is lost, and which cannot be told: "+what, v.control.Live, v.control.Live-1)
		return nil
	}
	v.finding(FindingLost, id.String(), "the packet is lost: "+what, v.control.Live, v.control.Live-1)
	return nil
}

// oneBack names the packet that should not be there.
func (v *verifier) oneBack(ctx context.Context, surplus uint64) error {
	key := "packets"
	err := v.src.Packets(storage.QueueRange{}, func(id storage.PacketID, m *storage.Meta) error {
		if m.Expiry == 0 && storage.SetHash(id) == surplus {
			key = id.String()
		}
		return ctx.Err()
	})
	v.finding(FindingResurrected, key, "one packet came back: the control record counts %d without expiry, the scan found %d", v.control.Live, v.control.Live+1)
	return err
}

// pair is a queue and a priority, and the sequences between which packets of both were seen.
type pair struct {
	queue, priority uint32
	low, high       uint64
}

func (p *pair) is(id storage.PacketID) bool { return p.queue == id.Queue && p.priority == id.Priority }

// maxPairs bounds the memory that pairs take.
const maxPairs = 1 << 16

func appendPair(pairs []pair, id storage.PacketID) []pair {
	if len(pairs) == maxPairs {
		return pairs
	}
	return append(pairs, pair{id.Queue, id.Priority, id.Seq, id.Seq})
}

// searchBudget is how many places are tried: about a second.
const searchBudget = 50_000_000

// search looks for the packet with a hash where it is most likely to have been: among its
// neighbours first, then at any sequence of the queues and priorities that were seen, then at any
// priority that protocols give.
func (v *verifier) search(ctx context.Context, hash uint64) (storage.PacketID, bool, error) {
	s := &placeSearch{hash: hash, left: searchBudget, low: v.control.LowSeq, next: v.control.NextSeq}
	const around = 1024
	for _, p := range v.pairs {
		from, to := max(p.low, s.low+1+around)-around, min(p.high, s.next-1-around)+around
		if id, ok := s.sweep([]pair{p}, from, to); ok {
			return id, true, nil
		}
	}
	queues, priorities := make([]uint32, 0, len(v.report.Queues)), make(map[uint32]bool)
	for _, q := range v.report.Queues {
		queues = append(queues, q.ID)
	}
	for _, p := range v.pairs {
		priorities[p.priority] = true
	}
	seen := slices.Sorted(maps.Keys(priorities))
	all := make([]uint32, 256) // the priorities of the pinpriq document
	for i := range all {
		all[i] = uint32(i)
	}
	for _, places := range [][]pair{v.pairs, cross(queues, seen), cross(queues, all)} {
		if err := ctx.Err(); err != nil {
			return storage.PacketID{}, false, err
		}
		if id, ok := s.sweep(places, s.low+1, s.next-1); ok {
			return id, true, nil
		}
		s.left = max(s.left, searchBudget/4) // each way gets a share
	}
	return storage.PacketID{}, false, nil
}

// cross pairs queues with priorities, as many as there is room for.
func cross(queues, priorities []uint32) (pairs []pair) {
	for _, q := range queues {
		for _, p := range priorities {
			if len(pairs) == maxPairs {
				return pairs
			}
			pairs = append(pairs, pair{queue: q, priority: p})
		}
	}
	return pairs
}

// placeSearch looks for a place by its hash.
type placeSearch struct {
	hash      uint64
	left      int // places that may still be tried
	low, next uint64
}

// sweep tries the sequences from the newest to the oldest, at each all pairs.
func (s *placeSearch) sweep(pairs []pair, from, to uint64) (storage.PacketID, bool) {
	if len(pairs) == 0 {
		return storage.PacketID{}, false
	}
	for seq := to; seq >= from && seq > s.low && s.left > 0; seq-- {
		for i := range pairs {
			id := storage.PacketID{Queue: pairs[i].queue, Priority: pairs[i].priority, Seq: seq}
			if storage.SetHash(id) == s.hash {
				return id, true
			}
		}
		s.left -= len(pairs)
	}
	return storage.PacketID{}, false
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
		if mix(seq)%shares == share {
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
		v.finding(FindingOwner, fmt.Sprintf("%d/*/%d", p.queue, p.seq), "a payload of %d bytes belongs to no packet", sizes[p])
	}
	return nil
}
