package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"time"
	"unicode"

	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// jsonObject is a JSON object in a line, built field by field.
type jsonObject []byte

// name begins a field.
func (o *jsonObject) name(name string) {
	separator := byte(',')
	if len(*o) == 0 {
		separator = '{'
	}
	*o = append(jsonbytes.Append(append(*o, separator), []byte(name)), ':')
}

// add adds a field with a value that can be written as JSON.
func (o *jsonObject) add(name string, value any) {
	o.name(name)
	out := bytes.NewBuffer(*o)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	*o = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// bytes adds bytes, as jsonbytes has them.
func (o *jsonObject) bytes(name string, b []byte) {
	o.name(name)
	*o = jsonbytes.Append(*o, b)
}

// text adds a text that is not empty.
func (o *jsonObject) text(name, text string) {
	if text != "" {
		o.bytes(name, []byte(text))
	}
}

// moment adds a time that is known, in Unix milliseconds.
func (o *jsonObject) moment(name string, t time.Time) {
	if !t.IsZero() {
		o.add(name, t.UnixMilli())
	}
}

// figure is a number with a name.
type figure struct {
	name string
	n    int64
}

// figures adds numbers.
func (o *jsonObject) figures(all ...figure) {
	for _, f := range all {
		o.add(f.name, f.n)
	}
}

// controls are those that the encoder leaves as they are, and that some terminals obey.
var controls = regexp.MustCompile(`\p{Cc}`)

// line is the object in a line.
func (o *jsonObject) line() []byte {
	if len(*o) == 0 {
		*o = append(*o, '{')
	}
	return append(escaped(*o), "}\n"...)
}

// print prints the object in a line.
func (o *jsonObject) print(w io.Writer) error {
	_, err := w.Write(o.line())
	return err
}

// escaped is JSON without controls.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, unicode.IsControl) { // which takes less time
		return text
	}
	return controls.ReplaceAllFunc(text, func(c []byte) []byte { return fmt.Appendf(nil, `\u%04x`, bytes.Runes(c)[0]) })
}
