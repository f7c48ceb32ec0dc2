package cell

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

func TestAMemberThatIsReadAloneHasWhatItDidNotKnowToBeDecided(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	putKey(t, m, "w/1")
	m.Close()
	joins, err := json.Marshal(membership.ConfigChangeContext{
		Member: membership.Member{ID: 5, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{"http://" + b.Nodes["b"]}, IsLearner: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	appendEntry(t, a.Dir, raftpb.EntryConfChange, &raftpb.ConfChange{
		Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: proto.Uint64(5), Context: joins,
	})
	appendEntry(t, a.Dir, raftpb.EntryNormal, &etcdserverpb.InternalRaftRequest{
		Header: &etcdserverpb.RequestHeader{ID: 7}, Put: &etcdserverpb.PutRequest{Key: []byte("w/2"), Value: []byte("x")},
	})
	read := func(again func() error) error {
		return Alone(t.Context(), a.Dir, filepath.Join(t.TempDir(), "alone"), nil, func(alone *Member, others int) error {
			if n := countKeys(t, alone, "w/"); n != 2 || others != 1 {
				t.Errorf("%d keys and %d others, expected 2 and 1", n, others)
			}
			return again()
		})
	}
	err = read(func() error {
		if err := read(func() error { return nil }); !errors.Is(err, fileutil.ErrLocked) {
			t.Errorf("another one has the folder meanwhile: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// appendEntry does what the leader of a member that does not run had it do: an entry stands in its
// log, and that it is decided was not told yet.
func appendEntry(t *testing.T, dir string, kind raftpb.EntryType, request proto.Message) {
	t.Helper()
	w, err := wal.Open(zap.NewNop(), filepath.Join(dir, "member", "wal"), &walpb.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	_, state, entries, err := w.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	next := &raftpb.Entry{Term: state.Term, Type: kind.Enum(), Index: proto.Uint64(entries[len(entries)-1].GetIndex() + 1), Data: data}
	if err := errors.Join(w.Save(state, []*raftpb.Entry{next}), w.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestWhoWasRefusedOrRemovedIsNoMemberWhereOneIsReadAlone(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	m := founded(t, a)
	others := func(want int) {
		t.Helper()
		m.Close()
		err := Alone(t.Context(), a.Dir, filepath.Join(t.TempDir(), "alone"), nil, func(_ *Member, others int) error {
			if others != want {
				t.Errorf("%d others, expected %d", others, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		m = run(t)(Start(t.Context(), a))
	}
	added, err := m.Client().MemberAddAsLearner(t.Context(), []string{"http://" + b.Nodes["b"]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Client().MemberAddAsLearner(t.Context(), []string{"http://" + c.Nodes["c"]}); !errors.Is(err, rpctypes.ErrTooManyLearners) {
		t.Fatalf("two learners at once: %v", err)
	}
	others(1)
	if _, err := m.Client().MemberRemove(t.Context(), added.Member.ID); err != nil {
		t.Fatal(err)
	}
	others(0)
}

func TestAMemberThatRunsIsNotReadAlone(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	founded(t, a)
	if err := Alone(t.Context(), a.Dir, filepath.Join(t.TempDir(), "alone"), nil, nil); !errors.Is(err, fileutil.ErrLocked) {
		t.Errorf("error %v", err)
	}
}

func TestAMemberWithoutItsLogIsNotTakenForNone(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	founded(t, a).Close()
	files, err := filepath.Glob(filepath.Join(a.Dir, "member", "wal", "*"))
	for _, name := range files {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Alone(t.Context(), a.Dir, filepath.Join(t.TempDir(), "alone"), nil, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
}

func TestADamagedDatabaseIsToldWhereAMemberIsReadAlone(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	founded(t, a).Close()
	name := filepath.Join(a.Dir, "member", "snap", "db")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, harmed := range map[string][]byte{"its heads are wrong": append(bytes.Repeat([]byte{0xff}, 2*4096), whole[2*4096:]...), "it is short": whole[:3000]} {
		if err := os.WriteFile(name, harmed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Alone(t.Context(), a.Dir, filepath.Join(t.TempDir(), "alone"), nil, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}
