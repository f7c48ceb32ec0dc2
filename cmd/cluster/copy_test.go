package cluster

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// among is a node that other nodes say something to.
func among(t *testing.T, others ...peer.Node) *node {
	t.Helper()
	n := &node{Config: Config{Node: "self", Nodes: map[string]string{"self": "127.0.0.1:1"}}, client: peer.NewClient(nil), logger: slog.New(slog.DiscardHandler), folder: t.TempDir()}
	for _, a := range others {
		n.joinedBy(t, a, nil)
	}
	return n
}

// joinedBy has another node say something of itself, and give copies.
func (n *node) joinedBy(t *testing.T, a peer.Node, files func(w io.Writer, had []byte) error) {
	t.Helper()
	n.neighbour(t, a.Name, peer.Config{Node: func() peer.Node { return a }, Files: files})
}

// neighbour has another node answer at its own port.
func (n *node) neighbour(t *testing.T, name string, c peer.Config) {
	t.Helper()
	n.Nodes[name] = freeAddress(t)
	own, _ := peer.NextPort(n.Nodes[name])
	l, err := net.Listen("tcp", own)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = n.logger
	s := peer.New(c)
	go func() { _ = s.Serve(l) }() // ends with Close
	t.Cleanup(s.Close)
}

func TestACopyIsOfTheNodeWithMostInItsTablesAndLastOfTheOwner(t *testing.T) {
	n := among(t, peer.Node{Cell: "x", Name: "o", Role: owning, Floor: 9, Batch: 9},
		peer.Node{Cell: "x", Name: "few", Role: follower, Floor: 3, Batch: 8}, peer.Node{Cell: "x", Name: "most", Role: learner, Floor: 7, Batch: 7},
		peer.Node{Cell: "x", Name: "new", Role: joining}, peer.Node{Cell: "x", Name: "open", Role: starting, Floor: 8},
		peer.Node{Cell: "y", Name: "other", Role: follower, Floor: 8})
	n.Nodes["gone"] = "127.0.0.1:1"
	for least, want := range map[uint64][]string{0: {"most", "few", "o"}, 8: {"few", "o"}, 10: nil} {
		var names []string
		for _, a := range n.sources(t.Context(), "x", least) {
			names = append(names, a.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("the sources of batch %d are %v, want %v", least, names, want)
		}
	}
}

// found has the etcd of a node that is alone run until the test ends.
func (n *node) found(t *testing.T) {
	t.Helper()
	n.Nodes[n.Node] = freeAddress(t)
	own := memberOf(&n.Config, n.folder, n.logger)
	_, err := cell.Found(own, 0)
	if err == nil {
		n.member, err = cell.Start(t.Context(), own)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.member.Close)
	n.log = cell.NewLog(cell.Config{Client: n.member.Client(), Node: n.Node})
}

// pair has a second node's etcd run, which has a vote.
func (n *node) pair(t *testing.T) *cell.Member {
	t.Helper()
	n.found(t)
	n.Nodes["b"] = freeAddress(t)
	cluster, err := n.member.Add(t.Context(), "b", n.Nodes["b"])
	if err != nil {
		t.Fatal(err)
	}
	other := Config{Node: "b", Nodes: n.Nodes}
	b, err := cell.Join(t.Context(), memberOf(&other, t.TempDir(), n.logger), cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := n.member.Promote(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	return b
}

// isHeld says whether the node holds the log.
func (n *node) isHeld(t *testing.T) bool {
	t.Helper()
	return n.isHeldBy(t, n.Node)
}

func (n *node) isHeldBy(t *testing.T, name string) bool {
	t.Helper()
	r, err := n.member.Client().Get(t.Context(), "copy/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return len(r.Kvs) > 0
}

func TestACopyIsTriedUntilItIsThereAndHoldsTheLogInItsLastRoundAlone(t *testing.T) {
	n := among(t)
	n.found(t)
	s, err := storage.Open(t.TempDir(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var some content.Batch
	some.PutQueue(content.Queue{ID: 1, Name: []byte("q")})
	if err := s.Apply(&some); err != nil {
		t.Fatal(err)
	}
	var held []bool
	files := func(w io.Writer, had []byte) error {
		held = append(held, n.isHeld(t))
		if len(held) == 2 || len(held) == 3 { // the last round of b, and the first one of c
			return errors.New("the link is cut")
		}
		all, err := s.Files()
		if err == nil {
			defer all.Close()
			err = errors.Join(all.LeaveOut(had), archive.Write(w, all, "test", time.Now()))
		}
		return err
	}
	b := peer.Node{Cell: n.member.Cell(), Name: "b", Role: follower, Batch: s.Control().Batch, Floor: 1}
	c := b
	c.Name, c.Floor = "c", 0
	n.joinedBy(t, b, files)
	n.joinedBy(t, c, files)
	if _, err := storage.Restore(copyFolder(n.folder), 0); err != nil { // as a kill in the middle leaves it
		t.Fatal(err)
	}
	n.copy(t.Context())
	if want := []bool{false, true, false, false, true}; !slices.Equal(held, want) || !n.isHeld(t) || !n.holds || !n.checked {
		t.Errorf("held in the rounds: %v, want %v; behind them: %v", held, want, n.isHeld(t))
	}
	copied, err := storage.Open(n.folder, storage.Options{Release: func(uint64) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if copied.Control().Batch != s.Control().Batch {
		t.Errorf("the copy has %+v", copied.Control())
	}
}

func TestALostAnswerCostsNoHold(t *testing.T) {
	n := among(t)
	n.found(t)
	var answers atomic.Int32
	n.neighbour(t, "b", peer.Config{Node: func() peer.Node {
		if answers.Add(1) == 1 {
			time.Sleep(askTime) // so it comes too late
		}
		return peer.Node{}
	}})
	if err := n.hold(t.Context(), n.others()["b"]); err != nil || !n.isHeld(t) {
		t.Errorf("the log is not held: %v", err)
	}
}

func TestACopyThatWasHalfPutInItsPlaceIsPutThereFirst(t *testing.T) {
	n := among(t)
	n.found(t)
	s, err := storage.Open(copyFolder(n.folder), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("q")})
	err = errors.Join(s.Apply(&b), s.Close())
	for _, name := range []string{"anchor", "journal"} { // a kill came behind them
		err = errors.Join(err, os.Rename(filepath.Join(copyFolder(n.folder), name), filepath.Join(n.folder, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	if n.copyOnce(t.Context(), 0) == nil {
		t.Error("nobody gives a copy, and there is one")
	}
	if s, err = storage.Open(n.folder, storage.Options{Release: func(uint64) {}}); err != nil {
		t.Fatal(err)
	}
	if s.Control().Batch == 0 {
		t.Error("what was copied is not there")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
