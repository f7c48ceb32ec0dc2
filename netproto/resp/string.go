package resp

import (
	"math"

	"github.com/holdfast-queue/holdfast/broker"
)

func stringCommands() []command {
	return []command{
		{name: "get", arity: 2, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: get},
		{name: "set", arity: -3, flags: flagWrite | flagAdds, first: 1, last: 1, step: 1, run: set},
		{name: "setnx", arity: 3, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: setnx},
		{name: "setex", arity: 4, flags: flagWrite | flagAdds, first: 1, last: 1, step: 1, run: setFor(second)},
		{name: "psetex", arity: 4, flags: flagWrite | flagAdds, first: 1, last: 1, step: 1, run: setFor(millisecond)},
		{name: "getset", arity: 3, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: getset},
		{name: "getdel", arity: 2, flags: flagWrite | flagFast, first: 1, last: 1, step: 1, run: getdel},
		{name: "getex", arity: -2, flags: flagWrite | flagFast, first: 1, last: 1, step: 1, run: getex},
		{name: "mget", arity: -2, flags: flagRead | flagFast, first: 1, last: -1, step: 1, run: mget},
		{name: "mset", arity: -3, flags: flagWrite | flagAdds, first: 1, last: -1, step: 2, run: mset},
		{name: "msetnx", arity: -3, flags: flagWrite | flagAdds, first: 1, last: -1, step: 2, run: msetnx},
		{name: "append", arity: 3, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: appendTo},
		{name: "strlen", arity: 2, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: strlen},
		{name: "getrange", arity: 4, flags: flagRead, first: 1, last: 1, step: 1, run: getrange},
		{name: "substr", arity: 4, flags: flagRead, first: 1, last: 1, step: 1, run: getrange},
		{name: "setrange", arity: 4, flags: flagWrite | flagAdds, first: 1, last: 1, step: 1, run: setrange},
		{name: "incr", arity: 2, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: incrBy(1)},
		{name: "decr", arity: 2, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: incrBy(-1)},
		{name: "incrby", arity: 3, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: incrby},
		{name: "decrby", arity: 3, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: decrby},
		{name: "incrbyfloat", arity: 3, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: incrbyfloat},
	}
}

// handler is what a command runs.
type handler = func(s *session, tx *broker.Tx, args [][]byte) error

func get(s *session, tx *broker.Tx, args [][]byte) error {
	v, ok, err := tx.String(args[1])
	if err == nil {
		err = s.value(tx, v, ok)
	}
	return err
}

// value replies with a string or the value of a field, or with null if there is none.
func (s *session) value(tx *broker.Tx, v broker.Value, ok bool) error {
	if s.overLimit {
		return broker.ErrReplyTooLarge // before a command drops the value
	}
	value, err := tx.Bytes(v)
	switch {
	case err != nil:
	case ok:
		if s.bulk(value); s.overLimit {
			err = broker.ErrReplyTooLarge
		}
	default:
		s.null()
	}
	return err
}

// setOptions are the options of SET and GETEX.
type setOptions struct {
	ifNew, ifThere, get, keep, persist bool
	unit                               int64 // of at, in milliseconds; 0: no time was given
	absolute                           bool  // at is a moment, not a time from now
	at                                 []byte
}

// The units of times, in milliseconds.
const (
	millisecond int64 = 1
	second      int64 = 1000
)

// parse reads the options behind the value of SET. Of those that exclude each other it takes one.
func (o *setOptions) parse(args [][]byte) error {
	for ; len(args) > 0; args = args[1:] {
		timed := o.unit != 0
		switch arg := args[0]; {
		case is(arg, "nx") && !o.ifThere:
			o.ifNew = true
		case is(arg, "xx") && !o.ifNew:
			o.ifThere = true
		case is(arg, "get"):
			o.get = true
		case is(arg, "keepttl") && !timed:
			o.keep = true
		case !o.keep && len(args) > 1 && o.parseTime(arg, args[1]):
			args = args[1:]
		default:
			return failure(errSyntax)
		}
	}
	return nil
}

// parseEx reads the options of GETEX.
func (o *setOptions) parseEx(args [][]byte) error {
	for ; len(args) > 0; args = args[1:] {
		switch arg := args[0]; {
		case is(arg, "persist") && o.unit == 0:
			o.persist = true
		case !o.persist && len(args) > 1 && o.parseTime(arg, args[1]):
			args = args[1:]
		default:
			return failure(errSyntax)
		}
	}
	return nil
}

// parseTime takes an option that is a time; ok is false if it is none, or another one than before.
func (o *setOptions) parseTime(option, at []byte) (ok bool) {
	unit, absolute := second, false
	switch {
	case is(option, "ex"):
	case is(option, "px"):
		unit = millisecond
	case is(option, "exat"):
		absolute = true
	case is(option, "pxat"):
		unit, absolute = millisecond, true
	default:
		return false
	}
	if o.unit != 0 && (o.unit != unit || o.absolute != absolute) {
		return false
	}
	o.unit, o.absolute, o.at = unit, absolute, at
	return true
}

// expiry returns the moment that the options say, 0 for none.
func (o *setOptions) expiry(tx *broker.Tx, command string) (int64, error) {
	if o.unit == 0 {
		return 0, nil
	}
	n, err := intArg(o.at)
	if err != nil {
		return 0, err
	}
	from := tx.Now()
	if o.absolute {
		from = 0
	}
	if n <= 0 || n > math.MaxInt64/o.unit || n*o.unit > math.MaxInt64-from {
		return 0, badExpiry(command)
	}
	return from + n*o.unit, nil
}

func badExpiry(command string) failure {
	return failure("ERR invalid expire time in '" + command + "' command")
}

func set(s *session, tx *broker.Tx, args [][]byte) error {
	var o setOptions
	if err := o.parse(args[3:]); err != nil {
		return err
	}
	expiry, err := o.expiry(tx, "set")
	if err != nil {
		return err
	}
	name := args[1]
	there := false
	switch {
	case o.get:
		v, ok, err := tx.String(name)
		if err != nil {
			return err
		}
		if err := s.value(tx, v, ok); err != nil {
			return err
		}
		there = ok
	case o.ifNew || o.ifThere:
		there = tx.Type(name) != broker.TypeNone
	}
	if o.ifNew && there || o.ifThere && !there {
		if !o.get {
			s.null()
		}
		return nil
	}
	if o.keep {
		expiry, _ = tx.Expiry(name)
	}
	if err := s.store(tx, name, args[2], expiry); err != nil {
		return err
	}
	if !o.get {
		s.ok()
	}
	return nil
}

// store stores a string. One that has expired is deleted.
func (s *session) store(tx *broker.Tx, name, value []byte, expiry int64) error {
	if expiry != 0 && expiry <= tx.Now() {
		_, err := tx.Delete(name)
		return err
	}
	return tx.SetString(name, value, expiry)
}

func setnx(s *session, tx *broker.Tx, args [][]byte) error {
	if tx.Type(args[1]) != broker.TypeNone {
		s.int(0)
		return nil
	}
	err := tx.SetString(args[1], args[2], 0)
	if err == nil {
		s.int(1)
	}
	return err
}

// setFor is SETEX and PSETEX.
func setFor(unit int64) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		o := setOptions{unit: unit, at: args[2]}
		expiry, err := o.expiry(tx, s.cmd.name)
		if err != nil {
			return err
		}
		if err = tx.SetString(args[1], args[3], expiry); err == nil {
			s.ok()
		}
		return err
	}
}

func getset(s *session, tx *broker.Tx, args [][]byte) error {
	v, ok, err := tx.String(args[1])
	if err != nil {
		return err
	}
	if err := s.value(tx, v, ok); err != nil {
		return err
	}
	return tx.SetString(args[1], args[2], 0)
}

func getdel(s *session, tx *broker.Tx, args [][]byte) error {
	v, ok, err := tx.String(args[1])
	if err != nil {
		return err
	}
	if err = s.value(tx, v, ok); err == nil {
		_, err = tx.Delete(args[1])
	}
	return err
}

func getex(s *session, tx *broker.Tx, args [][]byte) error {
	var o setOptions
	if err := o.parseEx(args[2:]); err != nil {
		return err
	}
	v, ok, err := tx.String(args[1])
	if err != nil || !ok {
		s.null()
		return err
	}
	expiry, err := o.expiry(tx, "getex")
	if err != nil {
		return err
	}
	if err = s.value(tx, v, ok); err == nil && (expiry != 0 || o.persist) {
		_, err = tx.SetExpiry(args[1], expiry)
	}
	return err
}

func mget(s *session, tx *broker.Tx, args [][]byte) error {
	s.array(len(args) - 1)
	for _, name := range args[1:] {
		v, ok, _ := tx.String(name) // what is no string is null
		if err := s.value(tx, v, ok); err != nil {
			return err
		}
	}
	return nil
}

func mset(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args)%2 == 0 {
		return failure(wrongArity("mset"))
	}
	err := setAll(tx, args)
	if err == nil {
		s.ok()
	}
	return err
}

// setAll sets strings, or none if one is refused.
func setAll(tx *broker.Tx, args [][]byte) error {
	for i := 1; i < len(args); i += 2 {
		if err := tx.CanSet(args[i], len(args[i+1])); err != nil {
			return err
		}
	}
	for i := 1; i < len(args); i += 2 {
		if err := tx.SetString(args[i], args[i+1], 0); err != nil {
			return err
		}
	}
	return nil
}

func msetnx(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args)%2 == 0 {
		return failure(wrongArity("msetnx"))
	}
	for i := 1; i < len(args); i += 2 {
		if tx.Type(args[i]) != broker.TypeNone {
			s.int(0)
			return nil
		}
	}
	err := setAll(tx, args)
	if err == nil {
		s.int(1)
	}
	return err
}

func strlen(s *session, tx *broker.Tx, args [][]byte) error {
	v, _, err := tx.String(args[1])
	if err == nil {
		s.int(int64(v.Size))
	}
	return err
}

func appendTo(s *session, tx *broker.Tx, args [][]byte) error {
	v, _, err := tx.String(args[1])
	if err != nil {
		return err
	}
	return s.patch(tx, args[1], int64(v.Size), args[2])
}

// patch writes data into a string and replies with the string's new length.
func (s *session) patch(tx *broker.Tx, name []byte, at int64, data []byte) error {
	if tooLong(at, data) {
		return failure(errTooLong)
	}
	n, err := tx.PatchString(name, int(at), data)
	if err == nil {
		s.int(int64(n))
	}
	return err
}

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

func tooLong(at int64, data []byte) bool { return at > int64(maxArg-len(data)) }

func setrange(s *session, tx *broker.Tx, args [][]byte) error {
	at, err := intArg(args[2])
	if err != nil {
		return err
	}
	if at < 0 {
		return failure("ERR offset is out of range")
	}
	v, _, err := tx.String(args[1])
	if err != nil {
		return err
	}
	if len(args[3]) == 0 {
		s.int(int64(v.Size))
		return nil
	}
	return s.patch(tx, args[1], at, args[3])
}

func getrange(s *session, tx *broker.Tx, args [][]byte) error {
	first, last, err := intArgs(args[2], args[3])
	if err != nil {
		return err
	}
	v, _, err := tx.String(args[1])
	if err != nil {
		return err
	}
	if first < 0 && last < 0 && first > last {
		s.bulk(nil)
		return nil
	}
	if last < 0 { // before the first byte is the first byte here, unlike in lists
		last = max(last+int64(v.Size), 0)
	}
	from, count := extent(first, last, v.Size)
	if count == 0 {
		s.bulk(nil)
		return nil
	}
	value, err := tx.Bytes(v)
	if err == nil {
		s.bulk(value[from : from+count])
	}
	return err
}
