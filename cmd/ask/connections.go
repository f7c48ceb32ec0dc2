package ask

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

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
	o, err := p.Create("-")
	if err != nil {
		return err
	}
	defer o.Discard()
	t := terminal.NewTable(o, "NAME", "USER", "LIBRARY")
	if !c.JSON {
		t.Row("ID", "ADDRESS", "NAME", "USER", "AGE", "IDLE", "DB", "LAST", "LIBRARY")
	}
	for _, one := range all {
		if c.JSON {
			_, _ = o.Write(connectionJSON(one)) // keep says what is wrong
			continue
		}
		t.Row(one["id"], one["addr"], terminal.Optional(one["name"], terminal.LongCell), terminal.Optional(one["user"], terminal.LongCell),
			seconds(one["age"]), seconds(one["idle"]), one["db"], one["cmd"], terminal.Optional(one["lib-name"], terminal.LongCell))
	}
	return cmp.Or(t.Flush(), o.Keep())
}

// seconds is a number of seconds for people.
func seconds(text string) string {
	n, _ := strconv.ParseInt(text, 10, 64)
	return terminal.Span(time.Duration(n) * time.Second)
}

func connectionJSON(one map[string]string) []byte {
	var o terminal.JSON
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
	return o.Line()
}
