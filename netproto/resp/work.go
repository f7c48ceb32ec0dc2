package resp

import (
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// The work queue: packets that are claimed, and acknowledged or returned. Their commands are
// Holdfast's own. Times are in milliseconds.

func workCommands() []command {
	const read, write = flagRead, flagWrite
	return []command{
		{name: "qpush", arity: -3, flags: write | flagAdds | flagPush | flagFast, first: 1, last: 1, step: 1, room: qpushRoom, run: qpush},
		{name: "qmpush", arity: -4, flags: write | flagAdds | flagPush, first: 1, last: 1, step: 1, room: qmpushRoom, run: qmpush},
		{name: "qpop", arity: -2, flags: write | flagBlocking, room: qpopRoom, run: qpop},
		{name: "qclaim", arity: -2, flags: write | flagBlocking, room: qclaimRoom, run: qclaim},
		{name: "qack", arity: -4, flags: write, first: 1, last: 1, step: 1, room: qackRoom, run: qack},
		{name: "qnack", arity: -4, flags: write, first: 1, last: 1, step: 1, room: qnackRoom, run: qnack},
		{name: "qextend", arity: 5, flags: write | flagFast, first: 1, last: 1, step: 1, room: qextendRoom, run: qextend},
		{name: "qprogress", arity: -5, flags: write | flagFast, first: 1, last: 1, step: 1, run: qprogress},
		{name: "qpeek", arity: -2, flags: read, first: 1, last: 1, step: 1, run: qpeek},
		{name: "qlist", arity: -2, flags: read, first: 1, last: 1, step: 1, run: qlist},
		{name: "qshow", arity: 3, flags: read, first: 1, last: 1, step: 1, run: qshow},
		{name: "qdel", arity: -3, flags: write, first: 1, last: 1, step: 1, room: qdelRoom, run: qdel},
		{name: "qmove", arity: -4, flags: write, first: 1, last: 1, step: 1, room: qmoveRoom, run: qmove, form: moveForm},
		{name: "qprio", arity: 4, flags: write | flagFast, first: 1, last: 1, step: 1, room: qprioRoom, run: qprio},
		{name: "qpurge", arity: -2, flags: write | flagSlices, first: 1, last: 1, step: 1, run: qpurge},
		{name: "qharvest", arity: -2, flags: write | flagSlices, first: 1, last: 1, step: 1, run: qharvest},
		{name: "qredrive", arity: -2, flags: write | flagSlices, first: 1, last: 1, step: 1, run: qredrive},
		{name: "qset", arity: -4, flags: write | flagAdds, first: 1, last: 1, step: 1, room: qsetRoom, run: qset},
		{name: "qget", arity: 2, flags: read | flagFast, first: 1, last: 1, step: 1, run: qget},
		{name: "qclose", arity: 2, flags: write | flagAdds | flagFast, first: 1, last: 1, step: 1, room: qcloseRoom, run: qclose},
		{name: "qdrop", arity: 2, flags: write, first: 1, last: 1, step: 1, room: delRoom, run: qdrop},
		{name: "queues", arity: -1, flags: read, run: queues},
		{name: "qlen", arity: 2, flags: read | flagFast, first: 1, last: 1, step: 1, run: qlen},
		{name: "qstat", arity: 2, flags: read, first: 1, last: 1, step: 1, run: qstat},
		{name: "qconsumers", arity: 2, flags: read, first: 1, last: 1, step: 1, run: qconsumers},
	}
}

// defaultPriority is that of a packet pushed without one.
const defaultPriority = 100

// mpushOptions are those of QMPUSH, and pushOptions those of QPUSH.
var (
	mpushOptions = oneOf(optPrio, optKey, optTTL, optDelay, optTag, optProducer)
	pushOptions  = mpushOptions | oneOf(optUnique, optWindow)
)

// pushArgs reads the options of a push of something to a queue.
func pushArgs(queue []byte, args [][]byte, takes optionSet) (r broker.PushRequest, err error) {
	o, err := parseOptions(args, takes)
	if err != nil {
		return r, err
	}
	r = broker.PushRequest{
		Queue:    queue,
		Priority: uint32(o.number(optPrio, defaultPriority)),
		TTL:      time.Duration(o.number(optTTL, 0)) * time.Millisecond,
		Key:      o.text(optKey),
		Delay:    o.number(optDelay, 0),
		Tags:     o.tags,
		Producer: string(o.text(optProducer)),
		Unique:   o.text(optUnique),
		Window:   o.number(optWindow, 0),
	}
	if r.Window > 0 && r.Unique == nil {
		return r, failure("ERR WINDOW: expected UNIQUE with it")
	}
	if r.Priority == 0 && r.Key == nil {
		return r, failure("ERR PRIO: expected a number from 1 on, as the packet has no KEY to go with, got \"0\"")
	}
	return r, nil
}

func (s *session) packetID(id broker.ID) {
	var text [maxIntText]byte
	s.bulk(appendInt(text[:0], int64(id)))
}

func qpush(s *session, tx *broker.Tx, args [][]byte) error {
	r, err := pushArgs(args[1], args[3:], pushOptions)
	if err != nil {
		return err
	}
	r.Payload = args[2]
	id, err := tx.Push(r)
	if err == nil {
		s.packetID(id)
	}
	return err
}

// argRoom is what an argument of a push may bring besides its bytes: three of them are a tag.
const argRoom = 4

func qpushRoom(_ *session, _ *broker.Tx, args [][]byte) broker.Room {
	room := broker.Room{Records: 2, Bytes: bytesOf(args[1:]) + argRoom*len(args)}
	for _, arg := range args[3:] {
		if is(arg, rules[optWindow].word) {
			return room.Plus(broker.WindowRoom(args[1]))
		}
	}
	return room
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

func qmpush(s *session, tx *broker.Tx, args [][]byte) error {
	payloads, rest, err := payloadArgs(args[2:])
	if err != nil {
		return err
	}
	r, err := pushArgs(args[1], rest, mpushOptions)
	if err != nil {
		return err
	}
	for _, r.Payload = range payloads { // all or none
		if err := tx.CheckSize(r); err != nil {
			return err
		}
	}
	s.array(len(payloads))
	for _, r.Payload = range payloads {
		id, err := tx.Push(r)
		if err != nil {
			return err
		}
		s.packetID(id)
	}
	return nil
}

// qmpushRoom counts the queue and the options with each packet, as Push does.
func qmpushRoom(_ *session, _ *broker.Tx, args [][]byte) broker.Room {
	payloads, rest, err := payloadArgs(args[2:])
	if err != nil {
		return broker.Room{}
	}
	n := len(payloads)
	return broker.Room{Records: 2 * n, Bytes: bytesOf(payloads) + n*(len(args[1])+bytesOf(rest)+argRoom*len(rest))}
}
