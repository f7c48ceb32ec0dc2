package broker_test

import (
	"errors"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// in makes calls in a database.
func (h *harness) in(db uint8, fn func(tx *broker.Tx) error) {
	h.t.Helper()
	c := h.b.Attach(&inbox{}, groups)
	h.together(func(tx *broker.Tx) error {
		tx.Select(c, db)
		return fn(tx)
	})
}

func TestAFlushOfOneDatabaseLeavesTheOthers(t *testing.T) {
	for _, crash := range []bool{false, true} {
		h := newHarness(t)
		for db := range uint8(3) {
			h.in(db, func(tx *broker.Tx) error {
				_, err := tx.SetField([]byte("hash"), []byte("f"), []byte("v"))
				_, more := tx.PushEnd([]byte("list"), broker.Oldest, [][]byte{[]byte("v")})
				return errors.Join(err, more, tx.SetString([]byte("text"), []byte("v"), startTime+1000), tryChange(tx, "settings", pauseIn))
			})
		}
		h.b.hold(func() { h.set("other", "opens a commit") })
		h.in(1, func(tx *broker.Tx) error { return tx.Flush(false) })
		h.in(1, func(tx *broker.Tx) error { return tx.SetString([]byte("new"), []byte("v"), 0) })
		if crash {
			h.closeUnswept()
			h.start()
		} else {
			h.b.release()
		}
		for range 2 {
			h.swept()
			h.together(func(tx *broker.Tx) error {
				for db, want := range [][2]int{{5, 1}, {1, 0}, {4, 1}, {0, 0}} {
					if names, expiring := tx.NameCount(uint8(db)); [2]int{names, expiring} != want {
						t.Errorf("database %d has %d names, of which %d expire, want %d (crash: %v)", db, names, expiring, want, crash)
					}
				}
				return tx.CheckNames()
			})
			if heads, fields := h.keysStored(); heads != 6 || fields != 2 || h.store.Flush() != (content.Flush{}) {
				t.Errorf("%d heads and %d fields are on disk, flush record %v (crash: %v)", heads, fields, h.store.Flush(), crash)
			}
			h.restart()
		}
		h.b.Close()
	}
}

func TestAFlushBreaksTheWatchesOfWhatItDeletes(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	watches := func(db uint8, name string) *broker.Conn {
		c := h.b.Attach(&inbox{}, groups)
		h.together(func(tx *broker.Tx) error {
			tx.Select(c, db)
			tx.Watch(c, []byte(name))
			return nil
		})
		return c
	}
	h.set("text", "v")
	h.pushEnd("list", broker.Oldest, "v")
	broken := map[string]*broker.Conn{"string": watches(0, "text"), "list": watches(0, "list")}
	kept := map[string]*broker.Conn{"no name": watches(0, "none"), "another database": watches(1, "text")}
	h.in(1, func(tx *broker.Tx) error { return tx.Flush(false) })
	h.together(func(tx *broker.Tx) error {
		for what, c := range broken {
			if tx.WatchBroken(c) {
				t.Errorf("the watch of a %s is broken by a flush of another database", what)
			}
		}
		return tx.Flush(true)
	})
	h.together(func(tx *broker.Tx) error {
		for what, c := range broken {
			if !tx.WatchBroken(c) {
				t.Errorf("the watch of a %s is not broken", what)
			}
		}
		for what, c := range kept {
			if tx.WatchBroken(c) {
				t.Errorf("the watch of %s is broken", what)
			}
		}
		return nil
	})
}

func TestANameThatASubscriberWaitsForMayBecomeAStringAndAListAgain(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.do(func(tx *broker.Tx) error { return errors.Join(tx.Subscribe(c, []byte("name")), tx.Ready(c, 1)) })
	h.set("name", "text")
	h.expireAt("name", startTime+10)
	h.now.Add(11)
	h.push("name", 1, 0, "k", "v")
	h.barrier()
	wantGot(t, "the subscriber", r, "[[v]]")
	h.together(func(tx *broker.Tx) error { return tx.CheckNames() })
}
