package folder

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/doctor"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// Doctor looks at a machine.
type Doctor struct {
	Dir        config.Folder `arg:"" optional:"" default:"./holdfast-data" help:"Data folder of the server, which may run, or may still be missing (default ${default})."`
	Node       string        `placeholder:"NAME" help:"Name of the node that this machine is of a cell, as serve takes it: the way to the other nodes is looked at, too."`
	Nodes      []string      `placeholder:"NAME=HOST" help:"All nodes of the cell, as serve takes them."`
	ClusterTLS string        `name:"cluster-tls" placeholder:"DIR" help:"Folder with the certificate of this node."`
	MaxConns   int           `default:"10000" range:"1 1048576" placeholder:"N" help:"Most connections that the server shall have at a time, for each protocol (default ${default})."`
	JSON       bool          `help:"Print a JSON object for each finding."`
}

func (c *Doctor) Help() string {
	return `Looks at this machine, as the server's user will see it, and says what to change before a server runs in earnest: the limit of open files, the data folder (rights, file system, speed of a sync, free space), memory and clock. It changes nothing, and syncs a small file of its own in the folder. With --node and --nodes it asks the nodes of a cell, of which none needs to run: names, ports, certificates, clocks and versions. A line for each finding says what was seen, how bad that is (ok, warn or bad), and what to do.

Exit codes: 0 nothing is bad, 1 something is.

Examples:

    holdfast doctor /var/lib/holdfast
    holdfast doctor --max-conns 50000 --json
    holdfast doctor /var/lib/holdfast --node a --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --cluster-tls /etc/holdfast/node`
}

func (c *Doctor) Run(p *terminal.Process) error {
	node, err := (&config.Server{Node: c.Node, Nodes: c.Nodes, ClusterTLS: c.ClusterTLS}).Cluster()
	if err != nil {
		return err
	}
	findings := doctor.Examine(string(c.Dir), c.MaxConns)
	if node != nil {
		findings = append(findings, doctor.ExamineNodes(string(c.Dir), node)...)
	}
	if err := c.print(p, findings); err != nil && !errors.Is(err, terminal.ErrReaderGone) {
		return err
	}
	bad := 0
	for _, f := range findings {
		if f.Verdict == doctor.Bad {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("doctor: %s bad", terminal.Plural(bad, "finding"))
	}
	return nil
}

func (c *Doctor) print(p *terminal.Process, findings []doctor.Finding) error {
	l := p.List(c.JSON, []string{"CHECK", "VERDICT", "SEEN", "DO"})
	for _, f := range findings {
		var o terminal.JSON
		o.Add("check", f.Name)
		o.Add("verdict", f.Verdict)
		o.Bytes("seen", []byte(f.Seen))
		o.Bytes("do", []byte(f.Do))
		l.Add(&o, f.Name, string(f.Verdict), terminal.Legible(f.Seen), terminal.Legible(f.Do))
	}
	return l.Flush()
}
