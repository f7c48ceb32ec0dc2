package ask

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Status shows how a server is.
type Status struct {
	JSON bool `help:"Print a JSON object. The uptime is in seconds, sizes are bytes, and problems are sentences."`

	asking
}

func (c *Status) Help() string {
	return `Prints the version of the server, how long it has run, its connections, its memory and the state of its disk, and then what needs somebody, as the operator's page does: dead packets, queues that are full or paused or that nobody takes from, and the like, of the queues that the user may look at, in all databases. "holdfast queues" and "holdfast stats" say what is in it.

Exit codes: 0 nothing needs anybody, 5 something does.

Examples:

    holdfast status
    holdfast status --json
    holdfast status >/tmp/status || mail -s holdfast ann </tmp/status`
}

// statusFields are those of the JSON object, and the lines of INFO that they come from.
var statusFields = [][2]string{
	{"version", "holdfast_version"}, {"uptime", "uptime_in_seconds"}, {"connections", "connections"}, {"redis_clients", "connected_clients"},
	{"memory", "used_memory_rss"}, {"memory_counted", "memory_counted"}, {"memory_limit", "memory_limit"}, {"memory_level", "memory_level"}, {"disk_free", "disk_free"}, {"disk_total", "disk_total"}, {"disk_level", "disk_level"},
	{"damaged_packets", "damaged_packets"},
}

func (c *Status) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	info, err := server.Info(ctx)
	switch {
	case err != nil:
		return err
	case info["holdfast_version"] == "":
		return fmt.Errorf("the server at %s is no Holdfast server: check --redis", c.Redis)
	}
	found, err := c.troubles(ctx, info)
	switch {
	case err != nil:
		return err
	case c.JSON:
		_, err = p.Stdout.Write(statusJSON(info, found))
	default:
		err = printStatus(p.Stdout, info, found)
	}
	if err == nil && slices.ContainsFunc(found, func(text string) bool { return text != blind }) {
		err = ErrTrouble
	}
	return err
}

func statusJSON(info map[string]string, found []string) []byte {
	var o terminal.JSON
	for _, field := range statusFields {
		value := info[field[1]]
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			o.Add(field[0], n)
		} else {
			o.Add(field[0], value)
		}
	}
	o.Add("problems", append([]string{}, found...))
	return o.Line()
}

func printStatus(w io.Writer, info map[string]string, found []string) error {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	refused := map[string]string{"no-push": ": pushes are refused until some is freed", "stop": ": everything is refused until some is freed"}[info["disk_level"]]
	memory := terminal.Approximate(number("used_memory_rss"))
	if limit := number("memory_limit"); limit > 0 {
		memory += fmt.Sprintf(", %s counted of %s", terminal.Approximate(number("memory_counted")), terminal.Approximate(limit))
	}
	memory += map[string]string{"no-push": ": pushes are refused until packets are taken or deleted", "stop": ": pushes and claims are refused until packets are acknowledged or deleted"}[info["memory_level"]]
	t := terminal.NewTable(w)
	t.Row("version", info["holdfast_version"])
	t.Row("uptime", terminal.Span(time.Duration(number("uptime_in_seconds"))*time.Second))
	t.Row("connections", fmt.Sprintf("%s in all, %s of Redis clients", info["connections"], info["connected_clients"]))
	t.Row("memory", memory)
	t.Row("disk", fmt.Sprintf("%s of %s free%s", terminal.Approximate(number("disk_free")), terminal.Approximate(number("disk_total")), refused))
	err := t.Flush()
	if len(found) == 0 {
		found = []string{"Nothing needs you"}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "\n%s.\n", strings.Join(found, ".\n"))
	}
	return err
}

// Health asks a server whether it is ready.
type Health struct {
	connection.Operator
}

func (c *Health) Help() string {
	return `Asks the operator's port of a server whether it is ready, and prints "ok" if it is: it serves, and packets can be taken. Otherwise it prints why not, such as how far its start is. For health checks of containers, and for scripts that wait.

Exit codes: 0 ready, 1 not ready, or no server answers.

Examples:

    holdfast health
    holdfast health --admin 127.0.0.1:7172 --timeout 5s
    until holdfast health; do sleep 1; done`
}

func (c *Health) Run(ctx context.Context, p *terminal.Process) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Stdout, "ok")
	return err
}

// Reload has a server read its settings again.
type Reload struct {
	JSON bool `help:"Print a JSON object: changed, and restart, are keys of the config file."`

	connection.Operator
}

func (c *Reload) Help() string {
	return `Has a running server read its config file and all files again, as SIGHUP does: users, passwords, certificates, the log level and the defaults of queues, all or nothing. Prints which keys have changed, and which need a restart. With users it needs the right operate.

Exit codes: 0 reloaded, 1 nothing has changed, as the settings are not right.

Examples:

    holdfast reload
    holdfast reload --admin 127.0.0.1:7172 --user ann --password-file password`
}

func (c *Reload) Run(ctx context.Context, p *terminal.Process) error {
	said, err := c.Operator.Reload(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		var o terminal.JSON
		o.Add("changed", said.Changed)
		o.Add("restart", said.Restart)
		return o.Print(p.Stdout)
	}
	changed := "nothing has changed"
	if len(said.Changed) > 0 {
		changed = strings.Join(said.Changed, ", ")
	}
	if _, err = fmt.Fprintln(p.Stdout, "reloaded:", changed); err == nil && len(said.Restart) > 0 {
		_, err = fmt.Fprintln(p.Stdout, "a restart is needed for:", strings.Join(said.Restart, ", "))
	}
	return err
}

// Connections lists the connections of Redis clients.
type Connections struct {
	JSON bool `help:"Print a JSON object for each connection, one a line. Age and idle are in seconds."`

	asking
}

func (c *Connections) Help() string {
	return `Prints the connections of Redis clients, those of other holdfast commands too: who each is, since when, what it asked last, and for how long it has asked nothing. A user that may not operate sees its own.

Examples:

    holdfast connections
    holdfast connections --json`
}

func (c *Connections) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	all, err := server.Connections(ctx)
	if err != nil {
		return err
	}
	l := p.List(c.JSON, []string{"ID", "ADDRESS", "NAME", "USER", "AGE", "IDLE", "DB", "LAST", "LIBRARY"}, "NAME", "USER", "LIBRARY")
	for _, one := range all {
		l.Add(connectionJSON(one), one["id"], one["addr"], terminal.Optional(one["name"]), terminal.Optional(one["user"]),
			seconds(one["age"]), seconds(one["idle"]), one["db"], one["cmd"], terminal.Optional(one["lib-name"]))
	}
	return l.Flush()
}

// seconds is a number of seconds for people.
func seconds(text string) string {
	n, _ := strconv.ParseInt(text, 10, 64)
	return terminal.Span(time.Duration(n) * time.Second)
}

func connectionJSON(one map[string]string) *terminal.JSON {
	o := new(terminal.JSON)
	for _, field := range [][2]string{
		{"id", "id"}, {"address", "addr"}, {"name", "name"}, {"user", "user"}, {"age", "age"}, {"idle", "idle"},
		{"db", "db"}, {"last", "cmd"}, {"library", "lib-name"}, {"library_version", "lib-ver"},
	} {
		switch value := one[field[1]]; field[0] {
		case "id", "age", "idle", "db":
			n, _ := strconv.ParseInt(value, 10, 64)
			o.Add(field[0], n)
		default:
			o.Text(field[0], value)
		}
	}
	return o
}

// Users lists the users of a server.
type Users struct {
	JSON bool `help:"Print a JSON object for each user, one a line."`

	asking
}

func (c *Users) Help() string {
	return `Prints the users of a server, and which rights each has for the queues and other names that a pattern matches. They are written in its config file. One that is open is everybody, without a login. It needs the right operate.

Examples:

    holdfast users
    holdfast users --json`
}

func (c *Users) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	all, err := server.Users(ctx)
	if err != nil {
		return err
	}
	l := p.List(c.JSON, []string{"USER", "STATE", "RIGHTS"}, "USER", "RIGHTS")
	for i := range all {
		u := &all[i]
		var o terminal.JSON
		o.Bytes("user", []byte(u.Name))
		o.Add("off", u.Off)
		o.Add("open", u.Open)
		o.Add("operate", u.Operate)
		o.Add("grants", append([]client.Grant{}, u.Grants...))
		state, rights := "on", []string(nil)
		switch {
		case u.Off:
			state = "off"
		case u.Open:
			state = "open"
		}
		for _, g := range u.Grants {
			rights = append(rights, g.Pattern+": "+strings.Join(g.Rights, "+"))
		}
		if u.Operate {
			rights = append(rights, "operate")
		}
		l.Add(&o, terminal.Cell(u.Name), state, terminal.Optional(strings.Join(rights, ", ")))
	}
	return l.Flush()
}
