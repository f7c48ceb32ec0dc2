package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// FileCommands is the commands about the config file of a server.
type FileCommands struct {
	Check configCheckCmd `cmd:"" help:"Check a config file of the server."`
	Show  configShowCmd  `cmd:"" help:"Print the settings that a server would have, and where each comes from."`
}

func (c *FileCommands) Help() string {
	return `Examples:

    holdfast config show > holdfast.toml
    holdfast config check holdfast.toml`
}

// configCheckCmd checks a config file.
type configCheckCmd struct {
	File string `arg:"" help:"Config file (TOML)."`
}

func (c *configCheckCmd) Help() string {
	return `Checks a file as "holdfast serve --config" does, without the environment: what it says, the files that it names, that no server is open by mistake, and that each user who is not off can log in. Prints a line, or an error that names the line and the key, with the exit code 1. A line more notes each file with a secret, or folder, that all users of the machine may write.

Example:

    holdfast config check /etc/holdfast/holdfast.toml`
}

func (c *configCheckCmd) Run(p *terminal.Process) error {
	noVariable := func(string) (string, bool) { return "", false }
	alone, flags, config, err := readServer(noVariable, []string{"serve", "--config", c.File})
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		located := alone.Locate(err)
		if located == err {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		return located
	}
	file := alone.file
	if err := file.checkLogins(&config); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is valid: %s, and defaults of queues for %s\n", c.File, terminal.Plural(len(config.Users), "user"), terminal.Plural(len(config.Queues), "glob"))
	if err != nil {
		return err
	}
	names := append(file.secrets, flags.RedisPassword.File, config.TLS.Cert, config.TLS.Key, config.TLS.ClientCA, config.Data)
	return noteWritable(p.Stdout, append([]string{c.File}, names...))
}

// checkLogins refuses a user that nobody can be.
func (f *configFile) checkLogins(config *daemon.Config) error {
	for _, u := range config.Users {
		at := pathOf("users", u.Name)
		switch certified := len(u.Certificates) > 0; {
		case u.Off || u.Name == config.PlainUser || len(u.Hashes) > 0 || u.Password != "" || certified && config.TLS.ClientCA != "":
		case certified:
			return f.wrong(pathOf(at, "certificates"), errors.New("nobody can log in as this user: its certificates need tls-client-ca"))
		default:
			return f.wrong(at, errors.New("nobody can log in as this user: expected hashes, a password-file, certificates, or off = true"))
		}
	}
	return nil
}

// noteWritable notes which of some files all may write. Names that are empty are none.
func noteWritable(w io.Writer, names []string) error {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o002 == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "note: all users of this machine may write %s: chmod o-w %s\n", name, shellWord(name)); err != nil {
			return err
		}
	}
	return nil
}

// configShowCmd prints the settings of a server.
type configShowCmd struct {
	File string `arg:"" optional:"" help:"Config file (TOML), as --config names it."`
	JSON bool   `help:"Print a JSON object."`

	Server
}

func (c *configShowCmd) Help() string {
	return `Prints a config file with the settings in force: a flag wins over the environment, that over the file, and that over the default. A note behind each says where it comes from. Passwords and hashes are not shown: put the hashes back before what is printed serves as a config file. Without a file it prints one to begin with.

Examples:

    holdfast config show > holdfast.toml
    holdfast config show /etc/holdfast/holdfast.toml
    holdfast config show --config holdfast.toml --max-conns 500 --json`
}

func (c *configShowCmd) Run(p *terminal.Process, s *Sources) error {
	file := cmp.Or(s.file, &configFile{})
	if c.JSON {
		return s.showJSON(p.Stdout, file)
	}
	for _, flag := range s.flags {
		if !isSetting(flag) {
			continue
		}
		if _, err := io.WriteString(p.Stdout, showFlag(flag, s.sourceOf(flag))); err != nil {
			return err
		}
	}
	return showTables(p.Stdout, file)
}

// showFlag is a flag with its help. One that nobody has set and that has no default is a comment,
// and so is a password.
func showFlag(flag *kong.Flag, from source) string {
	help, _, _ := strings.Cut(flag.Help, " (default")
	text := wrapped(strings.TrimSuffix(strings.ReplaceAll(help, "$$", "$"), ".")+".", "# ", 100)
	switch value := valueOf(flag); {
	case isHidden(flag):
		return text + fmt.Sprintf("# The password is set (%s), and not shown.\n\n", from)
	case from == fromDefault && flag.Target.IsZero() && flag.Default == "" && !flag.IsBool():
		var example any = flag.PlaceHolder
		if flag.IsSlice() {
			example = []string{flag.PlaceHolder}
		}
		return text + tomlLine(flag.Name, example, "# ", "") + "\n"
	default:
		return text + tomlLine(flag.Name, value, "", string(from)) + "\n"
	}
}

// tomlLine is a key and its value, with a note.
func tomlLine(key string, value any, before, note string) string {
	text, _ := toml.Marshal(map[string]any{key: value}) // which any text, number, flag and list of texts can be
	line := before + strings.TrimSuffix(string(text), "\n")
	if note != "" {
		line += " # " + note
	}
	return line + "\n"
}

// wrapped breaks a text into lines that begin alike.
func wrapped(text, before string, width int) string {
	var b strings.Builder
	line := before
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = before
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

const exampleTables = `# [users.worker]
# hashes = ["$2a$10$..."] # of its passwords, each as "holdfast hash" prints it
# password-file = "FILE" # a file with one more, in the clear
# certificates = ["worker-1"] # common names of client certificates that are this user
# operate = false # whether it may do what concerns the server
# off = false # whether it is switched off
# grants = { "jobs.*" = ["push", "take", "look", "manage"] } # rights for queues, by globs of names

# [queues."jobs.*"] # settings of queues without their own; their name counts, or else the longest glob that fits
# lease = "5m"
# dead-letter = "graves"
# enum.class = ["low", "high"]
`

// showTables prints the users and the defaults of queues of a file.
func showTables(w io.Writer, file *configFile) error {
	tables := file.tables()
	if len(tables) == 0 {
		_, err := io.WriteString(w, exampleTables)
		return err
	}
	if _, err := io.WriteString(w, "# The hashes of users are not shown. Put them in before this is used as a config file.\n"); err != nil {
		return err
	}
	return toml.NewEncoder(w).Encode(tables)
}

// hiddenHash stands for the hashes of a user. A file with it is refused: without the right ones the
// user could not log in.
const hiddenHash = "not shown"

// tables are the users and the defaults of queues, as the file has them but for hashes.
func (f *configFile) tables() map[string]any {
	tables := maps.Clone(f.values)
	maps.DeleteFunc(tables, func(key string, _ any) bool { return key != "users" && key != "queues" })
	users, names, _ := f.table("users", tables["users"]) // readTables has looked
	if shown := maps.Clone(users); shown != nil {
		for _, name := range names {
			user := maps.Clone(users[name].(map[string]any))
			if user["hashes"] != nil {
				user["hashes"] = []string{hiddenHash}
			}
			shown[name] = user
		}
		tables["users"] = shown
	}
	return tables
}

// showJSON prints all as JSON. A password is null.
func (s *Sources) showJSON(w io.Writer, file *configFile) error {
	type setting struct {
		Value any    `json:"value"`
		From  source `json:"from"`
	}
	settings := make(map[string]setting)
	for _, flag := range s.flags {
		value := valueOf(flag)
		if isHidden(flag) {
			value = nil
		} else if text, ok := value.(string); ok {
			value = jsonbytes.Bytes(text)
		}
		if isSetting(flag) {
			settings[flag.Name] = setting{value, s.sourceOf(flag)}
		}
	}
	var o terminal.JSON
	o.Add("settings", settings)
	tables := file.tables()
	for _, key := range slices.Sorted(maps.Keys(tables)) {
		o.Add(key, tables[key])
	}
	return o.Print(w)
}
