package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

func listCommands() []command {
	return []command{
		{name: "lpush", flags: flagWrite | flagAdds | flagFast | flagPayload, elements: 2, per: 1, run: pushTo(left)},
		{name: "rpush", flags: flagWrite | flagAdds | flagFast | flagPayload, elements: 2, per: 1, run: pushTo(right)},
		{name: "lpushx", flags: flagWrite | flagAdds | flagFast | flagPayload, elements: 2, per: 1, run: pushOnto(left)},
		{name: "rpushx", flags: flagWrite | flagAdds | flagFast | flagPayload, elements: 2, per: 1, run: pushOnto(right)},
		{name: "lpop", flags: flagWrite | flagFast, run: popFrom(left)},
		{name: "rpop", flags: flagWrite | flagFast, run: popFrom(right)},
		{name: "lmpop", flags: flagWrite, asks: asksCounted(1), run: lmpop},
		{name: "llen", flags: flagRead | flagFast, run: llen},
		{name: "lrange", flags: flagRead, run: lrange},
		{name: "lindex", flags: flagRead, run: lindex},
		{name: "lset", flags: flagWrite | flagCostly | flagAdds | flagPayload, right: access.Manage, run: lset},
		{name: "linsert", flags: flagWrite | flagCostly | flagAdds | flagPayload, right: access.Push | access.Look, prepare: prepareSearch, run: linsert},
		{name: "lrem", flags: flagWrite | flagCostly | flagPayload, prepare: prepareSearch, run: lrem},
		{name: "ltrim", flags: flagWrite | flagCostly, run: ltrim},
		{name: "lpos", flags: flagRead | flagPayload, prepare: prepareSearch, run: lpos},
		{name: "rpoplpush", flags: flagWrite | flagAdds, right: access.Take, second: access.Push, run: rpoplpush},
		{name: "lmove", flags: flagWrite | flagAdds, right: access.Take, second: access.Push, run: lmove},
		{name: "blpop", flags: flagWrite | flagBlocking, run: blockPopFrom(left)},
		{name: "brpop", flags: flagWrite | flagBlocking, run: blockPopFrom(right)},
		{name: "blmpop", flags: flagWrite | flagBlocking, asks: asksCounted(2), run: blmpop},
		{name: "brpoplpush", flags: flagWrite | flagAdds | flagBlocking, right: access.Take, second: access.Push, run: rpoplpush},
		{name: "blmove", flags: flagWrite | flagAdds | flagBlocking, right: access.Take, second: access.Push, run: lmove},
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
	l.head = wire.AppendHead(nil, '*', int64(l.found))
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
	if err != nil || n == 0 {
		return s.done(err)
	}
	from, count := extent(first, last, n)
	if s.inExec {
		return s.done(tx.Trim(args[1], from, count))
	}
	return s.inSlices(func() (more bool, err error) {
		if err = tx.TrimInSlices(args[1], from, count, &s.look.list); !s.look.list.More() {
			err = s.done(err)
		}
		return s.look.list.More(), err
	})
}
