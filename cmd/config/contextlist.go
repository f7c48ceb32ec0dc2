package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

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
