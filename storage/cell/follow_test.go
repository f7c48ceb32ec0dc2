package cell_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestFollowersGetEachBatchOnceInOrderWhileAppendsGoOn(t *testing.T) {
	_, log := alone(t)
	term := claim(t, log, 0)
	const n = 300
	var followers sync.WaitGroup
	begin := func(after uint64) {
		followers.Go(func() {
			got, err := followed(t.Context(), log, after, n-int(after))
			if err != nil || !slices.Equal(got, added(after+1, n)) {
				t.Errorf("behind %d: got %d batches, %v: %.200v", after, len(got), err, got)
			}
		})
	}
	begin(0)
	for first := uint64(1); first <= n; first += 100 {
		add(t, term, first, first+99)
		begin(first + 49)
	}
	followers.Wait()
}

func TestAContentOfManyPartsIsWhole(t *testing.T) {
	client, log := alone(t)
	term := claim(t, log, 0)
	const piece = 256<<10 - 9
	var want []batch
	for i, size := range []int{0, 1, piece - 1, piece, piece + 1, 1 << 20, 33*piece + 5, 7} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		want = append(want, batch{uint64(i + 1), string(b)})
		if err := term.Append(uint64(i+1), slices.Collect(slices.Chunk(b, 100_000))); err != nil {
			t.Fatal(err)
		}
	}
	if got := follow(t, log, 0, len(want)); !slices.Equal(got, want) {
		for i, b := range got {
			t.Errorf("batch %d is %d, has %d bytes, as appended: %t", i+1, b.number, len(b.content), b == want[i])
		}
	}
	r, err := client.Get(t.Context(), "j/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		if len(kv.Value) > 256<<10 {
			t.Errorf("part %s has %d bytes, at most 256 KiB are wanted", kv.Key, len(kv.Value))
		}
	}
}

func TestADamagedLogIsNotPassedOver(t *testing.T) {
	client, log := alone(t)
	large := []byte(strings.Repeat("x", 300<<10))
	const last, part = "j/0000000000000005/0000", "j/0000000000000003/0000"
	for name, c := range map[string]struct {
		damage func()
		whole  int // batches that are handed over
	}{
		"a batch is gone":           {func() { del(t, client, "j/0000000000000002/0000") }, 1},
		"a part is gone":            {func() { del(t, client, part) }, 2},
		"the last part is gone":     {func() { del(t, client, "j/0000000000000003/0001") }, 2},
		"the last batch is gone":    {func() { del(t, client, last) }, 4},
		"a byte is another":         {func() { set(t, client, part, strings.Replace(get(t, client, part), "xx", "xy", 1)) }, 2},
		"a value is short":          {func() { set(t, client, part, "\x00") }, 2},
		"a batch is another's":      {func() { set(t, client, last, get(t, client, "j/0000000000000004/0000")) }, 4},
		"head is no head":           {func() { set(t, client, "head", "5") }, 0},
		"cut is no batch":           {func() { set(t, client, "cut", "a") }, 0},
		"a key is between":          {func() { set(t, client, "j/0000000000000002/0001", "") }, 2},
		"head has no content of it": {func() { set(t, client, "head", `{"batch":6}`) }, 5},
	} {
		term := claim(t, log, 0)
		add(t, term, 1, 2)
		if err := term.Append(3, [][]byte{large}); err != nil {
			t.Fatal(err)
		}
		add(t, term, 4, 5)
		c.damage()
		got, err := followed(t.Context(), log, 0, 6)
		if !errors.Is(err, cell.ErrDamaged) || len(got) != c.whole {
			t.Errorf("%s: %d batches were handed over, %v; want %d and ErrDamaged", name, len(got), err, c.whole)
		}
		empty(t, client, term)
	}
}

func TestWhatIsNotDecidedIsNotHandedOver(t *testing.T) {
	client, log := alone(t)
	term := claim(t, log, 0)
	add(t, term, 1, 1)
	set(t, client, "j/0000000000000002/0000", get(t, client, "j/0000000000000001/0000"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []batch
	err := log.Follow(ctx, 0, func(number uint64, content []byte) error {
		if got = append(got, batch{number, string(content)}); number == 1 {
			add(t, term, 2, 2)
		} else {
			cancel()
		}
		return nil
	})
	if want := added(1, 2); !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestFollowEndsWithTheErrorOfItsFunction(t *testing.T) {
	_, log := alone(t)
	add(t, claim(t, log, 0), 1, 2)
	for _, want := range []error{errors.New("no room"), context.DeadlineExceeded} {
		calls := 0
		err := log.Follow(t.Context(), 0, func(uint64, []byte) error {
			calls++
			return want
		})
		if !errors.Is(err, want) || calls != 1 {
			t.Errorf("error %v, want %v; %d calls, want 1", err, want, calls)
		}
	}
}
