package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// maxConfig is the longest config file, in bytes.
const maxConfig = 1 << 20

// configFile is a file with settings of the server: its flags by their names, users and queues.
type configFile struct {
	name   string
	values map[string]any
	lines  map[string]int // of keys, as pathOf joins them

	// What readTables has read.
	users   []access.User
	secrets []string                   // files with their passwords
	queues  map[string]broker.Settings // by globs of their names
}

// Error is an error in a file of settings.
type Error struct{ error }

// Unwrap returns the error itself.
func (e Error) Unwrap() error { return e.error }

// readConfig reads a file and checks that it is TOML with each key once.
func readConfig(name string) (*configFile, error) {
	text, err := readBounded(name, maxConfig)
	if err != nil {
		return nil, Error{fmt.Errorf("config file: %w", err)}
	}
	f := &configFile{name: name}
	err = toml.Unmarshal(text, &f.values)
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		line, _ := syntax.Position()
		wrong := strings.TrimPrefix(syntax.Error(), "toml: ")
		if strings.HasPrefix(wrong, "expected newline") {
			wrong += `: a text stands in quotes, such as redis = "127.0.0.1:6379"`
		}
		return nil, Error{fmt.Errorf("%s:%d: %s", name, line, wrong)}
	}
	if err != nil {
		return nil, Error{fmt.Errorf("%s: %w", name, err)}
	}
	f.lines = keyLines(text)
	return f, nil
}

// keyLines are the lines of the keys, as pathOf joins them, of a text that is TOML.
func keyLines(text []byte) map[string]int {
	lines := make(map[string]int)
	var p unstable.Parser
	p.Reset(text)
	line, seen := 1, 0
	note := func(above string, n *unstable.Node) string {
		for keys := n.Key(); keys.Next(); {
			key := keys.Node()
			if at := int(key.Raw.Offset); at > seen {
				line, seen = line+strings.Count(string(text[seen:at]), "\n"), at
			}
			if above = pathOf(above, string(key.Data)); lines[above] == 0 {
				lines[above] = line
			}
		}
		return above
	}
	var noteAll func(above string, n *unstable.Node)
	noteAll = func(above string, n *unstable.Node) {
		above = note(above, n)
		if n.Value().Kind == unstable.InlineTable {
			for all := n.Value().Children(); all.Next(); {
				noteAll(above, all.Node())
			}
		}
	}
	table := ""
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = note("", n)
		case unstable.KeyValue:
			noteAll(table, n)
		}
	}
	return lines
}

// pathOf is a key in a table, as people write it.
func pathOf(table, key string) string {
	isBare := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	if key == "" || strings.ContainsFunc(key, func(c rune) bool { return !isBare(c) }) {
		key = strconv.Quote(key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

// wrong is an error of a key.
func (f *configFile) wrong(path string, err error) error {
	return Error{fmt.Errorf("%s:%d: %s: %w", f.name, f.lines[path], path, err)}
}

// table returns the table that a key holds, with its keys in the order of their lines; nil if it is
// not there.
func (f *configFile) table(path string, value any) (table map[string]any, keys []string, err error) {
	if value == nil {
		return nil, nil, nil
	}
	if table, err = as[map[string]any](f, path, value); err != nil {
		return nil, nil, err
	}
	keys = slices.SortedFunc(maps.Keys(table), func(a, b string) int {
		a, b = pathOf(path, a), pathOf(path, b)
		if f.lines[a] != f.lines[b] {
			return f.lines[a] - f.lines[b]
		}
		return strings.Compare(a, b)
	})
	return table, keys, nil
}

// texts returns the texts that a key holds in an array.
func (f *configFile) texts(path string, value any) ([]string, error) {
	var texts []string
	array, ok := value.([]any)
	for _, v := range array {
		text, isText := v.(string)
		ok = ok && isText
		texts = append(texts, text)
	}
	if !ok {
		return nil, f.wrong(path, fmt.Errorf("expected an array of strings, got %s", kindOfTOML(value)))
	}
	return texts, nil
}

// kindOfTOML is what a value is, in words.
func kindOfTOML(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a point"
	case bool:
		return "true or false"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// as is the value that a key holds, which must be of a type.
func as[T any](f *configFile, path string, value any) (v T, err error) {
	v, ok := value.(T)
	if !ok {
		err = f.wrong(path, fmt.Errorf("expected %s, got %s", kindOfTOML(v), kindOfTOML(value)))
	}
	return v, err
}

// flag returns the value of a flag as the flag's decoder takes it, nil if the file has none.
func (f *configFile) flag(flag *kong.Flag) (any, error) {
	value, kind := f.values[flag.Name], flag.Target.Kind()
	switch n, isNumber := value.(int64); {
	case value == nil:
		return nil, nil
	case kind == reflect.Slice:
		_, err := f.texts(flag.Name, value)
		return value, err
	case kind == reflect.Bool:
		return as[bool](f, flag.Name, value)
	case isNumber && kind != reflect.String: // where there is a unit, the decoder says that it is missing
		return terminal.Decimal(n), nil
	case kind == reflect.Int:
		return as[int64](f, flag.Name, value)
	}
	return as[string](f, flag.Name, value)
}
