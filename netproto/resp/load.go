package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// qload adds a packet as a dump has it, and replies with its id.
func qload(s *session, tx *broker.Tx, args [][]byte) error {
	r := broker.LoadRequest{Queue: args[1], State: broker.Ready}
	r.Payload = args[2]
	priority, percent := int64(broker.ListPriority), int64(-1)
	var producer, text []byte
	parseOptions(args[3:],
		option{&words.PRIO, &priority},
		option{&words.KEY, &r.Key},
		option{&words.EXPIRES, &r.Expiry},
		option{&words.QLOADAT, &r.NotBefore},
		option{&words.TAG, &r.Tags},
		option{&words.PRODUCER, &producer},
		option{&words.LEASE, &r.Lease},
		option{&words.META, &r.Meta},
		option{&words.UNIQUE, &r.Unique},
		option{&words.QLOADWINDOW, &r.Window},
		option{&words.UNTILCLAIM, &r.UntilClaim},
		option{&words.PUSHED, &r.EnqueuedAt},
		option{&words.STATE, &r.State},
		option{&words.UNTIL, &r.Until},
		option{&words.ATTEMPTS, &r.Attempts},
		option{&words.FIRST, &r.FirstClaim},
		option{&words.LAST, &r.LastClaim},
		option{&words.CONSUMER, &r.Consumer},
		option{&words.REASON, &r.Reason},
		option{&words.ORIGIN, &r.Origin},
		option{&words.PROGRESS, &percent},
		option{&words.TEXT, &text},
	)
	switch {
	case r.State == broker.Claimed || r.State == broker.Damaged:
		refuse("ERR STATE: expected ready, delayed, dead or done, got %q", r.State)
	case r.State == broker.Done && r.Expiry == 0:
		refuse("ERR STATE: expected EXPIRES with done")
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
