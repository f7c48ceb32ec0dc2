package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
)

// source is where the value of a flag comes from.
type source string

const (
	fromDefault     source = "default"
	fromFile        source = "file"
	fromEnvironment source = "environment"
	fromFlag        source = "flag"
)

// Sources is where the flags of a command line have values from, beside the line itself.
type Sources struct {
	env       func(name string) (string, bool)
	variables map[*kong.Flag]string // of the environment, which stand in for flags
	contexts  *contexts             // nil without a context
	Context   string                // its name

	// Of a server.
	file  *configFile     // nil: there is none
	flags []*kong.Flag    // of the command, if it has those of serve
	given map[string]bool // those on the command line
}

// NewSources begins with an environment, as os.LookupEnv looks it up. Parser learns the rest.
func NewSources(env func(name string) (string, bool)) *Sources {
	return &Sources{env: env, given: make(map[string]bool)}
}

// Parser makes a parser of a command line whose flags have values from there. root is a pointer to
// what the line is read into. Commands can have a *Sources for their Run.
func (s *Sources) Parser(root any, options ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(root, slices.Concat(decoders(), options, []kong.Option{
		kong.Name("holdfast"),
		kong.ValueFormatter(s.HelpWithVariable),
		kong.WithBeforeResolve(s.findContext),
		kong.WithBeforeResolve(s.loadConfig),
		// The last that has a value counts.
		kong.Resolvers(kong.ResolverFunc(s.inContext), kong.ResolverFunc(s.inFile), kong.ResolverFunc(s.variable)),
		kong.Bind(s),
	})...)
	if err == nil {
		s.variables = variables(parser.Model.Node, false)
	}
	return parser, err
}

var errUnknownKey = errors.New(`unknown key: expected users, queues or a flag of "holdfast serve" without its dashes`)

// loadConfig reads the config file that the command line or the environment names. It is a hook of
// the parser, when that has read the command line.
func (s *Sources) loadConfig(line *kong.Context) error {
	command := line.Selected()
	if command == nil || !hasServe(command) {
		return nil
	}
	s.flags = command.Flags
	name, _ := s.env(VariableOf("config"))
	for _, at := range line.Path {
		if at.Positional != nil && at.Positional.Name == "file" || at.Flag != nil && at.Flag.Name == "config" {
			name = line.Value(at).String()
		}
		if at.Flag != nil {
			s.given[at.Flag.Name] = true
		}
	}
	if name == "" {
		return nil
	}
	file, err := readConfig(name)
	if err != nil {
		return err
	}
	s.file = file
	_, keys, _ := file.table("", file.values)
	for _, key := range keys {
		isFlag := slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == key && isSetting(f) })
		if !isFlag && key != "users" && key != "queues" {
			names := []string{"users", "queues"}
			for _, f := range command.Flags {
				names = append(names, f.Name)
			}
			return file.wrong(pathOf("", key), fmt.Errorf("%w%s", errUnknownKey, terminal.Nearest(key, names)))
		}
	}
	return file.readTables()
}

// isSetting says that a flag is a setting of the server.
func isSetting(flag *kong.Flag) bool {
	return !slices.Contains([]string{"config", "context", "json", "help"}, flag.Name)
}

// inFile is a kong resolver: it gives a flag the value of the config file.
func (s *Sources) inFile(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if s.file == nil {
		return nil, nil
	}
	return s.file.flag(flag)
}

// sourceOf is where the value of a flag comes from.
func (s *Sources) sourceOf(flag *kong.Flag) source {
	if s.given[flag.Name] {
		return fromFlag
	}
	if value, _ := s.variable(nil, nil, flag); value != nil {
		return fromEnvironment
	}
	if s.file != nil && s.file.values[flag.Name] != nil {
		return fromFile
	}
	return fromDefault
}

// values are those of the flags of serve, by their names.
func (s *Sources) values() map[string]any {
	all := make(map[string]any)
	for _, f := range s.flags {
		all[f.Name] = f.Target.Interface()
	}
	return all
}

var flagInError = regexp.MustCompile(`^(?:[a-z]+(?: [a-z]+)?: )?--([a-z-]+)(=\S+)?:? `)

// Locate names the line of the config file that an error is about: it returns an Error then, and
// any other error as it is.
func (s *Sources) Locate(err error) error {
	var located Error
	if errors.As(err, &located) {
		return located
	}
	found := flagInError.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	i := slices.IndexFunc(s.flags, func(f *kong.Flag) bool { return f.Name == found[1] })
	if i < 0 || s.sourceOf(s.flags[i]) != fromFile {
		return err
	}
	_, rest, _ := strings.Cut(err.Error(), found[0])
	return s.file.wrong(found[1], terminal.Reword(rest, err))
}

// valueOf is the value of a flag as the config file has it.
func valueOf(flag *kong.Flag) any {
	switch v := flag.Target.Interface().(type) {
	case time.Duration:
		return terminal.TimeText(v)
	case terminal.ByteSize:
		return v.String()
	case []string:
		return slices.Concat([]string{}, v)
	case Folder:
		return string(v)
	case Secret:
		return v.File
	default:
		return v
	}
}

// isHidden says that a flag holds a password itself.
func isHidden(flag *kong.Flag) bool {
	s, ok := flag.Target.Interface().(Secret)
	return ok && s.Text != ""
}

// settings are those in force, as the operator's page shows them.
func (s *Sources) settings() (all []page.Setting) {
	for _, flag := range s.flags {
		if !isSetting(flag) {
			continue
		}
		value := valueOf(flag)
		if list, several := value.([]string); several {
			value = strings.Join(list, ", ")
		}
		if isHidden(flag) {
			value = "set, and not shown"
		}
		all = append(all, page.Setting{Name: flag.Name, Value: fmt.Sprint(value), From: string(s.sourceOf(flag))})
	}
	return all
}
