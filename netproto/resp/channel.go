package resp

import (
	"bytes"

	"github.com/holdfast-queue/holdfast/broker"
)

// Some channels tell of events. Nobody else publishes there, and no pattern matches them: their
// listeners get what they may look at, and no more.

const (
	reserved      = "holdfast:"
	eventsChannel = reserved + "events"
	tailPrefix    = reserved + "tail:"

	errReserved = "ERR channels that begin with holdfast: are the server's: expected SUBSCRIBE of holdfast:events or holdfast:tail:QUEUE, or another name"
)

func isReserved(channel []byte) bool { return bytes.HasPrefix(channel, []byte(reserved)) }

// tailOf is the queue of a channel that tells what happens in one.
func tailOf(channel []byte) (queue []byte, ok bool) {
	return bytes.CutPrefix(channel, []byte(tailPrefix))
}

// hears says that one more listens to a channel, or one less, if it is one of the server's.
func hears(tx *broker.Tx, db uint8, channel []byte, on bool) {
	if queue, tails := tailOf(channel); tails {
		tx.Tail(db, string(queue), on)
	} else if string(channel) == eventsChannel {
		tx.Operator(on)
	}
}
