package resp

import (
	"bytes"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// scanOptions are the options of SCAN and HSCAN.
type scanOptions struct {
	count int
	match *glob.Pattern
	kind  []byte // the word for a type; nil: every type
}

// maxScan is how many names one call looks at, whatever it asks for: others wait meanwhile.
const maxScan = 8 * broker.LookSlice

// parse reads the options behind the cursor. Only SCAN has the option TYPE.
func (o *scanOptions) parse(args [][]byte, typed bool) {
	o.count = 10
	pattern := []byte("*")
	for ; len(args) > 0; args = args[2:] {
		switch {
		case len(args) == 1:
			refuse(errSyntax)
		case is(args[0], "count"):
			if o.count = int(min(intArg(args[1]), maxScan)); o.count < 1 {
				refuse(errSyntax)
			}
		case is(args[0], "match"):
			pattern = args[1]
		case is(args[0], "type") && typed:
			o.kind = args[1]
		default:
			refuse(errSyntax)
		}
	}
	o.match = patternArg(pattern)
}

// cursorArg reads a cursor. No text is the first.
func cursorArg(arg []byte) uint64 {
	if len(arg) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(arg), 10, 64)
	if err != nil {
		refuse("ERR invalid cursor")
	}
	return n
}

// each calls scan for one name after the other, from a cursor on, and returns where to go on. That
// is a name before the end if match has no steps left: then the name is looked at again.
func (o *scanOptions) each(s *session, cursor uint64, scan func(cursor uint64) (next uint64)) uint64 {
	for i := range o.count {
		next := scan(cursor)
		switch {
		case s.steps < 0 && i == 0:
			refuse(errCostly)
		case s.steps < 0:
			return cursor
		case next == 0:
			return 0
		}
		cursor = next
	}
	return cursor
}

func scan(s *session, tx *broker.Tx, args [][]byte) error {
	cursor := cursorArg(args[1])
	var o scanOptions
	o.parse(args[2:], true)
	var names []byte // as bulks
	n := 0
	take := func(name []byte, t broker.Type) {
		if (o.kind == nil || is(o.kind, t.String())) && o.match.Match(name, &s.steps) {
			if n++; len(names) <= maxLiteral {
				names = wire.AppendBulk(names, name)
			}
		}
	}
	s.cursor(o.each(s, cursor, func(cursor uint64) uint64 { return tx.Scan(cursor, 1, take) }))
	tx.Looked(n * repliedName)
	return s.bulks(n, names)
}

// cursor begins the reply of a scan.
func (s *session) cursor(next uint64) {
	s.array(2)
	var text [wire.MaxIntText]byte
	s.bulk(strconv.AppendUint(text[:0], next, 10))
}

// bulks replies with n bulks that are made.
func (s *session) bulks(n int, made []byte) error {
	s.array(n)
	if s.fits(len(made)) {
		s.peer.Out = append(s.peer.Out, made...)
	}
	return nil
}

func keys(s *session, tx *broker.Tx, args [][]byte) error { return s.names(tx, args[1]) }

// namesAtOnce is how many names are looked at before it is asked whether the slice is full.
const namesAtOnce = 10

// names replies with all names that match a pattern; of a type, if that is given, those that the
// user may look at. Of names that come or go between two slices some are replied.
func (s *session) names(tx *broker.Tx, pattern []byte, only ...broker.Type) error {
	g := patternArg(pattern)
	take := func(name []byte, t broker.Type) {
		switch {
		case len(only) > 0 && t != only[0], !g.Match(name, &s.steps):
		case len(only) > 0 && !s.pass.Open() && !s.pass.Account().MayWithin(access.Look, name, &s.steps):
		default:
			s.bulk(name)
			s.look.found++
			tx.Looked(repliedName)
		}
	}
	l := &s.look
	err := s.inSlices(func() (bool, error) {
		for n := 0; !s.sliceFull(n); n += namesAtOnce {
			if l.cursor = tx.Scan(l.cursor, namesAtOnce, take); s.steps < 0 {
				return false, failure(errCostly)
			}
			if l.cursor == 0 {
				break
			}
		}
		return l.cursor != 0, nil
	})
	l.head = wire.AppendHead(nil, '*', int64(l.found))
	return err
}

func hscan(s *session, tx *broker.Tx, args [][]byte) error {
	cursor := cursorArg(args[2])
	if n, err := tx.HashLen(args[1]); err != nil || n == 0 {
		s.cursor(0)
		s.array(0)
		return err
	}
	var o scanOptions
	o.parse(args[3:], false)
	type field struct {
		name  []byte
		value broker.Value
	}
	var found []field
	take := func(name []byte, v broker.Value) {
		if o.match.Match(name, &s.steps) {
			found = append(found, field{bytes.Clone(name), v})
		}
	}
	s.cursor(o.each(s, cursor, func(cursor uint64) uint64 {
		next, _ := tx.ScanFields(args[1], cursor, 1, take) // it is a hash: it has a length
		return next
	}))
	s.array(2 * len(found))
	for _, f := range found {
		s.bulk(f.name)
		if err := s.value(tx, f.value, true); err != nil {
			return err
		}
	}
	return nil
}
