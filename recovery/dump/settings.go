package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// settingsRecord is a part of a queueRecord. It has a field for each setting that is not 0, false
// or empty: the setting's name with underscores for hyphens.
type settingsRecord struct{ storage.Settings }

func fieldOf(k storage.Setting) string { return strings.ReplaceAll(k.Name, "-", "_") }

// fields returns the names and the values of what is dumped. A value is a *int64, *bool, *[]byte, a
// word, or for each tag with an order a list of the tag and its values.
func (r *settingsRecord) fields() (names []string, values []any) {
	for _, k := range storage.SettingsTable {
		value := k.At(&r.Settings)
		switch at := value.(type) {
		case *storage.Full:
			value = at.String()
		case *storage.Orders:
			var lists [][][]byte
			for _, o := range *at {
				list := [][]byte{[]byte(o.Tag)}
				for _, v := range o.Values {
					list = append(list, []byte(v))
				}
				lists = append(lists, list)
			}
			value = lists
		}
		if !k.IsZero(&r.Settings) {
			names, values = append(names, fieldOf(k)), append(values, value)
		}
	}
	return names, values
}

// EncodeMsgpack is for the msgpack library.
func (r *settingsRecord) EncodeMsgpack(e *msgpack.Encoder) error {
	names, values := r.fields()
	err := e.EncodeMapLen(len(names))
	for i, name := range names {
		err = errors.Join(err, e.EncodeString(name), e.Encode(values[i]))
	}
	return err
}

// appendSettings appends the settings of a queue as JSON, or nothing if it has none.
func appendSettings(dst []byte, s *storage.Settings) []byte {
	if s == nil {
		return dst
	}
	var part []byte
	names, values := (&settingsRecord{*s}).fields()
	for i, name := range names {
		switch value := values[i].(type) {
		case *int64:
			part = appendInt(part, name, *value)
		case *[]byte:
			part = appendBytes(part, name, *value, Text)
		case [][][]byte:
			part = appendLists(part, name, value)
		default:
			text, _ := json.Marshal(value) // of true or a word
			part = fmt.Appendf(part, `,"%s":%s`, name, text)
		}
	}
	return fmt.Appendf(dst, `,"settings":{%s}`, bytes.TrimPrefix(part, []byte(",")))
}

// appendLists appends arrays of strings if all is UTF-8, else of base64.
func appendLists(dst []byte, name string, lists [][][]byte) []byte {
	put := appendString
	if slices.ContainsFunc(slices.Concat(lists...), func(text []byte) bool { return !utf8.Valid(text) }) {
		name, put = name+"_base64", appendBase64
	}
	dst = fmt.Appendf(dst, `,"%s":`, name)
	for i, list := range lists {
		dst = append(dst, "[["[min(i, 1):]...)
		for _, text := range list {
			dst = append(put(dst, text), ',')
		}
		dst = append(dst[:len(dst)-1], "],"...)
	}
	return append(dst[:len(dst)-1], ']')
}

// UnmarshalJSON is for encoding/json.
func (r *settingsRecord) UnmarshalJSON(b []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for field, value := range fields {
		name, raw := strings.CutSuffix(field, "_base64")
		if raw && fields[name] != nil {
			return errTwice(name)
		}
		err := r.set(name, raw, func(to any) error { return json.Unmarshal(value, to) })
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			kind.Field = name
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DecodeMsgpack is for the msgpack library.
func (r *settingsRecord) DecodeMsgpack(d *msgpack.Decoder) error {
	n, err := d.DecodeMapLen()
	for ; err == nil && n > 0; n-- {
		var name string
		if name, err = d.DecodeString(); err == nil {
			err = r.set(name, true, func(to any) error { return d.Decode(to) })
		}
	}
	return err
}

// set checks the value of a field, which decode reads. raw says that texts are bytes there.
func (r *settingsRecord) set(name string, raw bool, decode func(to any) error) (err error) {
	i := slices.IndexFunc(storage.SettingsTable, func(k storage.Setting) bool { return fieldOf(k) == name })
	if i < 0 {
		return fmt.Errorf("unknown field %q", name)
	}
	var n uint64
	var text string
	k := &storage.SettingsTable[i]
	switch at := k.At(&r.Settings).(type) {
	case *int64:
		if err = decode(&n); n > maxSetting {
			err = fmt.Errorf("field %q is %d: expected 0 to %d", name, n, uint64(maxSetting))
		}
		*at = int64(n)
	case *bool:
		err = decode(at)
	case *storage.Full:
		if err = decode(&text); err == nil {
			word := slices.Index(k.Words, text)
			if word < 0 {
				return fmt.Errorf("field %q is %q: expected one of %s", name, text, strings.Join(k.Words, ", "))
			}
			*at = storage.Full(word)
		}
	case *[]byte:
		if raw {
			err = decode(at)
		} else if err = decode(&text); err == nil {
			*at = []byte(text)
		}
		if len(*at) > storage.MaxName {
			err = fmt.Errorf("field %q has %d bytes: at most %d", name, len(*at), storage.MaxName)
		}
	case *storage.Orders:
		if raw {
			err = orders[[]byte](at, decode)
		} else {
			err = orders[string](at, decode)
		}
		if err == nil {
			if err = storage.CheckOrders(*at); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return err
}

// orders reads lists of a tag and its values.
func orders[T string | []byte](to *storage.Orders, decode func(to any) error) error {
	var lists [][]T
	err := decode(&lists)
	for _, list := range lists {
		var o storage.Order
		for i, text := range list {
			if i == 0 {
				o.Tag = string(text)
			} else {
				o.Values = append(o.Values, string(text))
			}
		}
		*to = append(*to, o)
	}
	return err
}
