package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// full is a store without room.
type full struct{ tries chan struct{} }

func (f full) Take(uint64, []byte) error {
	f.tries <- struct{}{}
	return storage.ErrFull
}

func (full) Control() content.Control { return content.Control{} }

func TestANodeWithoutRoomTriesABatchAgainAndEndsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store, ended, n := full{make(chan struct{})}, make(chan error), &node{}
	go func() { ended <- n.take(ctx, store)(1, nil) }()
	<-store.tries
	<-store.tries
	cancel()
	for {
		select {
		case <-store.tries: // one more, behind the wait that was under way
		case err := <-ended:
			if !errors.Is(err, storage.ErrFull) {
				t.Errorf("it ended with %v", err)
			}
			if n.progress.took.Load() != 0 {
				t.Error("a batch that has no room counts as progress")
			}
			return
		}
	}
}

// open opens the folder of a node until the test ends.
func (n *node) open(t *testing.T) *storage.Store {
	t.Helper()
	s, err := storage.Open(n.folder, storage.Options{Release: n.log.Release})
	if err != nil {
		t.Fatal(err)
	}
	n.store.Store(s)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestWhoReadsToTheEndGetsOnOnlyWhileBatchesAreTaken(t *testing.T) {
	n := among(t)
	var err error
	if n.server, err = daemon.Begin(t.Context(), daemon.Config{Data: n.folder, Redis: "127.0.0.1:0", Logger: n.logger}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.server.End(nil) }()
	at := func(ago time.Duration) int64 { return time.Now().Add(-ago).UnixNano() }
	for name, c := range map[string]struct {
		probed, took int64
		want         bool
	}{
		"it takes batches":               {at(0), at(0), true},
		"one batch takes some seconds":   {at(0), at(takeTime / 2), true},
		"nothing is taken":               {at(0), at(takeTime + time.Second), false},
		"the disk hangs":                 {at(onTime + time.Second), at(0), false},
		"it serves, and recovery stands": {at(0), 0, false},
	} {
		n.progress.probed.Store(c.probed)
		n.progress.took.Store(c.took)
		if got := n.getsOn(); got != c.want {
			t.Errorf("%s: it gets on: %v", name, got)
		}
	}
	n.old.Store(math.MaxUint64)
	n.progress.probed.Store(at(0))
	n.progress.took.Store(0)
	if err := n.take(t.Context(), taking{})(1, nil); err != nil || !n.getsOn() {
		t.Errorf("a batch that is taken is no progress: %v", err)
	}
}

func TestReadingToTheEndOfTheLogEndsWithTheTerm(t *testing.T) {
	n := among(t)
	n.found(t)
	store := n.open(t)
	term, _, err := n.log.Claim(t.Context(), 0, "")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- n.own(t.Context(), store, term, 1) }() // a batch that does not come
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ends without an error")
		}
	case <-time.After(patience):
		t.Error("it reads on")
	}
}

func TestTablesThatAProcessHadOpenAreNotCheckedAgain(t *testing.T) {
	n := among(t)
	s, err := storage.Open(n.folder, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var many content.Batch
	for i := range uint32(2000) { // more than the blocks that an open reads
		many.PutQueue(content.Queue{ID: i + 1, Name: fmt.Append(nil, strings.Repeat("q", 100), i)})
	}
	if err := errors.Join(s.Apply(&many), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := begin(n.folder, storage.Options{Logger: n.logger}); err != nil {
		t.Fatal(err)
	}
	n.found(t)
	n.owner = peer.NewOwner()
	n.owned.Store(&cell.Owner{})
	if n.server, err = daemon.Begin(t.Context(), daemon.Config{Data: n.folder, Redis: "127.0.0.1:0", Logger: n.logger}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.server.End(nil) }()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.turn(over); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(n.folder, "db", "*.sst"))
	if len(names) == 0 {
		t.Fatal("the folder has no tables")
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil {
			b[len(b)/3] ^= 1
			err = os.WriteFile(name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := n.turn(over); errors.Is(err, storage.ErrDamaged) {
		t.Errorf("all tables are read again: %v", err)
	}
	n.checked = false // as behind a turn that ended with damage
	if err := n.turn(over); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("no table is read: %v", err)
	}
}

func TestTheHoldOfACopyStandsUntilTheNodeHasWhatWasInTheLog(t *testing.T) {
	n := among(t)
	n.found(t)
	n.open(t)
	if err := n.log.Hold(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	n.holds = true
	n.old.Store(1)
	ended := make(chan struct{})
	go func() { // ends with the hold
		defer close(ended)
		n.endHold(t.Context())
	}()
	select {
	case <-ended:
		t.Error("it ends before the node has all")
	case <-time.After(2 * claimPause):
	}
	if !n.isHeld(t) {
		t.Error("the log is held no more")
	}
	n.old.Store(0)
	<-ended
	if n.isHeld(t) {
		t.Error("the log is held still")
	}
}

func TestALearnerThatIsOfAnotherCellGetsNoVote(t *testing.T) {
	n := among(t)
	n.found(t)
	var says atomic.Pointer[peer.Node]
	says.Store(&peer.Node{Cell: "another", Role: learner, Batch: 9, Floor: 9})
	n.neighbour(t, "b", peer.Config{Node: func() peer.Node { return *says.Load() }})
	cluster, err := n.member.Add(t.Context(), "b", n.Nodes["b"])
	if err != nil {
		t.Fatal(err)
	}
	other := Config{Node: "b", Nodes: maps.Clone(n.Nodes)}
	delete(n.Nodes, "b") // the owner has another list yet
	b, err := cell.Join(t.Context(), memberOf(&other, t.TempDir(), n.logger), cluster)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, end := context.WithCancel(t.Context())
	ended, store := make(chan struct{}), n.open(t)
	go func() { // ends with ctx
		defer close(ended)
		n.lead(ctx, store)
	}()
	time.Sleep(2 * leadPause)
	if b.Votes() {
		t.Error("it has a vote")
	}
	of := *says.Load()
	of.Cell = n.member.Cell()
	says.Store(&of)
	for begun := time.Now(); !b.Votes(); time.Sleep(changePause) {
		if time.Since(begun) > patience {
			t.Fatal("one of this cell has no vote")
		}
	}
	end()
	<-ended
}

func TestOneReasonForNoVoteIsToldOnce(t *testing.T) {
	var r reason
	begun := time.Now()
	for _, step := range []struct {
		after time.Duration
		is    string
		want  bool
	}{
		{0, "it starts", false}, {voteTime - 1, "it starts", false}, {voteTime, "it is silent", false},
		{2*voteTime - 1, "it is silent", false}, {2 * voteTime, "it is silent", true}, {9 * voteTime, "it is silent", false},
		{9 * voteTime, "it starts", false}, {10 * voteTime, "it starts", true},
	} {
		if got := r.lasts(step.is, begun.Add(step.after)); got != step.want {
			t.Errorf("after %v %q is told: %v", step.after, step.is, got)
		}
	}
}

func TestAReasonIsTheSameFromAnyPort(t *testing.T) {
	from := func(port int) error {
		return fmt.Errorf("node at b: %w", &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: syscall.ECONNRESET})
	}
	if kind(from(1)) != kind(from(2)) || kind(from(1)) == kind(errors.New("it starts")) {
		t.Errorf("the reasons are %q and %q", kind(from(1)), kind(from(2)))
	}
}

func TestAClaimThatCannotBeGivenBackIsTriedAndToldOnce(t *testing.T) {
	var log bytes.Buffer
	n := among(t)
	b := n.pair(t)
	n.owner, n.braked = peer.NewOwner(), n.logger
	n.owned.Store(&cell.Owner{})
	n.seen.Store(&metrics.Node{})
	n.known.Store(&known{})
	var err error
	if n.server, err = daemon.Begin(t.Context(), daemon.Config{Data: n.folder, Redis: "127.0.0.1:0", Logger: n.logger}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.server.End(nil) }()
	n.logger = slog.New(slog.NewTextHandler(&log, nil))
	store := n.open(t)
	term, last, err := n.log.Claim(t.Context(), 0, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() { ended <- n.own(ctx, store, term, last) }() // ends with ctx
	for begun := time.Now(); !n.server.Serves(); time.Sleep(changePause) {
		if time.Since(begun) > patience {
			t.Fatal("it does not serve")
		}
	}
	b.Close()
	end(daemon.ErrHandOver)
	if err := <-ended; err == nil || strings.Count(log.String(), "the claim was not given back") != 1 {
		t.Errorf("it ends with %v, and told is %q", err, log.String())
	}
}

func TestALongElectionMakesTheClaimLong(t *testing.T) {
	m := trio(t)[0]
	m.Election = time.Second
	m.launch(t)
	m.await(t, func(c *admin.Cluster) bool { return c.Owner == m.Node })
	margin := regexp.MustCompile(`(?m)^holdfast_node_lease_margin_seconds ([0-9.]+)$`)
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(changePause) {
		r, err := http.Get("http://" + m.operator.Address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		var seconds float64
		if found := margin.FindSubmatch(page); found != nil {
			_, _ = fmt.Sscan(string(found[1]), &seconds)
		}
		if seconds > 2 { // which is the lease otherwise
			return
		}
	}
	t.Error("the claim is never held for more than two seconds")
}

func TestANodeWithADamagedTableCopiesItsFolderAnew(t *testing.T) {
	all := settled(t)
	c := all[2]
	all[0].push(t, 1)
	has := func(role string, batch uint64) func(cell *admin.Cluster) bool {
		return func(cell *admin.Cluster) bool {
			return slices.ContainsFunc(cell.Nodes, func(at admin.Node) bool { return at.Name == c.Node && at.Role == role && at.Batch >= batch })
		}
	}
	c.await(t, has(follower, 1))
	c.halt(t)
	tables, err := filepath.Glob(filepath.Join(c.folder, "db", "*.sst"))
	if len(tables) == 0 || err != nil {
		t.Fatalf("tables %v, %v", tables, err)
	}
	for _, name := range tables {
		b, err := os.ReadFile(name)
		if err == nil {
			b[len(b)/2] ^= 1
			err = os.WriteFile(name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.launch(t)
	c.await(t, has(follower, 1))
}
