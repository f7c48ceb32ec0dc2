package ask

import (
	"cmp"
	"context"
	"strings"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

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
	o, err := p.Create("-")
	if err != nil {
		return err
	}
	defer o.Discard()
	t := terminal.NewTable(o, "USER", "RIGHTS")
	if !c.JSON {
		t.Row("USER", "STATE", "RIGHTS")
	}
	for i := range all {
		u := &all[i]
		if c.JSON {
			var json terminal.JSON
			json.Bytes("user", []byte(u.Name))
			json.Add("off", u.Off)
			json.Add("open", u.Open)
			json.Add("operate", u.Operate)
			json.Add("grants", append([]client.Grant{}, u.Grants...))
			_, _ = o.Write(json.Line()) // keep says what is wrong
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
		t.Row(terminal.Cell(u.Name, terminal.LongCell), state, terminal.Optional(strings.Join(rights, ", "), terminal.LongCell))
	}
	return cmp.Or(t.Flush(), o.Keep())
}
