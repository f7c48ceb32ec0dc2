package cell_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

// ranked returns members with etcd's leader first.
func ranked(t testing.TB, all []*member) []*member {
	t.Helper()
	var lead uint64
	for lead == 0 {
		lead = all[0].Server.Lead()
	}
	first := slices.IndexFunc(all, func(m *member) bool { return uint64(m.Server.MemberID()) == lead })
	all[0], all[first] = all[first], all[0]
	return all
}

// cut cuts two members off from each other.
func cut(a, b *member) {
	if a != b {
		a.Server.CutPeer(b.Server.MemberID())
		b.Server.CutPeer(a.Server.MemberID())
	}
}

// mend ends what cut did.
func mend(a, b *member) {
	if a != b {
		a.Server.MendPeer(b.Server.MemberID())
		b.Server.MendPeer(a.Server.MemberID())
	}
}

func TestAppendsAndCutsGoOnWhenTheLeaderIsAnother(t *testing.T) {
	all := ranked(t, members(t, "a", "b", "c"))
	leader, next, own := all[0], all[1], all[2]
	term := claim(t, cell.NewLog(cell.Config{Client: own.client, Node: own.name, Lease: 6 * time.Second}), 0)
	add(t, term, 1, 20)
	moved := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		moved <- leader.Server.MoveLeader(ctx, leader.Server.Lead(), uint64(next.Server.MemberID()))
	}()
	add(t, term, 21, 50)
	if err := <-moved; err != nil {
		t.Log(err) // a busy machine may choose its leader by itself
	}
	lost := ranked(t, all)[0]
	if lost == own {
		lost = next
	}
	for _, m := range all {
		cut(m, lost)
	}
	var logs []*cell.Log
	add(t, term, 51, 100)
	for _, m := range all {
		if m != lost {
			log := newLog(m.client, m.name)
			if got := follow(t, log, 0, 100); !slices.Equal(got, added(1, 100)) {
				t.Errorf("%s got %v", m.name, got)
			}
			logs = append(logs, log)
		}
	}
	trimmed := make(chan struct{})
	go func() {
		term.Trim()
		close(trimmed)
	}()
	for _, log := range logs {
		log.Release(100)
	}
	for get(t, own.client, "cut") != "100" {
	}
	if err := term.End(t.Context()); err != nil {
		t.Error(err)
	}
	<-trimmed
	for _, m := range all { // one that leads waits long when it stops and cannot hand over
		mend(m, lost)
	}
}

func TestAnOwnerThatIsCutOffHoldsNothingWhenAnotherCanClaim(t *testing.T) {
	all := members(t, "a", "b", "c")
	for _, isLeader := range []bool{true, false} {
		own, others := ranked(t, all)[0], all[1:]
		if !isLeader {
			own, others = all[2], all[:2]
		}
		o, other := cell.NewLog(cell.Config{Client: own.client, Node: own.name}), cell.NewLog(cell.Config{Client: others[0].client, Node: others[0].name})
		reach := head(t, other)
		term := claim(t, o, reach)
		add(t, term, reach+1, reach+5)
		owner, err := other.OwnerChanged(t.Context(), cell.Owner{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range others {
			cut(m, own)
		}
		stuck := make(chan error, 1)
		go func() { stuck <- term.Append(reach+6, nil) }()
		if owner, err = other.OwnerChanged(t.Context(), owner); err != nil || owner != (cell.Owner{}) {
			t.Fatalf("leader %t: owner %+v, %v; want nobody", isLeader, owner, err)
		}
		if term.Held() {
			t.Errorf("leader %t: the claim is held when another can be made", isLeader)
		}
		second := claim(t, other, reach)
		add(t, second, reach+6, reach+7)
		if err := <-stuck; !errors.Is(err, cell.ErrFenced) {
			t.Errorf("leader %t: an Append that was cut off says %v, want ErrFenced", isLeader, err)
		}
		for _, m := range others {
			mend(m, own)
		}
		if got := follow(t, o, reach, 7); !slices.Equal(got, added(reach+1, reach+7)) {
			t.Errorf("leader %t: got %v", isLeader, got)
		}
		if err := errors.Join(term.End(t.Context()), second.End(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// head is the last batch of the log.
func head(t testing.TB, l *cell.Log) uint64 {
	t.Helper()
	term, last, err := l.Claim(t.Context(), 0, "")
	if err == nil {
		err = term.End(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// BenchmarkCommit appends batches of 256 records of 150 bytes, one after the other, with three
// members that share this machine.
func BenchmarkCommit(b *testing.B) {
	all := ranked(b, members(b, "a", "b", "c"))
	term := claim(b, newLog(all[0].client, "a"), 0)
	content := [][]byte{make([]byte, 256*150)}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, m := range all[1:] {
		go func() { _ = newLog(m.client, m.name).Follow(ctx, 0, func(uint64, []byte) error { return nil }) }()
	}
	var took []time.Duration
	for n := uint64(1); b.Loop(); n++ {
		begin := time.Now()
		if err := term.Append(n, content); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	for name, at := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		b.ReportMetric(took[len(took)*at/100].Seconds()*1e3, name)
	}
}
