package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-queue/holdfast/cmd/cluster"
	"github.com/holdfast-queue/holdfast/cmd/config"
)

// clusterCommands are those for a cell of several nodes.
type clusterCommands struct {
	Found foundCmd `cmd:"" help:"Make a data folder the first node of a new cell."`
}

func (clusterCommands) Help() string {
	return `A node runs as "holdfast serve" with --node and --nodes, the same on each machine but for its own name.

Examples:

    holdfast cluster found --node a /var/lib/holdfast
    holdfast cluster found --help`
}

// foundCmd founds a cell.
type foundCmd struct {
	Node   string        `required:"" placeholder:"NAME" help:"Name of the node."`
	Folder config.Folder `arg:"" help:"Data folder: one that does not exist, or that of a server, which is stopped."`
}

func (c *foundCmd) Help() string {
	return `A cell is several machines that hold the same queues. One node owns and serves them. When it is gone another one takes over, as long as more than half of the nodes are there.

Found a cell once, on one machine. The others join: they start with empty folders and the same --nodes. A folder that holds packets keeps them.

Examples:

    holdfast cluster found --node a /var/lib/holdfast
    holdfast serve --data /var/lib/holdfast --node a --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --cluster-tls /etc/holdfast/node`
}

func (c *foundCmd) Run(ctx context.Context, p *program) error {
	nodes := map[string]string{c.Node: "127.0.0.1:0"} // others are told of its address when it starts
	err := cluster.Found(ctx, string(c.Folder), cluster.Config{Node: c.Node, Nodes: nodes}, p.logger("text", slog.LevelWarn))
	if err == nil {
		_, err = fmt.Fprintf(p.Stdout, "%s is node %s of a new cell; start it with --node %s and --nodes\n", c.Folder, c.Node, c.Node)
	}
	return err
}
