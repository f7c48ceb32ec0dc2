package recovery

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// census is what a scan found of the packets that the control record counts: those without expiry.
type census struct {
	live, hash uint64
	unknown    uint64             // records of which it cannot be read whether they expire
	unread     []storage.PacketID // these, or some of them
}

func (c *census) add(id storage.PacketID) {
	c.live++
	c.hash += storage.SetHash(id)
}

// packetScan is what a census is taken of anew; a *storage.Snapshot is one.
type packetScan interface {
	Packets(r storage.QueueRange, fn func(storage.PacketID, *storage.Meta) error) error
}

// recount counts as a start does, which does not need payloads: of the records that cannot be read
// in full it leaves those of which not even the expiry can be. all is how many records there are,
// and unread holds some of those that cannot be read; it is changed.
func (c *census) recount(ctx context.Context, src packetScan, all uint64, unread map[storage.PacketID]bool) error {
	*c = census{}
	seen := uint64(0)
	err := src.Packets(storage.QueueRange{}, func(id storage.PacketID, m *storage.Meta) error {
		delete(unread, id)
		if m.Expiry == 0 {
			c.add(id)
		}
		seen++
		return ended(ctx, int64(seen))
	})
	c.unknown = max(all, seen) - seen
	for id := range unread {
		c.unread = append(c.unread, id)
	}
	return err
}

// maxGuesses is of how many unknown records each choice of those without expiry is tried: 2^12.
const maxGuesses = 12

// fits reports whether the control record may count just what is there, if some of the unknown
// records have no expiry and the others have one. Of many unknown ones only the number is judged.
func (c *census) fits(control *storage.Control) bool {
	if c.unknown <= maxGuesses && int(c.unknown) == len(c.unread) {
		return choose(c.unread, control.Live-c.live, control.Hash-c.hash)
	}
	return c.live <= control.Live && control.Live-c.live <= c.unknown
}

// choose reports whether n of ids have the hash together.
func choose(ids []storage.PacketID, n, hash uint64) bool {
	if n == 0 && hash == 0 {
		return true
	}
	if n == 0 || n > uint64(len(ids)) {
		return false
	}
	return choose(ids[1:], n-1, hash-storage.SetHash(ids[0])) || choose(ids[1:], n, hash)
}

// differs says how what is there differs from what the control record counts, as the kind and the
// sentence of a finding. The kind is "" when it does not.
func (c *census) differs(control *storage.Control) (kind, what string) {
	if c.fits(control) {
		return "", ""
	}
	counts := fmt.Sprintf("the control record counts %d packets without expiry, the scan found %d", control.Live, c.live)
	least := ""
	if c.unknown > 0 {
		counts += fmt.Sprintf(", and %d that cannot be read, of which nobody can tell whether they expire", c.unknown)
		least = "at least "
	}
	switch {
	case c.live > control.Live:
		return FindingResurrected, fmt.Sprintf("%s%s came back: %s", least, packets(c.live-control.Live), counts)
	case c.live+c.unknown < control.Live:
		lost := control.Live - c.live - c.unknown
		verb := "are"
		if lost == 1 {
			verb = "is"
		}
		return FindingLost, fmt.Sprintf("%s%s %s lost: %s", least, packets(lost), verb, counts)
	case c.unknown > 0:
		return FindingLost, "at least one packet is lost, came back or was changed: " + counts
	}
	return FindingLost, fmt.Sprintf("the control record and the scan both count %d packets without expiry, but not the same: "+
		"at least one is lost and one came back or was changed", c.live)
}

func packets(n uint64) string {
	if n == 1 {
		return "one packet"
	}
	return fmt.Sprintf("%d packets", n)
}
