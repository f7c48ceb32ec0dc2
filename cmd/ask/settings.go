package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

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
// that must be there. leave is FORCE, or nothing.
func (f *settingsForm) change(ctx context.Context, p *terminal.Process, server *client.Client, queue string, there bool, changes *config.SettingChanges, leave ...string) error {
	return f.have(ctx, p, server, queue, there, changes.Names, func() error {
		for _, settings := range changes.Calls() {
			if err := server.Set(ctx, queue, leave, settings); err != nil {
				return err
			}
		}
		return nil
	})
}

// forceForm is the flag of a command that may have very many packets move.
type forceForm struct {
	Force bool `help:"Let more than 10,000 packets move, for share-by or strict. Nobody is served meanwhile: about a second a million."`
}

func (f *forceForm) leave() []string {
	if f.Force {
		return []string{"FORCE"}
	}
	return nil
}

// have does what changes some settings of a queue. It is otherwise as change.
func (f *settingsForm) have(ctx context.Context, p *terminal.Process, server *client.Client, queue string, there bool, names []string, do func() error) error {
	if there {
		if _, err := server.Get(ctx, queue); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	settings, err := server.Get(ctx, queue)
	if err != nil {
		return err
	}
	maps.DeleteFunc(settings, func(name, _ string) bool { return !slices.Contains(names, name) })
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
			shown = config.EnumPrefix + terminal.Cell(tag)
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
		case config.SettingKind(name) == content.SettingFlag:
			o.Add(field, value == "yes")
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

// Get prints settings.
type Get struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`

	settingsForm
}

func (c *Get) Help() string {
	return `Prints the settings of a queue, those that nobody has set, too. "holdfast set --help" explains them. If there is no such queue, the exit code is 3.

Examples:

    holdfast get jobs
    holdfast get jobs --json`
}

func (c *Get) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	settings, err := server.Get(ctx, c.Queue)
	if err != nil {
		return err
	}
	return c.print(p.Stdout, settings)
}

// Set changes settings.
type Set struct {
	Queue    string   `arg:"" predictor:"queue" help:"Queue to set. It is made if there is none."`
	Settings []string `arg:"" name:"name=value" predictor:"setting=" help:"Settings, such as lease=1m, bound-bytes=64MiB or enum.class=low,standard,high."`

	forceForm
	settingsForm
}

func (c *Set) Help() string {
	var names strings.Builder
	for _, k := range content.SettingsTable {
		if k.By == "" {
			fmt.Fprintf(&names, "    %-20s %s\n", strings.Replace(k.Name, "enum", config.EnumPrefix+"TAG", 1), k.Help)
		}
	}
	return `Prints the settings as they are then. Times are written as 30s or 2d, sizes as 64MiB, a switch as yes or no. The order of the values of a tag is declared by enum.TAG; an empty one ends it. With more than one of those, the settings go to the server in as many steps. "holdfast unset" brings a default back.

` + names.String() + `
Examples:

    holdfast set jobs max-attempts=3 lease=5m dead-letter=graves
    holdfast set jobs bound=10000 bound-bytes=64MiB full=block
    holdfast set tasks enum.performance_class=low,standard,performance,high_performance`
}

func (c *Set) Validate() error {
	_, err := c.changes()
	return cmp.Or(checkPairs("<name=value>", c.Settings), err)
}

func (c *Set) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	changes, err := c.changes()
	if err != nil {
		return err
	}
	return c.change(ctx, p, server, c.Queue, false, changes, c.leave()...)
}

func (c *Set) Run(ctx context.Context, p *terminal.Process, line *kong.Context) error {
	err := c.asking.Run(ctx, p, line)
	for _, pair := range c.Settings { // the server has looked at names and texts
		name, _, _ := strings.Cut(pair, "=")
		switch name, _, _ = strings.Cut(name, "."); {
		case err == nil:
		case strings.HasPrefix(err.Error(), fmt.Sprintf("unknown setting %q", name)):
			return UsageError{fmt.Errorf("%w%s", err, terminal.Nearest(name, config.SettingNames()))}
		case strings.HasPrefix(err.Error(), name+": "):
			return UsageError{err}
		}
	}
	return err
}

func (c *Set) changes() (*config.SettingChanges, error) {
	var changes config.SettingChanges
	for _, pair := range c.Settings {
		name, text, _ := strings.Cut(pair, "=")
		value, err := config.ParseSetting(name, text)
		if err := cmp.Or(config.CheckSettable(name), err); err != nil {
			return nil, err
		}
		changes.Add(name, value)
	}
	return &changes, nil
}

// Unset brings defaults back.
type Unset struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue whose settings to reset."`
	Names []string `arg:"" name:"name" predictor:"setting" help:"Settings, such as lease or enum.class."`

	forceForm
	settingsForm
}

func (c *Unset) Help() string {
	return `Gives settings of a queue their defaults, and prints them. enum.TAG has none: the values of the tag are in no order then. "holdfast set --help" explains the settings. If there is no such queue, nothing is changed and the exit code is 3.

Examples:

    holdfast unset jobs lease dead-letter
    holdfast unset tasks enum.performance_class`
}

func (c *Unset) Validate() error {
	for _, name := range c.Names {
		if err := config.CheckSettable(name); err != nil {
			return err
		}
		if _, ok := config.SettingDefault(name); !ok {
			return fmt.Errorf("unknown setting %.80q: expected one of %s%s", name, strings.Join(config.SettingNames(), ", "), terminal.Nearest(name, config.SettingNames()))
		}
	}
	return nil
}

func (c *Unset) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	var changes config.SettingChanges
	for _, name := range c.Names {
		value, _ := config.SettingDefault(name)
		changes.Add(name, value)
	}
	return c.change(ctx, p, server, c.Queue, true, &changes, c.leave()...)
}

// gateForm is the arguments of a command that closes or opens gates of a queue.
type gateForm struct {
	Queue string `arg:"" predictor:"queue" help:"Name of the queue."`
	In    bool   `help:"Only pushes."`
	Out   bool   `help:"Only takes."`

	settingsForm
}

// gates are the settings to change: both unless one is chosen.
func (f *gateForm) gates() (names []string) {
	if f.In || !f.Out {
		names = append(names, "pause-in")
	}
	if f.Out || !f.In {
		names = append(names, "pause-out")
	}
	return names
}

// change gives the gates a value. The queue must be there, unless it may be made.
func (f *gateForm) change(ctx context.Context, p *terminal.Process, server *client.Client, paused string, create bool) error {
	var changes config.SettingChanges
	for _, gate := range f.gates() {
		changes.Add(gate, paused)
	}
	return f.settingsForm.change(ctx, p, server, f.Queue, !create, &changes)
}

// Pause closes gates of a queue for a while.
type Pause struct {
	gateForm
	Create bool          `help:"Make the queue if there is none."`
	For    time.Duration `xor:"end" range:"1ms 3650d" placeholder:"TIME" help:"How long, such as 30m."`
	Until  time.Time     `xor:"end" placeholder:"TIME" help:"Until when, such as 2026-12-01T08:00, which is local time, 2026-12-01T08:00Z or 2026-12-01T08:00+02:00."`
}

func (c *Pause) Help() string {
	return `Nothing is pushed to the queue and nothing is taken from it until "holdfast resume", or until a time. Pushes are refused, or wait if the queue has full=block. Consumers wait. What is claimed can be acknowledged, and "holdfast list" sees everything. If there is no such queue, the exit code is 3.

Examples:

    holdfast pause jobs
    holdfast pause jobs --out --for 30m
    holdfast pause soon --create`
}

func (c *Pause) Validate() error {
	if c.Until != (time.Time{}) && !c.Until.After(time.Now()) {
		return errors.New(`--until: expected a time that is ahead; "holdfast resume" ends a pause`)
	}
	return nil
}

func (c *Pause) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	if c.Until.IsZero() && c.For == 0 {
		return c.change(ctx, p, server, "yes", c.Create)
	}
	var names []string
	for _, gate := range c.gates() {
		names = append(names, gate, gate+"-until")
	}
	return c.have(ctx, p, server, c.Queue, !c.Create, names, func() error {
		until := c.Until
		if c.For > 0 {
			now, err := server.Redis().Time(ctx).Result()
			if err != nil {
				return err
			}
			until = now.Add(c.For)
		}
		for _, gate := range c.gates() {
			if err := server.PauseUntil(ctx, c.Queue, until, client.Gate(gate)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Resume opens gates of a queue.
type Resume struct{ gateForm }

func (c *Resume) Help() string {
	return `Ends what "holdfast pause" began. Clients that wait for it are served at once. If there is no such queue, the exit code is 3.

Examples:

    holdfast resume jobs
    holdfast resume jobs --in`
}

func (c *Resume) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.change(ctx, p, server, "no", false)
}
