package dump

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// settings holds the settings of a queue as a dump has them: a field for each one that is not 0,
// false or empty, by its name with underscores for hyphens. Its value is a number, true, a word,
// bytes, or for each tag with an order a list of the tag and its values.
type settings map[string]any

// IsZero tells the libraries what to leave out: a queue may have settings that are all 0.
func (s settings) IsZero() bool { return s == nil }

// DecodeMsgpack takes a map alone. The library would also take the length of one out of an
// extension, which may say more than the record has, and make room for as much.
func (s *settings) DecodeMsgpack(d *msgpack.Decoder) error {
	if code, err := d.PeekCode(); err == nil && msgpcode.IsExt(code) {
		return errors.New(`field "settings": got an extension, expected a map`)
	}
	fields, err := d.DecodeMap()
	*s = fields
	return err
}

func fieldOf(k *content.Setting) string { return strings.ReplaceAll(k.Name, "-", "_") }

// newSettings makes the fields of settings, nil of none.
func newSettings(s *content.Settings) settings {
	if s == nil {
		return nil
	}
	fields := settings{}
	for i := range content.SettingsTable {
		k := &content.SettingsTable[i]
		if k.IsZero(s) {
			continue
		}
		value := k.At(s) // of a number, or true
		switch at := value.(type) {
		case *content.Choice:
			value = k.Word(*at)
		case *[]byte:
			value = data(*at)
		case *content.Orders:
			lists := make([][]data, len(*at))
			for i, o := range *at {
				for _, text := range append([]string{o.Tag}, o.Values...) {
					lists[i] = append(lists[i], data(text))
				}
			}
			value = lists
		}
		fields[fieldOf(k)] = value
	}
	return fields
}

// inBase64 ends the names of fields in older dumps: bytes that are no text, as base64.
const inBase64 = "_base64"

func errTwice(name string) error { return fmt.Errorf("field %q is there in two encodings", name) }

// stored checks settings that one of the libraries has decoded.
func (s settings) stored() (*content.Settings, error) {
	if s == nil {
		return nil, nil
	}
	out := new(content.Settings)
	for field, value := range s {
		name, encoded := strings.CutSuffix(field, inBase64)
		i := slices.IndexFunc(content.SettingsTable, func(k content.Setting) bool { return fieldOf(&k) == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("unknown field %q", field)
		case encoded && s[name] != nil:
			return nil, errTwice(name)
		case value == nil:
			continue
		}
		if err := setSetting(out, &content.SettingsTable[i], name, value, encoded); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func setSetting(s *content.Settings, k *content.Setting, name string, value any, encoded bool) error {
	ok := true
	switch at := k.At(s).(type) {
	case *int64:
		n, err := strconv.ParseUint(fmt.Sprint(value), 10, 64)
		if err != nil || n > maxSetting {
			return fmt.Errorf("field %q is %v: expected a whole number from 0 to %d", name, value, uint64(maxSetting))
		}
		*at = int64(n)
	case *bool:
		if *at, ok = value.(bool); !ok {
			return fmt.Errorf("field %q is %v: expected true or false", name, value)
		}
	case *content.Choice:
		word := slices.Index(k.Words, fmt.Sprint(value))
		if word < 0 {
			return fmt.Errorf("field %q is %q: expected one of %s", name, value, strings.Join(k.Words, ", "))
		}
		*at = content.Choice(word)
	case *[]byte:
		if *at, ok = bytesOf(value, encoded); !ok || len(*at) > content.MaxName {
			return fmt.Errorf("field %q: expected a name of at most %d bytes", name, content.MaxName)
		}
		if err := k.Check(*at); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	case *content.Orders:
		lists, ok := value.([]any)
		for _, list := range lists {
			texts, isList := list.([]any)
			o := make([]string, max(1, len(texts)))
			for i := range texts {
				text, isText := bytesOf(texts[i], encoded)
				o[i], ok = string(text), ok && isText
			}
			*at, ok = append(*at, content.Order{Tag: o[0], Values: o[1:]}), ok && isList
		}
		if !ok {
			return fmt.Errorf("field %q: expected an array with an array of texts for each tag", name)
		}
		if err := content.CheckOrders(*at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// bytesOf returns the bytes of a value. msgpack has them as they are; encoded is a value in base64.
func bytesOf(value any, encoded bool) (b []byte, ok bool) {
	if b, ok = value.([]byte); ok {
		return b, true
	}
	if encoded {
		value = map[string]any{"base64": value}
	}
	return jsonbytes.Of(value)
}
