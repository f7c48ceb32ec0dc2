package cell_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestOneNodeOwns(t *testing.T) {
	client, a := alone(t)
	b := newLog(client, "b")
	first, last, err := a.Claim(t.Context(), 0, "10.0.0.1")
	if err != nil || last != 0 || !first.Held() {
		t.Fatalf("claim of an empty log: last %d, %v, held %t", last, err, first.Held())
	}
	owner, err := b.OwnerChanged(t.Context(), cell.Owner{})
	if want := (cell.Owner{Node: "a", Addresses: "10.0.0.1", Fence: owner.Fence}); err != nil || owner != want || owner.Fence == 0 {
		t.Errorf("owner %+v, %v; want %+v with a fence", owner, err, want)
	}
	if _, _, err := b.Claim(t.Context(), 0, ""); !errors.Is(err, cell.ErrOwned) {
		t.Errorf("a second claim: %v, want ErrOwned", err)
	}
	add(t, first, 1, 3)
	if err := first.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended(t, first, first.Err())
	if nobody, err := b.OwnerChanged(t.Context(), owner); err != nil || nobody != (cell.Owner{}) {
		t.Errorf("owner %+v, %v; want nobody", nobody, err)
	}
	if s, err := b.Status(t.Context()); err != nil || s.Head != 3 {
		t.Errorf("the log ends at batch %d, %v; want 3", s.Head, err)
	}
	second, last, err := b.Claim(t.Context(), 3, "")
	if err != nil || last != 3 {
		t.Fatalf("claim behind the first: last %d, %v; want 3", last, err)
	}
	ended(t, first, first.Append(4, nil))
	add(t, second, 4, 5)
	if got := follow(t, a, 0, 5); !slices.Equal(got, added(1, 5)) {
		t.Errorf("got %v", got)
	}
	if err := first.End(t.Context()); err != nil {
		t.Errorf("a lease that is gone is given back: %v", err)
	}
}

func TestOneOfManyClaimsStands(t *testing.T) {
	client, _ := alone(t)
	const n = 16
	var claims atomic.Int32
	done := make(chan error, n)
	for range n {
		go func() {
			_, _, err := newLog(client, "a").Claim(t.Context(), 0, "")
			if err == nil {
				claims.Add(1)
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil && !errors.Is(err, cell.ErrOwned) {
			t.Error(err)
		}
	}
	if claims.Load() != 1 {
		t.Errorf("%d claims stand, want 1", claims.Load())
	}
}

func TestTablesThatDoNotMeetTheLogDoNotClaim(t *testing.T) {
	client, log := alone(t)
	set(t, client, "head", `{"batch":7}`)
	set(t, client, "cut", "7")
	if _, _, err := log.Claim(t.Context(), 6, ""); !errors.Is(err, cell.ErrCut) {
		t.Errorf("tables that have 6 of a log behind 7: %v, want ErrCut", err)
	}
	if _, _, err := log.Claim(t.Context(), 8, ""); !errors.Is(err, cell.ErrDamaged) {
		t.Errorf("tables that have 8 of a log up to 7: %v, want ErrDamaged", err)
	}
	if _, err := followed(t.Context(), log, 6, 1); !errors.Is(err, cell.ErrCut) {
		t.Errorf("following from 7 on: %v, want ErrCut", err)
	}
	if owner := get(t, client, "owner"); owner != "" {
		t.Errorf("a refused claim has put %s", owner)
	}
	add(t, claim(t, log, 7), 8, 9)
	if got := follow(t, log, 7, 2); !slices.Equal(got, added(8, 9)) {
		t.Errorf("got %v behind a cut", got)
	}
}

func TestALogWithoutItsHeadIsNotClaimed(t *testing.T) {
	client, log := alone(t)
	term := claim(t, log, 0)
	add(t, term, 1, 3)
	set(t, client, "cut", "0")
	del(t, client, "head")
	ended(t, term, term.Append(4, nil))
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, reach := range []uint64{0, 3} {
		if _, _, err := log.Claim(t.Context(), reach, ""); !errors.Is(err, cell.ErrDamaged) {
			t.Errorf("a node that has %d claims: %v, want ErrDamaged", reach, err)
		}
	}
	if get(t, client, "j/0000000000000001/0000") == "" {
		t.Error("a batch is gone")
	}
}

// A cut between what a claim read and what it puts is seen by the claim.
func TestAClaimKnowsTheCut(t *testing.T) {
	m := members(t, "a")[0]
	for _, before := range []string{"", "3"} {
		if before != "" {
			set(t, m.client, "cut", before)
		}
		set(t, m.client, "head", `{"batch":9}`)
		reads := 0
		log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
			if reads++; reads == 1 {
				set(t, m.client, "cut", "9")
			}
			return r, err
		}), "b")
		if _, _, err := log.Claim(t.Context(), 5, ""); !errors.Is(err, cell.ErrCut) {
			t.Errorf("cut %q before: %v, want ErrCut", before, err)
		}
		del(t, m.client, "cut")
	}
}

func TestAClaimWhoseAnswerIsLostStands(t *testing.T) {
	m := members(t, "a")[0]
	lost := 0
	log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if puts(r) > 0 && lost < 2 {
			lost++
			return nil, rpctypes.ErrTimeout
		}
		return r, err
	}), "a")
	add(t, claim(t, log, 0), 1, 1)
	if lost == 0 {
		t.Error("no answer was lost")
	}
}

func TestAnOwnerThatWasWrittenByHandEndsTheClaim(t *testing.T) {
	for name, write := range map[string]func(*clientv3.Client){
		"over it": func(c *clientv3.Client) { set(t, c, "owner", `{"node":"b"}`) },
		"anew": func(c *clientv3.Client) {
			del(t, c, "owner")
			set(t, c, "owner", `{"node":"b"}`)
		},
		"away": func(c *clientv3.Client) { del(t, c, "owner") },
	} {
		t.Run(name, func(t *testing.T) {
			client, log := alone(t)
			silent, spoken := claim(t, log, 0), (*cell.Term)(nil)
			write(client)
			<-silent.Done() // by itself
			ended(t, silent, silent.Err())
			if _, err := client.Delete(t.Context(), "owner"); err != nil {
				t.Fatal(err)
			}
			spoken = claim(t, log, 0)
			write(client)
			ended(t, spoken, spoken.Append(1, [][]byte{[]byte("x")}))
			if head := get(t, client, "head"); head != "" {
				t.Errorf("head is %s, want none", head)
			}
		})
	}
}

func TestAClaimIsNotKeptWithoutProgress(t *testing.T) {
	client, _ := alone(t)
	var stuck atomic.Bool
	a := cell.NewLog(cell.Config{Client: client, Node: "a", Lease: time.Second, Progress: func() bool { return !stuck.Load() }})
	b := newLog(client, "b")
	term := claim(t, a, 0)
	owner, err := b.Owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stuck.Store(true)
	lapsing, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for owner != (cell.Owner{}) {
		if owner, err = b.OwnerChanged(lapsing, owner); err != nil {
			t.Fatalf("the claim stands: %v", err)
		}
	}
	if term.Held() {
		t.Error("the claim is held when another can be made")
	}
	claim(t, b, 0)
	ended(t, term, term.Append(1, nil))
}

// cutOff is the KV of a member that only knows what it knew before.
type cutOff struct {
	clientv3.KV
	is *atomic.Bool
}

func (c cutOff) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if c.is.Load() && !clientv3.OpGet(key, opts...).IsSerializable() {
		return nil, rpctypes.ErrTimeout
	}
	return c.KV.Get(ctx, key, opts...)
}

func TestAClaimIsNotHeldByItsKeepaliveAlone(t *testing.T) {
	client, _ := alone(t)
	isCutOff := new(atomic.Bool)
	client.KV = cutOff{client.KV, isCutOff}
	term := claim(t, cell.NewLog(cell.Config{Client: client, Node: "a", Lease: time.Second}), 0)
	isCutOff.Store(true)
	select {
	case <-term.Done():
		ended(t, term, term.Err())
	case <-time.After(20 * time.Second):
		t.Error("the claim stands, and no read has shown it")
	}
}

func TestAClosedClientEndsTheClaim(t *testing.T) {
	client, log := alone(t)
	term := claim(t, log, 0)
	if err := client.Close(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-term.Done()
	ended(t, term, term.Append(1, nil))
}

// A claim that another follows has dropped what was not decided: no batch is made of parts of two.
func TestAClaimDropsPartsOfNoBatch(t *testing.T) {
	client, log := alone(t)
	set(t, client, "j/0000000000000001/0000", "\x00 of an Append that was not decided")
	set(t, client, "j/0000000000000001/0001", "\x00")
	set(t, client, "j/0000000000000002/0000", "\x00")
	add(t, claim(t, log, 0), 1, 2)
	if got := follow(t, log, 0, 2); !slices.Equal(got, added(1, 2)) {
		t.Errorf("got %v", got)
	}
}
