package resp

import (
	"bytes"
	"math"
	"math/big"
)

// addInt returns a + b; ok is false if that is out of range.
func addInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// Redis computes with the 80-bit floats of C's long double: 64 bits of mantissa. Clients see that
// in the digits, so the door does the same.
const (
	floatBits     = 64
	maxFloatExp   = 16384  // a float below 2^16384
	minFloatExp   = -16445 // anything smaller is zero
	maxFloatText  = 5 << 10
	floatDecimals = 17 // digits behind the point that INCRBYFLOAT writes
)

// parseFloat reads a number as C's strtold does, but without spaces around it. It refuses what is
// too large or too small to be told from zero, but takes the word inf.
func parseFloat(text []byte) (x *big.Float, ok bool) {
	if len(text) == 0 || len(text) >= maxFloatText {
		return nil, false
	}
	base := 10
	if bytes.HasPrefix(bytes.ToLower(bytes.TrimLeft(text, "+-")), []byte("0x")) {
		base = 0
	}
	word := bytes.ToLower(text)
	if string(bytes.TrimLeft(word, "+-")) == "infinity" {
		word = word[:len(word)-len("inity")]
	}
	if base == 10 && bytes.ContainsRune(word, 'p') || bytes.ContainsRune(word, '_') {
		return nil, false // these are Go's, not C's
	}
	// Parse rounds more than once. With bits to spare that does not show.
	exact, _, err := big.ParseFloat(string(word), base, 4*floatBits, big.ToNearestEven)
	if err != nil {
		return nil, false
	}
	x = new(big.Float).SetPrec(floatBits).Set(exact)
	if exact.IsInf() {
		return x, bytes.ContainsRune(word, 'n') // the word, no overflow
	}
	if exact.Sign() != 0 && exact.MantExp(nil) < minFloatExp {
		return nil, false
	}
	return x, !tooLarge(x)
}

// addFloat returns a + b; ok is false if that is no finite number.
func addFloat(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(floatBits).Add(a, b)
	return sum, !tooLarge(sum)
}

func tooLarge(x *big.Float) bool { return x.IsInf() || x.MantExp(nil) > maxFloatExp }

// appendFloat writes x without an exponent and without zeros that say nothing.
func appendFloat(dst []byte, x *big.Float) []byte {
	start := len(dst)
	dst = x.Append(dst, 'f', floatDecimals)
	dst = bytes.TrimRight(dst, "0") // there are decimals, so it stops at the point at the latest
	dst = bytes.TrimSuffix(dst, []byte{'.'})
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst
}

// What reads an argument panics with a failure if it is not what is expected.

// intArg reads an argument that is a whole number.
func intArg(arg []byte) int64 { return countArg(arg, math.MinInt64, errNotInteger) }

// countArg reads an argument that is a whole number of at least low; refusal says that it is not.
func countArg(arg []byte, low int64, refusal failure) int64 {
	n, ok := parseInt(arg)
	if !ok || n < low {
		panic(refusal)
	}
	return n
}

// floatArg reads an argument that is a number; refusal says that it is not.
func floatArg(arg []byte, refusal failure) *big.Float {
	x, ok := parseFloat(arg)
	if !ok {
		panic(refusal)
	}
	return x
}
