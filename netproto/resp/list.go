package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func listCommands() []command {
	return []command{
		{name: "lpush", arity: -3, flags: flagWrite | flagAdds | flagFast | flagPayload, first: 1, last: 1, step: 1, elements: 2, per: 1, run: pushTo(left)},
		{name: "rpush", arity: -3, flags: flagWrite | flagAdds | flagFast | flagPayload, first: 1, last: 1, step: 1, elements: 2, per: 1, run: pushTo(right)},
		{name: "lpushx", arity: -3, flags: flagWrite | flagAdds | flagFast | flagPayload, first: 1, last: 1, step: 1, elements: 2, per: 1, run: pushOnto(left)},
		{name: "rpushx", arity: -3, flags: flagWrite | flagAdds | flagFast | flagPayload, first: 1, last: 1, step: 1, elements: 2, per: 1, run: pushOnto(right)},
		{name: "lpop", arity: -2, flags: flagWrite | flagFast, first: 1, last: 1, step: 1, run: popFrom(left)},
		{name: "rpop", arity: -2, flags: flagWrite | flagFast, first: 1, last: 1, step: 1, run: popFrom(right)},
		{name: "lmpop", arity: -4, flags: flagWrite, asks: asksCounted(1), run: lmpop},
		{name: "llen", arity: 2, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: llen},
		{name: "lrange", arity: 4, flags: flagRead, first: 1, last: 1, step: 1, run: lrange},
		{name: "lindex", arity: 3, flags: flagRead, first: 1, last: 1, step: 1, run: lindex},
		{name: "lset", arity: 4, flags: flagWrite | flagCostly | flagAdds | flagPayload, first: 1, last: 1, step: 1, right: access.Manage, run: lset},
		{name: "linsert", arity: 5, flags: flagWrite | flagCostly | flagAdds | flagPayload, first: 1, last: 1, step: 1, right: access.Push | access.Look, prepare: prepareSearch, run: linsert},
		{name: "lrem", arity: 4, flags: flagWrite | flagCostly | flagPayload, first: 1, last: 1, step: 1, prepare: prepareSearch, run: lrem},
		{name: "ltrim", arity: 4, flags: flagWrite | flagCostly, first: 1, last: 1, step: 1, run: ltrim},
		{name: "lpos", arity: -3, flags: flagRead | flagPayload, first: 1, last: 1, step: 1, prepare: prepareSearch, run: lpos},
		{name: "rpoplpush", arity: 3, flags: flagWrite | flagAdds, first: 1, last: 2, step: 1, right: access.Take, second: access.Push, run: rpoplpush},
		{name: "lmove", arity: 5, flags: flagWrite | flagAdds, first: 1, last: 2, step: 1, right: access.Take, second: access.Push, run: lmove},
		{name: "blpop", arity: -3, flags: flagWrite | flagBlocking, first: 1, last: -2, step: 1, run: blockPopFrom(left)},
		{name: "brpop", arity: -3, flags: flagWrite | flagBlocking, first: 1, last: -2, step: 1, run: blockPopFrom(right)},
		{name: "blmpop", arity: -5, flags: flagWrite | flagBlocking, asks: asksCounted(2), run: blmpop},
		{name: "brpoplpush", arity: 4, flags: flagWrite | flagAdds | flagBlocking, first: 1, last: 2, step: 1, right: access.Take, second: access.Push, run: rpoplpush},
		{name: "blmove", arity: 6, flags: flagWrite | flagAdds | flagBlocking, first: 1, last: 2, step: 1, right: access.Take, second: access.Push, run: lmove},
	}
}

// extent turns the first and last position of a range, which count from the right end if they are
// negative, into a position and a number of elements. n is the length of the list.
func extent(first, last int64, n int) (from, count int) {
	if first < 0 {
		first = max(first+int64(n), 0)
	}
	if last < 0 {
		last += int64(n)
	}
	last = min(last, int64(n)-1)
	if first > last {
		return 0, 0
	}
	return int(first), int(last - first + 1)
}

// element reads an index, which counts from the right end if it is negative, and returns where that
// element is; ok is false if there is none. n is the length of the list: an empty one takes any
// index.
func element(tx *broker.Tx, name, index []byte) (at, n int, ok bool, err error) {
	if n, err = tx.Len(name); err != nil || n == 0 {
		return 0, n, false, err
	}
	i := intArg(index)
	if i < 0 {
		i += int64(n)
	}
	return int(i), n, 0 <= i && i < int64(n), nil
}

func pushTo(end broker.End) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		return s.count(tx.PushEnd(args[1], end, args[2:]))
	}
}

// pushOnto is pushTo for a list that must exist.
func pushOnto(end broker.End) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		n, err := tx.Len(args[1])
		if err == nil && n > 0 {
			n, err = tx.PushEnd(args[1], end, args[2:])
		}
		return s.count(n, err)
	}
}

func llen(s *session, tx *broker.Tx, args [][]byte) error { return s.count(tx.Len(args[1])) }

func lrange(s *session, tx *broker.Tx, args [][]byte) error {
	first, last, l := intArg(args[2]), intArg(args[3]), &s.look
	err := s.inSlices(func() (bool, error) {
		if !l.list.More() {
			n, err := tx.Len(args[1])
			if err != nil {
				return false, err
			}
			from, count := extent(first, last, n)
			if err := tx.Elements(args[1], from, count, &l.list); err != nil || count == 0 {
				return false, err
			}
		}
		f, err := tx.NextElements(args[1], &l.list, broker.LookSlice)
		if err != nil || !s.fits(sizeOf(f.Packets)) {
			return false, err
		}
		l.found += len(f.Packets)
		return l.list.More(), s.packets(formBulks, f, nil)
	})
	l.head = appendHead(nil, '*', int64(l.found))
	return err
}

func lindex(s *session, tx *broker.Tx, args [][]byte) error {
	return s.inSlices(func() (bool, error) {
		at, _, ok, err := element(tx, args[1], args[2])
		if err != nil || !ok {
			s.null()
			return false, err
		}
		f, err := tx.Element(args[1], at)
		return false, s.packets(formBulk, f, err)
	})
}

func lset(s *session, tx *broker.Tx, args [][]byte) error {
	at, n, ok, err := element(tx, args[1], args[2])
	switch {
	case err != nil:
		return err
	case n == 0:
		return failure(errNoKey)
	case !ok:
		return failure(errOutOfRange)
	}
	_, err = tx.SetAt(args[1], at, args[3])
	return s.done(err)
}

func ltrim(s *session, tx *broker.Tx, args [][]byte) error {
	first, last := intArg(args[2]), intArg(args[3])
	n, err := tx.Len(args[1])
	if err == nil && n > 0 {
		from, count := extent(first, last, n)
		err = tx.Trim(args[1], from, count)
	}
	return s.done(err)
}
