package cell

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestReadsEndWithAnErrorWhenTheMemberStopsUnderThem(t *testing.T) {
	t.Parallel()
	for range 3 {
		a, _, _ := trio(t)
		m := founded(t, a)
		log := NewLog(Config{Client: m.Client(), Node: "a"})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var reads sync.WaitGroup
		started := make(chan struct{}, 16)
		for i := range cap(started) {
			reads.Go(func() {
				var err error
				for n := 0; err == nil; n++ {
					if n == 1 {
						started <- struct{}{}
					}
					if i%2 == 0 {
						_, err = log.read(ctx, local)
					} else {
						_, err = m.Client().Get(ctx, cellKey)
					}
				}
				if ctx.Err() != nil {
					t.Error("a read of an etcd that has stopped still succeeds, or waits")
				}
			})
		}
		for range cap(started) {
			<-started
		}
		m.etcd.Server.Stop() // as etcd does by itself when the cell removes the member
		m.Close()
		reads.Wait()
	}
}

func TestAReadOfAnEtcdThatHasFailedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	m := founded(t, a)
	held := m.etcd.Server.Backend().ReadTx().(sync.Locker) // as it is by a commit that fails, for ever
	held.Lock()
	defer held.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := m.Client().Get(ctx, cellKey, local...); err == nil {
		t.Error("it was answered")
	}
}
