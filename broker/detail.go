package broker

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// State is what a packet waits for.
type State = index.State

// The states.
const (
	Ready   = index.Ready
	Delayed = index.Delayed
	Claimed = index.Claimed
	Dead    = index.Dead
	Done    = index.Done
	Damaged = index.Damaged
)

// What Nack says of a packet that is in no state any more.
const (
	Expired   State = 0
	Cancelled State = Damaged + 1
)

// ID is a packet's number in the whole store. It keeps it wherever it goes. Clients see it as an
// opaque string. It counts from 1 up at the newest end, and from -1 down at the oldest one. Tokens
// are of the same count, so they rise over the whole store. Only older versions gave 0.
type ID int64

// middle is the first sequence of a store (content.Marks).
const middle = content.FirstSeq

func idOf(identity uint64) ID  { return ID(identity - middle) }
func (id ID) identity() uint64 { return uint64(id) + middle }

// Detail holds what a reply says about a packet besides its record. Times are in Unix milliseconds,
// 0 is none.
type Detail struct {
	ID                    ID
	Queue                 string
	Priority              uint32
	State                 State
	NotBefore             int64 // of a delayed packet
	Died, Gone            int64 // of a dead packet: when it died and is deleted; 0: it stays
	Attempts              int   // claims so far
	Token                 int64 // of the present claim; 0: it is not claimed
	LeaseEnd              int64 // of the present claim; 0 as well if the lease has no end
	Cancelled             bool  // it is claimed, and gone when the claim ends
	FirstClaim, LastClaim int64
	Consumer              string // of the last claim
	Origin                string // the queue where it died and was moved from
	Behind                int    // of Show: how many packets a claim takes before it; -1: it is not in line
	Paused                bool   // of Show: the queue gives nothing now
	HeldBack              string // of Show: which limit keeps it from being taken, in words; empty: none
	// Reason says why it came back or died the last time, and Progress how far its consumer has
	// come: a percent in the first byte, and text. Nil if nothing was said. Valid during the call
	// only.
	Reason, Progress []byte
	Unique           []byte // the id of a unique push without a window, as long as Reason; nil: none
}

// detail notes what is to be said of a packet, which is still in the index.
func (m *Machine) detail(q *queue, p index.Packet) {
	d := m.ix.Delivery(p.ID)
	e := Detail{
		ID: idOf(p.Identity), Queue: q.entry.Name(), Priority: p.Priority, State: p.State, Attempts: int(d.Attempts),
		FirstClaim: d.FirstClaim, LastClaim: d.LastClaim, Consumer: m.consumers.name(d.Consumer), Origin: m.originName(d.Origin),
	}
	switch p.State {
	case index.Delayed:
		e.NotBefore = p.Until
	case index.Claimed:
		e.Token, e.LeaseEnd, e.Cancelled = int64(d.Token-middle), m.wall(p.Until), d.Cancelled
	case index.Dead:
		e.Died = p.Until
		if keep := settingsOf(q).RetainDead; keep > 0 {
			e.Gone = e.Died + keep
		}
	}
	if stored := content.Stored(d.Stored); stored&content.StoredReason != 0 {
		e.Reason = m.text(p, content.NoteReason)
	}
	if stored := content.Stored(d.Stored); stored&content.StoredProgress != 0 {
		e.Progress = m.text(p, content.NoteProgress)
	}
	if p.HasUnique {
		e.Unique = m.copy(m.unique(p))
	}
	m.found.Details = append(m.found.Details, e)
}

// detailBytes returns the bytes that the detail of a packet takes in a reply, at most.
func (m *Machine) detailBytes(q *queue, p index.Packet) int {
	n := detailOverhead + len(q.entry.Name())
	if p.HasUnique {
		n += MaxUnique
	}
	if p.Stored == 0 {
		return n
	}
	d := m.ix.Delivery(p.ID)
	n += len(m.consumers.name(d.Consumer)) + len(m.originName(d.Origin))
	return n + MaxReason*bits.OnesCount8(d.Stored&uint8(content.StoredReason|content.StoredProgress))
}

// heldBack says in words what keeps a packet from being claimed; empty if nothing does.
func (m *Machine) heldBack(q *queue, p index.Packet) string {
	switch h, ok := m.ix.HeldBack(p.ID); {
	case !ok:
		return ""
	case h.Share == "":
		return q.says(h, "the empty share ")
	default:
		return q.says(h, "share "+h.Share+" ")
	}
}

// says tells in words what holds packets back. A share that does is called so.
func (q *queue) says(h index.Held, share string) string {
	who, rate, by := "queue ", settingsOf(q).Rate, ""
	if h.InShare {
		who, rate = share, settingsOf(q).ShareRate
	}
	if own := q.shares.byName[h.Share]; h.InShare && own != nil {
		if len(own.Rate) > 0 {
			rate = own.Rate
		}
		if own.HeldBy != "" {
			by = fmt.Sprintf(", said by %q", own.HeldBy)
		}
	}
	switch {
	case h.For != 0:
		return fmt.Sprintf("waits for packet %d of its key", idOf(h.For))
	case h.ByKey && h.InShare:
		return "waits for other packets of its keys"
	case h.ByKey:
		return "waits for another packet of its key"
	case h.Rest > 0:
		return fmt.Sprintf("%srests for %v%s", who, span(h.Rest), by)
	case h.Crowded:
		return fmt.Sprintf("%swaits for room: %d shares of the queue wait for their rates or rest, and no more can", who, index.MaxResting)
	case h.Wait > 0:
		return fmt.Sprintf("%swaits for the rate %s: the next is due in %v", who, rate, span(h.Wait))
	}
	return fmt.Sprintf("%shas %d of %d claimed", who, h.Claimed, h.Limit)
}

// span is a time for people, to a second where it is longer.
func span(ms int64) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d
}

// wall is the moment of the steady clock on the wall clock.
func (m *Machine) wall(steady int64) int64 { return steady - m.tx.steady + m.tx.now }

// text returns a note that a packet has, nil if it cannot be read.
func (m *Machine) text(p index.Packet, kind content.NoteKind) (text []byte) {
	id := content.NoteID{Identity: p.Identity, Kind: kind}
	if text, ok := m.open.ops.Note(id); ok {
		return m.copy(text)
	}
	if m.onWay != nil {
		if text, ok := m.onWay.ops.Note(id); ok {
			return m.copy(text)
		}
	}
	m.store.ReadNotes([]content.NoteID{id}, func(_ int, read []byte, damage error) {
		if damage == nil {
			text = m.copy(read)
		}
	})
	return text
}

// Found is the packets that a call took or looked at, with their details if it was asked for them.
// All of it is valid until the next call.
type Found struct {
	Packets []Packet
	Details []Detail
}

// finding decodes records, which may be nil, for a caller of the machine.
func (m *Machine) finding(records [][]byte) Found {
	m.found.Packets = slices.Grow(m.found.Packets[:0], len(records))[:len(records)]
	for i, record := range records {
		p := &m.found.Packets[i]
		if *p = (Packet{}); record != nil && content.DecodeRecord(record, p) != nil {
			panic("broker: a record that was checked cannot be decoded") // Store.Read has
		}
	}
	return m.found
}
