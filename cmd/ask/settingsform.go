package ask

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// settingsForm is the flags of a command that prints settings.
type settingsForm struct {
	JSON bool `help:"Print a JSON object. Times are milliseconds, sizes bytes."`

	asking
}

// change changes settings of a queue, and prints what they are then. It makes the queue, unless
// that must be there.
func (f *settingsForm) change(ctx context.Context, p *terminal.Process, server *client.Client, queue string, there bool, changes *config.SettingChanges) error {
	if there {
		if _, err := server.Get(ctx, queue); err != nil {
			return err
		}
	}
	for _, settings := range changes.Calls() {
		if err := server.Set(ctx, queue, settings...); err != nil {
			return err
		}
	}
	settings, err := server.Get(ctx, queue)
	if err != nil {
		return err
	}
	maps.DeleteFunc(settings, func(name, _ string) bool { return !slices.Contains(changes.Names, name) })
	return f.print(p.Stdout, settings)
}

// print writes settings, a line each.
func (f *settingsForm) print(w io.Writer, settings map[string]string) error {
	if f.JSON {
		_, err := w.Write(settingsJSON(settings))
		return err
	}
	t := terminal.NewTable(w)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		shown := name
		if tag, ok := strings.CutPrefix(name, "enum "); ok {
			shown = config.EnumPrefix + terminal.Cell(tag, terminal.LongCell)
		}
		t.Row(shown, config.SettingText(name, settings[name]))
	}
	return t.Flush()
}

func settingsJSON(settings map[string]string) []byte {
	var o terminal.JSON
	orders, lists, plain := make(map[string][]jsonbytes.Bytes), [][]jsonbytes.Bytes(nil), true
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value, field := settings[name], strings.ReplaceAll(name, "-", "_")
		n, err := strconv.ParseInt(value, 10, 64)
		tag, isOrder := strings.CutPrefix(name, "enum ")
		switch {
		case isOrder:
			for text := range strings.SplitSeq(value, ",") {
				orders[tag] = append(orders[tag], jsonbytes.Bytes(text))
			}
			lists = append(lists, append([]jsonbytes.Bytes{jsonbytes.Bytes(tag)}, orders[tag]...))
			plain = plain && utf8.ValidString(tag)
		case err == nil && config.SettingKind(name) < content.SettingChoice:
			o.Add(field, n)
		default:
			o.Bytes(field, []byte(value))
		}
	}
	switch {
	case !plain:
		o.Add("enum", lists) // as dumps have them
	case len(orders) > 0:
		o.Add("enum", orders)
	}
	return o.Line()
}
