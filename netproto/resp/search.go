package resp

import (
	"math"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// prepareSearch prepares a command that searches the list args[1] by a value.
func prepareSearch(tx *broker.Tx, args [][]byte) (done int, more bool) {
	return tx.PrepareSearch(args[1])
}

func linsert(s *session, tx *broker.Tx, args [][]byte) error {
	after := is(args[2], "after")
	if !after && !is(args[2], "before") {
		return failure(errSyntax)
	}
	n, err := tx.Len(args[1])
	if err != nil || n == 0 {
		return s.count(0, err)
	}
	var c broker.ListCursor
	at, err := tx.Find(args[1], args[3], left, 0, 1, &c, nil)
	c.End()
	if err != nil || len(at) == 0 {
		return s.count(-1, err)
	}
	if after {
		at[0]++
	}
	return s.count(tx.InsertAt(args[1], at[0], args[4]))
}

// lrem counts from the left, or with a negative count from the right.
func lrem(s *session, tx *broker.Tx, args [][]byte) error {
	most := intArg(args[2])
	end := left
	if most < 0 {
		end, most = right, -max(most, -math.MaxInt64)
	}
	return s.count(tx.RemoveValue(args[1], args[3], end, int(most)))
}

// lpos replies with positions from the left, whichever end the search begins at.
func lpos(s *session, tx *broker.Tx, args [][]byte) error {
	o, l := lposOptions{rank: 1, count: -1, end: left}, &s.look
	o.parse(args[3:])
	err := s.inSlices(func() (bool, error) {
		n, err := tx.Len(args[1])
		if err != nil || !l.list.More() && o.rank > int64(n) {
			return false, err
		}
		at, err := tx.Find(args[1], args[2], o.end, int(o.rank-1), o.most()-l.found, &l.list, nil)
		fit := o.choose(at, n)
		for _, i := range fit {
			s.int(int64(i))
		}
		l.found += len(fit)
		return len(fit) == len(at) && l.found < o.most() && l.list.More(), err
	})
	switch {
	case o.count >= 0:
		l.head = wire.AppendHead(nil, '*', int64(l.found))
	case l.found == 0 && err == nil:
		s.null()
	}
	return err
}

// lposOptions are the options of LPOS.
type lposOptions struct {
	rank   int64      // the first match that counts, from 1
	count  int64      // matches at most; 0 for maxPlaces, -1 for one that is no array
	maxLen int64      // elements to compare at most; 0 for all
	end    broker.End // where the search begins
}

func (o *lposOptions) parse(args [][]byte) {
	for ; len(args) > 0; args = args[2:] {
		switch {
		case len(args) == 1:
			refuse(errSyntax)
		case is(args[0], "rank"):
			if o.rank = intArg(args[1]); o.rank == 0 {
				refuse(errRank)
			}
		case is(args[0], "count"):
			o.count = countArg(args[1], 0, "ERR COUNT can't be negative")
		case is(args[0], "maxlen"):
			o.maxLen = countArg(args[1], 0, "ERR MAXLEN can't be negative")
		default:
			refuse(errSyntax)
		}
	}
	if o.rank < 0 {
		o.end, o.rank = right, -max(o.rank, -math.MaxInt64)
	}
}

// maxPlaces is how many positions LPOS replies with, at most.
const maxPlaces = 1<<16 - 1

// most returns how many matches are wanted.
func (o *lposOptions) most() int {
	count := max(o.count, -o.count)
	if count == 0 || count > maxPlaces {
		count = maxPlaces
	}
	return int(count)
}

// choose returns what counts of the matches in a list of n.
func (o *lposOptions) choose(at []int, n int) []int {
	for i, position := range at {
		distance := position
		if o.end == right {
			distance = n - 1 - position
		}
		if o.maxLen > 0 && int64(distance) >= o.maxLen {
			return at[:i]
		}
	}
	return at
}

const errRank = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list"
