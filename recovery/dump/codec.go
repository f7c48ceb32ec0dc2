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
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
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
	msgpack *msgpack.Encoder // nil: JSON
}

func newEncoder(f Format, payload Encoding) *encoder {
	e := &encoder{payload: payload}
	if f == Msgpack {
		e.msgpack = msgpack.NewEncoder(&e.Buffer)
		e.msgpack.UseCompactInts(true)
		e.msgpack.SetSortMapKeys(true)
	}
	return e
}

// encode appends a record, which it may change, to the buffer.
func (e *encoder) encode(r *Record) error {
	if e.payload == None && r.Type != TypeHeader {
		r.Payload, r.Value = nil, nil
	}
	if r.Settings = newSettings(r.settings); e.msgpack != nil {
		return e.msgpack.Encode(r)
	}
	return e.line(r)
}

// line appends a record as JSON. encoding/json would look at each byte of a payload once more.
func (e *encoder) line(r *Record) error {
	e.Grow(lineOverhead + len(r.Payload) + len(r.Value))
	line, v, separator := e.AvailableBuffer(), reflect.ValueOf(r).Elem(), byte('{')
	for i := range fields {
		value := v.Field(i)
		if fields[i].name == "" || value.IsZero() {
			continue
		}
		line = append(append(line, separator), fields[i].quoted...)
		separator = ','
		switch at := value.Addr().Interface().(type) {
		case *data:
			isPayload := at == &r.Payload && r.Type != TypeHeader || at == &r.Value
			if isPayload && !e.payload.isText(*at) {
				line = jsonbytes.AppendBase64(line, *at)
			} else {
				line = jsonbytes.Append(line, *at)
			}
		case *jsonbytes.Pairs:
			line = at.Append(line)
		case *string:
			line = jsonbytes.Append(line, []byte(*at))
		case *uint64:
			line = strconv.AppendUint(line, *at, 10)
		case *millis:
			line = strconv.AppendInt(line, int64(*at), 10)
		case **uint64:
			line = strconv.AppendUint(line, **at, 10)
		case *sequence:
			line = append(strconv.AppendUint(append(line, '"'), uint64(*at), 10), '"')
		case *ident:
			line = at.append(line)
		default:
			text, err := marshal(at)
			if err != nil {
				return err
			}
			line = append(line, text...)
		}
	}
	_, err := e.Write(append(line, "}\n"...))
	return err
}

// marshal returns the JSON of a value, by encoding/json, which escapes as jsonbytes does.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// lineOverhead is about what a line has besides payload and value.
const lineOverhead = 512

// field is one of a record.
type field struct {
	name   string // "" of one that no dump has
	quoted string // as it begins in a line
	of     string // the types that have it, "" for all
	bytes  bool
}

// fields are the fields of a record, in their order.
var fields = func() (all []field) {
	for f := range reflect.TypeFor[Record]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		bytes := f.Type == reflect.TypeFor[data]() || f.Type == reflect.TypeFor[jsonbytes.Pairs]()
		all = append(all, field{name, `"` + name + `":`, f.Tag.Get("of"), bytes})
	}
	return all
}()

// decode reads one record into r, which is empty. Its type stays "" for an empty line.
func decode(f Format, raw []byte, r *Record) (err error) {
	unmarshal := json.Unmarshal
	if f == Msgpack {
		unmarshal = msgpack.Unmarshal
		d := msgpack.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields(true)
		d.UseLooseInterfaceDecoding(true)
		err = d.Decode(r)
	} else {
		if raw = bytes.Trim(raw, " \t\r\n"); len(raw) == 0 {
			return nil
		}
		err = decodeJSON(raw, r)
	}
	if err != nil { // perhaps because of what only a later version has
		var begin struct {
			Type    string `json:"type" msgpack:"type"`
			Version uint64 `json:"version" msgpack:"version"`
		}
		if unmarshal(raw, &begin) == nil && begin.Type == TypeHeader && begin.Version > Version {
			return errLater(begin.Version)
		}
		return err
	}
	switch {
	case r.Type == "":
		return errors.New(`field "type" is missing: every record has it`)
	case !slices.Contains(types, r.Type):
		return fmt.Errorf("field \"type\": %q is not %s", r.Type, strings.Join(types, ", "))
	}
	for i := range fields {
		if of := fields[i].of; of != "" && !strings.Contains(of, r.Type) && !reflect.ValueOf(r).Elem().Field(i).IsZero() {
			return fmt.Errorf("a %s has no field %q", r.Type, fields[i].name)
		}
	}
	r.settings, err = r.Settings.stored()
	return err
}

func errLater(version uint64) error {
	return fmt.Errorf("the dump has version %d, and this program reads version %d", version, Version)
}

// decodeJSON decodes one line and refuses unknown fields.
func decodeJSON(line []byte, r *Record) error {
	err := checkText(line)
	if err == nil {
		line, err = renamed(line)
	}
	if err != nil {
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

// renamed gives the fields of an older dump the names of today.
func renamed(line []byte) ([]byte, error) {
	var there map[string]json.RawMessage
	if !bytes.Contains(line, []byte(inBase64+`"`)) || json.Unmarshal(line, &there) != nil {
		return line, nil
	}
	out, separator := make([]byte, 0, len(line)), byte('{')
	for name, value := range there {
		now, older := strings.CutSuffix(name, inBase64)
		if older && slices.ContainsFunc(fields, func(f field) bool { return f.bytes && f.name == now }) {
			if there[now] != nil {
				return nil, errTwice(now)
			}
			name, value = now, inObject(value)
		}
		out = append(jsonbytes.Append(append(out, separator), []byte(name)), ':')
		out = append(out, value...)
		separator = ','
	}
	return append(out, '}'), nil
}

// inObject returns base64 as bytes are written now, also within an array.
func inObject(value json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	switch {
	case value[0] == '"':
		value = fmt.Appendf(nil, `{"base64":%s}`, value)
	case value[0] == '[' && json.Unmarshal(value, &list) == nil:
		for i := range list {
			list[i] = inObject(list[i])
		}
		value, _ = json.Marshal(list) // which is JSON
	}
	return value
}

// plainError leaves the words of Go's types out of an error of encoding/json.
func plainError(err error) error {
	var field *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &field) && field.Field == "":
		return fmt.Errorf("expected an object, got %s", field.Value)
	case errors.As(err, &field):
		wanted := "an object"
		switch field.Type.Kind() {
		case reflect.Uint64, reflect.Int64:
			wanted = "a whole number"
		case reflect.String:
			wanted = "a string"
		case reflect.Slice:
			wanted = `a string or {"base64":"…"}`
			if field.Type == reflect.TypeFor[jsonbytes.Pairs]() {
				wanted = "an object or an array of names and values"
			}
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
		return errors.New("the line is not UTF-8: other bytes are {\"base64\":\"…\"}")
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
