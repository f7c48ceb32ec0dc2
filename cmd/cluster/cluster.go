// Package cluster runs a node of a cell: machines that hold the same queues. One of them owns the
// queues and serves them. The others follow its log with tables of their own, and pass clients on.
// When it is gone another one takes over.
//
//	cluster.go   Run: a node from its start to its end
//	pass.go      clients are passed on to the owner
//	turn.go      the roles, which a node has in turn: it follows, or owns
//	status.go    what the cell is, for its operator
//	change.go    a node is removed, or the queues are handed over, for its operator
//	offline.go   a folder whose node does not run
//	progress.go  whether a node gets on, without which it may not own
//	clock.go     the clock of who owns
//	watch.go     what a node sees of the others: metrics and events
//	image.go     what a node notes of its cell, by which an old image of another's disk is known
//	room.go      what the log and the disks of the nodes have room for
//	copy.go      the data folder of another node, for one that the log no longer leads on
//	peer/        the node's own port
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// Config says which node of a cell a server is.
type Config = peer.Self

// maxPayload bounds a payload of a cell: longer ones keep etcd from its heartbeats, so that owners
// lose their claims.
const maxPayload = 4 << 20

// What a node is, for others.
const (
	starting = "starting"
	joining  = "joining"
	learner  = "learner" // a follower without a vote, so the cell cannot lose another node for it
	follower = "follower"
	owning   = "owner"
)

// node is a node that runs. Fields without another note are set before it takes turns.
type node struct {
	Config
	folder string
	logger *slog.Logger
	braked *slog.Logger // of what clients and strangers cause
	server *daemon.Server
	client *peer.Client
	owner  *peer.Owner // whom clients are passed to while this node follows
	member *cell.Member
	log    *cell.Log

	progress progress
	role     atomic.Value // string: what the node is, for others
	store    atomic.Pointer[storage.Store]
	owned    atomic.Pointer[cell.Owner] // who owns, as this node knows
	term     atomic.Pointer[cell.Term]  // of this node; nil: it does not own
	clock    atomic.Pointer[clock]      // of that term
	owners   atomic.Uint64              // that this node has seen
	alone    atomic.Bool                // no majority answers, as tell has seen
	fetched  atomic.Pointer[time.Time]  // when etcd's leader sent this one a snapshot last, as tell has seen; nil: never
	catchUp  atomic.Bool                // some node was sent one a short time ago, as tell has seen
	seen     atomic.Pointer[metrics.Node]
	arrived  arrival
	known    atomic.Pointer[known]
	room     atomic.Pointer[room] // of this node's term
	passing  func()               // ends what passOn began; nil: nobody is passed on; of the goroutine that takes turns
	holds    bool                 // the log, for a copy of this node; of the goroutine that takes turns
	checked  bool                 // the sums of the folder's tables: they are those of a copy, or this process had them open; of the same goroutine
	old      atomic.Uint64        // the last batch that was in the log before this turn: it came at some time before
	version  string
	process  string      // peer.Node.Process
	cell     string      // its name
	entered  atomic.Bool // member and log are there
}

// Run runs a node until ctx ends. It returns an error where the node needs its operator to go on.
// What was acknowledged is on the disks of a majority in every case.
func Run(ctx context.Context, d daemon.Config, c Config) (err error) {
	encryption, err := c.Encryption(ctx, d.Logger)
	if err = cmp.Or(fits(d, &c), err); err != nil {
		return err
	}
	n := &node{
		Config: c, folder: d.Data, logger: d.Logger, braked: daemon.Braked(d.Logger), version: d.Version, process: rand.Text(),
		client: peer.NewClient(encryption), owner: peer.NewOwner(),
	}
	n.role.Store(starting)
	n.owned.Store(&cell.Owner{})
	n.seen.Store(&metrics.Node{})
	if err := n.recall(); err != nil {
		return err
	}
	d.Owner, d.Node, d.Nodes = n.ownerRedis, n.figures, n
	n.cell = cmp.Or(d.Cell, daemon.DefaultCell)
	if n.server, err = daemon.Begin(ctx, d); err != nil {
		return err
	}
	defer func() { err = n.server.End(err) }()
	own, _ := peer.NextPort(c.Nodes[c.Node]) // Encryption has looked at it
	l, err := net.Listen("tcp", c.Bound(own))
	if err != nil {
		return fmt.Errorf("the node's own port: %w", err)
	}
	port := peer.New(peer.Config{TLS: encryption, Logger: n.braked, Node: n.about, Door: n.door, Files: n.server.Archive, Join: n.add})
	ctx, cancel := context.WithCancel(ctx)
	var running, telling sync.WaitGroup
	var deaf error // why nobody is answered at the port any more
	defer func() {
		running.Wait()
		err = cmp.Or(err, deaf)
	}()
	running.Go(func() {
		defer cancel()
		deaf = port.Serve(l)
	})
	defer port.Close()
	defer n.passNobody()
	if err := n.enter(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	defer n.await(&telling)
	defer n.member.Close()
	defer cancel()
	running.Go(func() {
		defer cancel()
		<-n.member.Done() // which Close ends
	})
	n.log = cell.NewLog(cell.Config{Client: n.member.Client(), Node: c.Node, Logger: n.logger, Progress: n.getsOn, Lease: n.lease(), Keep: keepLog})
	s, err := n.log.Status(ctx)
	if ctx.Err() != nil {
		return n.member.Err()
	}
	if err = cmp.Or(err, n.isOld(s.Floors)); err != nil {
		return err
	}
	n.entered.Store(true)
	alive, stop := context.WithCancel(context.Background())
	defer stop()
	telling.Go(func() { n.progress.probe(alive, filepath.Join(n.folder, storage.CellName, "probe")) })
	telling.Go(func() { n.tell(alive) })
	return n.noteDiffers(n.takeTurns(ctx))
}

// fits tells which setting of a single server a node cannot have.
func fits(d daemon.Config, c *Config) error {
	switch {
	case c.TLS.Cert == "" && (len(d.Users) > 0 || d.RedisPassword != ""):
		return fmt.Errorf("%w: without them every program of this machine reaches all packets through the nodes' own ports", peer.ErrPlain)
	case d.Sync != storage.SyncAlways():
		return errors.New("the nodes of a cell sync each batch: expected the sync mode always")
	case d.MaxPayload > maxPayload:
		return fmt.Errorf("--max-payload of %d bytes: the nodes of a cell take %d MiB at most", d.MaxPayload, maxPayload>>20)
	case d.AcceptLoss: // what it lacks would go from the others, too, when it owns
		return errors.New("--accept-loss: a node that has lost something copies the folder of another one by itself: leave the flag away; where no other is left see holdfast cluster found --accept-loss")
	}
	return nil
}

// await waits for work that was told to end, but not long where the node's etcd has ended: a change
// of members, or room that is given back, may wait there for ever.
func (n *node) await(work *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // ends with the work
		defer close(done)
		work.Wait()
	}()
	select {
	case <-done:
		return
	case <-n.member.Done():
	}
	select {
	case <-done:
	case <-time.After(endTime):
	}
}

// addresses are those of this node as others dial it: of its own port, and of its Redis protocol.
func (n *node) addresses() string {
	own, _ := peer.NextPort(n.Nodes[n.Node])
	redis := ""
	if socket := n.server.Doors()[resp.Name]; socket != nil {
		host, _, _ := net.SplitHostPort(own)
		redis = net.JoinHostPort(host, strconv.Itoa(socket.Addr().(*net.TCPAddr).Port))
	}
	return own + " " + redis
}

// lease is how long a claim stands without a keepalive.
func (n *node) lease() time.Duration { return max(2*time.Second, 4*n.Election) }

// ownerRedis is daemon.Config.Owner. A client that asks at once when the owner dies must not be
// sent there again: node-redis 5 would wait for it for ever. A node that is cut off does not know
// who owns, and a client would ask no other one.
func (n *node) ownerRedis() string {
	if n.owner.Gone(2*n.lease()) || n.alone.Load() && n.term.Load() == nil {
		return ""
	}
	_, redis, _ := strings.Cut(n.owned.Load().Addresses, " ")
	return redis
}

// Found makes a folder, which may be that of a single server, the first node of a new cell.
func Found(folder string, c Config, logger *slog.Logger) error {
	if err := c.Check(); err != nil {
		return err
	}
	last, err := begin(folder, storage.Options{Logger: logger})
	if err != nil {
		return err
	}
	own := filepath.Join(folder, storage.CellName) // what is in it is of a cell before
	err = cmp.Or(os.MkdirAll(own, 0o700), os.RemoveAll(filepath.Join(own, knownName)), os.RemoveAll(copyFolder(folder)), os.RemoveAll(filepath.Join(own, aloneName)))
	if err != nil {
		return err
	}
	id, err := cell.Found(memberOf(&c, folder, logger), last)
	if err != nil {
		return err
	}
	if err := (&known{Cell: id, Node: c.Node}).write(folder); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(own, goneName)) // until then FoundAnew can be run again
}

// begin has all that the folder of a single server has in tables, and returns the last batch. It
// reads all as a start does, so that a loss is found before others count on what is there.
func begin(folder string, o storage.Options) (last uint64, err error) {
	store, err := storage.Open(folder, o)
	if err != nil {
		return 0, err
	}
	state, err := recovery.Restore(store, recovery.Options{
		Now: time.Now().UnixMilli(), AcceptLoss: o.AcceptLoss, Accepted: store.Accepted(), NoIndex: true,
	})
	if err == nil {
		state.Report.Log(o.Logger)
		last = store.Control().Batch
	}
	return last, errors.Join(err, store.Close())
}

func memberOf(c *Config, folder string, logger *slog.Logger) cell.MemberConfig {
	return cell.MemberConfig{
		Dir: filepath.Join(folder, storage.CellName, storage.MemberName), Node: c.Node, Nodes: c.Nodes, Listen: c.Bound(c.Nodes[c.Node]),
		CertFile: c.TLS.Cert, KeyFile: c.TLS.Key, CAFile: c.TLS.ClientCA, Election: c.Election, Logger: logger,
	}
}

// enter has the node's etcd run: of a folder that is of a cell, or of one that joins the cell of
// the other nodes. It may wait until ctx ends, which is no error.
func (n *node) enter(ctx context.Context) (err error) {
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
	}()
	if err := n.passOn(ctx); err != nil {
		return err
	}
	m := memberOf(&n.Config, n.folder, n.braked)
	if cell.IsMember(m.Dir) {
		m.Cell = n.known.Load().Cell
		if err := n.compare(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		n.member, err = cell.Start(ctx, m)
		return err
	}
	if !storage.IsEmpty(n.folder) {
		return fmt.Errorf("%s is of no cell, and is not empty: found a cell with it, or have the node join with an empty folder", n.folder)
	}
	if err := os.MkdirAll(filepath.Join(n.folder, storage.CellName), 0o700); err != nil {
		return err
	}
	n.role.Store(joining)
	for told := make(map[string]string); ; {
		for name, address := range n.others() {
			cluster, err := n.client.Join(ctx, address, n.Node, n.Nodes[n.Node], n.process)
			if err == nil {
				n.member, err = cell.Join(ctx, m, cluster)
				return err
			}
			if why := err.Error(); why != told[name] && ctx.Err() == nil {
				told[name] = why
				n.logger.Info("the node waits for the cell that it joins", "asked", name, "answer", err)
			}
		}
		if wait(ctx, time.Second); ctx.Err() != nil {
			return nil
		}
	}
}

// others are the addresses of the other nodes' own ports, by name.
func (n *node) others() map[string]string {
	all := make(map[string]string)
	for name, address := range n.Nodes {
		if own, err := peer.NextPort(address); err == nil && name != n.Node {
			all[name] = own
		}
	}
	return all
}

// ask asks another node what it says of itself.
func (n *node) ask(ctx context.Context, address string) (peer.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return n.client.Node(ctx, address)
}

// add makes another node a learner. It answers its own port's requests, as the two below do.
func (n *node) add(ctx context.Context, name, address, process string) (string, error) {
	if role := n.role.Load(); role == starting || role == joining {
		return "", fmt.Errorf("node %s is %s itself", n.Node, role)
	}
	if n.Nodes[name] != address {
		return "", fmt.Errorf("node %s at %s is not among the nodes that %s knows: give all nodes the same list", name, address, n.Node)
	}
	if err := n.vacate(ctx, name, address, process); err != nil {
		return "", err
	}
	return n.member.Add(ctx, name, address)
}

// door finds a door for clients that another node passes on.
func (n *node) door(name string) (peer.Door, error) {
	if !n.server.Serves() {
		return nil, fmt.Errorf("node %s does not serve the queues now", n.Node)
	}
	return func(nc net.Conn, remote netip.AddrPort) { n.pass(name, nc, remote) }, nil
}

func (n *node) pass(door string, nc net.Conn, remote netip.AddrPort) {
	if err := n.server.Pass(door, nc, remote); err != nil {
		_ = nc.Close()
	}
}

func (n *node) about() peer.Node {
	k := n.known.Load()
	a := peer.Node{
		Name: n.Node, Process: n.process, Version: n.version, Role: n.says(), Clock: time.Now().UnixMilli(), Cell: k.Cell, Floors: k.Floors,
		Owner: n.owned.Load().Node, Behind: n.seen.Load().Behind.Milliseconds(), Digest: n.server.Digest(), Nodes: n.Nodes,
	}
	if n.entered.Load() { // before, the member may not be there
		a.Database = n.member.Size()
		at := n.fetched.Load()
		a.Fetched = at != nil && time.Since(*at) < releaseTime
	}
	a.Room, _, _ = storage.DiskSpace(n.folder) // none if it cannot be told
	if c := n.clock.Load(); c != nil {
		a.Term = c.now()
	}
	if s := n.store.Load(); s != nil {
		last := s.Control()
		a.Batch, a.Epoch, a.Floor = last.Batch, last.Epoch, s.Figures().FlushedBatch
	}
	return a
}

// says is the role that others are told of.
func (n *node) says() string {
	role := n.role.Load().(string)
	if role == follower && !n.member.Votes() {
		return learner
	}
	return role
}

// figures is daemon.Config.Node.
func (n *node) figures() metrics.Node {
	f := *n.seen.Load()
	f.Role, f.Takeovers = n.says(), max(n.owners.Load(), 1)-1
	if c := n.clock.Load(); c != nil {
		f.Clock = time.Duration(c.now()-time.Now().UnixMilli()) * time.Millisecond
	}
	if t := n.term.Load(); t != nil {
		f.Margin = t.Margin()
	}
	if s := n.store.Load(); s != nil {
		f.Epoch = s.Control().Epoch
	}
	return f
}

const (
	tellPause = 2 * time.Second // how often the other nodes are told of this one
	askTime   = time.Second     // for another node's answer
)

// tell tells the other nodes of this one until ctx ends.
func (n *node) tell(ctx context.Context) {
	sees := watch{node: n, at: time.Now(), told: make(map[string]bool)}
	for pause := time.NewTicker(tellPause); ; {
		once, cancel := context.WithTimeout(ctx, tellPause)
		s, err := n.log.Status(once)
		if n.member.Replaced() {
			now := time.Now()
			n.fetched.Store(&now)
		}
		sees.look(ctx, s)
		err = cmp.Or(err, n.member.Judge(once, func(p cell.Peer) bool {
			own, _ := peer.NextPort(p.Address)
			_, err := n.ask(once, own)
			return err == nil
		}))
		if err == nil && s.Majority {
			_ = n.note(s.Floors) // the next telling is the next try
		}
		me := n.about()
		if store := n.store.Load(); store != nil && isTight(me) && (me.Role == follower || me.Role == learner) {
			store.MakeRoom()
		}
		b, err := json.Marshal(me)
		if err == nil {
			err = n.log.PutNode(once, b)
		}
		if err != nil { // perhaps because etcd's database is full: then no key can be put
			if cleared, _ := n.member.Clear(ctx); cleared { // the next telling is the next try
				n.logger.Warn("etcd's database was full, and has room again")
			}
		}
		cancel()
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}
