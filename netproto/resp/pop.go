package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
)

func popFrom(end broker.End) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		if len(args) > 3 {
			return failure(wrongArity(s.cmd.name))
		}
		if len(args) < 3 {
			return s.pop(tx, args[1], broker.Selection{End: end}, formBulk)
		}
		count, err := countArg(args[2], 0, "ERR value is out of range, must be positive")
		if err != nil {
			return err
		}
		if count > 0 {
			return s.pop(tx, args[1], broker.Selection{End: end, Count: int(min(count, maxPopped))}, formArray)
		}
		if n, err := tx.Len(args[1]); err != nil || n > 0 {
			s.array(0)
			return err
		}
		s.nullArray()
		return nil
	}
}

// maxPopped is the most elements that one command pops.
const maxPopped = broker.MaxGroup

// pop replies with what it takes.
func (s *session) pop(tx *broker.Tx, name []byte, selection broker.Selection, form replyForm) error {
	f, err := tx.Pop(name, selection)
	if err == nil {
		s.packets(f, form)
	}
	return err
}

// multiPop are the arguments of LMPOP and BLMPOP behind the timeout.
type multiPop struct {
	keys  [][]byte
	end   broker.End
	count int64
}

func parseMultiPop(args [][]byte) (p multiPop, err error) {
	n, err := countArg(args[0], 1, "ERR numkeys should be greater than 0")
	if err != nil {
		return p, err
	}
	if n >= int64(len(args)-1) {
		return p, failure(errSyntax)
	}
	if n > broker.MaxSubscriptions {
		return p, failure(errNames)
	}
	p.keys, args, p.count = args[1:n+1], args[n+1:], 1
	if p.end, err = endArg(args[0]); err != nil {
		return p, err
	}
	switch {
	case len(args) == 1:
		return p, nil
	case len(args) >= 3 && is(args[1], "count"):
		p.count, err = countArg(args[2], 1, "ERR count should be greater than 0")
		if err == nil && len(args) > 3 {
			err = failure(errSyntax)
		}
		return p, err
	}
	return p, failure(errSyntax)
}

// popFirst replies with the name of the first of the lists that has elements, and an array of those
// that it takes. With a count of 0 it takes one that is no array. done is false, and there is no
// reply, if all are empty.
func (s *session) popFirst(tx *broker.Tx, p multiPop) (done bool, err error) {
	selection := broker.Selection{End: p.end, Count: int(min(p.count, maxPopped)), MustFind: true}
	form := formArray
	if p.count == 0 {
		form = formBulk
	}
	for _, name := range s.parked.from(p.keys) {
		f, err := tx.Pop(name, selection)
		switch {
		case err == nil:
			s.array(2)
			s.bulk(name)
			s.packets(f, form)
			return true, nil
		case err != broker.ErrNothing:
			return false, err
		}
	}
	return false, nil
}

func lmpop(s *session, tx *broker.Tx, args [][]byte) error {
	p, err := parseMultiPop(args[1:])
	if err != nil {
		return err
	}
	done, err := s.popFirst(tx, p)
	if !done && err == nil {
		s.nullArray()
	}
	return err
}
