package cell

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// flip changes the value of a key in the database of an etcd that does not run.
func flip(t *testing.T, c MemberConfig, key string) {
	t.Helper()
	db := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(c.Dir, "member", "snap", "db"))
	all := make(map[string][]byte)
	tx := db.BatchTx()
	tx.LockOutsideApply()
	err := tx.UnsafeForEach(schema.Key, func(at, b []byte) error {
		if bytes.Contains(b, []byte(key)) {
			all[string(at)] = bytes.Clone(b)
		}
		return nil
	})
	for at, b := range all {
		b[len(b)-1] ^= 1 // the value comes last
		tx.UnsafePut(schema.Key, []byte(at), b)
	}
	tx.Unlock()
	db.ForceCommit()
	if err = errors.Join(err, db.Close()); err != nil || len(all) != 1 {
		t.Fatalf("%d values are flipped: %v", len(all), err)
	}
}

func TestAMemberWithOtherKeysEndsAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	a.check = time.Second
	b.check, c.check = a.check, a.check
	ma := founded(t, a)
	mb, mc := votes(t, ma, b), votes(t, ma, c)
	putKey(t, ma, "bit")
	for countKeys(t, mb, "bit") != 1 { // it may be behind
		time.Sleep(pause)
	}
	mb.Close()
	flip(t, b, "bit")
	mb = run(t)(Start(t.Context(), b))
	runs := true
	for i := 0; mb.Err() == nil; i++ {
		r, err := ma.Client().Put(t.Context(), fmt.Sprint("k", i), "x")
		if err == nil {
			_, _ = ma.Client().Compact(t.Context(), r.Header.Revision)
		}
		for _, m := range []*Member{ma, mb, mc} {
			_ = m.Judge(t.Context(), func(p Peer) bool {
				if p.Name != "b" {
					t.Errorf("node %s is taken for the one that differs", p.Name)
				}
				return runs
			})
		}
		time.Sleep(500 * time.Millisecond) // each member keeps its sums of the last ten compactions
	}
	if err := mb.Err(); !errors.Is(err, ErrDiffers) || !errors.Is(err, ErrDamaged) {
		t.Fatalf("it ends with %v", err)
	}
	mb.Close()
	if _, err := ma.Client().Put(t.Context(), "k", "x"); err == nil {
		t.Error("a key is put while one that differs runs")
	}
	runs = false
	if err := ma.Judge(t.Context(), func(Peer) bool { return runs }); err != nil {
		t.Error(err)
	}
	putKey(t, mc, "k")
}
