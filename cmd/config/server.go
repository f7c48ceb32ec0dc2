package config

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/storage"
)

// Server is the settings of a server as flags, which are the keys of its config file, too.
type Server struct {
	Config          string            `placeholder:"FILE" help:"Config file (TOML): values of the other flags, users, and defaults of queues. The command line and the environment win. \"holdfast config show\" prints one."`
	Data            Folder            `default:"./holdfast-data" placeholder:"DIR" help:"Data folder; made if it does not exist (default ${default})."`
	Pinpriq         string            `default:"127.0.0.1:7070" placeholder:"HOST:PORT" help:"Address for pinpriq, or off. Port 0 takes a free port, which the log names (default ${default})."`
	Barbershop      string            `default:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address for barbershop, or off (default ${default})."`
	BarbershopQueue string            `default:"barbershop" placeholder:"NAME" help:"Queue that holds the items of barbershop (default ${default})."`
	Redis           string            `default:"127.0.0.1:6379" placeholder:"HOST:PORT" help:"Address for Redis clients, or off (default ${default})."`
	RedisDisable    []string          `placeholder:"NAME" help:"Redis commands to switch off, such as FLUSHALL,KEYS."`
	Admin           string            `default:"127.0.0.1:7072" placeholder:"HOST:PORT" help:"Address for the operator's HTTP requests, or off: GET /backup (for holdfast backup), and GET /metrics, /livez, /readyz and /healthz for monitors (default ${default})."`
	Sentinel        string            `placeholder:"HOST:PORT" help:"Address for clients of Redis Sentinel, such as 127.0.0.1:26379: they are told that of --redis (default off)."`
	Cell            string            `default:"main" placeholder:"NAME" help:"Name by which clients of Redis Sentinel ask for the server, or for the node that owns the queues (default ${default})."`
	Node            string            `placeholder:"NAME" help:"This machine's name among --nodes: the server is a node of a cell, of which one node owns the queues, and another takes over when that is gone (see \"holdfast cluster\")."`
	Nodes           []string          `placeholder:"NAME=HOST" help:"All nodes of the cell, as others reach them, such as a=10.0.0.1,b=10.0.0.2,c=10.0.0.3. Each takes two ports: 7380, or the one that follows HOST and a colon, and the next one."`
	ClusterTLS      string            `name:"cluster-tls" placeholder:"DIR" help:"Folder with the certificate of this node, which \"holdfast tls init --nodes\" makes: node.pem, node-key.pem, and the authority of all nodes in ca.pem. Nodes on several hosts need it."`
	ClusterListen   string            `placeholder:"IP" help:"Address at which this machine binds the two ports of its node (default that of --nodes, or all where that is a name)."`
	Election        time.Duration     `default:"500ms" range:"100ms 10s" placeholder:"TIME" help:"How long nodes wait for one that is silent before they choose another; longer for hosts that are far apart (default ${default})."`
	Sync            string            `default:"always" placeholder:"MODE" help:"When to force writes to the disk: always, interval:50ms (1ms to 1m) or never. kill -9 loses nothing in any mode. A power cut loses nothing, the last interval, or what the system had not written out (default ${default})."`
	Cache           terminal.ByteSize `placeholder:"SIZE" help:"Memory for payloads that were pushed or read ahead last, 64KiB to 32GiB, rounded up to a power of two. What it holds is taken without reading the disk (default a sixty-fourth of --max-memory, from 16MiB to 256MiB)."`
	PlainUser       string            `placeholder:"NAME" help:"User of pinpriq and barbershop connections without a client certificate. Without one these doors are closed as soon as there is a user or a password."`
	TLSCert         string            `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server, in PEM: every address speaks TLS then. It is read again when the file changes."`
	TLSKey          string            `name:"tls-key" placeholder:"FILE" help:"Private key of that certificate."`
	TLSClientCA     string            `name:"tls-client-ca" placeholder:"FILE" help:"Certificates of CAs whose client certificates are taken: their common names say which user a client is."`
	Debug           bool              `help:"Serve profiles at /debug/pprof of the operator's address, to operators."`
	MetricsQueues   []string          `placeholder:"GLOB" help:"Queues with metrics of their own at /metrics of the operator's address, besides the 200 largest, such as orders-*,mail."`
	MaxConns        int               `default:"10000" range:"1 1048576" placeholder:"N" help:"Most connections at a time, for each protocol (default ${default})."`
	MaxBuffers      terminal.ByteSize `placeholder:"SIZE" help:"Memory for requests that have begun, transactions, watched names, channels and replies that are not read, on all connections together, 16MiB to 1024GiB (default a quarter of --max-memory)."`
	MaxMemory       terminal.ByteSize `placeholder:"SIZE" help:"Memory that the server may have, 128MiB to 1024TiB: from 80 % of it on, pushes are refused and takes go on (default that of the machine, or of the container or service, which count in any case)."`
	MaxPayload      terminal.ByteSize `default:"1MiB" placeholder:"SIZE" help:"Longest payload that Redis clients may push, 1MiB to 64MiB; --max-buffers must be four times that (default ${default})."`
	Drain           time.Duration     `default:"8s" range:"1ms 3650d" placeholder:"TIME" help:"How long connections may take to finish after a signal (default ${default})."`
	Loop            bool              `default:"true" negatable:"" help:"Have one loop read and write all connections (Linux). With --no-loop goroutines do."`
	Insecure        bool              `help:"Allow addresses that other machines can reach although TLS or users are missing."`
	AcceptLoss      bool              `help:"Start although acknowledged packets are missing, and give those up."`
	Log             string            `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Format of the log on standard error: text or json (default ${default})."`
	LogLevel        string            `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"Least important level to log: debug, info, warn or error (default ${default})."`

	RedisPassword Secret `name:"redis-password-file" placeholder:"FILE" help:"File that holds a password; a line break at its end does not count. Redis clients and operators must log in then, and the user default with it may do everything. $$HOLDFAST_REDIS_PASSWORD can hold the password itself."`
}

// The ranges of --cache, --max-buffers, --max-memory and --max-payload, which ends at MaxPayload.
const (
	minCache   = terminal.ByteSize(64 << 10)
	maxCache   = terminal.ByteSize(32 << 30)
	minBuffers = terminal.ByteSize(16 << 20)
	maxBuffers = terminal.ByteSize(1 << 40)
	minMemory  = terminal.ByteSize(128 << 20)
	maxMemory  = terminal.ByteSize(1 << 50)
	minPayload = terminal.ByteSize(broker.DefaultMaxPayload)
	MaxPayload = terminal.ByteSize(broker.MaxPayload)
)

// isName says that a text can name a cell, a node or a client: it stands in lists, messages and
// paths as it is.
var isName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

func (c *Server) Validate() error {
	if _, err := storage.ParseSync(c.Sync); err != nil {
		return fmt.Errorf("--sync: %w", err)
	}
	if err := resp.CheckDisable(c.RedisDisable); err != nil {
		return fmt.Errorf("--redis-disable: %w", err)
	}
	if !isName.MatchString(c.Cell) {
		return fmt.Errorf("--cell %q: expected 1 to 64 letters, digits and _.-", c.Cell)
	}
	if c.ClusterListen != "" && net.ParseIP(c.ClusterListen) == nil {
		return fmt.Errorf("--cluster-listen %q: expected an IP address of this machine without a port, or 0.0.0.0 for all", c.ClusterListen)
	}
	if c.Cache != 0 && (c.Cache < minCache || c.Cache > maxCache) {
		return fmt.Errorf("--cache %v: expected %v to %v", c.Cache, minCache, maxCache)
	}
	if c.MaxBuffers != 0 && (c.MaxBuffers < minBuffers || c.MaxBuffers > maxBuffers) {
		return fmt.Errorf("--max-buffers %v: expected %v to %v", c.MaxBuffers, minBuffers, maxBuffers)
	}
	if c.MaxPayload < minPayload || c.MaxPayload > MaxPayload {
		return fmt.Errorf("--max-payload %v: expected %v to %v", c.MaxPayload, minPayload, MaxPayload)
	}
	if c.MaxMemory != 0 && (c.MaxMemory < minMemory || c.MaxMemory > maxMemory) {
		return fmt.Errorf("--max-memory %v: expected %v to %v", c.MaxMemory, minMemory, maxMemory)
	}
	if least := netproto.ReservedParts * c.MaxPayload; c.MaxBuffers != 0 && c.MaxBuffers < least {
		return fmt.Errorf("--max-buffers %v: too little for --max-payload %v, which needs %v or more", c.MaxBuffers, c.MaxPayload, least)
	}
	return nil
}

// Daemon is what the flags of a server say, and the users and queues of the config file.
func (s *Sources) Daemon(c *Server) (daemon.Config, error) {
	sync, err := storage.ParseSync(c.Sync)
	if err != nil {
		return daemon.Config{}, err
	}
	password, err := c.RedisPassword.lasting()
	if err != nil {
		return daemon.Config{}, fmt.Errorf("--redis-password-file: %w", err)
	}
	config := daemon.Config{
		Data:            string(c.Data),
		Pinpriq:         c.Pinpriq,
		Barbershop:      c.Barbershop,
		BarbershopQueue: c.BarbershopQueue,
		Redis:           c.Redis,
		RedisPassword:   password,
		RedisDisable:    c.RedisDisable,
		Admin:           c.Admin,
		Sentinel:        c.Sentinel,
		Cell:            c.Cell,
		Sync:            sync,
		Cache:           int64(c.Cache),
		PlainUser:       c.PlainUser,
		TLS:             daemon.TLSFiles{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA},
		Debug:           c.Debug,
		MetricsQueues:   c.MetricsQueues,
		MaxConns:        c.MaxConns,
		MaxBuffers:      int64(c.MaxBuffers),
		MaxMemory:       int64(c.MaxMemory),
		MaxPayload:      int64(c.MaxPayload),
		Drain:           c.Drain,
		Goroutines:      !c.Loop,
		Insecure:        c.Insecure,
		AcceptLoss:      c.AcceptLoss,
	}
	if file := s.file; file != nil {
		config.Users, config.Queues = file.users, file.queues
	}
	return config, nil
}

// Cluster is what the flags say of a node; nil if the server is alone.
func (c *Server) Cluster() (*peer.Self, error) {
	if c.Node == "" {
		return nil, nil
	}
	nodes, err := ParseNodes(c.Nodes)
	if err != nil {
		return nil, err
	}
	if _, ok := nodes[c.Node]; !ok {
		return nil, fmt.Errorf("--node %q is not among --nodes: name all nodes there, this one too", c.Node)
	}
	node := &peer.Self{Node: c.Node, Nodes: nodes, Election: c.Election, Listen: c.ClusterListen}
	if dir := c.ClusterTLS; dir != "" {
		node.TLS = daemon.TLSFiles{Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node-key.pem"), ClientCA: filepath.Join(dir, "ca.pem")}
	}
	return node, nil
}

// nodePort is the port of a node's etcd where none is given.
const nodePort = "7380"

// ParseNodes reads NAME=HOST and NAME=HOST:PORT.
func ParseNodes(all []string) (map[string]string, error) {
	nodes := make(map[string]string)
	for _, text := range all {
		name, address, _ := strings.Cut(text, "=")
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = strings.Trim(address, "[]"), nodePort
		}
		if !isName.MatchString(name) || !isHost(host) || nodes[name] != "" {
			return nil, fmt.Errorf("--nodes %q: expected NAME=HOST, with a name of its own of 1 to 64 letters, digits and _.-, and a machine's name or IP address", text)
		}
		nodes[name] = net.JoinHostPort(host, port)
	}
	return nodes, nil
}

// isHost says whether a text is the name of a machine or an IP address.
func isHost(text string) bool {
	return net.ParseIP(text) != nil || regexp.MustCompile(`^[A-Za-z0-9*_.-]{1,253}$`).MatchString(text)
}

// Level is the least important level to log.
func (c *Server) Level() (l slog.Level) {
	_ = l.UnmarshalText([]byte(c.LogLevel)) // the flag allows only what it understands
	return l
}

// readServer reads a command line of a server, such as serve --config FILE.
func readServer(env func(name string) (string, bool), args []string) (*Sources, *Server, daemon.Config, error) {
	var line struct {
		Context string
		Serve   Server `cmd:""`
	}
	s := NewSources(env)
	parser, err := s.Parser(&line)
	if err == nil {
		_, err = parser.Parse(args)
	}
	var config daemon.Config
	if err == nil {
		config, err = s.Daemon(&line.Serve)
	}
	if err != nil {
		err = s.Locate(err)
	}
	return s, &line.Serve, config, err
}
