package resp

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// push is what QPUSH and QMPUSH ask for.
type push struct {
	broker.PushRequest
	payloads [][]byte
	many     bool  // QMPUSH: the reply is an array
	block    int64 // how long it may wait, 0 for ever; -1: as the queue's settings say
}

// parse reads the options of the push.
func (p *push) parse(args [][]byte) {
	p.block, p.Delay, p.At = -1, -1, -1
	priority, ttl := int64(broker.ListPriority), int64(0)
	var producer []byte
	var unique, window, holds, replace, tell any = &p.Unique, &p.Window, (*untilClaim)(&p.UntilClaim), &p.Replace, &p.Tell
	if p.many {
		unique, window, holds, replace, tell = nil, nil, nil, nil, nil
	}
	parseOptions(args,
		option{&words.PRIO, &priority},
		option{&words.TTL, &ttl},
		option{&words.DELAY, &p.Delay},
		option{&words.AT, &p.At},
		option{&words.BLOCK, &p.block},
		option{&words.WINDOW, window},
		option{&words.HOLDS, holds},
		option{&words.REPLACE, replace},
		option{&words.TELL, tell},
		option{&words.KEY, &p.Key},
		option{&words.PRODUCER, &producer},
		option{&words.LEASE, &p.Lease},
		option{&words.META, &p.Meta},
		option{&words.UNIQUE, unique},
		option{&words.TAG, &p.Tags},
	)
	if priority == 0 && p.Key == nil {
		refuse("ERR PRIO: expected a number from 1 on, as the packet has no KEY to go with, got \"0\"")
	}
	p.Priority, p.TTL, p.Producer = uint32(priority), time.Duration(ttl)*time.Millisecond, string(producer)
	p.Block = p.block >= 0
}

// prepareTwin prepares a push that finds the packet that has its id.
func prepareTwin(tx *broker.Tx, args [][]byte) (done int, more bool) {
	if slices.ContainsFunc(args[3:], func(word []byte) bool { return is(word, "replace") || is(word, "tell") }) {
		return tx.PrepareIDs()
	}
	return 0, false
}

func qpush(s *session, tx *broker.Tx, args [][]byte) error {
	p := push{payloads: args[2:3]}
	return p.makeOrWait(s, tx, args[3:])
}

func qmpush(s *session, tx *broker.Tx, args [][]byte) error {
	n := numberArg("n", args[2], 1, broker.MaxCount)
	if n > int64(len(args)-3) {
		refuse("ERR n: expected %d payloads behind it, got %d", n, len(args)-3)
	}
	p := push{payloads: args[3 : n+3], many: true}
	return p.makeOrWait(s, tx, args[n+3:])
}

// makeOrWait makes a push with options, or lets it wait if its queue has no room for it now.
func (p *push) makeOrWait(s *session, tx *broker.Tx, args [][]byte) error {
	p.Queue = s.args[1]
	p.parse(args)
	s.mayChange(p.Queue, p.Replace)
	err := p.make(s, tx)
	if s.inExec || !p.waits(tx, err) {
		return p.dropped(s, err)
	}
	if err = s.park(tx, broker.Parking{Queues: s.args[1:2], Push: true, Until: until(tx, p.block)}); err == nil {
		s.parked.one = !p.many
	}
	return err
}

// until is the moment on the steady clock at which a request that waits for block milliseconds
// ends, 0 for never.
func until(tx *broker.Tx, block int64) int64 {
	if block <= 0 {
		return 0
	}
	return tx.Steady() + block
}

// make pushes, and replies with the ids.
func (p *push) make(s *session, tx *broker.Tx) error {
	if !p.many {
		p.Payload = p.payloads[0]
		id, told, err := tx.PushTold(p.PushRequest)
		switch {
		case err != nil:
		case p.Tell:
			s.array(2)
			s.packetID(id)
			s.bulk([]byte(told))
		default:
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
	if errors.Is(err, broker.ErrShareFull) || !errors.Is(err, broker.ErrFull) && !errors.Is(err, broker.ErrPaused) {
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
	var text [wire.MaxIntText]byte
	s.bulk(appendInt(text[:0], int64(id)))
}
