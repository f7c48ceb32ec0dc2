package resp

import (
	"bytes"
	"errors"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
)

// take is what QPOP and QCLAIM ask for.
type take struct {
	queues    [][]byte
	selection broker.Selection
	claims    bool  // the packets come back unless they are acknowledged
	lease     int64 // 0: the queue's own
	consumer  []byte
	block     int64 // how long it may wait, 0 for ever; -1: not at all
}

var (
	popOptions   = oneOf(optCount, optNewest, optOldest, optGroup, optBlock) | filterOptions
	claimOptions = popOptions | oneOf(optLease, optConsumer)
)

// takeArgs reads the arguments. The names of queues end at the first word that is an option of
// QCLAIM; the first name may be such a word. QPOP ends them there too, and refuses LEASE and
// CONSUMER: it would take for good what was to be claimed.
func (s *session) takeArgs(args [][]byte, takes optionSet) (t take, err error) {
	n := 2
	for n < len(args) && n <= broker.MaxSubscriptions+1 {
		if _, ok := claimOptions.find(args[n]); ok {
			break
		}
		n++
	}
	if n > broker.MaxSubscriptions+1 {
		return t, failure(errNames)
	}
	if n > 2 && len(slices.CompactFunc(slices.SortedFunc(slices.Values(args[1:n]), bytes.Compare), bytes.Equal)) < n-1 {
		return t, failure("ERR a queue is named twice: expected each once")
	}
	o, err := parseOptions(args[n:], takes)
	switch {
	case err != nil:
		return t, err
	case o.has(optGroup) && o.has(optCount):
		return t, failure("ERR GROUP, COUNT: expected one of the two")
	}
	t = take{
		queues:   args[1:n],
		claims:   takes.has(optLease),
		lease:    o.number(optLease, 0),
		consumer: o.text(optConsumer),
		block:    o.number(optBlock, -1),
		selection: broker.Selection{
			End: broker.Oldest, Count: int(o.number(optCount, 0)), Group: o.has(optGroup), Filter: o.tagFilter(), WithDetails: true, MustFind: true,
		},
	}
	if o.has(optNewest) {
		t.selection.End = broker.Newest
	}
	if t.claims && t.consumer == nil {
		t.consumer = s.consumerName()
	}
	return t, nil
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
		if err == nil {
			s.packets(formPackets, f, nil)
		}
		return err
	}
	f, err := tx.Pop(queue, t.selection)
	if err == nil {
		s.packets(formPopped, f, nil)
	}
	return err
}

func qpop(s *session, tx *broker.Tx, args [][]byte) error { return s.take(tx, args, popOptions) }

func qclaim(s *session, tx *broker.Tx, args [][]byte) error { return s.take(tx, args, claimOptions) }

func (s *session) take(tx *broker.Tx, args [][]byte, takes optionSet) error {
	t, err := s.takeArgs(args, takes)
	if err != nil {
		return err
	}
	if err := s.useFilter(tx, t.selection.Filter, t.queues...); err != nil {
		return err
	}
	switch err = t.fromFirst(s, tx); {
	case err != broker.ErrNothing:
		return err
	case tx.Drained(t.queues):
		return broker.ErrQueueClosed
	case t.block < 0:
		s.array(0)
		return nil
	case s.inExec:
		s.nullArray()
		return nil
	}
	p := broker.Parking{Queues: t.queues, Filter: t.selection.Filter, As: t.consumer}
	if t.block > 0 {
		p.Until = tx.Steady() + t.block
	}
	return s.park(tx, p)
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
	receipts, err := s.protocol.receiptArgs(args[2:])
	if err != nil {
		return err
	}
	n, err := tx.Ack(args[1], receipts)
	if err != nil && (len(receipts) == 1 || !errors.Is(err, broker.ErrStale)) {
		return staleIfGone(err)
	}
	s.int(int64(n))
	return nil
}

// receiptArg reads an id and its token.
func (p *Protocol) receiptArg(args [][]byte) (broker.Receipt, error) {
	r, err := p.receiptArgs(args[:2])
	if err != nil {
		return broker.Receipt{}, err
	}
	return r[0], nil
}

// nackArgs reads the arguments of QNACK.
func (p *Protocol) nackArgs(args [][]byte) (r broker.Receipt, n broker.Nack, err error) {
	if r, err = p.receiptArg(args[2:]); err != nil {
		return r, n, err
	}
	o, err := parseOptions(args[4:], oneOf(optDelay, optAt, optReason, optDead))
	if err == nil {
		err = o.delayOrAt()
	}
	n = broker.Nack{Delay: o.number(optDelay, -1), At: o.number(optAt, 0), Reason: o.text(optReason), Dead: o.has(optDead)}
	if o.has(optAt) {
		n.Delay = 0 // a moment that is past
	}
	return r, n, err
}

func qnack(s *session, tx *broker.Tx, args [][]byte) error {
	r, n, err := s.protocol.nackArgs(args)
	if err != nil {
		return err
	}
	state, err := tx.Nack(args[1], r, n)
	switch {
	case err != nil:
		return staleIfGone(err)
	case state == 0:
		s.bulkString("expired")
	default:
		s.bulkString(state.String())
	}
	return nil
}

func qextend(s *session, tx *broker.Tx, args [][]byte) error {
	r, err := s.protocol.receiptArg(args[2:])
	if err != nil {
		return err
	}
	lease, err := numberArg("ms", args[4], 1, broker.MaxTime)
	if err != nil {
		return err
	}
	end, err := tx.Extend(args[1], r, lease)
	if err == nil {
		s.int(end)
	}
	return staleIfGone(err)
}

func qprogress(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args) > 6 {
		return failure(wrongArity(s.cmd.name))
	}
	r, err := s.protocol.receiptArg(args[2:])
	if err != nil {
		return err
	}
	percent, err := numberArg("percent", args[4], 0, 100)
	if err != nil {
		return err
	}
	var text []byte
	if len(args) == 6 {
		text = args[5]
	}
	if err = checkText("text", text, 0, broker.MaxReason); err != nil {
		return err
	}
	if err = tx.Progress(args[1], r, int(percent), text); err == nil {
		s.ok()
	}
	return staleIfGone(err)
}
