package resp

import (
	"math"
	"math/big"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// floatDigit is what a digit of a float costs that is read or written. See broker.MaxLooks.
const floatDigit = 2

func incrBy(n int64) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error { return s.incr(tx, args[1], n) }
}

func incrby(s *session, tx *broker.Tx, args [][]byte) error {
	n := intArg(args[2])
	return s.incr(tx, args[1], n)
}

func decrby(s *session, tx *broker.Tx, args [][]byte) error {
	n := intArg(args[2])
	if n == math.MinInt64 {
		refuse("ERR decrement would overflow")
	}
	return s.incr(tx, args[1], -n)
}

// number returns the text of a number that a call has found, 0 if it has found nothing.
func (s *session) number(v broker.Value, ok bool, err error) (text []byte, _ error) {
	if err != nil || !ok {
		return []byte{'0'}, err
	}
	return s.read(s.tx, v)
}

// incr adds n to the number that a string is and replies with the sum.
func (s *session) incr(tx *broker.Tx, name []byte, n int64) error {
	old, err := s.number(tx.String(name))
	if err != nil {
		return err
	}
	sum := addIntArg(old, errNotInteger, n)
	expiry, _ := tx.Expiry(name)
	var text [wire.MaxIntText]byte
	if err := tx.SetString(name, appendInt(text[:0], sum), expiry); err != nil {
		return err
	}
	return s.int(sum)
}

// addIntArg returns the sum of two numbers; refusal is the error if old is no number.
func addIntArg(old []byte, refusal failure, n int64) int64 {
	sum, ok := wire.AddInt(countArg(old, math.MinInt64, refusal), n)
	if !ok {
		refuse("ERR increment or decrement would overflow")
	}
	return sum
}

func incrbyfloat(s *session, tx *broker.Tx, args [][]byte) error {
	old, err := s.number(tx.String(args[1]))
	if err != nil {
		return err
	}
	sum := s.addFloatArg(old, errNotFloat, floatArg(args[2], errNotFloat))
	expiry, _ := tx.Expiry(args[1])
	if err := tx.SetString(args[1], sum, expiry); err != nil {
		return err
	}
	return s.bulk(sum)
}

// addFloatArg returns the sum of two numbers as a text; refusal is the error if old is no number.
func (s *session) addFloatArg(old []byte, refusal failure, increment *big.Float) (text []byte) {
	s.tx.Looked(floatDigit * (len(old) + len(s.args[len(s.args)-1])))
	sum, ok := wire.AddFloat(floatArg(old, refusal), increment)
	if !ok {
		refuse("ERR increment would produce NaN or Infinity")
	}
	text = wire.AppendFloat(nil, sum)
	s.tx.Looked(floatDigit * len(text))
	return text
}
