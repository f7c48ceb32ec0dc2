package resp

import (
	"math"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// qload adds a packet as a dump has it, and replies with its id.
func qload(s *session, tx *broker.Tx, args [][]byte) error {
	r := broker.LoadRequest{Queue: args[1], State: broker.Ready}
	r.Payload = args[2]
	priority, percent := int64(broker.ListPriority), int64(-1)
	var producer, text []byte
	parseOptions(args[3:],
		option{"PRIO", &priority, 0, math.MaxUint32},
		option{"KEY", &r.Key, 0, wire.MaxArg},
		option{"EXPIRES", &r.Expiry, 0, math.MaxInt64},
		option{"AT", &r.NotBefore, 0, math.MaxInt64},
		option{word: "TAG", into: &r.Tags},
		option{"PRODUCER", &producer, 1, broker.MaxConsumer},
		option{"UNIQUE", &r.Unique, 1, broker.MaxUnique},
		option{"WINDOW", &r.Window, 1, math.MaxInt64},
		option{"PUSHED", &r.EnqueuedAt, 0, math.MaxInt64},
		option{word: "STATE", into: &r.State},
		option{"UNTIL", &r.Until, 0, math.MaxInt64},
		option{"ATTEMPTS", &r.Attempts, 0, math.MaxUint32},
		option{"FIRST", &r.FirstClaim, 0, math.MaxInt64},
		option{"LAST", &r.LastClaim, 0, math.MaxInt64},
		option{"CONSUMER", &r.Consumer, 1, broker.MaxConsumer},
		option{"REASON", &r.Reason, 0, broker.MaxReason},
		option{"ORIGIN", &r.Origin, 1, maxQueueName},
		option{"PROGRESS", &percent, 0, math.MaxUint8},
		option{"TEXT", &text, 0, broker.MaxReason},
	)
	switch {
	case r.State == broker.Claimed || r.State == broker.Damaged:
		refuse("ERR STATE: expected ready, delayed, dead or done, got %q", r.State)
	case r.State == broker.Done && r.Expiry == 0:
		refuse("ERR STATE: expected EXPIRES with done")
	case r.Window > 0 && r.Unique == nil:
		refuse("ERR WINDOW: expected UNIQUE with it")
	case text != nil && percent < 0:
		refuse("ERR TEXT: expected PROGRESS with it")
	}
	if percent >= 0 {
		r.Progress = append([]byte{byte(percent)}, text...)
	}
	r.Priority, r.Producer = uint32(priority), string(producer)
	id, ok, err := tx.Load(&r)
	switch {
	case err != nil:
		return err
	case !ok:
		return s.null()
	}
	s.packetID(id)
	return nil
}

// asksOrigin asks for a queue, and whether the user may push to the origin, as QREDRIVE does there.
func asksOrigin(s *session, right access.Right, args [][]byte) bool {
	for i := 3; i+1 < len(args); i += 2 {
		switch {
		case is(args[i], "tag"): // has two values
			i++
		case is(args[i], "origin") && !s.pass.May(access.Push, args[i+1]):
			return false
		}
	}
	return s.pass.May(right, args[1])
}
