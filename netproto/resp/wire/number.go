package wire

import (
	"bytes"
	"math/big"
	"strings"
)

// MaxIntText is how many bytes a whole number has at most.
const MaxIntText = 20

// ParseInt reads a signed 64-bit number the way Redis does: no plus sign, no space, no leading
// zero.
func ParseInt(arg []byte) (n int64, ok bool) {
	digits := arg
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if n = int64(u); negative {
		n = -n
	}
	return n, u < 1<<63 || negative && u == 1<<63
}

// AddInt returns a + b; ok is false if that is out of range.
func AddInt(a, b int64) (sum int64, ok bool) {
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

// ParseFloat reads a decimal number.
func ParseFloat(text []byte) (x *big.Float, ok bool) {
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

// AddFloat returns a + b; ok is false if that is too large.
func AddFloat(a, b *big.Float) (sum *big.Float, ok bool) {
	sum = new(big.Float).SetPrec(floatBits).Add(a, b)
	return sum, !tooLarge(sum)
}

func tooLarge(x *big.Float) bool { return x.IsInf() || x.MantExp(nil) > maxFloatExp }

// AppendFloat writes x without an exponent and without zeros that say nothing.
func AppendFloat(dst []byte, x *big.Float) []byte {
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
