package broker

// DeletePackets deletes packets of a queue by their ids, whatever their state, and returns how many
// there were. It brings a Deletes for each.
func (tx *Tx) DeletePackets(name []byte, ids []ID) (n int, err error) { panic("not built") }

// MovePackets moves packets to another queue, with their priority, age and state, and returns how
// many there were. Claimed ones stay. It brings what MoveRoom says.
func (tx *Tx) MovePackets(name []byte, ids []ID, to []byte) (n int, err error) { panic("not built") }

// MoveRoom is what MovePackets brings.
func (tx *Tx) MoveRoom(name []byte, ids []ID, to []byte) Room { panic("not built") }

// SetPriority gives a packet another priority; ok is false if the queue has none with that id. It
// brings a record of the packet's size and a delete: PriorityRoom.
func (tx *Tx) SetPriority(name []byte, id ID, priority uint32) (ok bool, err error) {
	panic("not built")
}

// PriorityRoom is what SetPriority brings.
func (tx *Tx) PriorityRoom(name []byte, id ID) Room { panic("not built") }

// A Bulk is a change to many packets of a queue. It is made in slices, so that others have the lock
// in between. Each slice is on disk as a whole; a crash leaves a prefix of them done. The queue's
// packets may change between slices.
type Bulk struct {
	Done int // packets changed so far

	queue []byte
	after Place
	slice func(tx *Tx, b *Bulk) (more bool, err error)
}

// Slice makes the next slice, alone (it is an Atomic of its own). more is false when nothing is
// left. ErrNoRoom as for any call.
func (bk *Bulk) Slice(tx *Tx) (more bool, err error) { panic("not built") }

// Purge deletes the packets of a queue in one state, or in all if that is 0.
func Purge(queue []byte, s State) *Bulk { panic("not built") }

// Harvest makes claims of a queue ready again that are at least so many milliseconds old.
func Harvest(queue []byte, older int64) *Bulk { panic("not built") }

// Redrive makes dead packets of a queue ready again, at most count if that is not 0, with no
// attempts: in the queue itself; or in to, if that is not nil. Of a dead-letter queue it returns
// those that died elsewhere to where they died.
func Redrive(queue []byte, count int, to []byte) *Bulk { panic("not built") }
