package resp

import (
	"bytes"
	"errors"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// take is what QPOP and QCLAIM ask for.
type take struct {
	queues    [][]byte
	selection broker.Selection
	claims    bool  // the packets come back unless they are acknowledged
	lease     int64 // 0: the queue's own
	consumer  []byte
	block     int64 // how long it may wait, 0 for ever; -1: not at all
	fill      int64 // how long it waits for a whole batch once there is something; 0: not at all
}

// parse reads the arguments. QPOP refuses LEASE and CONSUMER: it would take for good what was to be
// claimed.
func (t *take) parse(s *session, args [][]byte) {
	t.block, t.selection = -1, broker.Selection{End: broker.Oldest, WithDetails: true, MustFind: true}
	var f filter
	var count int64
	var newest, oldest bool // the oldest unless the request says newest
	var lease, consumer, fill any
	if t.claims {
		lease, consumer, fill = &t.lease, &t.consumer, &t.fill
	}
	options := []option{
		{&words.OR, refuseOr},
		{&words.COUNT, &count},
		{&words.FILL, fill},
		{&words.LEASE, lease},
		{&words.BLOCK, &t.block},
		{&words.CONSUMER, consumer},
		{&words.FILTER, &f},
		{&words.SHARE, &f.share},
		{&words.MATCH, &f.match},
		{&words.NEWEST, &newest},
		{&words.OLDEST, &oldest},
		{&words.GROUP, &t.selection.Group},
	}
	queues, rest := takeQueues(args)
	if len(queues) > broker.MaxSubscriptions {
		refuse(errNames)
	}
	t.queues = queues
	if n := len(queues); n > 1 && len(slices.CompactFunc(slices.SortedFunc(slices.Values(queues), bytes.Compare), bytes.Equal)) < n {
		refuse("ERR a queue is named twice: expected each once")
	}
	parseOptions(rest, options...)
	if t.fill > 0 && len(queues) > 1 {
		refuse("ERR FILL: expected one queue, from which the batch is filled")
	}
	if newest {
		t.selection.End = broker.Newest
	}
	if t.claims && t.consumer == nil {
		t.consumer = s.consumerName()
	}
	if t.selection.Group {
		count = broker.MaxChanged
	}
	t.selection.Count, t.selection.Filter = int(count), f.broker()
	if t.fill > 0 && !s.inExec {
		t.selection.Least = int(count)
	}
}

// refuseOr refuses an OR that takeQueues left among the options.
func refuseOr() {
	refuse("ERR OR: expected another queue behind it, and all queues before the options")
}

// consumerName is who claims if the request does not say: the client's name, or its address.
func (s *session) consumerName() []byte {
	if name := s.client.name; name != "" {
		return []byte(name[:min(len(name), broker.MaxConsumer)])
	}
	if s.address == nil {
		s.address = []byte(s.peer.Remote().String())
	}
	return s.address
}

// fromFirst replies with what is taken from the first of the queues that has something to take.
// ErrNothing if none has.
func (t *take) fromFirst(s *session, tx *broker.Tx) error {
	for _, queue := range s.parked.from(t.queues) {
		if err := t.from(s, tx, queue); err != broker.ErrNothing {
			return err
		}
	}
	return broker.ErrNothing
}

// from replies with what is taken from a queue; ErrNothing if there is nothing to take.
func (t *take) from(s *session, tx *broker.Tx, queue []byte) error {
	if t.claims {
		f, err := tx.Claim(queue, broker.ClaimRequest{Selection: t.selection, Lease: t.lease, Consumer: t.consumer})
		return s.packets(formPackets, f, err)
	}
	f, err := tx.Pop(queue, t.selection)
	return s.packets(formPopped, f, err)
}

// takeFrom is QPOP, or QCLAIM.
func takeFrom(claims bool) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		t := take{claims: claims}
		t.parse(s, args)
		if err := s.useFilter(tx, t.selection.Filter, t.queues...); err != nil {
			return err
		}
		if !s.parked.again {
			s.parked.until = until(tx, t.block)
		}
		p := broker.Parking{
			Queues: t.queues, Filter: t.selection.Filter, As: t.consumer, Claims: t.claims, Until: s.parked.until, Least: t.selection.Least, Fill: t.fill,
		}
		switch err := t.fromFirst(s, tx); {
		case err == broker.ErrFilling:
			p.Filling, p.Until = true, tx.Steady()+t.fill
		case err != broker.ErrNothing:
			return err
		case tx.Drained(t.queues):
			return broker.ErrQueueClosed
		case t.block < 0:
			return s.array(0)
		case s.inExec, p.Until != 0 && p.Until <= tx.Steady():
			return s.nullArray()
		}
		return s.park(tx, p)
	}
}

// errGone is the answer to a claim in a queue that is not there: a queue goes with its last packet,
// so the claim may only be stale.
const errGone = failure("STALE no queue has this name: the claim has ended with its last packet, or the name is wrong")

// staleIfGone is the error of a call about a claim.
func staleIfGone(err error) error {
	if errors.Is(err, broker.ErrUnknownQueue) {
		return errGone
	}
	return err
}

func qack(s *session, tx *broker.Tx, args [][]byte) error {
	end := len(args)
	for end > 4 && is(args[end-2], words.COST.Word) {
		end -= 2
	}
	receipts := s.protocol.receiptArgs(args[2:end])
	if end < len(args) {
		cost := int64(0) // here, since it is allocated
		parseOptions(args[end:], option{&words.COST, &cost})
		for i := range receipts {
			receipts[i].Cost = cost
		}
	}
	n, err := tx.Ack(args[1], receipts)
	if err != nil && (len(receipts) == 1 || !errors.Is(err, broker.ErrStale)) {
		return staleIfGone(err)
	}
	return s.int(int64(n))
}

func qnack(s *session, tx *broker.Tx, args [][]byte) error {
	r := s.protocol.receiptArgs(args[2:4])
	n := broker.Nack{Delay: -1, At: -1}
	parseOptions(args[4:],
		option{&words.DELAY, &n.Delay},
		option{&words.AT, &n.At},
		option{&words.REASON, &n.Reason},
		option{&words.DEAD, &n.Dead},
		option{&words.UNCOUNTED, &n.Uncounted},
		option{&words.HOLD, &n.Hold},
		option{&words.COST, &r[0].Cost},
	)
	if n.At >= 0 {
		n.Delay = 0 // a moment that is past
	}
	n.At = max(n.At, 0)
	state, err := tx.Nack(args[1], r[0], n)
	switch {
	case err != nil:
		return staleIfGone(err)
	case state == broker.Expired:
		return s.bulkString("expired")
	case state == broker.Cancelled:
		return s.bulkString("cancelled")
	}
	return s.bulkString(state.String())
}

func qextend(s *session, tx *broker.Tx, args [][]byte) error {
	r := s.protocol.receiptArgs(args[2:4])
	lease := numberArg("ms", args[4], 1, broker.MaxTime)
	end, err := tx.Extend(args[1], r[0], lease)
	return staleIfGone(s.count(int(end), err))
}

func qprogress(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args) > 6 {
		return failure(wrongArity(s.cmd.name))
	}
	r := s.protocol.receiptArgs(args[2:4])
	percent := numberArg("percent", args[4], 0, 100)
	var text []byte
	if len(args) == 6 {
		text = textArg("text", args[5], 0, broker.MaxReason)
	}
	return staleIfGone(s.done(tx.Progress(args[1], r[0], int(percent), text)))
}
