// Package jsonbytes is how bytes stand in all JSON of the project: as a string if they are UTF-8,
// else as {"base64":"…"}. They come back as they were.
package jsonbytes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bytes are some in JSON, nil where there are none.
type Bytes []byte

// IsZero tells libraries what to leave out: empty bytes are some.
func (b Bytes) IsZero() bool { return b == nil }

// MarshalJSON is for encoding/json.
func (b Bytes) MarshalJSON() ([]byte, error) { return Append(nil, b), nil }

// What stands around bytes that are no text.
const before, after = `{"base64":"`, `"}`

// Append appends bytes as JSON.
func Append(dst, b []byte) []byte {
	if !utf8.Valid(b) {
		return AppendBase64(dst, b)
	}
	dst = append(slices.Grow(dst, len(b)+2), '"')
	from := 0
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c >= ' ' && c != '"' && c != '\\' && c != lineEnd[0]:
			continue
		case c != lineEnd[0]:
			dst = appendEscape(append(dst, b[from:i]...), c)
		case b[i+1] == lineEnd[1] && b[i+2]&^1 == lineEnd[2]:
			dst = append(append(dst, b[from:i]...), `\u202`...)
			dst = append(dst, '8'+b[i+2]&1)
			i += 2
		default:
			continue
		}
		from = i + 1
	}
	return append(append(dst, b[from:]...), '"')
}

// lineEnd is U+2028, which ends a line of JavaScript, as does the character behind it.
const lineEnd = "\u2028"

// The characters of short escapes, and what these are.
const escaped, escapes = "\"\\\b\f\n\r\t", `"\bfnrt`

func appendEscape(dst []byte, c byte) []byte {
	if at := strings.IndexByte(escaped, c); at >= 0 {
		return append(dst, '\\', escapes[at])
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
}

// AppendBase64 appends bytes as if they were no text.
func AppendBase64(dst, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, before...), b), after...)
}

// UnmarshalJSON is for encoding/json. Null is no bytes. A string that is no text is refused, where
// encoding/json would read another one.
func (b *Bytes) UnmarshalJSON(value []byte) (err error) {
	*b = nil
	switch value[0] {
	case 'n':
	case '"':
		*b, err = unquote(value[1 : len(value)-1])
	case '{':
		*b, err = decode(value)
	default:
		err = wrongType(value, reflect.TypeFor[Bytes]())
	}
	return err
}

// wrongType is the error of a value that is none of a type.
func wrongType(value []byte, t reflect.Type) error {
	kind := "number"
	switch value[0] {
	case '{':
		kind = "object"
	case '[':
		kind = "array"
	case '"':
		kind = "string"
	case 't', 'f':
		kind = "bool"
	}
	return &json.UnmarshalTypeError{Value: kind, Type: t}
}

var errText = errors.New(`bytes that are not UTF-8 must be {"base64":"…"}`)

// unquote returns what a string of JSON says, which stands between its quotes.
func unquote(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errText
	}
	b := make([]byte, 0, len(text))
	for {
		before, rest, ok := bytes.Cut(text, []byte{'\\'})
		if b = append(b, before...); !ok {
			return b, nil
		}
		c := rest[0]
		text = rest[1:]
		if c != 'u' {
			b = append(b, (escaped + "/")[strings.IndexByte(escapes+"/", c)])
			continue
		}
		r := unit(text)
		text = text[4:]
		if utf16.IsSurrogate(r) {
			if !bytes.HasPrefix(text, []byte(`\u`)) {
				return nil, errHalf
			}
			if r = utf16.DecodeRune(r, unit(text[2:])); r == utf8.RuneError {
				return nil, errHalf
			}
			text = text[6:]
		}
		b = utf8.AppendRune(b, r)
	}
}

var errHalf = errors.New("half a surrogate pair is no character")

// unit returns what four digits of an escape say.
func unit(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // encoding/json has looked at them
	return rune(n)
}

// decode returns the bytes of an object, which are seldom short.
func decode(object []byte) ([]byte, error) {
	text := bytes.TrimSuffix(bytes.TrimPrefix(object, []byte(before)), []byte(after))
	if len(text)+len(before)+len(after) != len(object) || bytes.ContainsAny(text, `"\`) {
		var value any
		_ = json.Unmarshal(object, &value) // which encoding/json has looked at
		if b, ok := Of(value); ok {
			return b, nil
		}
		return nil, wrongType(object, reflect.TypeFor[Bytes]())
	}
	return base64.StdEncoding.AppendDecode([]byte{}, text)
}

// Of returns the bytes of a value that encoding/json has decoded by itself.
func Of(value any) (b []byte, ok bool) {
	switch value := value.(type) {
	case string:
		return []byte(value), true
	case map[string]any:
		if text, ok := value["base64"].(string); ok && len(value) == 1 {
			b, err := base64.StdEncoding.AppendDecode([]byte{}, []byte(text))
			return b, err == nil
		}
	}
	return nil, false
}

// Pairs are names and their values: name, value, name, value, …. In JSON they are an object if the
// names are UTF-8 and ascend, else an array of what they are here.
type Pairs []Bytes

// MarshalJSON is for encoding/json.
func (p Pairs) MarshalJSON() ([]byte, error) { return p.Append(nil), nil }

// Append appends pairs as JSON.
func (p Pairs) Append(dst []byte) []byte {
	form := "{:,}"
	for i := 0; i < len(p); i += 2 {
		if !utf8.Valid(p[i]) || i > 0 && bytes.Compare(p[i], p[i-2]) <= 0 {
			form = "[,,]"
		}
	}
	dst = append(dst, form[0])
	for i, b := range p {
		if i > 0 {
			dst = append(dst, form[2-i%2])
		}
		dst = Append(dst, b)
	}
	return append(dst, form[3])
}

// UnmarshalJSON is for encoding/json.
func (p *Pairs) UnmarshalJSON(value []byte) error {
	*p = nil
	switch value[0] {
	case 'n':
	case '{':
		var object map[string]Bytes
		if err := json.Unmarshal(value, &object); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			*p = append(*p, Bytes(name), object[name])
		}
	case '[':
		return json.Unmarshal(value, (*[]Bytes)(p))
	default:
		return wrongType(value, reflect.TypeFor[Pairs]())
	}
	return nil
}
