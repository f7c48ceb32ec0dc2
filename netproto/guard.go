package netproto

import (
	"bytes"
	"errors"
)

// A page in a browser can make it send lines of the page's choice, but only behind the header of an
// HTTP request. The first line of one ends like HTTP, and a line that begins with Host follows.

// ErrHTTP is why nothing more of a connection is carried out.
var ErrHTTP = errors.New("a line belongs to an HTTP request: perhaps a page in a browser on this machine tries to use the server")

// EndsLikeHTTP tells by its end that a line is the first of an HTTP request.
func EndsLikeHTTP(line []byte) bool {
	return bytes.HasSuffix(line, []byte(" HTTP/1.1")) || bytes.HasSuffix(line, []byte(" HTTP/1.0"))
}

// BeginsLikeHTTP tells by its first word that a line belongs to the header of an HTTP request.
func BeginsLikeHTTP(word []byte) bool {
	return bytes.EqualFold(word, []byte("POST")) || bytes.EqualFold(word, []byte("Host:"))
}

// ErrBinary is why nothing of a connection is carried out. Behind a TLS hello there may be bytes
// that look like lines.
var ErrBinary = errors.New("the first byte begins no request: perhaps the client speaks TLS, and this address does not")
