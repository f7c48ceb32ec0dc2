package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster"
	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// clusterCommands are those for a cell of several nodes.
type clusterCommands struct {
	Found    foundCmd      `cmd:"" help:"Make a data folder the first node of a new cell."`
	Status   cellStatusCmd `cmd:"" help:"Print how the nodes of a cell are."`
	Remove   removeCmd     `cmd:"" help:"Take a node out of a cell for ever."`
	Leave    leaveCmd      `cmd:"" help:"Make the folder of a cell's last node that of a single server."`
	HandOver handOverCmd   `cmd:"" help:"Have another node own the queues."`
}

func (clusterCommands) Help() string {
	return `A cell is several machines that hold the same queues. One node owns and serves them. When it is gone another one takes over.

Examples:

    holdfast cluster found --node a /var/lib/holdfast
    holdfast serve --data /var/lib/holdfast --node a --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --cluster-tls /etc/holdfast/node`
}

// foundCmd founds a cell.
type foundCmd struct {
	Node       string        `required:"" placeholder:"NAME" help:"Name of the node."`
	AcceptLoss bool          `and:"loss" help:"The folder is of a cell whose other nodes are lost for ever: found a new one on what it has."`
	Nodes      []string      `and:"loss" placeholder:"NAME=HOST" help:"With --accept-loss: all nodes of the old cell, as serve has them. Nothing is done while another one answers."`
	Folder     config.Folder `arg:"" help:"Data folder: one that does not exist, or that of a server, which is stopped."`
}

func (c *foundCmd) Help() string {
	return `Found a cell once, on one machine. The others join: they start with empty folders and the same --nodes. A folder that holds packets keeps them.

With --accept-loss take the folder with the highest batch, as "cluster status --offline" prints it. What only the lost nodes had is lost.

Examples:

    holdfast cluster found --node a /var/lib/holdfast
    holdfast cluster found --accept-loss --node a --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 /var/lib/holdfast`
}

func (c *foundCmd) Run(ctx context.Context, p *program) error {
	nodes, err := config.ParseNodes(c.Nodes)
	if err != nil {
		return err
	}
	if _, err := config.ParseNodes([]string{c.Node + "=127.0.0.1"}); err != nil {
		return fmt.Errorf("--node %q: expected 1 to 64 letters, digits and _.-, the first no . or -", c.Node)
	}
	if c.AcceptLoss && nodes[c.Node] == "" {
		return fmt.Errorf("--node %q is not among --nodes: name all nodes of the old cell there, this one too", c.Node)
	}
	nodes[c.Node] = "127.0.0.1:1" // others are told of its address when it starts
	logger := p.logger("text", slog.LevelWarn)
	if found := (cluster.Config{Node: c.Node, Nodes: nodes}); c.AcceptLoss {
		err = cluster.FoundAnew(ctx, string(c.Folder), found, logger)
	} else {
		err = cluster.Found(string(c.Folder), found, logger)
	}
	if err == nil {
		_, err = fmt.Fprintf(p.Stdout, "%s is node %s of a new cell; start it with --node %s and --nodes\n", c.Folder, c.Node, c.Node)
	}
	return err
}

// cellStatusCmd shows a cell.
type cellStatusCmd struct {
	JSON    bool          `help:"Print a JSON object. Times are milliseconds, sizes are bytes."`
	Offline config.Folder `placeholder:"FOLDER" help:"Ask nobody, and print what this data folder of a node has, which does not run."`

	connection.Operator
}

func (c *cellStatusCmd) Help() string {
	return `Asks any node, at its operator port, how all are: what each does, how far it is behind, how far its clock is ahead, and how much room its disk has. The last line says how many nodes may be lost now. It needs the right operate.

Examples:

    holdfast cluster status --admin 10.0.0.2:7072
    holdfast cluster status --offline /var/lib/holdfast`
}

func (c *cellStatusCmd) Run(ctx context.Context, p *program) error {
	if c.Offline != "" {
		return c.offline(ctx, p)
	}
	var said admin.Cluster
	err := c.Ask(func(a *admin.Client) (err error) {
		said, err = a.Cluster(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(said)
	}
	t := terminal.NewTable(p.Stdout, "VERSION", "ADDRESS")
	t.Row("NODE", "ROLE", "LAG", "BEHIND", "FLOOR", "CLOCK", "FREE", "VERSION", "ADDRESS")
	for _, n := range said.Nodes {
		row := []string{terminal.Optional(n.Name), "silent", "", "", fmt.Sprint(n.Floor), "", "", terminal.Optional(n.Version), n.Address}
		if n.Heard {
			row[1], row[2], row[3] = n.Role, fmt.Sprint(n.Lag), terminal.Span(time.Duration(n.LagMS)*time.Millisecond)
			row[5], row[6] = (time.Duration(n.ClockMS) * time.Millisecond).String(), terminal.Approximate(n.Room)
		}
		t.Row(row...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	lost := fmt.Sprintf("nodes that may be lost now: %d", said.Spare)
	if !said.Majority {
		lost = fmt.Sprintf("no majority answers: this is what node %s knew last", said.By)
	}
	if off := time.Duration(said.ClockMS) * time.Millisecond; off.Abs() >= time.Second {
		side := "ahead of"
		if off < 0 {
			side = "behind"
		}
		lost += fmt.Sprintf("\nclock of the cell: %v %s that of node %s", off.Abs(), side, said.By)
	}
	_, err = fmt.Fprintf(p.Stdout, "cell %s: owner %s, %s\n%s\n", said.Cell, cmp.Or(said.Owner, "-"), logSpan(said.Cut, said.Head), lost)
	return err
}

// logSpan says which batches a log has.
func logSpan(cut, last uint64) string {
	if cut >= last {
		return fmt.Sprintf("log empty after batch %d", cut)
	}
	return fmt.Sprintf("log from batch %d to %d", cut+1, last)
}

func (c *cellStatusCmd) offline(ctx context.Context, p *program) error {
	o, err := cluster.ReadOffline(ctx, string(c.Offline), p.logger("text", slog.LevelError))
	switch {
	case o == (cluster.Offline{}): // nothing can be read
		return err
	case c.JSON:
		return cmp.Or(json.NewEncoder(p.Stdout).Encode(o), err)
	}
	others := "of this node alone"
	if o.Others > 0 {
		others = "of this node and " + terminal.Plural(o.Others, "other")
	}
	_, told := fmt.Fprintf(p.Stdout, "cell %s, %s\ntables up to batch %d\n%s\n", o.Cell, others, o.Tables, logSpan(o.Cut, o.Log))
	return cmp.Or(told, err)
}

// leaveCmd ends a cell.
type leaveCmd struct {
	Folder config.Folder `arg:"" help:"Data folder of the node, which is stopped."`
}

func (c *leaveCmd) Help() string {
	return `Remove all other nodes before, and stop this one. What only the log has goes into the tables. Then "holdfast serve" takes the folder without --node and --nodes.

Examples:

    holdfast cluster leave /var/lib/holdfast`
}

func (c *leaveCmd) Run(ctx context.Context, p *program) error {
	err := cluster.Leave(ctx, string(c.Folder), p.logger("text", slog.LevelError))
	if err == nil {
		_, err = fmt.Fprintf(p.Stdout, "%s no longer belongs to a cell\n", c.Folder)
	}
	return err
}

// removeCmd removes a node.
type removeCmd struct {
	Node string `arg:"" help:"Name of the node."`

	terminal.Confirmation
	connection.Operator
}

func (c *removeCmd) Help() string {
	return `Asks any other node of the cell. The node that is removed ends, and joins anew only with an empty folder. It must not own the queues: hand them over first. A machine that comes back, also with an empty folder, need not be removed.

Examples:

    holdfast cluster remove c --admin 10.0.0.1:7072`
}

func (c *removeCmd) Run(ctx context.Context, p *terminal.Process) error {
	err := c.Confirm(p, fmt.Sprintf("take node %.80q out of the cell for ever", c.Node))
	if err != nil {
		return err
	}
	return c.Ask(func(a *admin.Client) error { return a.ChangeCluster(ctx, admin.Remove, c.Node) })
}

// handOverCmd has another node own the queues.
type handOverCmd struct {
	Node string `arg:"" help:"Name of the node."`

	connection.Operator
}

func (c *handOverCmd) Help() string {
	return `Asks any node of the cell. The owner answers what it has received, and gives the queues up; the named node, which follows, takes over at once. Connections of clients close, as at any takeover.

Examples:

    holdfast cluster hand-over b`
}

func (c *handOverCmd) Run(ctx context.Context) error {
	return c.Ask(func(a *admin.Client) error { return a.ChangeCluster(ctx, admin.HandOver, c.Node) })
}
