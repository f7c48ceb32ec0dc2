package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// cell is three servers of a peer on loopback that hold the same. They acknowledge what two of them
// have synced. Clients ask the one that leads, which saves a way through another.
type cell struct {
	*bench
	peer  *peer
	nodes []*server
	port  int // the first of its ports
}

const (
	cellPorts = 16
	nodePorts = 4 // of them each node has its own
	cellPoll  = 200 * time.Millisecond
)

var nodeNames = []string{"a", "b", "c"}

// at is an address of a node.
func (c *cell) at(node, n int) string { return fmt.Sprint("127.0.0.1:", c.port+nodePorts*node+n) }

// list names all nodes, with one of their addresses.
func (c *cell) list(format, between string, n int) string {
	var all []string
	for i, name := range nodeNames {
		all = append(all, strings.NewReplacer("NAME", name, "ADDRESS", c.at(i, n)).Replace(format))
	}
	return strings.Join(all, between)
}

// rateOfCell measures the load of a case on a new cell. What opens it returns the address of the
// node that leads.
func rateOfCell(open func(context.Context, *cell) (string, error), login func() loadgen.Protocol) func(context.Context, *bench, *peer, *benchCase, *row) error {
	return func(ctx context.Context, b *bench, p *peer, bc *benchCase, r *row) (err error) {
		c := &cell{bench: b, peer: p}
		defer func() {
			for _, s := range c.nodes {
				err = errors.Join(err, b.discard(s))
			}
		}()
		if c.port, err = freePorts(cellPorts); err != nil {
			return err
		}
		addr, err := open(ctx, c)
		if err != nil {
			return err
		}
		measured, err := loadgen.Run(ctx, loadgen.Spec{
			Addr: addr, Limit: cmp.Or(bc.limit, b.limit), Groups: p.groups(queueTarget("", 0), bc.loads...), Login: login,
		})
		if err != nil {
			return fmt.Errorf("%w; the log of the last node says: %s", err, c.nodes[len(c.nodes)-1].log())
		}
		r.addResult(&result{Result: measured}, 1)
		return nil
	}
}

// add makes the folder of one more server, which ends with the cell.
func (c *cell) add() (*server, error) {
	s, err := c.newServer(c.peer)
	if err == nil {
		c.nodes = append(c.nodes, s)
	}
	return s, err
}

func openHoldfast(ctx context.Context, c *cell) (string, error) {
	for i, name := range nodeNames {
		s, err := c.add()
		if err != nil {
			return "", err
		}
		data := filepath.Join(s.dir, "data")
		if i == 0 {
			if out, err := exec.CommandContext(ctx, c.peer.binary, "cluster", "found", "--node", name, data).CombinedOutput(); err != nil {
				return "", fmt.Errorf("a cell cannot be founded: %w: %s", err, out)
			}
		}
		err = s.launch(c.peer.binary, nil, "serve", "--data", data, "--node", name, "--nodes", c.list("NAME=ADDRESS", ",", 0),
			"--redis", c.at(i, 2), "--admin", c.at(i, 3), "--pinpriq", "off", "--barbershop", "off")
		if err != nil {
			return "", err
		}
	}
	var said admin.Cluster
	err := c.nodes[0].until(ctx, cellPoll, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, c.peer.binary, "cluster", "status", "--json", "--admin", c.at(0, 3)).Output()
		if err == nil {
			err = json.Unmarshal(out, &said)
		}
		if err == nil && (said.Spare != 1 || said.Owner == "") {
			err = fmt.Errorf("no cell of three: %s", out)
		}
		return err
	})
	return c.at(max(slices.Index(nodeNames, said.Owner), 0), 2), err
}

// openRabbit starts nodes that find each other by the names of an epmd of their own.
func openRabbit(ctx context.Context, c *cell) (string, error) {
	names := fmt.Sprint(c.port + cellPorts - 1)
	first, err := c.add()
	if err == nil {
		err = first.launch("epmd", nil, "-address", "127.0.0.1", "-port", names)
	}
	if err != nil {
		return "", err
	}
	home := first.dir // of the secret that all have in common
	epmd := []string{"HOME=" + home, "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_PORT=" + names}
	config := "cluster_formation.peer_discovery_backend = classic_config\n"
	for i, name := range nodeNames {
		config += fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s@localhost\n", i+1, name)
	}
	if err := os.WriteFile(filepath.Join(home, "rabbitmq.conf"), []byte(config), 0o600); err != nil {
		return "", err
	}
	for i, name := range nodeNames {
		s, err := c.add()
		if err != nil {
			return "", err
		}
		err = s.launch(filepath.Join(filepath.Dir(c.peer.binary), "rabbitmq-server"), append(epmd,
			"RABBITMQ_NODENAME="+name+"@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
			fmt.Sprint("RABBITMQ_NODE_PORT=", c.port+nodePorts*i), fmt.Sprint("RABBITMQ_DIST_PORT=", c.port+nodePorts*i+1),
			"RABBITMQ_MNESIA_BASE="+s.dir, "RABBITMQ_LOG_BASE="+s.dir, "RABBITMQ_LOGS=-",
			"RABBITMQ_CONFIG_FILE="+filepath.Join(home, "rabbitmq"), "RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(s.dir, "plugins"),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
			"RUNNING_UNDER_SYSTEMD=true")) // so that the script becomes the server, which can be killed
		if err != nil {
			return "", err
		}
	}
	return c.at(0, 0), c.nodes[1].until(ctx, cellPoll, func(ctx context.Context) error {
		ask := exec.CommandContext(ctx, c.peer.binary, "-n", "a@localhost", "await_online_nodes", fmt.Sprint(len(nodeNames)))
		ask.Env = append(os.Environ(), epmd...)
		out, err := ask.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
}

func openNATS(ctx context.Context, c *cell) (leader string, err error) {
	for i, name := range nodeNames {
		s, err := c.add()
		if err != nil {
			return "", err
		}
		config := fmt.Sprintf("server_name: %s\nlisten: %q\njetstream { store_dir: %q, sync_interval: always }\n"+
			"cluster { name: cell, listen: %q, no_advertise: true, routes: [%s] }\n",
			name, c.at(i, 0), s.dir, c.at(i, 1), c.list(`"nats://ADDRESS"`, ",", 1))
		file := filepath.Join(s.dir, "config")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return "", err
		}
		if err := s.launch(c.peer.binary, nil, "-c", file); err != nil {
			return "", err
		}
	}
	stream := fmt.Sprintf(`{"name":%q,"subjects":[%q],"retention":"workqueue","storage":"file","num_replicas":%d}`,
		queueName, queueName, len(nodeNames))
	err = c.nodes[0].until(ctx, cellPoll, func(ctx context.Context) error {
		leader, err = makeStream(ctx, c.at(0, 0), stream)
		return err
	})
	return c.at(max(slices.Index(nodeNames, leader), 0), 0), err
}

// makeStream makes a stream of JetStream, and returns the node that leads it.
func makeStream(ctx context.Context, addr, stream string) (string, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "CONNECT {}\r\nSUB answer 1\r\nPUB $JS.API.STREAM.CREATE.%s answer %d\r\n%s\r\n", queueName, len(stream), stream); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var said struct {
			Cluster struct{ Leader string }
		}
		switch err := json.Unmarshal(lines.Bytes(), &said); {
		case err != nil: // not the answer
		case said.Cluster.Leader == "":
			return "", fmt.Errorf("no leader of the stream: %s", lines.Text())
		default:
			return said.Cluster.Leader, nil
		}
	}
	return "", errors.New("nats did not answer")
}

// freePorts returns the first of n ports in a row that were free a moment ago. They are below those
// that connections get.
func freePorts(n int) (int, error) {
	for range 1000 {
		port, free := 10_000+rand.IntN(22_000), true
		for next := port; next < port+n && free; next++ {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", next))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

// cellCases compare a cell with rivals of three nodes.
func cellCases(n pick) []benchCase {
	const about = "three nodes on this machine, QPUSH, publishes to a quorum queue of RabbitMQ and to JetStream with R3 and sync always, "
	of := func(name, how string, conns, depth int) benchCase {
		return rate(name, about+how, cells, traffic{loads: []load{{"push", conns, depth, 0}}, limit: time.Duration(n(5, 1)) * time.Second})
	}
	return []benchCase{
		of("cell-64", "16 connections, 64 at a time", 16, 64),
		of("cell-1", "64 connections, one at a time", 64, 1),
		of("cell-alone", "one connection, one at a time", 1, 1),
	}
}
