package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// connectionsCmd lists the connections of Redis clients.
type connectionsCmd struct {
	JSON bool `help:"Print a JSON object for each connection, one a line. Age and idle are in seconds."`

	workServer
}

func (c *connectionsCmd) Help() string {
	return `Prints the connections of Redis clients, those of other holdfast commands too: who each is, since when, what it asked last, and for how long it has asked nothing. A user that may not operate sees its own.

Examples:

    holdfast connections
    holdfast connections --json`
}

func (c *connectionsCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		all, err := server.Connections(ctx)
		if err != nil {
			return err
		}
		o, err := p.create("-")
		if err != nil {
			return err
		}
		defer o.discard()
		t := newTable(o, "NAME", "USER", "LIBRARY")
		if !c.JSON {
			t.row("ID", "ADDRESS", "NAME", "USER", "AGE", "IDLE", "DB", "LAST", "LIBRARY")
		}
		for _, one := range all {
			if c.JSON {
				_, _ = o.Write(connectionJSON(one)) // keep says what is wrong
				continue
			}
			t.row(one["id"], one["addr"], optional(one["name"], longCell), optional(one["user"], longCell),
				seconds(one["age"]), seconds(one["idle"]), one["db"], one["cmd"], optional(one["lib-name"], longCell))
		}
		return cmp.Or(t.Flush(), o.keep())
	})
}

// seconds is a number of seconds for people.
func seconds(text string) string {
	n, _ := strconv.ParseInt(text, 10, 64)
	return span(time.Duration(n) * time.Second)
}

func connectionJSON(one map[string]string) []byte {
	var o jsonObject
	for _, field := range [][2]string{
		{"id", "id"}, {"address", "addr"}, {"name", "name"}, {"user", "user"}, {"age", "age"}, {"idle", "idle"},
		{"db", "db"}, {"last", "cmd"}, {"library", "lib-name"}, {"library_version", "lib-ver"},
	} {
		switch value := one[field[1]]; field[0] {
		case "id", "age", "idle", "db":
			n, _ := strconv.ParseInt(value, 10, 64)
			o.add(field[0], n)
		default:
			o.text(field[0], value)
		}
	}
	return o.line()
}
