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
		n, err := tx.Takeable(args[1], broker.Selection{})
		switch {
		case err != nil:
			return err
		case n == 0:
			s.nullArray()
			return nil
		case count == 0:
			s.array(0)
			return nil
		}
		return s.popMany(tx, args[1], end, count, n)
	}
}

// maxPopped is the most elements that one command pops.
const maxPopped = broker.MaxGroup

// popMany replies with an array of up to count elements, which it takes from a list of n.
func (s *session) popMany(tx *broker.Tx, name []byte, end broker.End, count int64, n int) error {
	selection := broker.Selection{End: end, Count: int(min(count, int64(n), maxPopped))}
	return s.pop(tx, name, selection, formArray)
}

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

// popFirst replies with what it takes from the first of the lists that has elements. done is false,
// and there is no reply, if all are empty.
func (s *session) popFirst(tx *broker.Tx, p multiPop) (done bool, err error) {
	for _, name := range s.parked.from(p.keys) {
		if n, err := tx.Takeable(name, broker.Selection{End: p.end, MustFind: true}); err != nil {
			return false, err
		} else if n > 0 {
			return true, s.popNamed(tx, name, p.end, p.count, n)
		}
	}
	return false, nil
}

// popNamed replies with the list's name and an array of up to count elements, which it takes from
// the list of n. With a count of 0 it takes one that is no array.
func (s *session) popNamed(tx *broker.Tx, name []byte, end broker.End, count int64, n int) error {
	s.array(2)
	s.bulk(name)
	if count > 0 {
		return s.popMany(tx, name, end, count, n)
	}
	return s.pop(tx, name, broker.Selection{End: end}, formBulk)
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
