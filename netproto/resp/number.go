package resp

import (
	"bytes"
	"math"
	"math/big"
	"strings"
)

// maxIntText is how many bytes a whole number has at most.
const maxIntText = 20

// addInt returns a + b; ok is false if that is out of range.
func addInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// Redis computes with the 80-bit floats of C's long double: 64 bits of mantissa. Clients see that
// in the digits, so the door does the same.
const (
	floatBits     = 64
	maxFloatExp   = 16384 // a float is below 2^16384, and what is below 2^-16384 is zero
	maxFloatText  = 5 << 10
	floatDecimals = 17  // digits behind the point that INCRBYFLOAT writes
	minFloatExp   = -57 // a float below 2^-58 has only zeros there
)

// parseFloat reads a decimal number.
func parseFloat(text []byte) (x *big.Float, ok bool) {
	other := func(c rune) bool { return !strings.ContainsRune("+-.0123456789eE", c) }
	if len(text) >= maxFloatText || bytes.ContainsFunc(text, other) {
		return nil, false
	}
	// ParseFloat rounds more than once. With bits to spare that does not show.
	exact, _, err := big.ParseFloat(string(text), 10, 4*floatBits, big.ToNearestEven)
	if err != nil {
		return nil, false
	}
	x = new(big.Float).SetPrec(floatBits)
	if exact.MantExp(nil) > -maxFloatExp {
		x.Set(exact)
	}
	return x, !tooLarge(x)
}

// addFloat returns a + b; ok is false if that is too large.
func addFloat(a, b *big.Float) (sum *big.Float, ok bool) {
	sum = new(big.Float).SetPrec(floatBits).Add(a, b)
	return sum, !tooLarge(sum)
}

func tooLarge(x *big.Float) bool { return x.IsInf() || x.MantExp(nil) > maxFloatExp }

// appendFloat writes x without an exponent and without zeros that say nothing.
func appendFloat(dst []byte, x *big.Float) []byte {
	if x.MantExp(nil) < minFloatExp { // big would write thousands of digits, and round them away
		return append(dst, '0')
	}
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
