package resp

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// push is what QPUSH and QMPUSH ask for.
type push struct {
	broker.PushRequest
	payloads [][]byte
	many     bool  // QMPUSH: the reply is an array
	block    int64 // how long it may wait, 0 for ever; -1: as the queue's settings say
}

// mpushOptions are those of QMPUSH, and pushOptions those of QPUSH.
var (
	mpushOptions = oneOf(optPrio, optKey, optTTL, optDelay, optAt, optTag, optProducer, optBlock)
	pushOptions  = mpushOptions | oneOf(optUnique, optWindow)
)

// pushArgs reads the options of a push of payloads to a queue.
func pushArgs(queue []byte, payloads, args [][]byte, takes optionSet) (p push, err error) {
	o, err := parseOptions(args, takes)
	if err != nil {
		return p, err
	}
	p = push{payloads: payloads, block: o.number(optBlock, -1), PushRequest: broker.PushRequest{
		Queue:    queue,
		Priority: uint32(o.number(optPrio, broker.ListPriority)),
		TTL:      time.Duration(o.number(optTTL, 0)) * time.Millisecond,
		Key:      o.text(optKey),
		Delay:    o.number(optDelay, 0),
		At:       o.number(optAt, 0),
		Tags:     o.tags,
		Producer: string(o.text(optProducer)),
		Unique:   o.text(optUnique),
		Window:   o.number(optWindow, 0),
		Block:    o.has(optBlock),
	}}
	if err := o.delayOrAt(); err != nil {
		return p, err
	}
	if p.Window > 0 && p.Unique == nil {
		return p, failure("ERR WINDOW: expected UNIQUE with it")
	}
	if p.Priority == 0 && p.Key == nil {
		return p, failure("ERR PRIO: expected a number from 1 on, as the packet has no KEY to go with, got \"0\"")
	}
	return p, nil
}

// parsePush reads the arguments of a push.
type parsePush func(args [][]byte) (push, error)

func qpushArgs(args [][]byte) (push, error) {
	return pushArgs(args[1], args[2:3], args[3:], pushOptions)
}

func qmpushArgs(args [][]byte) (push, error) {
	payloads, rest, err := payloadArgs(args[2:])
	if err != nil {
		return push{}, err
	}
	p, err := pushArgs(args[1], payloads, rest, mpushOptions)
	p.many = true
	return p, err
}

// payloadArgs divides the arguments of QMPUSH behind the queue into payloads and options.
func payloadArgs(args [][]byte) (payloads, rest [][]byte, err error) {
	n, err := numberArg("n", args[0], 1, broker.MaxCount)
	switch {
	case err != nil:
		return nil, nil, err
	case n > int64(len(args)-1):
		return nil, nil, failure(fmt.Sprintf("ERR n: expected %d payloads behind it, got %d", n, len(args)-1))
	}
	return args[1 : n+1], args[n+1:], nil
}

func qpush(s *session, tx *broker.Tx, args [][]byte) error { return s.pushOrWait(tx, args, qpushArgs) }

func qmpush(s *session, tx *broker.Tx, args [][]byte) error {
	return s.pushOrWait(tx, args, qmpushArgs)
}

// pushOrWait makes a push, or lets it wait if its queue has no room for it now.
func (s *session) pushOrWait(tx *broker.Tx, args [][]byte, parse parsePush) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	err = p.make(s, tx)
	if s.inExec || !p.waits(tx, err) {
		return p.dropped(s, err)
	}
	wait := broker.Parking{Queues: args[1:2], Push: true}
	if p.block > 0 {
		wait.Until = tx.Steady() + p.block
	}
	if err = s.park(tx, wait); err == nil {
		s.parked.one = !p.many
	}
	return err
}

// make pushes, and replies with the ids.
func (p *push) make(s *session, tx *broker.Tx) error {
	if !p.many {
		p.Payload = p.payloads[0]
		id, err := tx.Push(p.PushRequest)
		if err == nil {
			s.packetID(id)
		}
		return err
	}
	id, err := tx.PushAll(p.PushRequest, p.payloads)
	if err != nil {
		return err
	}
	s.array(len(p.payloads))
	for range p.payloads {
		s.packetID(id)
		id++
	}
	return nil
}

// waits says that a push which was refused with an error waits.
func (p *push) waits(tx *broker.Tx, err error) bool {
	if !errors.Is(err, broker.ErrFull) && !errors.Is(err, broker.ErrPaused) {
		return false
	}
	settings, _, _ := tx.Settings(p.Queue)
	return p.Block || settings.Full == broker.FullBlock
}

// dropped replies with nulls in place of the ids if what was pushed is not worth its place. Any
// other error it returns.
func (p *push) dropped(s *session, err error) error {
	if !errors.Is(err, broker.ErrDropped) || p.Block {
		return err
	}
	if p.many {
		s.array(len(p.payloads))
	}
	for range p.payloads {
		s.null()
	}
	return nil
}

func (s *session) packetID(id broker.ID) {
	var text [maxIntText]byte
	s.bulk(appendInt(text[:0], int64(id)))
}
