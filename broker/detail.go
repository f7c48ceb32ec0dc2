package broker

import "github.com/holdfast-queue/holdfast/index"

// State is what a packet waits for.
type State = index.State

// The states.
const (
	Ready   = index.Ready
	Delayed = index.Delayed
	Claimed = index.Claimed
	Dead    = index.Dead
	Done    = index.Done
)

// ID is a packet's number in the whole store. It keeps it wherever it goes. Clients see it as an
// opaque string. A token is counted in the same way, so it rises over the whole store.
type ID int64

// middle is the first sequence of a store (storage.Marks).
const middle = 1 << 63

func idOf(identity uint64) ID        { return ID(identity - middle) }
func (id ID) identity() uint64       { return uint64(id) + middle }
func tokenOf(token uint64) int64     { return int64(token - middle) }
func tokenNumber(shown int64) uint64 { return uint64(shown) + middle }

// Detail is what a reply says of a packet besides its record. Times are in Unix milliseconds, 0 is
// none.
type Detail struct {
	ID                    ID
	Queue                 string
	Priority              uint32
	State                 State
	NotBefore             int64 // of a delayed packet
	Attempts              int   // claims so far
	Token                 int64 // of the present claim; 0: it is not claimed
	LeaseEnd              int64 // of the present claim; 0 as well if the lease has no end
	FirstClaim, LastClaim int64
	Consumer              string // of the last claim
	Origin                string // the queue where it died and was moved from
	Behind                int    // of Show: how many packets a claim takes before it; -1: it is not in line
	// Reason says why it came back or died the last time, and Progress how far its consumer has come:
	// a percent in the first byte, and text. Nil if nothing was said. Valid during the call only.
	Reason, Progress []byte
}
