package main

import (
	"context"
	"encoding/json"
	"errors"
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
	return `A node runs as "holdfast serve" with --node and --nodes, the same on each machine but for its own name.

Examples:

    holdfast cluster found --node a /var/lib/holdfast
    holdfast cluster status`
}

// foundCmd founds a cell.
type foundCmd struct {
	Node       string        `required:"" placeholder:"NAME" help:"Name of the node."`
	AcceptLoss bool          `help:"The folder is of a cell whose other nodes are lost for ever: found a new one on what it has."`
	Nodes      []string      `placeholder:"NAME=HOST" help:"With --accept-loss: all nodes of the old cell, as serve has them. Nothing is done while another one answers."`
	Folder     config.Folder `arg:"" help:"Data folder: one that does not exist, or that of a server, which is stopped."`
}

func (c *foundCmd) Help() string {
	return `A cell is several machines that hold the same queues. One node owns and serves them. When it is gone another one takes over, as long as more than half of the nodes are there.

Found a cell once, on one machine. The others join: they start with empty folders and the same --nodes. A folder that holds packets keeps them.

Where more than half of the nodes are lost for ever, with their disks, --accept-loss makes a new cell of the folder of one that is left: the one with the highest batch, as "cluster status --offline" prints it. What only the others had is lost.

Examples:

    holdfast cluster found --node a /var/lib/holdfast
    holdfast serve --data /var/lib/holdfast --node a --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --cluster-tls /etc/holdfast/node
    holdfast cluster found --accept-loss --node a --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 /var/lib/holdfast`
}

// Validate is called with the parsed flags.
func (c *foundCmd) Validate() error {
	if c.AcceptLoss && len(c.Nodes) == 0 {
		return errors.New("--accept-loss: expected --nodes with all nodes of the old cell, so that it can ask whether one of them is there")
	}
	return nil
}

func (c *foundCmd) Run(ctx context.Context, p *program) error {
	nodes, err := config.ParseNodes(c.Nodes)
	if err != nil {
		return err
	}
	nodes[c.Node] = "127.0.0.1:0" // others are told of its address when it starts
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
	Offline config.Folder `placeholder:"FOLDER" help:"Print what this data folder of a node has, which does not run."`

	connection.Operator
}

func (c *cellStatusCmd) Help() string {
	return `Asks any node, at its operator port, how all nodes are: what each does, how far it is behind, how far its clock is ahead, and how much room its disk has. The last line says how many nodes may be lost now. It needs the right operate.

With --offline it asks nobody, and prints what the folder of a node that does not run has: the batch up to which its tables have everything, and what its log has.

Examples:

    holdfast cluster status
    holdfast cluster status --admin 10.0.0.2:7072 --json
    holdfast cluster status --offline /var/lib/holdfast`
}

func (c *cellStatusCmd) Run(ctx context.Context, p *program) error {
	if c.Offline != "" {
		return c.offline(ctx, p)
	}
	said, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(said)
	}
	t := terminal.NewTable(p.Stdout, "VERSION", "ADDRESS")
	t.Row("NODE", "ROLE", "VOTES", "LAG", "BEHIND", "BATCH", "FLOOR", "CLOCK", "FREE", "VERSION", "ADDRESS")
	for _, n := range said.Nodes {
		votes, ms := "no", func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
		if n.Voter {
			votes = "yes"
		}
		heard := []string{"silent", "", "", "", "", ""} // role, lag, behind, batch, clock, free
		if n.Heard {
			heard = []string{n.Role, fmt.Sprint(n.Lag), terminal.Span(ms(n.LagMS)), fmt.Sprint(n.Batch), ms(n.ClockMS).String(), terminal.Approximate(n.Room)}
		}
		t.Row(terminal.Optional(n.Name), heard[0], votes, heard[1], heard[2], heard[3], fmt.Sprint(n.Floor), heard[4], heard[5], terminal.Optional(n.Version), n.Address)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprint(p.Stdout, aboutCell(&said))
	return err
}

func (c *cellStatusCmd) offline(ctx context.Context, p *program) error {
	o, err := cluster.ReadOffline(ctx, string(c.Offline), p.logger("text", slog.LevelError))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return json.NewEncoder(p.Stdout).Encode(o)
	}
	_, err = fmt.Fprintf(p.Stdout, "cell %s, with %s besides\ntables up to batch %d\nlog from batch %d to %d\n", o.Cell, terminal.Plural(o.Others, "node"), o.Tables, o.Cut+1, o.Log)
	return err
}

// leaveCmd ends a cell.
type leaveCmd struct {
	Folder config.Folder `arg:"" help:"Data folder of the node, which is stopped."`
}

func (c *leaveCmd) Help() string {
	return `Remove all other nodes before, and stop this one. What the log has and the tables do not goes into the tables. Then the folder is of no cell any more, and "holdfast serve" takes it without --node and --nodes.

Examples:

    holdfast cluster leave /var/lib/holdfast`
}

func (c *leaveCmd) Run(ctx context.Context, p *program) error {
	err := cluster.Leave(ctx, string(c.Folder), p.logger("text", slog.LevelError))
	if err == nil {
		_, err = fmt.Fprintf(p.Stdout, "%s is of no cell any more\n", c.Folder)
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
	return `Asks any other node of the cell. The node that is removed ends, and does not start again: with an empty folder it joins anew. It is for a machine that goes for ever. One that comes back, also with an empty folder, need not be removed.

A node that owns the queues is not removed: hand them over first. Nor is one without which too few would be left for a majority. It waits until those that stay have all in their tables.

Examples:

    holdfast cluster remove c
    holdfast cluster remove c --yes --admin 10.0.0.1:7072`
}

func (c *removeCmd) Run(ctx context.Context, p *terminal.Process) error {
	err := c.Confirm(p, fmt.Sprintf("take node %.80q out of the cell for ever", c.Node))
	if err != nil {
		return err
	}
	return c.ChangeCluster(ctx, admin.Remove, c.Node)
}

// handOverCmd has another node own the queues.
type handOverCmd struct {
	Node string `arg:"" help:"Name of the node."`

	connection.Operator
}

func (c *handOverCmd) Help() string {
	return `Asks any node of the cell. The owner answers what it has received, and gives the queues up; the named node takes over at once. It is for work on a machine, such as a new version, and takes less than to stop the owner. Connections of clients close, as at any takeover.

The node must follow, with at most a second that it has not yet.

Examples:

    holdfast cluster hand-over b`
}

func (c *handOverCmd) Run(ctx context.Context) error {
	return c.ChangeCluster(ctx, admin.HandOver, c.Node)
}

// aboutCell is what the table does not say.
func aboutCell(c *admin.Cluster) string {
	owner := "no node owns the queues"
	if c.Owner != "" {
		owner = fmt.Sprintf("%s owns the queues (fence %d)", c.Owner, c.Fence)
	}
	text := fmt.Sprintf("cell %s (%s): %s; %s leads etcd; the log goes from batch %d to %d\n", c.Cell, c.ID, owner, c.Leader, c.Cut+1, c.Head)
	if !c.Majority {
		return text + "no majority answers: this is what the node " + c.By + " knew last\n"
	}
	return text + fmt.Sprintf("nodes that may be lost now: %d\n", c.Spare)
}
