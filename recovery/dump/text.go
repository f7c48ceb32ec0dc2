package dump

import (
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"
)

// kind says what some bytes hold; a sum of the constants below.
type kind uint8

const (
	kindEscaped kind = 1 << iota // characters that JSON escapes
	kindControl                  // control characters other than tab, line feed and return
	kindHigh                     // bytes that are not ASCII; never seen from outside kindOf's loop alone
	kindBinary                   // not UTF-8
)

// kinds holds the kind of each single byte. A constant, as nobody may change it.
const kinds = "" +
	"\x03\x03\x03\x03\x03\x03\x03\x03\x03\x01\x01\x03\x03\x01\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03" +
	"\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04" +
	"\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04" +
	"\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04" +
	"\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04"

func kindOf(b []byte) kind {
	var k byte
	for _, c := range b {
		k |= kinds[c]
	}
	if kind(k)&kindHigh != 0 && !utf8.Valid(b) {
		return kind(k) | kindBinary
	}
	return kind(k)
}

// choose settles an encoding for bytes of a kind: the answer is Text, Base64, Hex or None.
func (e Encoding) choose(k kind) Encoding {
	switch {
	case e == Auto && k&(kindBinary|kindControl) != 0, e == Text && k&kindBinary != 0:
		return Base64
	case e == Auto:
		return Text
	}
	return e
}

// appendEncoded appends bytes as Base64 or Hex.
func appendEncoded(dst, b []byte, e Encoding) []byte {
	if e == Hex {
		return hex.AppendEncode(dst, b)
	}
	return base64.StdEncoding.AppendEncode(dst, b)
}

// appendText appends UTF-8 between the quotes of a JSON string.
func appendText(dst, b []byte, k kind) []byte {
	if k&kindEscaped == 0 {
		return append(dst, b...)
	}
	from := 0
	for i, c := range b {
		if kind(kinds[c])&kindEscaped == 0 {
			continue
		}
		dst = append(dst, b[from:i]...)
		dst = appendEscape(dst, c)
		from = i + 1
	}
	return append(dst, b[from:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
