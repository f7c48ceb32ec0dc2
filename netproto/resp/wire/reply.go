package wire

import "strconv"

// AppendHead appends the line that begins a reply: its kind, and a number, which says how long the
// reply is, or is the reply.
func AppendHead(dst []byte, kind byte, n int64) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// AppendBulk appends a text of any bytes.
func AppendBulk[B []byte | string](dst []byte, b B) []byte {
	dst = AppendHead(dst, '$', int64(len(b)))
	dst = append(dst, b...)
	return append(dst, "\r\n"...)
}

// AppendBegin begins a kind of RESP3 of n entries, which is an array of many in RESP2.
func AppendBegin(dst []byte, resp3 bool, kind byte, n, many int) []byte {
	if !resp3 {
		kind, n = '*', many
	}
	return AppendHead(dst, kind, int64(n))
}
