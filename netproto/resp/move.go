package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
)

// move replies with the element that it moves. ok is false, and there is no reply, if there is
// none.
func (s *session) move(tx *broker.Tx, from []byte, fromEnd broker.End, to []byte, toEnd broker.End) (ok bool, err error) {
	f, err := tx.MoveEnd(from, fromEnd, to, toEnd)
	if ok = len(f.Packets) > 0; ok {
		s.packets(f, formBulk)
	}
	return ok, err
}

func rpoplpush(s *session, tx *broker.Tx, args [][]byte) error {
	ok, err := s.move(tx, args[1], right, args[2], left)
	if !ok && err == nil {
		s.null()
	}
	return err
}

func lmove(s *session, tx *broker.Tx, args [][]byte) error {
	fromEnd, toEnd, err := endArgs(args)
	if err != nil {
		return err
	}
	ok, err := s.move(tx, args[1], fromEnd, args[2], toEnd)
	if !ok && err == nil {
		s.null()
	}
	return err
}

// endArgs reads the two ends of LMOVE and BLMOVE.
func endArgs(args [][]byte) (from, to broker.End, err error) {
	if from, err = endArg(args[3]); err == nil {
		to, err = endArg(args[4])
	}
	return from, to, err
}
