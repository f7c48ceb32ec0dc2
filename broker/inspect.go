package broker

// Place is where a List goes on.
type Place struct {
	Priority uint32
	Seq      uint64
}

// Peek replies with what the next claims would take, in that order, with details: at most n, which
// is at most MaxCount. Nothing is taken.
func (tx *Tx) Peek(c *Consumer, name []byte, n int, tag Tag) error { panic("not built") }

// List replies with packets of a queue in one state, with details, in the order of their priority
// and age: at most n behind a place.
func (tx *Tx) List(c *Consumer, name []byte, s State, after Place, n int, tag Tag) error {
	panic("not built")
}

// ListEnd says what a List of the same arguments replies with, so that a session can begin its
// reply: how many packets, the place of the last one, and whether there are more behind that.
func (tx *Tx) ListEnd(name []byte, s State, after Place, n int) (packets int, last Place, more bool, err error) {
	panic("not built")
}

// Show replies with one packet and its details, or without any if the queue has none with that id.
func (tx *Tx) Show(c *Consumer, name []byte, id ID, tag Tag) (ok bool, err error) { panic("not built") }

// Band is how many packets that are ready have a priority from one to another.
type Band struct {
	From, To uint32
	Packets  int
}

// QueueStats are the figures of a queue.
type QueueStats struct {
	Ready, Hidden, Delayed, Claimed, Dead, Done int // packets by state; Hidden are ready ones of priority 0
	Bytes                                       int64
	Bands                                       []Band
	Counters
}

// QueueStats returns the figures of a queue; ok is false if nothing is called so.
func (tx *Tx) QueueStats(name []byte) (s QueueStats, ok bool, err error) { panic("not built") }

// Oldest replies with the ready packet that was pushed first, or without any.
func (tx *Tx) Oldest(c *Consumer, name []byte, tag Tag) error { panic("not built") }

// Unfinished is how many packets of a queue are ready, delayed or claimed.
func (tx *Tx) Unfinished(name []byte) (int, error) { panic("not built") }

// Worker is a consumer of a queue.
type Worker struct {
	Name    string
	Seen    int64 // when it last made a call for the queue, in Unix milliseconds
	Claimed int   // packets that it holds
	Since   int64 // when it claimed the oldest of them; 0 if it holds none
	IDs     []ID  // of what it holds, up to MaxWorkerIDs
}

// Workers returns who claims from a queue: those that hold packets, and those that called in the
// last WorkerTime, ordered by name. It looks at MaxWorkerClaims claims.
func (tx *Tx) Workers(name []byte) ([]Worker, error) { panic("not built") }
