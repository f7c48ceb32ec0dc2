package dump

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/storage"
)

// choose settles an encoding for some bytes: the answer is Text, Base64 or None.
func (e Encoding) choose(b []byte) Encoding {
	switch {
	case e == Base64, e == None:
		return e
	case !utf8.Valid(b), e != Text && slices.ContainsFunc(b, isControl):
		return Base64
	}
	return Text
}

func isControl(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' }

// appendString appends UTF-8 as a JSON string. It escapes quotes, backslashes and control
// characters, and nothing else; encoding/json escapes more, and dumps would change.
func appendString(dst, b []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range b {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, b[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			dst = hex.AppendEncode(append(dst, `\u00`...), []byte{c})
		}
	}
	return append(append(dst, b[from:]...), '"')
}

func appendBase64(dst, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}

// appendTags appends tags as a JSON object if each name is there once and all is UTF-8, and says
// so. Else it appends an array of base64: name, value, name, value, ….
func appendTags(dst []byte, tags []storage.Tag) (out []byte, plain bool) {
	plain = plainTags(tags)
	open, end, colon, put := byte('['), byte(']'), byte(','), appendBase64
	if plain {
		open, end, colon, put = '{', '}', ':', appendString
	}
	dst = append(dst, open)
	for i := range tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(put(dst, []byte(tags[i].Name)), colon)
		dst = put(dst, []byte(tags[i].Value))
	}
	return append(dst, end), plain
}

func plainTags(tags []storage.Tag) bool {
	for i := range tags {
		again := i > 0 && tags[i-1].Name >= tags[i].Name
		if again || !utf8.ValidString(tags[i].Name) || !utf8.ValidString(tags[i].Value) {
			return false
		}
	}
	return true
}
