package cluster

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestAFolderIsHeldAgainstWhatTheOthersKnow(t *testing.T) {
	said := func(cell string, floor uint64) peer.Node {
		return peer.Node{Name: "b", Cell: cell, Floors: map[string]uint64{"self": floor, "b": 9}}
	}
	for name, c := range map[string]struct {
		noted known
		said  peer.Node
		want  string
	}{
		"nobody knows more":            {known{Cell: "x", Floors: map[string]uint64{"self": 0, "b": 1}}, said("x", 0), ""},
		"a folder without a note":      {known{}, said("x", 0), ""},
		"an old image":                 {known{Cell: "x", Floors: map[string]uint64{"self": 0, "b": 1}}, said("x", 5), cell.ErrOld.Error()},
		"an old image without a note":  {known{}, said("x", 5), cell.ErrOld.Error()},
		"another cell":                 {known{Cell: "x"}, said("y", 0), "is of cell y"},
		"one that is of no cell":       {known{Cell: "x"}, peer.Node{Name: "b"}, ""},
		"alone, and nobody is of help": {known{Cell: "x", Floors: map[string]uint64{"self": 7}}, peer.Node{Name: "b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := among(t, c.said)
			n.known.Store(&c.noted)
			if err := n.compare(t.Context()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestANodeWhoseEtcdDifferedDoesNotStartAgain(t *testing.T) {
	n := among(t)
	if err := os.MkdirAll(filepath.Join(n.folder, storage.CellName), 0o700); err != nil {
		t.Fatal(err)
	}
	for differs, want := range map[bool]error{false: nil, true: cell.ErrDiffers} {
		if err := (&known{Node: n.Node, Differs: differs}).write(n.folder); err != nil {
			t.Fatal(err)
		}
		if err := n.recall(); !errors.Is(err, want) {
			t.Errorf("%v: %v", differs, err)
		}
	}
}

func TestANodeThatJoinedAnewWaitsUntilTheOthersHaveForgottenWhatItHad(t *testing.T) {
	t.Parallel()
	n, asked := among(t), 0
	n.neighbour(t, "b", peer.Config{Node: func() peer.Node {
		asked++
		if asked > 2 {
			return peer.Node{Name: "b", Cell: "x"}
		}
		return peer.Node{Name: "b", Cell: "x", Floors: map[string]uint64{"self": 5}}
	}})
	n.known.Store(&known{})
	if err := n.compare(t.Context()); err != nil || asked != 3 {
		t.Errorf("it ends with %v, and has asked %d times", err, asked)
	}
}

// asked tells each telling.
type asked chan struct{}

func (a asked) Write(b []byte) (int, error) {
	a <- struct{}{}
	return len(b), nil
}

func TestANodeThatKnowsOfOthersWaitsForOne(t *testing.T) {
	n, told := among(t), make(asked)
	n.Nodes["b"] = "127.0.0.1:1"
	n.known.Store(&known{Cell: "x", Floors: map[string]uint64{"self": 1, "b": 1}})
	n.logger = slog.New(slog.NewTextHandler(told, nil))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.compare(ctx) }()
	<-told
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestANodeWhoseOthersAreGoneForEverWaitsForNone(t *testing.T) {
	n := among(t)
	n.known.Store(&known{Cell: "x", Floors: map[string]uint64{"self": 1, "b": 1}})
	if err := n.compare(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatANodeKnowsIsInItsFolder(t *testing.T) {
	n := among(t)
	if err := n.recall(); err != nil || n.known.Load().Cell != "" {
		t.Errorf("a new folder has a note, or %v", err)
	}
	folder := filepath.Join(n.folder, storage.CellName)
	if err := errors.Join(os.Mkdir(folder, 0o700), storage.WriteFile(folder, knownName, []byte(`{"cell":"x","floors":{"b":3}}`))); err != nil {
		t.Fatal(err)
	}
	if err := n.recall(); err != nil || n.known.Load().Cell != "x" || n.known.Load().Floors["b"] != 3 {
		t.Errorf("it remembers %+v, %v", n.known.Load(), err)
	}
	if err := (&known{Cell: "x", Node: n.Node}).write(n.folder); err != nil {
		t.Fatal(err)
	}
	if err := n.recall(); err != nil {
		t.Error(err)
	}
	if n.Node = "b"; n.recall() == nil {
		t.Error("the folder of another node is taken")
	}
	if err := os.WriteFile(filepath.Join(folder, knownName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.recall(); err == nil {
		t.Error("a damaged note is taken")
	}
}
