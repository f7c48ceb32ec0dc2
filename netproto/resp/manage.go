package resp

import (
	"bytes"
	"errors"
	"math"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

func qdel(s *session, tx *broker.Tx, args [][]byte) error {
	ids := idArgs(args[2:])
	return s.count(tx.DeletePackets(args[1], ids))
}

// qcancel says of each packet whether it is gone, or its consumer is told; null if there is nothing
// to cancel.
func qcancel(s *session, tx *broker.Tx, args [][]byte) error {
	were, err := tx.Cancel(args[1], idArgs(args[2:]))
	if err != nil {
		return err
	}
	_ = s.array(len(were))
	for _, was := range were {
		switch was {
		case 0:
			err = s.null()
		case broker.Claimed:
			err = s.bulkString("told")
		default:
			err = s.bulkString("gone")
		}
	}
	return err
}

func qmove(s *session, tx *broker.Tx, args [][]byte) error {
	last := len(args) - 2
	if !is(args[last], "to") {
		refuse("ERR TO: expected it before the last argument, as QMOVE with ids takes no options, got %q", quoted(args[last]))
	}
	ids := idArgs(args[2:last])
	s.mayPush(args[last+1])
	return s.count(tx.MovePackets(args[1], ids, args[last+1]))
}

func qprio(s *session, tx *broker.Tx, args [][]byte) error {
	id := idArg(args[2])
	n := numberArg("n", args[3], 0, math.MaxUint32)
	ok, err := tx.SetPriority(args[1], id, uint32(n))
	if errors.Is(err, broker.ErrNoKey) {
		return failure(`ERR n: expected a number from 1 on, as the packet has no key to go with, got "0"`)
	}
	return s.did(ok, err)
}

func qrun(s *session, tx *broker.Tx, args [][]byte) error {
	delay, at := int64(-1), int64(-1)
	parseOptions(args[3:], option{&words.DELAY, &delay}, option{&words.AT, &at})
	if delay >= 0 {
		at = tx.Now() + delay
	}
	return s.did(tx.Reschedule(args[1], idArg(args[2]), at))
}

func qdrop(s *session, tx *broker.Tx, args [][]byte) error {
	if t := tx.Type(args[1]); t != broker.TypeNone && t != broker.TypeList {
		return broker.ErrWrongType
	}
	ok, err := tx.Drop(args[1])
	if err == nil && !ok {
		err = broker.ErrUnknownQueue
	}
	return s.done(err)
}

func qclose(s *session, tx *broker.Tx, args [][]byte) error { return s.did(tx.Close(args[1])) }

// slice makes one slice of a change to many packets, which begin makes from the options that the
// command takes. The command is called again until nothing is left; then it replies how many
// packets were changed, or would be with DRYRUN.
func (s *session) slice(tx *broker.Tx, args [][]byte, begin func() *broker.Bulk, takes ...option) error {
	if s.sliced == nil {
		var f filter
		dryRun := false
		takes = append(takes, option{&words.SHARE, &f.share}, option{&words.FILTER, &f}, option{&words.MATCH, &f.match}, option{&words.DRYRUN, &dryRun})
		parseOptions(args, takes...)
		s.sliced, s.slicing = begin(), s.cmd
		s.sliced.Filter, s.sliced.DryRun = f.broker(), dryRun
	}
	more, err := s.sliced.Slice(tx)
	if more && err == nil {
		return errUnfinished
	}
	done := s.sliced.Done
	s.endSlices()
	return s.count(done, err)
}

func qpurge(s *session, tx *broker.Tx, args [][]byte) error {
	var state broker.State // all
	return s.slice(tx, args[2:], func() *broker.Bulk {
		return broker.Purge(bytes.Clone(args[1]), state)
	}, option{&words.STATE, &state})
}

func qharvest(s *session, tx *broker.Tx, args [][]byte) error {
	var older int64
	var consumer []byte
	return s.slice(tx, args[2:], func() *broker.Bulk {
		return broker.Harvest(bytes.Clone(args[1]), older, string(consumer))
	}, option{&words.OLDER, &older}, option{&words.CONSUMER, &consumer})
}

func qredrive(s *session, tx *broker.Tx, args [][]byte) error {
	var count int64
	var to []byte
	return s.slice(tx, args[2:], func() *broker.Bulk {
		if to != nil {
			s.mayPush(to)
		}
		return broker.Redrive(bytes.Clone(args[1]), int(count), bytes.Clone(to))
	}, option{&words.COUNT, &count}, option{&words.TO, &to})
}

// redriveForm returns the form of QREDRIVE that names a packet, if that is meant.
func redriveForm(args [][]byte) *command {
	if len(args) == 3 && !is(args[2], "dryrun") {
		return &redriveOne
	}
	return nil
}

// redriveOne is QREDRIVE queue id.
var redriveOne = command{name: "qredrive", flags: flagWrite | flagAdds, first: 1, last: 1, step: 1, packets: 2, right: access.Manage, asks: asksFirst, prepare: prepareIDs, run: func(s *session, tx *broker.Tx, args [][]byte) error {
	return s.did(tx.RedrivePacket(args[1], idArg(args[2])))
}}

// moveForm returns the form of QMOVE that names no packets, if that is meant: TO follows the queue
// then.
func moveForm(args [][]byte) *command {
	if is(args[2], "to") {
		return &moveMany
	}
	return nil
}

// moveMany is QMOVE queue TO other, with options.
var moveMany = command{name: "qmove", flags: flagWrite | flagAdds | flagSlices, right: access.Manage, asks: asksFirst, run: func(s *session, tx *broker.Tx, args [][]byte) error {
	s.mayPush(args[3])
	var state broker.State // all
	var count int64
	return s.slice(tx, args[4:], func() *broker.Bulk {
		return broker.Move(bytes.Clone(args[1]), state, int(count), bytes.Clone(args[3]))
	}, option{&words.COUNT, &count}, option{&words.STATE, &state})
}}

// prepareIDs prepares a command that names packets by their ids.
func prepareIDs(tx *broker.Tx, _ [][]byte) (done int, more bool) { return tx.PrepareIDs() }
