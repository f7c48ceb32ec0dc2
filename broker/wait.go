package broker

// Waiter is one blocked pop. Its methods are called with the broker's lock held, in whoever's
// transaction, and must not block.
type Waiter interface {
	// Ready is called once, when the queue has a packet and the waiter is first in line. The consumer
	// no longer waits. Ready takes the packet (Pop, MoveEnd) and replies.
	Ready(tx *Tx, queue []byte)
	// Expired is called once, at the deadline.
	Expired(tx *Tx)
}

// Wait makes c wait, once, for a packet in any of the queues, which need not exist. Waiters and
// subscribers are one line, in order of arrival. until is the deadline in Unix milliseconds, 0 for
// none. Detach ends the wait.
func (tx *Tx) Wait(c *Consumer, w Waiter, queues [][]byte, until int64) error { return errStub }

// StopWaiting ends c's wait without a call of its waiter. It returns false if c does not wait.
func (tx *Tx) StopWaiting(c *Consumer) bool { return false }

// Waiting says that c waits. Any goroutine may ask.
func (c *Consumer) Waiting() bool { return false }
