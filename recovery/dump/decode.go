package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// decoder makes records of raw ones. One goroutine uses it.
type decoder interface {
	// decode returns a pointer to one of the records of record.go, or nil for an empty line.
	decode(raw []byte) (any, error)
}

func newDecoder(f Format) decoder {
	if f == Msgpack {
		return &msgpackDecoder{msgpack.NewDecoder(nil)}
	}
	return jsonDecoder{}
}

// decode decodes the records of a chunk. An error takes the place of the record that has it.
func (c *chunk) decode(d decoder) {
	from := 0
	for _, end := range c.ends {
		record, err := d.decode(c.buf[from:end])
		if err != nil {
			record = err
		}
		c.records = append(c.records, record)
		from = end
	}
}

// decodeHeader decodes the first record. It tells a dump of a later version before it looks at
// fields that only that version has.
func decodeHeader(f Format, raw []byte) (*headerRecord, error) {
	var begin struct {
		Type    string `json:"type" msgpack:"type"`
		Version uint64 `json:"version" msgpack:"version"`
	}
	unmarshal := json.Unmarshal
	if f == Msgpack {
		unmarshal = msgpack.Unmarshal
	}
	if err := unmarshal(raw, &begin); err == nil && begin.Type == typeHeader && begin.Version > Version {
		return nil, fmt.Errorf("the dump has version %d, and this program reads version %d", begin.Version, Version)
	}
	record, err := newDecoder(f).decode(raw)
	if err != nil {
		return nil, err
	}
	header, ok := record.(*headerRecord)
	if !ok {
		return nil, errors.New("expected the header of a dump, a record of type holdfast")
	}
	return header, nil
}

// msgpackDecoder decodes maps.
type msgpackDecoder struct{ dec *msgpack.Decoder }

func (d *msgpackDecoder) decode(raw []byte) (any, error) {
	record, err := recordOf(raw[1:], "\xa4type\xa6packet", func(_ []byte, to any) error { return msgpack.Unmarshal(raw, to) })
	if err != nil {
		return nil, err
	}
	d.dec.Reset(bytes.NewReader(raw))
	d.dec.DisallowUnknownFields(true)
	return record, d.dec.Decode(record)
}

// recordOf makes an empty record of the type that the raw one has. A packet that begins as Dump
// writes it, which is with packet, need not be searched for its type.
func recordOf(raw []byte, packet string, unmarshal func([]byte, any) error) (any, error) {
	if bytes.HasPrefix(raw, []byte(packet)) {
		return newRecord(typePacket), nil
	}
	var begin struct {
		Type string `json:"type" msgpack:"type"`
	}
	if err := unmarshal(raw, &begin); err != nil {
		return nil, err
	}
	record := newRecord(begin.Type)
	if record == nil && begin.Type == "" {
		return nil, errors.New(`field "type" is missing: every record has it`)
	}
	if record == nil {
		return nil, fmt.Errorf("field \"type\": %q is not holdfast, queue, packet, window, string, hash, field or end", begin.Type)
	}
	return record, nil
}

// jsonDecoder decodes lines.
type jsonDecoder struct{}

func (jsonDecoder) decode(line []byte) (any, error) {
	line = bytes.Trim(line, " \t\r\n")
	if len(line) == 0 {
		return nil, nil
	}
	if err := checkText(line); err != nil {
		return nil, err
	}
	record, err := recordOf(line, `{"type":"packet",`, json.Unmarshal)
	if err != nil {
		return nil, plainError(err)
	}
	var form interface{ record() (any, error) }
	switch record.(type) {
	case *queueRecord:
		form = &jsonQueue{}
	case *packetRecord:
		form = &jsonPacket{}
	case *keyRecord:
		form = &jsonKey{}
	default:
		return record, strictJSON(line, record)
	}
	if err := strictJSON(line, form); err != nil {
		return nil, err
	}
	return form.record()
}

// strictJSON decodes one line and refuses unknown fields.
func strictJSON(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
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
		name := field.Field[strings.LastIndexByte(field.Field, '.')+1:] // without the name of the struct
		return fmt.Errorf("field %q: got a %s, expected %s", name, field.Value, wanted(field.Type))
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the line ends inside a value")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func wanted(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Uint32:
		return "a whole number from 0 to 4294967295"
	case reflect.Uint64:
		return "a whole number from 0 on"
	case reflect.Int64:
		return "a whole number of milliseconds"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		if kind.Elem().Kind() != reflect.Uint8 {
			return "an array"
		}
		return "base64"
	case reflect.Struct:
		return "an object"
	}
	return "an object of strings"
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

// UnmarshalJSON reads a string of digits, or a number.
func (s *sequence) UnmarshalJSON(b []byte) error {
	digits := strings.Trim(string(b), `"`)
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		return fmt.Errorf("sequence %s: expected a whole number from 0 to 18446744073709551615, as a string", b)
	}
	*s = sequence(n)
	return nil
}

// jsonBytes returns the value of a field that is text or base64, nil if it is neither.
func jsonBytes(name string, text *string, base64 []byte) ([]byte, error) {
	switch {
	case text == nil:
		return base64, nil
	case base64 != nil:
		return nil, errTwice(name)
	}
	return []byte(*text), nil
}

func errTwice(name string) error {
	return fmt.Errorf("field %q is there in two encodings", name)
}

// jsonQueue is a queueRecord as JSON has it.
type jsonQueue struct {
	queueRecord
	Queue         *string `json:"queue"`
	QueueBase64   []byte  `json:"queue_base64"`
	Unknown       *string `json:"unknown"`
	UnknownBase64 []byte  `json:"unknown_base64"`
}

func (q *jsonQueue) record() (any, error) {
	var errs [2]error
	r := &q.queueRecord
	r.Queue, errs[0] = jsonBytes("queue", q.Queue, q.QueueBase64)
	r.Unknown, errs[1] = jsonBytes("unknown", q.Unknown, q.UnknownBase64)
	return r, cmp.Or(errs[:]...)
}

// jsonKey is a keyRecord as JSON has it.
type jsonKey struct {
	keyRecord
	Hash        *string `json:"hash"`
	HashBase64  []byte  `json:"hash_base64"`
	Name        *string `json:"name"`
	NameBase64  []byte  `json:"name_base64"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64"`
}

func (k *jsonKey) record() (any, error) {
	var errs [3]error
	r := &k.keyRecord
	r.Hash, errs[0] = jsonBytes("hash", k.Hash, k.HashBase64)
	r.Name, errs[1] = jsonBytes("name", k.Name, k.NameBase64)
	r.Value, errs[2] = jsonBytes("value", k.Value, k.ValueBase64)
	return r, cmp.Or(errs[:]...)
}

// jsonPacket is a packetRecord as JSON has it.
type jsonPacket struct {
	packetRecord
	Queue              *string           `json:"queue"`
	QueueBase64        []byte            `json:"queue_base64"`
	Key                *string           `json:"key"`
	KeyBase64          []byte            `json:"key_base64"`
	Payload            *string           `json:"payload"`
	PayloadBase64      []byte            `json:"payload_base64"`
	TextTags           map[string]string `json:"tags"`
	Producer           *string           `json:"producer"`
	ProducerBase64     []byte            `json:"producer_base64"`
	Unique             *string           `json:"unique"`
	UniqueBase64       []byte            `json:"unique_base64"`
	Consumer           *string           `json:"consumer"`
	ConsumerBase64     []byte            `json:"consumer_base64"`
	Origin             *string           `json:"origin"`
	OriginBase64       []byte            `json:"origin_base64"`
	Reason             *string           `json:"reason"`
	ReasonBase64       []byte            `json:"reason_base64"`
	ProgressText       *string           `json:"progress_text"`
	ProgressTextBase64 []byte            `json:"progress_text_base64"`
}

func (p *jsonPacket) record() (any, error) {
	var errs [9]error
	r := &p.packetRecord
	if p.TextTags != nil && r.Tags != nil {
		return nil, errTwice("tags")
	}
	for name, value := range p.TextTags {
		r.Tags = append(r.Tags, []byte(name), []byte(value))
	}
	r.Queue, errs[0] = jsonBytes("queue", p.Queue, p.QueueBase64)
	r.Key, errs[1] = jsonBytes("key", p.Key, p.KeyBase64)
	r.Payload, errs[2] = jsonBytes("payload", p.Payload, p.PayloadBase64)
	r.Producer, errs[3] = jsonBytes("producer", p.Producer, p.ProducerBase64)
	r.Consumer, errs[4] = jsonBytes("consumer", p.Consumer, p.ConsumerBase64)
	r.Origin, errs[5] = jsonBytes("origin", p.Origin, p.OriginBase64)
	r.Reason, errs[6] = jsonBytes("reason", p.Reason, p.ReasonBase64)
	r.ProgressText, errs[7] = jsonBytes("progress_text", p.ProgressText, p.ProgressTextBase64)
	r.Unique, errs[8] = jsonBytes("unique", p.Unique, p.UniqueBase64)
	return r, cmp.Or(errs[:]...)
}
