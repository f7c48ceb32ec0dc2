package resp

import (
	"math"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

func stringCommands() []command {
	return []command{
		{name: "get", flags: flagRead | flagFast, run: get},
		{name: "set", flags: flagWrite | flagAdds, right: access.Push | access.Manage, run: set},
		{name: "setnx", flags: flagWrite | flagAdds | flagFast, run: setnx},
		{name: "setex", flags: flagWrite | flagAdds, right: access.Push | access.Manage, run: setFor(second)},
		{name: "psetex", flags: flagWrite | flagAdds, right: access.Push | access.Manage, run: setFor(millisecond)},
		{name: "getset", flags: flagWrite | flagAdds | flagFast, right: access.Push | access.Manage, run: getset},
		{name: "getdel", flags: flagWrite | flagFast, run: getdel},
		{name: "getex", flags: flagWrite | flagFast, run: getex},
		{name: "mget", flags: flagRead | flagFast, run: mget},
		{name: "mset", flags: flagWrite | flagAdds, elements: 1, per: 2, right: access.Push | access.Manage, run: mset},
		{name: "msetnx", flags: flagWrite | flagAdds, elements: 1, per: 2, run: msetnx},
		{name: "append", flags: flagWrite | flagAdds | flagFast, run: appendTo},
		{name: "strlen", flags: flagRead | flagFast, run: strlen},
		{name: "getrange", flags: flagRead, run: getrange},
		{name: "substr", flags: flagRead, run: getrange},
		{name: "setrange", flags: flagWrite | flagAdds, run: setrange},
		{name: "incr", flags: flagWrite | flagAdds | flagFast, right: access.Push | access.Look, run: incrBy(1)},
		{name: "decr", flags: flagWrite | flagAdds | flagFast, right: access.Push | access.Look, run: incrBy(-1)},
		{name: "incrby", flags: flagWrite | flagAdds | flagFast, right: access.Push | access.Look, run: incrby},
		{name: "decrby", flags: flagWrite | flagAdds | flagFast, right: access.Push | access.Look, run: decrby},
		{name: "incrbyfloat", flags: flagWrite | flagCostly | flagAdds | flagFast, right: access.Push | access.Look, run: incrbyfloat},
	}
}

func get(s *session, tx *broker.Tx, args [][]byte) error { return s.found(tx.String(args[1])) }

// setOptions are the options of SET and GETEX.
type setOptions struct {
	ifNew, ifThere, get, keep, persist bool
	time                               *timeOption // that was given; nil: none
	at                                 []byte      // its value
}

// The units of times, in milliseconds.
const (
	millisecond int64 = 1
	second      int64 = 1000
)

// timeOption is an option of SET and GETEX that says when the string expires.
type timeOption struct {
	word     string
	unit     int64
	absolute bool // a moment, not a time from now
}

var timeOptions = []timeOption{
	{"ex", second, false}, {"px", millisecond, false}, {"exat", second, true}, {"pxat", millisecond, true},
}

// parse reads the options behind the value of SET, or those of GETEX. Of those that exclude each
// other it takes one.
func (o *setOptions) parse(args [][]byte, getex bool) {
	for ; len(args) > 0; args = args[1:] {
		switch arg := args[0]; {
		case !getex && is(arg, "nx") && !o.ifThere:
			o.ifNew = true
		case !getex && is(arg, "xx") && !o.ifNew:
			o.ifThere = true
		case !getex && is(arg, "get"):
			o.get = true
		case !getex && is(arg, "keepttl") && o.time == nil:
			o.keep = true
		case getex && is(arg, "persist") && o.time == nil:
			o.persist = true
		case !o.keep && !o.persist && len(args) > 1 && o.parseTime(arg, args[1]):
			args = args[1:]
		default:
			refuse(errSyntax)
		}
	}
}

// parseTime takes an option that is a time; ok is false if it is none, or another one than before.
func (o *setOptions) parseTime(word, at []byte) (ok bool) {
	for i := range timeOptions {
		if t := &timeOptions[i]; is(word, t.word) && (o.time == nil || o.time == t) {
			o.time, o.at = t, at
			return true
		}
	}
	return false
}

// expiry returns the moment that the options of the present command say, 0 for none.
func (o *setOptions) expiry(s *session) int64 {
	if o.time == nil {
		return 0
	}
	n := intArg(o.at)
	if n <= 0 {
		s.refuseExpiry()
	}
	return s.momentOf(n, o.time.unit, o.time.absolute)
}

// momentOf returns the moment that a number says in a unit.
func (s *session) momentOf(n, unit int64, absolute bool) int64 {
	from := s.tx.Now()
	if absolute {
		from = 0
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-from {
		s.refuseExpiry()
	}
	return from + n*unit
}

func (s *session) refuseExpiry() { refuse("ERR invalid expire time in '%s' command", s.cmd.name) }

func set(s *session, tx *broker.Tx, args [][]byte) error {
	var o setOptions
	o.parse(args[3:], false)
	expiry := o.expiry(s)
	name := args[1]
	if o.get {
		if err := s.found(tx.String(name)); err != nil {
			return err
		}
	}
	if (o.ifNew || o.ifThere) && isThere(tx, name) == o.ifNew {
		if !o.get {
			s.null()
		}
		return nil
	}
	if o.keep {
		expiry, _ = tx.Expiry(name)
	}
	var err error
	if expiry != 0 && expiry <= tx.Now() { // it has expired
		_, err = tx.Delete(name)
	} else {
		err = tx.SetString(name, args[2], expiry)
	}
	if err != nil || o.get {
		return err
	}
	return s.ok()
}

// isThere says whether there is anything of a name.
func isThere(tx *broker.Tx, name []byte) bool { return tx.Type(name) != broker.TypeNone }

func setnx(s *session, tx *broker.Tx, args [][]byte) error {
	if isThere(tx, args[1]) {
		return s.int(0)
	}
	return s.did(true, tx.SetString(args[1], args[2], 0))
}

// setFor is SETEX and PSETEX.
func setFor(unit int64) handler {
	time := &timeOption{unit: unit}
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		o := setOptions{time: time, at: args[2]}
		return s.done(tx.SetString(args[1], args[3], o.expiry(s)))
	}
}

func getset(s *session, tx *broker.Tx, args [][]byte) error {
	if err := s.found(tx.String(args[1])); err != nil {
		return err
	}
	return tx.SetString(args[1], args[2], 0)
}

func getdel(s *session, tx *broker.Tx, args [][]byte) error {
	err := s.found(tx.String(args[1]))
	if err == nil {
		_, err = tx.Delete(args[1])
	}
	return err
}

func getex(s *session, tx *broker.Tx, args [][]byte) error {
	var o setOptions
	o.parse(args[2:], true)
	v, ok, err := tx.String(args[1])
	if err != nil || !ok {
		s.null()
		return err
	}
	expiry := o.expiry(s)
	if err = s.value(tx, v, ok); err == nil && (expiry != 0 || o.persist) {
		_, err = tx.SetExpiry(args[1], expiry)
	}
	return err
}

func mget(s *session, tx *broker.Tx, args [][]byte) error {
	if !s.look.under {
		s.array(len(args) - 1)
	}
	return s.eachName(args[1:], func(name []byte) error {
		v, ok, _ := tx.String(name) // what is no string is null
		return s.value(tx, v, ok)
	})
}

func mset(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args)%2 == 0 {
		return failure(wrongArity("mset"))
	}
	return s.done(setAll(tx, args))
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
		if isThere(tx, args[i]) {
			return s.int(0)
		}
	}
	return s.did(true, setAll(tx, args))
}

func strlen(s *session, tx *broker.Tx, args [][]byte) error {
	v, _, err := tx.String(args[1])
	return s.count(v.Size, err)
}

func appendTo(s *session, tx *broker.Tx, args [][]byte) error {
	v, there, err := tx.String(args[1])
	if err != nil {
		return err
	}
	s.mayChange(args[1], there)
	return s.patch(tx, args[1], int64(v.Size), args[2])
}

// patch writes data into a string and replies with the string's new length.
func (s *session) patch(tx *broker.Tx, name []byte, at int64, data []byte) error {
	if at > int64(wire.MaxArg-len(data)) {
		return failure("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	}
	return s.count(tx.PatchString(name, int(at), data))
}

func setrange(s *session, tx *broker.Tx, args [][]byte) error {
	at := intArg(args[2])
	if at < 0 {
		return failure("ERR offset is out of range")
	}
	v, there, err := tx.String(args[1])
	if err != nil || len(args[3]) == 0 {
		return s.count(v.Size, err)
	}
	s.mayChange(args[1], there)
	return s.patch(tx, args[1], at, args[3])
}

func getrange(s *session, tx *broker.Tx, args [][]byte) error {
	first, last := intArg(args[2]), intArg(args[3])
	v, _, err := tx.String(args[1])
	if err != nil {
		return err
	}
	if first < 0 && last < 0 && first > last {
		return s.bulk(nil)
	}
	if last < 0 { // before the first byte is the first byte here, unlike in lists
		last = max(last+int64(v.Size), 0)
	}
	from, count := extent(first, last, v.Size)
	if count == 0 {
		return s.bulk(nil)
	}
	value, err := s.read(tx, v)
	if err != nil {
		return err
	}
	return s.bulk(value[from : from+count])
}
