package resp

import (
	"math"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
)

// scanOptions are the options of SCAN and HSCAN.
type scanOptions struct {
	cursor uint64
	count  int
	match  []byte // nil: every name
	kind   []byte // the word for a type; nil: every type
}

// maxScan is how many names one call looks at, whatever it asks for: others wait meanwhile.
const maxScan = 100_000

// parse reads a cursor and the options behind it. Only SCAN has the option TYPE.
func (o *scanOptions) parse(args [][]byte, typed bool) (err error) {
	if o.cursor, err = cursorArg(args[0]); err != nil {
		return err
	}
	o.count = 10
	for args = args[1:]; len(args) > 0; args = args[2:] {
		switch {
		case len(args) == 1:
			return failure(errSyntax)
		case is(args[0], "count"):
			n, err := intArg(args[1])
			if err != nil {
				return err
			}
			if n < 1 {
				return failure(errSyntax)
			}
			o.count = int(min(n, maxScan))
		case is(args[0], "match"):
			o.match = args[1]
		case is(args[0], "type") && typed:
			o.kind = args[1]
		default:
			return failure(errSyntax)
		}
	}
	return nil
}

// cursorArg reads a cursor. No text is the first.
func cursorArg(arg []byte) (uint64, error) {
	if len(arg) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(arg), 10, 64)
	if err != nil {
		return 0, failure("ERR invalid cursor")
	}
	return n, nil
}

// takes says whether the options let a name pass.
func (o *scanOptions) takes(name []byte) bool { return o.match == nil || match(o.match, name) }

func scan(s *session, tx *broker.Tx, args [][]byte) error {
	var o scanOptions
	if err := o.parse(args[1:], true); err != nil {
		return err
	}
	var names [][]byte
	next := tx.Scan(o.cursor, o.count, func(name []byte, t broker.Type) {
		if o.takes(name) && (o.kind == nil || is(o.kind, t.String())) {
			names = append(names, name)
		}
	})
	s.cursor(next)
	s.bulks(names)
	return nil
}

// cursor begins the reply of a scan.
func (s *session) cursor(next uint64) {
	s.array(2)
	var text [maxIntText]byte
	s.bulk(strconv.AppendUint(text[:0], next, 10))
}

func (s *session) bulks(list [][]byte) {
	s.array(len(list))
	for _, b := range list {
		s.bulk(b)
	}
}

func keys(s *session, tx *broker.Tx, args [][]byte) error {
	var names [][]byte
	tx.Scan(0, math.MaxInt, func(name []byte, _ broker.Type) {
		if match(args[1], name) {
			names = append(names, name)
		}
	})
	s.bulks(names)
	return nil
}

func hscan(s *session, tx *broker.Tx, args [][]byte) error {
	var o scanOptions
	if err := o.parse(args[2:], false); err != nil {
		return err
	}
	var found []field
	next, err := tx.ScanFields(args[1], o.cursor, o.count, func(name []byte, v broker.Value) {
		if o.takes(name) {
			found = append(found, field{name, v})
		}
	})
	if err != nil {
		return err
	}
	s.cursor(next)
	s.array(2 * len(found))
	for _, f := range found {
		s.bulk(f.name)
		s.field(tx, args[1], f)
	}
	return nil
}
