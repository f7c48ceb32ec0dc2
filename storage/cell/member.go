package cell

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

// Member is the etcd of one node, in this process. Several goroutines may use one at once.
//
// It lives until Done is closed: by Close, by a removal from the cell, or because etcd cannot go
// on. Err then says which.
type Member struct {
	config MemberConfig
	etcd   *embed.Etcd
	client *clientv3.Client // calls etcd in the process
	cell   string
	data   backend.Backend // etcd's database when Replaced was called last
	warned warned

	alive context.Context // ends with the member; its cause is Err
	end   context.CancelCauseFunc

	close   sync.Once
	stopped chan struct{} // closed when Close has stopped etcd
}

var (
	// ErrRemoved says that the cell has removed this member. It never comes back under this id.
	ErrRemoved = errors.New("the cell has removed this node. If `cluster status` shows all others as owner or follower, delete its folder and start: it then joins anew")
	// ErrFailed says that etcd found what it cannot go on with, as a write that failed or damage. The
	// process must end: this etcd holds its files and is of no use any more.
	ErrFailed = errors.New("etcd cannot go on")
	// ErrOld says that the node has had more than its folder has.
	ErrOld = errors.New("this folder is older than what the cell knows of it. If `cluster status` shows all others as owner or follower, delete it and start: the node joins anew")
	// ErrDiffers says that etcd's own checks found other keys at this member than at a majority.
	ErrDiffers = fmt.Errorf("%w: etcd has other keys here than at the other nodes. If `cluster status` shows all of those as owner or follower, delete this folder and start: the node joins anew", ErrDamaged)

	errUnknown = errors.New("the cell does not know this node")
)

const (
	cellKey    = "cell" // its value is the id and the format, which any later format keeps so
	cellFormat = 1
	// closing bounds Close: a leader first hands over, for at most 5 s and two elections.
	closing      = 10 * time.Second
	defaultQuota = 2 << 30
)

// IsMember says whether a folder is that of a member: Start takes it then, otherwise Join.
func IsMember(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	return err == nil && len(found) > 0
}

// Found makes a folder the etcd of a new cell of one node, whose log begins behind a batch, and
// stops it again. It returns the cell's id. The folder is of the cell from one moment to the next.
func Found(c MemberConfig, after uint64) (id string, err error) {
	if IsMember(c.Dir) {
		return "", fmt.Errorf("%s is of a cell already: found a cell in a folder that is of none", c.Dir)
	}
	whole := c.Dir
	c.Dir += ".new"
	cfg, err := c.embed("")
	if err == nil {
		err = os.RemoveAll(c.Dir)
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	id = rand.Text()
	cfg.ClusterState, cfg.InitialClusterToken = embed.ClusterStateFlagNew, id // etcd's own ids follow from the token
	cfg.ListenPeerUrls = nil                                                  // there is nobody to listen to
	m, err := c.run(ctx, cfg)
	if err != nil {
		return "", err
	}
	err = m.insist(ctx, func(ctx context.Context) error {
		cell := clientv3.OpPut(cellKey, fmt.Sprint(id, " ", cellFormat))
		_, err := m.client.Txn(ctx).Then(cell, put(keyHead, head{Batch: after}), put(keyCut, after)).Commit()
		return err
	})
	if m.Close(); err == nil {
		err = errors.Join(os.RemoveAll(whole), os.Rename(c.Dir, whole))
	}
	return id, err
}

// Start runs the member that a folder is of, and waits for a leader: without a majority that is
// until ctx ends. It gives the cell the node's address, if that is another now.
func Start(ctx context.Context, c MemberConfig) (*Member, error) {
	if !IsMember(c.Dir) {
		return nil, fmt.Errorf("%s is of no cell: found one, or join one", c.Dir)
	}
	return c.enter(ctx, "")
}

// Join runs a member that Add has made known to the cell, from an empty folder. What a start that
// was cut off left in the folder is deleted. initialCluster is what Add has returned. A node that
// etcd asks may not know of the removal and the addition yet: it tries for 30 s.
func Join(ctx context.Context, c MemberConfig, initialCluster string) (m *Member, err error) {
	if IsMember(c.Dir) {
		return nil, fmt.Errorf("%s is of a cell already: delete it to join as another member", c.Dir)
	}
	err = patiently(ctx, func() (err error) {
		if err := os.RemoveAll(filepath.Join(c.Dir, "member")); err != nil {
			return err
		}
		m, err = c.enter(ctx, initialCluster)
		if err != nil && strings.Contains(err.Error(), "member count is unequal") {
			err = fmt.Errorf("%w: %w", errUnknown, err)
		}
		return err
	})
	return m, err
}

// enter runs etcd until it has a leader and the cell is known to be the right one.
func (c MemberConfig) enter(ctx context.Context, initialCluster string) (*Member, error) {
	cfg, err := c.embed(initialCluster)
	if err != nil {
		return nil, err
	}
	m, err := c.run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err = m.identify(ctx); err == nil {
		err = m.moved(ctx)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// run starts etcd and does not wait for a leader.
func (c MemberConfig) run(ctx context.Context, cfg *embed.Config) (*Member, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Member{config: c, stopped: make(chan struct{})}
	m.alive, m.end = context.WithCancelCause(context.Background())
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(m.zap())
	started := make(chan error, 1)
	go func() {
		m.shrink()
		e, err := embed.StartEtcd(cfg)
		if err == nil {
			m.etcd, m.data, m.client = e, e.Server.Backend(), v3client.New(e.Server)
			m.client.KV = clientv3.NewKVFromKVClient(newReads(e.Server), m.client)
			leases := adapter.LeaseServerToLeaseClient(v3rpc.NewLeaseServer(e.Server)) // as in newReads
			m.client.Lease = clientv3.NewLeaseFromLeaseClient(leases, m.client, time.Second)
		}
		started <- err
	}()
	var err error
	select {
	case err = <-started:
	case <-m.alive.Done():
		err = m.Err()
	case <-ctx.Done():
		err = context.Cause(ctx) // etcd may still ask others, and the process ends
	}
	if err != nil {
		return nil, fmt.Errorf("start the node's etcd: %w", err)
	}
	go func() { // ends with etcd, which ends by itself only when it was removed
		<-m.etcd.Server.StopNotify()
		m.end(ErrRemoved)
	}()
	return m, nil
}

// identify reads what cell this is. The read is linearizable, so there is a leader when it ends.
func (m *Member) identify(ctx context.Context) error {
	var got *clientv3.GetResponse
	err := m.insist(ctx, func(ctx context.Context) (err error) {
		got, err = m.client.Get(ctx, cellKey)
		return err
	})
	if err != nil {
		return err
	}
	said, format := "", 0
	for _, kv := range got.Kvs {
		said = string(kv.Value)
	}
	if _, err := fmt.Sscan(said, &m.cell, &format); err != nil {
		return fmt.Errorf("%w: key %s of etcd is %q: expected an id and a format", ErrDamaged, cellKey, said)
	}
	if format > cellFormat {
		return fmt.Errorf("cell %s has format %d: expected one up to %d, a newer version may know it", m.cell, format, cellFormat)
	}
	if want := m.config.Cell; want != "" && m.cell != want {
		return fmt.Errorf("%s is of cell %s, but the node's folder is of cell %s: one of them is from elsewhere", m.config.Dir, m.cell, want)
	}
	return nil
}

// moved gives the cell the node's address, if that is another than the cell has.
func (m *Member) moved(ctx context.Context) error {
	own, id := m.config.url(m.config.Nodes[m.config.Node]), m.etcd.Server.MemberID()
	if known := m.etcd.Server.Cluster().Member(id); known == nil || slices.Equal(known.PeerURLs, []string{own.String()}) {
		return nil
	}
	err := m.insist(ctx, m.tried(func(ctx context.Context) error {
		_, err := m.client.MemberUpdate(ctx, uint64(id), []string{own.String()})
		return err
	}))
	if errors.Is(err, rpctypes.ErrPeerURLExist) {
		return fmt.Errorf("another node of the cell has the address %s: expected one that none has, remove that node if it is gone for ever", own.Host)
	}
	return err
}

// insist makes a call until it succeeds, the member ends or ctx does. That an address is taken is
// certain.
func (m *Member) insist(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.alive, func() { cancel(m.Err()) })()
	passes := func(err error) bool { return !errors.Is(err, rpctypes.ErrPeerURLExist) }
	return retry(ctx, pause, passes, func() error { return call(ctx) })
}

// Client calls etcd in the process. Its Maintenance.Defragment panics: use Clear.
func (m *Member) Client() *clientv3.Client { return m.client }

// Cell is the id of the cell, which is random.
func (m *Member) Cell() string { return m.cell }

// Done is closed when the member ends.
func (m *Member) Done() <-chan struct{} { return m.alive.Done() }

// Err says why the member has ended: ErrRemoved, ErrFailed, or
// context.Canceled by Close; nil while it lives.
func (m *Member) Err() error { return context.Cause(m.alive) }

// Close stops etcd, for at most 10 s. A leader hands over first. It is safe to call it twice.
func (m *Member) Close() {
	m.end(nil)
	if errors.Is(m.Err(), ErrFailed) {
		return // what failed stands still for ever, so nothing could end
	}
	go m.close.Do(func() {
		defer close(m.stopped)
		m.client.Close()
		m.etcd.Server.Stop() // before Close: that waits for a leader, if etcd listens for clients
		m.etcd.Close()
	})
	select {
	case <-m.stopped:
	case <-time.After(closing):
		m.config.Logger.Warn("the node's etcd did not stop in time", "after", closing)
	}
}

// MemberConfig says which etcd a node runs.
type MemberConfig struct {
	Dir      string            // etcd's own folder, mode 0700; its parent is there
	Node     string            // the node's name
	Nodes    map[string]string // name to HOST:PORT of etcd's peers, what others dial; its own too
	Listen   string            // the IP:PORT that is bound; that of Nodes if empty, which is no name then
	Cell     string            // the id that the cell must have; any if empty
	Election time.Duration     // 500 ms unless given, at least 10 ms; a heartbeat is a tenth

	// CertFile, KeyFile and CAFile are PEM files: what this node shows, and who signs for all nodes.
	// Each handshake reads the first two; the start reads the last. Without them others see all, so
	// the caller must give addresses of loopback alone.
	CertFile, KeyFile, CAFile string

	Logger *slog.Logger // has etcd's warnings and errors; none if nil

	quota int64         // of etcd's database in bytes; 2 GiB if 0
	check time.Duration // how often etcd compares the keys of its members; a minute if 0
}

// url is the address of a peer as etcd wants it.
func (c MemberConfig) url(address string) url.URL {
	if c.CertFile == "" {
		return url.URL{Scheme: "http", Host: address}
	}
	return url.URL{Scheme: "https", Host: address}
}

// embed is etcd's own configuration, without its logger. There is no listener for clients.
func (c MemberConfig) embed(initialCluster string) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = c.Node, c.Dir
	own := c.url(c.Nodes[c.Node])
	cfg.AdvertisePeerUrls, cfg.ListenPeerUrls = []url.URL{own}, []url.URL{c.url(cmp.Or(c.Listen, own.Host))}
	cfg.InitialCluster, cfg.ClusterState = cmp.Or(initialCluster, c.Node+"="+own.String()), embed.ClusterStateFlagExisting
	if c.CertFile != "" {
		// A certificate of the cell's authority is enough: the address a node dials from may differ from
		// the one it is dialled at.
		cfg.PeerTLSInfo = transport.TLSInfo{
			CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile,
			ClientCertAuth: true, SkipClientSANVerify: true,
		}
		cfg.TlsMinVersion = "TLS1.3"
	}
	cfg.ElectionMs = uint(cmp.Or(c.Election, 500*time.Millisecond).Milliseconds())
	cfg.TickMs = cfg.ElectionMs / 10
	// Raft keeps these entries in memory whatever their size, and one may have 256 KiB.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 50
	// The other check, at a start, waits 6 s for each member that starts as well.
	if err := cfg.ServerFeatureGate.(interface{ Set(string) error }).Set("CompactHashCheck=true"); err != nil {
		return nil, err
	}
	cfg.CompactHashCheckTime = cmp.Or(c.check, cfg.CompactHashCheckTime)
	cfg.QuotaBackendBytes = cmp.Or(c.quota, defaultQuota)
	cfg.ListenClientUrls, cfg.EnableGRPCGateway, cfg.AuthToken = nil, false, "" // for clients that are not there
	return cfg, nil
}
