package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// contextKeys is what a context may say. The names are those of flags.
type contextKeys struct {
	Redis        string `toml:"redis"`
	Admin        string `toml:"admin"`
	Pinpriq      string `toml:"pinpriq"`
	Barbershop   string `toml:"barbershop"`
	DB           int    `toml:"db"`
	User         string `toml:"user"`
	PasswordFile string `toml:"password-file"`
	TLS          bool   `toml:"tls"`
	TLSCA        string `toml:"tls-ca"`
	TLSCert      string `toml:"tls-cert"`
	TLSKey       string `toml:"tls-key"`
}

// contexts is the file that says under names where servers are and how to get in.
type contexts struct {
	file  string
	all   map[string]map[string]any // by name and key
	lines map[string]int            // of keys, as pathOf joins them
}

// fileOfContexts is where the contexts are.
func fileOfContexts(env func(name string) (string, bool)) string {
	if file, _ := env("HOLDFAST_CONTEXTS"); file != "" {
		return file
	}
	folder, _ := env("XDG_CONFIG_HOME")
	if folder == "" {
		home, _ := env("HOME")
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "holdfast", "contexts.toml")
}

// readContexts reads the file, which only its owner may be able to read.
func readContexts(env func(name string) (string, bool)) (*contexts, error) {
	c := &contexts{file: fileOfContexts(env)}
	f, err := os.Open(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there are no contexts: file %s does not exist ($HOLDFAST_CONTEXTS names another)", c.file)
	} else if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	var text []byte
	if err == nil {
		text, err = io.ReadAll(f)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the contexts: %w", err)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may use %s, which says where secrets are: its mode is %04o, expected 0600; chmod 600 makes it so", c.file, info.Mode().Perm())
	}
	known := make(map[string]contextKeys)
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&known); err != nil {
		return nil, c.explain(err)
	}
	c.lines = keyLines(text)
	return c, toml.Unmarshal(text, &c.all)
}

// explain says in which line and at which key the file is wrong.
func (c *contexts) explain(err error) error {
	var at *toml.DecodeError
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	line, _ := at.Position()
	key, what := strings.Join(at.Key(), "."), strings.TrimPrefix(at.Error(), "toml: ")
	var unknown *toml.StrictMissingError
	switch {
	case errors.As(err, &unknown):
		what = "unknown: expected " + strings.Join(keysOfContexts(), ", ")
	case len(at.Key()) == 1 && strings.HasPrefix(what, "cannot decode"):
		what = "expected a table with the name of a context, such as [prod], and the key below it"
	case strings.HasPrefix(what, "cannot decode"):
		what = "a value of another type is expected: a text in quotes, a number for db, true or false for tls"
	}
	if key != "" {
		what = key + ": " + what
	}
	return fmt.Errorf("%s, line %d: %s", c.file, line, what)
}

func keysOfContexts() []string {
	text, _ := toml.Marshal(contextKeys{})
	var all map[string]any
	_ = toml.Unmarshal(text, &all)
	return slices.Sorted(maps.Keys(all))
}

// written is a value that stands in a file, and where.
type written struct{ text, where string }

func (w written) String() string { return w.text }

// value is what a context says to a flag, nil if nothing. Names of files begin at the folder of the
// contexts.
func (c *contexts) value(name, flag string) any {
	value, ok := c.all[name][flag]
	if !ok || flag == "tls" {
		return value
	}
	text := fmt.Sprint(value)
	switch flag {
	case "password-file", "tls-ca", "tls-cert", "tls-key":
		if text != "" && !filepath.IsAbs(text) {
			text = filepath.Join(filepath.Dir(c.file), text)
		}
	}
	return written{text, fmt.Sprintf("%s, line %d: %s.%s", c.file, c.lines[pathOf(name, flag)], name, flag)}
}

// findContext finds the context that the command line or the environment names. It is a hook of the
// parser.
func (s *Sources) findContext(line *kong.Context) error {
	flag := ContextFlag(line)
	name, _ := line.FlagValue(flag).(string)
	switch {
	case !IsClient(line.Selected()) && name != "":
		return errors.New("--context: expected a command that talks to a running server")
	case IsClient(line.Selected()) && name == "":
		name, _ = s.env(s.variables[flag])
	}
	if name == "" {
		return nil
	}
	all, err := readContexts(s.env)
	if err != nil {
		return err
	}
	s.contexts, s.Context = all, name
	return all.has(name)
}

// has returns an error if there is no such context.
func (c *contexts) has(name string) error {
	if c.all[name] == nil {
		return fmt.Errorf("%s has no context %q: expected %s", c.file, name, strings.Join(c.names(), ", "))
	}
	return nil
}

func (c *contexts) names() []string { return slices.Sorted(maps.Keys(c.all)) }

// ContextFlag is the flag that names a context, which every command line has.
func ContextFlag(line *kong.Context) *kong.Flag {
	flags := line.Model.Flags
	return flags[slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == "context" })]
}

// IsClient says whether a command talks to a server.
func IsClient(node *kong.Node) bool {
	return node != nil && !hasServe(node) && slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool {
		return f.Name == "redis" || f.Name == "admin" || f.Name == "pinpriq" || f.Name == "barbershop"
	})
}

// inContext is a kong resolver: it gives a flag the value of the context, if there is one.
func (s *Sources) inContext(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if s.contexts == nil || s.variables[flag] == "" {
		return nil, nil
	}
	return s.contexts.value(s.Context, flag.Name), nil
}

// ContextCommands shows the contexts. An editor changes them.
type ContextCommands struct {
	List contextListCmd `cmd:"" help:"List the contexts."`
	Show contextShowCmd `cmd:"" help:"Print what a context says."`
}

func (c *ContextCommands) Help() string {
	return `A context is a name for a server and the way to it. It stands in ~/.config/holdfast/contexts.toml ($XDG_CONFIG_HOME instead of ~/.config, or the file that $HOLDFAST_CONTEXTS names), which only its owner may be able to read (chmod 600):

    [prod]
    redis = "queue.example.com:6379"
    admin = "queue.example.com:7072"
    user = "ann"
    password-file = "ann.password"
    tls-ca = "ca.pem"

Other keys are pinpriq, barbershop, db, tls, tls-cert and tls-key, as the flags are called. Names of files begin at the folder of contexts.toml. A flag wins over a variable such as $HOLDFAST_REDIS, and that over the context.

Examples:

    holdfast context list
    holdfast context show prod
    holdfast --context prod stats
    HOLDFAST_CONTEXT=prod holdfast queues`
}

type contextListCmd struct{}

func (c *contextListCmd) Help() string {
	return `Prints a line for each context.

Example:

    holdfast context list`
}

func (c *contextListCmd) Run(p *terminal.Process) error {
	all, err := readContexts(p.Env)
	if err != nil {
		return err
	}
	t := terminal.NewTable(p.Stdout)
	t.Row("CONTEXT", "REDIS", "USER")
	for _, name := range all.names() {
		redis, _ := all.all[name]["redis"].(string)
		user, _ := all.all[name]["user"].(string)
		t.Row(name, redis, user)
	}
	return t.Flush()
}

type contextShowCmd struct {
	Name string `arg:"" help:"Name of the context."`
}

func (c *contextShowCmd) Help() string {
	return `Prints the file and what the context says, as it stands there.

Example:

    holdfast context show prod`
}

func (c *contextShowCmd) Run(p *terminal.Process) error {
	all, err := readContexts(p.Env)
	if err != nil {
		return err
	}
	if err := all.has(c.Name); err != nil {
		return err
	}
	t := terminal.NewTable(p.Stdout)
	t.Row("file", all.file)
	for _, key := range slices.Sorted(maps.Keys(all.all[c.Name])) {
		t.Row(key, fmt.Sprint(all.all[c.Name][key]))
	}
	return t.Flush()
}
