package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Version is the version of the dumps that this package writes, and the newest it reads (DUMP.md).
const Version = 3

// Format is the form of a dump. The zero value is JSONL.
type Format string

// The formats of a dump.
const (
	JSONL   Format = "jsonl"   // one JSON object a line
	Msgpack Format = "msgpack" // the same objects as msgpack maps, one after the other
)

// Encoding says how a dump writes payloads. The zero value is Auto. A msgpack dump holds bytes as
// they are, so only None makes a difference there.
type Encoding string

// The encodings of payloads. Keys and names are always written as Text.
const (
	Auto   Encoding = "auto"   // as Text, but base64 if there are control characters other than tab, line feed and return
	Text   Encoding = "text"   // text if the bytes are UTF-8, else base64
	Base64 Encoding = "base64" // base64, standard alphabet, padded
	None   Encoding = "none"   // left out: such a dump cannot be loaded
)

// isText reports whether bytes are written as text.
func (e Encoding) isText(b []byte) bool {
	isControl := func(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' }
	return e != Base64 && utf8.Valid(b) && (e == Text || !slices.ContainsFunc(b, isControl))
}

// encoder writes records into its buffer. One goroutine uses it.
type encoder struct {
	bytes.Buffer
	payload Encoding
	json    *json.Encoder // nil: msgpack
	msgpack *msgpack.Encoder
}

func newEncoder(f Format, payload Encoding) *encoder {
	e := &encoder{payload: payload}
	if f != Msgpack {
		e.json = json.NewEncoder(&e.Buffer)
		e.json.SetEscapeHTML(false)
		return e
	}
	e.msgpack = msgpack.NewEncoder(&e.Buffer)
	e.msgpack.UseCompactInts(true)
	e.msgpack.SetSortMapKeys(true)
	return e
}

// encode appends a record, which it may change, to the buffer.
func (e *encoder) encode(r *record) error {
	if e.payload == None && r.Type != typeHeader {
		r.Payload, r.Value = nil, nil
	}
	if e.json == nil {
		return e.msgpack.Encode(r)
	}
	r.split(e.payload)
	return e.json.Encode(r)
}

// decode reads one record into r, which is empty. Its type stays "" for an empty line.
func decode(f Format, raw []byte, r *record) error {
	var err error
	if f == Msgpack {
		d := msgpack.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields(true)
		d.UseLooseInterfaceDecoding(true)
		err = d.Decode(r)
	} else {
		if raw = bytes.Trim(raw, " \t\r\n"); len(raw) == 0 {
			return nil
		}
		if err = decodeJSON(raw, r); err == nil {
			err = r.join()
		}
	}
	if err != nil {
		return err
	}
	switch r.Type {
	case typeHeader, typeQueue, typePacket, typeWindow, typeString, typeHash, typeField, typeEnd:
	case "":
		return errors.New(`field "type" is missing: every record has it`)
	default:
		return fmt.Errorf("field \"type\": %q is not holdfast, queue, packet, window, string, hash, field or end", r.Type)
	}
	if field := r.misplaced(); field != "" {
		return fmt.Errorf("a %s has no field %q", r.Type, field)
	}
	return nil
}

// laterVersion says that a record begins a dump of a later version, before anyone looks at fields
// that only that version has.
func laterVersion(f Format, raw []byte) error {
	var begin struct {
		Type    string `json:"type" msgpack:"type"`
		Version uint64 `json:"version" msgpack:"version"`
	}
	unmarshal := json.Unmarshal
	if f == Msgpack {
		unmarshal = msgpack.Unmarshal
	}
	if err := unmarshal(raw, &begin); err == nil && begin.Type == typeHeader && begin.Version > Version {
		return fmt.Errorf("the dump has version %d, and this program reads version %d", begin.Version, Version)
	}
	return nil
}

// decodeJSON decodes one line and refuses unknown fields.
func decodeJSON(line []byte, r *record) error {
	if err := checkText(line); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(r); err != nil {
		return plainError(err)
	}
	if d.InputOffset() != int64(len(line)) {
		return fmt.Errorf("at byte %d: expected nothing more on the line", d.InputOffset()+1)
	}
	return nil
}

// plainError leaves the words of Go's types out of an error of encoding/json.
func plainError(err error) error {
	var field *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &field) && field.Field == "":
		return fmt.Errorf("expected an object, got %s", field.Value)
	case errors.As(err, &field):
		wanted := "an object of strings"
		switch field.Type.Kind() {
		case reflect.Uint64, reflect.Int64:
			wanted = "a whole number"
		case reflect.String:
			wanted = "a string"
		case reflect.Slice:
			wanted = "base64"
		}
		return fmt.Errorf("field %q: got a %s, expected %s", field.Field, field.Value, wanted)
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the line ends inside a value")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// checkText refuses what encoding/json replaces in silence: bytes that are not UTF-8, and escapes
// of half a surrogate pair.
func checkText(line []byte) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not UTF-8: bytes that are not go into a field whose name ends in _base64")
	}
	if !bytes.Contains(line, []byte(`\u`)) {
		return nil
	}
	for _, part := range surrogates.FindAll(line, -1) {
		if len(part) == len(`\ud800`) {
			return errors.New("half a surrogate pair is no character")
		}
	}
	return nil
}

// surrogates finds escaped backslashes, surrogate pairs, and surrogates without their other half.
var surrogates = regexp.MustCompile(`\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..`)
