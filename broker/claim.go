package broker

// ClaimRequest says which packets of a queue a consumer wants to claim.
type ClaimRequest struct {
	Selection        // Count is at most MaxCount
	Lease     int64  // in milliseconds; 0 is that of the queue's settings
	Consumer  []byte // its name, at most MaxConsumer bytes
}

// Claim lends packets to a consumer: they are nobody else's until their leases end. The reply goes
// to c's receiver, with details. It has no packets if none can be selected or the queue is unknown.
// What it brings says ClaimRoom.
func (tx *Tx) Claim(c *Consumer, name []byte, r ClaimRequest, tag Tag) error { panic("not built") }

// ClaimRoom is what a Claim of so many packets brings.
func ClaimRoom(packets, consumer int) Room { panic("not built") }

// Receipt names one claim.
type Receipt struct {
	ID    ID
	Token int64
}

// Ack ends claims: their packets are done. It returns how many of the receipts were good. If none
// was, it returns ErrStale, and ErrUnknownQueue if there is no such queue.
func (tx *Tx) Ack(name []byte, receipts []Receipt) (good int, err error) { panic("not built") }

// Nack says how a claim ends that failed.
type Nack struct {
	Delay  int64  // in milliseconds, before it is ready again; negative: as the queue's settings say
	Reason []byte // at most MaxReason bytes
	Dead   bool   // it is not to be tried again
}

// Nack returns a packet to its queue, or lets it die if it was tried often enough. It returns the
// state that the packet has then. ErrStale, ErrUnknownQueue.
func (tx *Tx) Nack(name []byte, r Receipt, n Nack) (State, error) { panic("not built") }

// Extend lets the lease of a claim end so many milliseconds from now, and returns that moment.
// ErrStale, ErrUnknownQueue.
func (tx *Tx) Extend(name []byte, r Receipt, lease int64) (end int64, err error) { panic("not built") }

// Progress notes how far a consumer has come, in percent, with a text of at most MaxReason bytes.
// ErrStale, ErrUnknownQueue.
func (tx *Tx) Progress(name []byte, r Receipt, percent int, text []byte) error { panic("not built") }
