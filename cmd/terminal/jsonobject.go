package terminal

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

// JSON is a JSON object in a line, built field by field.
type JSON []byte

// name begins a field.
func (o *JSON) name(name string) {
	separator := byte(',')
	if len(*o) == 0 {
		separator = '{'
	}
	*o = append(jsonbytes.Append(append(*o, separator), []byte(name)), ':')
}

// Add adds a field with a value that can be written as JSON.
func (o *JSON) Add(name string, value any) {
	o.name(name)
	out := bytes.NewBuffer(*o)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	*o = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Bytes adds bytes, as jsonbytes has them.
func (o *JSON) Bytes(name string, b []byte) {
	o.name(name)
	*o = jsonbytes.Append(*o, b)
}

// Text adds a text that is not empty.
func (o *JSON) Text(name, text string) {
	if text != "" {
		o.Bytes(name, []byte(text))
	}
}

// Moment adds a time that is known, in Unix milliseconds.
func (o *JSON) Moment(name string, t time.Time) {
	if !t.IsZero() {
		o.Add(name, t.UnixMilli())
	}
}

// controls are those that the encoder leaves as they are, and that some terminals obey.
var controls = regexp.MustCompile(`\p{Cc}`)

// Line is the object in a line.
func (o *JSON) Line() []byte {
	if len(*o) == 0 {
		*o = append(*o, '{')
	}
	return append(Escaped(*o), "}\n"...)
}

// Print prints the object in a line.
func (o *JSON) Print(w io.Writer) error {
	_, err := w.Write(o.Line())
	return err
}

// Escaped is JSON without controls.
func Escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, unicode.IsControl) { // which takes less time
		return text
	}
	return controls.ReplaceAllFunc(text, func(c []byte) []byte { return fmt.Appendf(nil, `\u%04x`, bytes.Runes(c)[0]) })
}
