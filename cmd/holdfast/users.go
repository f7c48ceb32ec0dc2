package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// usersCmd lists the users of a server.
type usersCmd struct {
	JSON bool `help:"Print a JSON object for each user, one a line."`

	workServer
}

func (c *usersCmd) Help() string {
	return `Prints the users of a server, and which rights each has for the queues and other names that a pattern matches. They are written in its config file. One that is open is everybody, without a login. It needs the right operate.

Examples:

    holdfast users
    holdfast users --json`
}

func (c *usersCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		all, err := server.Users(ctx)
		if err != nil {
			return err
		}
		o, err := p.create("-")
		if err != nil {
			return err
		}
		defer o.discard()
		t := newTable(o, "USER", "RIGHTS")
		if !c.JSON {
			t.row("USER", "STATE", "RIGHTS")
		}
		for i := range all {
			u := &all[i]
			if c.JSON {
				var json jsonObject
				json.bytes("user", []byte(u.Name))
				json.add("off", u.Off)
				json.add("open", u.Open)
				json.add("operate", u.Operate)
				json.add("grants", append([]client.Grant{}, u.Grants...))
				_, _ = o.Write(json.line()) // keep says what is wrong
				continue
			}
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
			t.row(cell(u.Name, longCell), state, optional(strings.Join(rights, ", "), longCell))
		}
		return cmp.Or(t.Flush(), o.keep())
	})
}
