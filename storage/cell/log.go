package cell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

var (
	// ErrOwned means that another claim stands.
	ErrOwned = errors.New("the queues have an owner")
	// ErrCut means that the log begins behind what the tables have. They must be copied anew.
	ErrCut = errors.New("the log was cut behind what the tables have")
	// ErrFenced means that a claim has ended for good. Whether the log has the batch that was being
	// appended only the log tells.
	ErrFenced = errors.New("the claim has ended")
	// ErrDamaged means that a key of the log is missing, or holds something else than was put.
	ErrDamaged = errors.New("the log is damaged")
)

const (
	keyOwner    = "owner"
	keyHandOver = "handover"
	keyHead     = "head"
	keyCut      = "cut"
	prefixLog   = "j/"
	endLog      = "j0" // behind all keys of the log
	prefixFloor = "floor/"
	prefixCopy  = "copy/"
	prefixNode  = "node/"
)

func keyPart(batch uint64, part int) string {
	return fmt.Sprintf("%s%016x/%04x", prefixLog, batch, part)
}

// Config of a Log. Client and Node are needed.
type Config struct {
	// Client is one of the node's own member. Closing it ends all that the Log does by itself, so it
	// is closed before the member stops.
	Client *clientv3.Client
	Node   string
	Logger *slog.Logger
	// Lease is how long a claim stands without a keepalive; 2 s if it is 0. etcd counts whole
	// seconds, so another can be made up to a second later. The first try of a call takes at most a
	// quarter of it.
	Lease time.Duration
	// Keep is the size of etcd's database in use, in bytes, up to which the log is kept for all nodes,
	// so that one which is away need not copy a folder. Beyond that it is kept for a majority. 0:
	// always for a majority alone.
	Keep int64
	// Progress says whether the node got on with its work within the last second: only then is a
	// claim kept. nil means always. A goroutine of the claim calls it.
	Progress func() bool
}

// Log is one node's way to the log of a cell. A process has one for each node. Anybody may call its
// methods, at any time.
type Log struct {
	Config
	floor atomic.Uint64 // the batch up to which this node's tables have everything
	lease struct {      // of what the node says of itself, and of its hold
		sync.Mutex
		id clientv3.LeaseID
	}
}

// NewLog returns the log that a client leads to.
func NewLog(c Config) *Log {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Lease = cmp.Or(c.Lease, 2*time.Second)
	if c.Progress == nil {
		c.Progress = func() bool { return true }
	}
	return &Log{Config: c}
}

func (l *Log) warn(work string, err error) {
	l.Logger.Warn("work in the background fails, and is tried again", "work", work, "error", err)
}

// head is the mark of the log's end.
type head struct {
	Batch uint64 `json:"batch"`
	Fence int64  `json:"fence"` // of the claim that put it
	Sum   uint64 `json:"sum"`   // of the content
}

// state is what the log is at one revision, which is also that of the answers.
type state struct {
	revision  int64
	begin     uint64 // the batch up to which it was cut
	end       head
	cut, head int64 // mod revisions of the keys, 0 if absent
	answers   []*etcdserverpb.ResponseOp
}

// local has the node's own member answer alone, which may be behind.
var local = []clientv3.OpOption{clientv3.WithSerializable()}

// read reads the state, and what is asked beside it.
func (l *Log) read(ctx context.Context, opts []clientv3.OpOption, gets ...clientv3.Op) (s state, err error) {
	ops := append(gets, clientv3.OpGet(keyCut, opts...), clientv3.OpGet(keyHead, opts...))
	r, err := l.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return s, err
	}
	s = state{revision: r.Header.Revision, answers: r.Responses}
	if s.cut, err = value(s.answers[len(gets)].GetResponseRange().Kvs, &s.begin); err == nil {
		s.head, err = value(s.answers[len(gets)+1].GetResponseRange().Kvs, &s.end)
	}
	return s, err
}

// value reads the value of one key, and returns its mod revision: 0 if it is absent.
func value(kvs []*mvccpb.KeyValue, v any) (revision int64, err error) {
	if len(kvs) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(kvs[0].Value, v); err != nil {
		return 0, fmt.Errorf("%w: key %s has %.80q: %w", ErrDamaged, kvs[0].Key, kvs[0].Value, err)
	}
	return kvs[0].ModRevision, nil
}

func put(key string, v any, opts ...clientv3.OpOption) clientv3.Op {
	b, _ := json.Marshal(v) // numbers and strings always work
	return clientv3.OpPut(key, string(b), opts...)
}

// unchanged compares the mod revision of a key; 0 if it is to be absent.
func unchanged(key string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", revision)
}

var errMoved = errors.New("the owner is another, or a key changed meanwhile")

// commit returns errMoved if what a transaction compares has changed.
func commit(txn clientv3.Txn) error {
	r, err := txn.Commit()
	if err == nil && !r.Succeeded {
		err = errMoved
	}
	return err
}

// pause is how long a call that failed is left alone. look is how often a key is read whose watch
// may be dead: in a process, a watch does not end without a leader.
const (
	pause = 20 * time.Millisecond
	look  = 100 * time.Millisecond
)

// try makes a call again until its outcome is certain, or ctx ends.
func (l *Log) try(ctx context.Context, call func(context.Context) error) error {
	limit := l.Lease / 4
	return retry(ctx, pause, isUncertain, func() error {
		once, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		limit = min(2*limit, l.Lease)
		return call(once)
	})
}

// retry makes a call again while its error passes, until ctx ends.
func retry(ctx context.Context, pause time.Duration, passes func(error) bool, call func() error) error {
	for {
		err := call()
		if err == nil || !passes(err) {
			return err
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("%w (the last try: %w)", context.Cause(ctx), err)
		}
	}
}

func always(error) bool { return true }

// isUncertain says that etcd did what was asked, or did not, or cannot just now. What raft drops
// while leadership moves has no code of its own, nor has a keepalive then.
func isUncertain(err error) bool {
	var e rpctypes.EtcdError
	return errors.As(err, &e) && (e.Code() == codes.Unavailable || e.Code() == codes.DeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "raft proposal dropped") || strings.Contains(err.Error(), "not a primary lessor")
}

// sleep returns false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// watch calls a function now, after each change of a key, and each 100 ms, until the function says
// that it is done, it fails for certain, or ctx ends. However many changes there are, they take no
// more room: clientv3 keeps without a bound what is not taken.
func (l *Log) watch(ctx context.Context, key string, call func(context.Context) (isDone bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bell := make(chan struct{}, 1)
	go func() {
		for more := true; more; more = sleep(ctx, look) {
			for range l.Client.Watch(ctx, key) {
				select {
				case bell <- struct{}{}:
				default:
				}
			}
		}
	}()
	for ctx.Err() == nil {
		isDone, err := call(ctx)
		if isDone || err != nil && !isUncertain(err) && ctx.Err() == nil {
			return err
		}
		select {
		case <-bell:
		case <-time.After(look):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
