package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Calls by name, for tests that make several.

func (h *harness) setField(name, field, value string) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error {
		_, err := tx.SetField([]byte(name), []byte(field), []byte(value))
		return err
	})
}

func (h *harness) expireAt(name string, at int64) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error {
		_, err := tx.SetExpiry([]byte(name), at)
		return err
	})
}

func (h *harness) remove(name string) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error {
		_, err := tx.Delete([]byte(name))
		return err
	})
}

func (h *harness) typeOf(name string) (kind broker.Type) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error {
		kind = tx.Type([]byte(name))
		return nil
	})
	return kind
}

func (h *harness) elements(name string) string {
	h.t.Helper()
	return strings.Join(h.list(name), " ")
}

// keysStored counts the heads and fields on disk.
func (h *harness) keysStored() (heads, fields int) {
	_ = h.store.Items(func(v content.ValueID, _ *content.Head, _ *content.Field, _ error) error {
		if v.IsField {
			fields++
		} else {
			heads++
		}
		return nil
	})
	return heads, fields
}

// things makes one of each type, which expire at a moment.
func (h *harness) things(at int64) []string {
	h.t.Helper()
	h.set("small", "v")
	h.set("large", bytesOf(1, 9000))
	h.setField("hash", "small", "v")
	h.setField("hash", "large", bytesOf(2, 9000))
	h.pushEnd("list", broker.Newest, "a", "b")
	names := []string{"small", "large", "hash", "list"}
	for i := range 200 {
		h.pushEnd("long", broker.Newest, fmt.Sprint(i))
	}
	names = append(names, "long")
	for _, name := range names {
		h.expireAt(name, at)
	}
	return names
}

func TestNamesExpireToTheMillisecond(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHarness(t)
		names := h.things(startTime + 100)
		h.now.Store(startTime + 99)
		if restart {
			h.restart()
		}
		for _, name := range names {
			if h.typeOf(name) == broker.TypeNone {
				t.Errorf("%s is gone before its time (restart: %v)", name, restart)
			}
		}
		if h.get("small") != "v" || h.get("large") != bytesOf(1, 9000) {
			t.Error("a string is another one before its time")
		}
		h.now.Store(startTime + 100)
		for _, name := range names {
			if kind := h.typeOf(name); kind != broker.TypeNone {
				t.Errorf("%s is still a %v at its time (restart: %v)", name, kind, restart)
			}
		}
		h.barrier()
		h.pushEnd("list", broker.Newest, "new")
		h.now.Store(startTime + 1000)
		if got := h.elements("list"); got != "new" {
			t.Errorf("a list that was made anew has %q", got)
		}
		h.restart()
		if got := h.elements("list"); got != "new" {
			t.Errorf("a list that was made anew has %q after a restart", got)
		}
		if heads, fields := h.keysStored(); heads+fields > 0 {
			t.Errorf("%d heads and %d fields are left on disk", heads, fields)
		}
		h.b.Close()
	}
}

func TestNamesExpireWhileTheServerIsOff(t *testing.T) {
	h := newHarness(t)
	names := h.things(startTime + 100)
	if err := h.b.Close(); err != nil {
		t.Fatal(err)
	}
	h.now.Store(startTime + 100)
	h.start()
	defer h.close()
	for _, name := range names {
		if kind := h.typeOf(name); kind != broker.TypeNone {
			t.Errorf("%s is still a %v", name, kind)
		}
	}
}

func TestListThatEmptiesNoLongerExpires(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.pushEnd("list", broker.Newest, "old")
	h.expireAt("list", startTime+100)
	h.pop(h.b.Attach(&inbox{}, groups), "list")
	h.pushEnd("list", broker.Newest, "new")
	h.restart()
	h.now.Store(startTime + 200)
	if got := h.elements("list"); got != "new" {
		t.Errorf("the list has %q, want the new element", got)
	}
}

func TestLargeListThatIsDroppedNoLongerExpires(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for i := range 200 {
		h.pushEnd("long", broker.Newest, fmt.Sprint(i))
	}
	h.expireAt("long", startTime+100)
	h.remove("long")
	h.pushEnd("long", broker.Newest, "new")
	h.now.Store(startTime + 200)
	if got := h.elements("long"); got != "new" {
		t.Errorf("the list has %q, want the new element", got)
	}
}

func TestTrimmedListKeepsItsExpiry(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	for i := range 400 {
		h.pushEnd("long", broker.Newest, fmt.Sprint(i))
	}
	h.expireAt("long", startTime+100)
	h.together(func(tx *broker.Tx) error { return tx.Trim([]byte("long"), 0, 2) })
	if got := h.elements("long"); got != "399 398" {
		t.Fatalf("the list has %q", got)
	}
	h.restart()
	h.now.Store(startTime + 100)
	if kind := h.typeOf("long"); kind != broker.TypeNone {
		t.Errorf("the list is still a %v", kind)
	}
}

// closeUnswept closes the machine while a commit is held up. What the batch behind it drops is not
// swept: a closing machine does not.
func (h *harness) closeUnswept() {
	h.t.Helper()
	if err := h.b.Close(); err != nil {
		h.t.Fatalf("close: %v", err)
	}
}

func TestFieldsOfADeletedHashLeaveTheDisk(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHarness(t)
		for i := range 8 {
			h.together(func(tx *broker.Tx) error {
				for j := range 400 {
					if _, err := tx.SetField([]byte("hash"), fmt.Appendf(nil, "%d %d", i, j), []byte("v")); err != nil {
						return err
					}
				}
				return nil
			})
		}
		h.barrier()
		if heads, fields := h.keysStored(); heads != 1 || fields != 3200 {
			t.Fatalf("%d heads and %d fields are on disk, want 1 and 3200", heads, fields)
		}
		h.b.hold(func() { h.set("other", "opens a commit") })
		h.remove("hash")
		h.setField("hash", "new", "v")
		if restart {
			h.closeUnswept()
			if _, fields := h.keysStored(); fields < 1000 {
				t.Errorf("a closing broker left %d fields, want most of them: this tests no start", fields)
			}
			h.start()
		} else {
			h.b.release()
		}
		h.swept()
		if heads, fields := h.keysStored(); heads != 2 || fields != 1 {
			t.Errorf("%d heads and %d fields are on disk, want 2 and 1 (restart: %v)", heads, fields, restart)
		}
		h.restart()
		h.b.Close()
	}
}

func TestFlushIsOneRecord(t *testing.T) {
	for _, crash := range []bool{false, true} {
		h := newHarness(t)
		names := h.things(0)
		h.push("queue", 1, 0, "k", "v")
		r := &inbox{}
		c := h.b.Attach(r, groups)
		h.do(func(tx *broker.Tx) error { return tx.Subscribe(c, []byte("subscribed")) })
		h.b.hold(func() { h.set("other", "opens a commit") })
		h.together(func(tx *broker.Tx) error {
			if err := tx.Flush(true); err != nil {
				return err
			}
			if names, _ := tx.NameCount(0); names != 0 {
				t.Errorf("%d names are left", names)
			}
			return nil
		})
		h.set("small", "new")
		h.pushEnd("list", broker.Newest, "new")
		if crash {
			h.closeUnswept()
			if heads, _ := h.keysStored(); heads < 3 {
				t.Errorf("a closing broker left %d heads: this tests no start", heads)
			}
			h.start()
		} else {
			h.b.release()
			h.do(func(tx *broker.Tx) error { return tx.Ready(c, 1) })
			h.push("subscribed", 1, 0, "k", "v")
			h.barrier()
			if len(r.got) != 1 {
				t.Error("a subscriber has lost its subscription")
			}
		}
		for _, name := range append(names, "queue", "other") {
			if kind := h.typeOf(name); (kind != broker.TypeNone) != (name == "small" || name == "list") {
				t.Errorf("%s is a %v (crash: %v)", name, kind, crash)
			}
		}
		if got := h.get("small") + h.elements("list"); got != "newnew" {
			t.Errorf("what was made after the flush is %q (crash: %v)", got, crash)
		}
		h.swept()
		if heads, fields := h.keysStored(); heads != 1 || fields != 0 || h.store.Flush() != (content.Flush{}) || len(h.store.packets) != 1 {
			t.Errorf("%d heads, %d fields, %d packets and %v are on disk (crash: %v)", heads, fields, len(h.store.packets), h.store.Flush(), crash)
		}
		h.restart()
		h.b.Close()
	}
}

func TestScanGivesWhatStays(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	want := []string{"barrier-free"}
	h.push("barrier-free", 1, 0, "k", "v")
	for i := range 200 {
		h.set(fmt.Sprint("s", i), "v")
		h.pushEnd(fmt.Sprint("l", i), broker.Newest, "v")
		if i%3 == 0 {
			want = append(want, fmt.Sprint("s", i), fmt.Sprint("l", i))
		}
	}
	seen := map[string]bool{}
	i := 0
	for cursor := uint64(0); ; {
		h.together(func(tx *broker.Tx) error {
			cursor = tx.Scan(cursor, 7, func(name []byte, _ broker.Type) { seen[string(name)] = true })
			return nil
		})
		if cursor == 0 {
			break
		}
		for range 6 { // names come and go meanwhile
			if i++; i%3 != 0 && i < 200 {
				h.remove(fmt.Sprint("s", i))
				h.remove(fmt.Sprint("l", i))
			}
			h.set(fmt.Sprint("new", i), "v")
		}
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("a scan did not give %s", name)
		}
	}
}

// watched says whether a change is seen by one who watches the name "n".
func (h *harness) watched(change func()) (broken bool) {
	h.t.Helper()
	c := h.b.Attach(&inbox{}, groups)
	h.together(func(tx *broker.Tx) error { tx.Watch(c, []byte("n")); return nil })
	change()
	h.together(func(tx *broker.Tx) error {
		broken = tx.WatchBroken(c)
		tx.Unwatch(c)
		if tx.WatchBroken(c) {
			h.t.Fatal("a watch that was ended is broken")
		}
		return nil
	})
	return broken
}

func TestWatchSeesAnExpiryThatIsNotCarriedOutYet(t *testing.T) {
	const due = 5000 // far more than go in a turn
	h := newHarness(t)
	defer h.close()
	at := h.now.Load() + 1000
	for i := range due {
		name := fmt.Sprint(i)
		h.set(name, "v")
		h.expireAt(name, at)
	}
	h.set("n", "v")
	h.expireAt("n", at+1)
	if !h.watched(func() { h.now.Add(1001) }) {
		t.Error("the name has expired, and who watches it does not see that")
	}
}

func TestWatchSeesEveryChange(t *testing.T) {
	atomic := func(fn func(tx *broker.Tx) error) func(h *harness) {
		return func(h *harness) { h.together(fn) }
	}
	n := []byte("n")
	list := func(h *harness) { h.pushEnd("n", broker.Newest, "a", "b", "a") }
	text := func(h *harness) { h.set("n", "v") }
	hash := func(h *harness) { h.setField("n", "f", "v"); h.setField("n", "g", "v") }
	bare := func(h *harness) { _ = h.updatePriority("n", "k", 7) }
	nothing := func(*harness) {}
	expires := func(h *harness) { h.set("n", "v"); h.expireAt("n", startTime+5) }
	cases := map[string]struct{ before, change func(h *harness) }{
		"set":              {nothing, text},
		"set again":        {text, text},
		"delete":           {text, func(h *harness) { h.remove("n") }},
		"delete a list":    {list, func(h *harness) { h.remove("n") }},
		"patch":            {text, atomic(func(tx *broker.Tx) error { _, err := tx.PatchString(n, 0, []byte("x")); return err })},
		"set a field":      {hash, func(h *harness) { h.setField("n", "f", "w") }},
		"delete a field":   {hash, atomic(func(tx *broker.Tx) error { _, err := tx.DeleteField(n, []byte("f")); return err })},
		"expire":           {text, func(h *harness) { h.expireAt("n", startTime+50) }},
		"expire a list":    {list, func(h *harness) { h.expireAt("n", startTime+50) }},
		"expired":          {expires, func(h *harness) { h.now.Add(5) }},
		"rename from":      {text, atomic(func(tx *broker.Tx) error { _, err := tx.Rename(n, []byte("m")); return err })},
		"rename to":        {func(h *harness) { h.set("m", "v") }, atomic(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("m"), n); return err })},
		"rename a list":    {list, atomic(func(tx *broker.Tx) error { _, err := tx.Rename(n, []byte("m")); return err })},
		"rename to a list": {func(h *harness) { h.pushEnd("m", broker.Newest, "v") }, atomic(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("m"), n); return err })},
		"flush":            {text, atomic(func(tx *broker.Tx) error { return tx.Flush(true) })},
		"flush a list":     {list, atomic(func(tx *broker.Tx) error { return tx.Flush(true) })},
		"push":             {nothing, func(h *harness) { h.push("n", 1, 0, "k", "v") }},
		"push at an end":   {list, list},
		"pop":              {list, func(h *harness) { h.pop(h.b.Attach(&inbox{}, groups), "n") }},
		"set an element":   {list, atomic(func(tx *broker.Tx) error { _, err := tx.SetAt(n, 0, []byte("x")); return err })},
		"insert":           {list, atomic(func(tx *broker.Tx) error { _, err := tx.InsertAt(n, 1, []byte("x")); return err })},
		"remove by value":  {list, atomic(func(tx *broker.Tx) error { _, err := tx.RemoveValue(n, []byte("a"), broker.Newest, 1); return err })},
		"trim":             {list, atomic(func(tx *broker.Tx) error { return tx.Trim(n, 0, 1) })},
		"priority":         {bare, func(h *harness) { _ = h.updatePriority("n", "k", 9) }},
		"packet expired":   {func(h *harness) { h.push("n", 1, 5e6, "k", "v") }, func(h *harness) { h.now.Add(5) }},
		"delivery": {func(h *harness) {
			c := h.b.Attach(&inbox{}, groups)
			h.do(func(tx *broker.Tx) error { return tx.Subscribe(c, n) })
			h.do(func(tx *broker.Tx) error { return tx.Ready(c, 1) })
		}, func(h *harness) { h.push("n", 1, 0, "k", "v") }},
		"move from": {list, func(h *harness) {
			h.together(func(tx *broker.Tx) error {
				_, err := replyMoved(h.b.Attach(&inbox{}, groups))(tx.MoveEnd(n, broker.Oldest, []byte("m"), broker.Newest))
				return err
			})
		}},
	}
	for name, c := range cases {
		h := newHarness(t)
		c.before(h)
		if !h.watched(func() { c.change(h) }) {
			t.Errorf("%s is not seen", name)
		}
		h.b.Close()
	}
	quiet := map[string]struct{ before, change func(h *harness) }{
		"nothing":        {text, nothing},
		"another name":   {text, func(h *harness) { h.set("m", "v") }},
		"get":            {text, func(h *harness) { h.get("n") }},
		"persist":        {text, func(h *harness) { h.expireAt("n", 0) }},
		"delete of none": {nothing, func(h *harness) { h.remove("n") }},
		"flush of none":  {nothing, atomic(func(tx *broker.Tx) error { return tx.Flush(true) })},
		"empty pop":      {nothing, func(h *harness) { h.pop(h.b.Attach(&inbox{}, groups), "n") }},
	}
	for name, c := range quiet {
		h := newHarness(t)
		c.before(h)
		if h.watched(func() { c.change(h) }) {
			t.Errorf("%s counts as a change", name)
		}
		h.b.Close()
	}
}

func TestNamesThatNobodyAsksForExpireToo(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.things(startTime + 20)
	h.barrier()
	h.now.Add(20)
	h.comesTrue(func() bool {
		heads, fields := h.keysStored()
		return heads+fields+len(h.store.packets) == 0
	})
}

func TestHashThatIsSweptLaterIsCountedOnce(t *testing.T) {
	dir, h := t.TempDir(), &harness{t: t}
	h.now.Store(startTime)
	start := func() *storage.Store {
		store, err := storage.Open(dir, storage.Options{Limits: smallBatches})
		if err != nil {
			t.Fatal(err)
		}
		state, err := recovery.Restore(store, recovery.Options{Now: startTime})
		if err != nil {
			t.Fatal(err)
		}
		h.b = newDriver(store, state, broker.Options{}, h.clocks)
		return store
	}
	store := start()
	h.setField("hash", "f", "v")
	h.barrier()
	h.together(func(tx *broker.Tx) error {
		for i := range smallBatches.MaxOps / 4 { // then the batch has no room for sweeping
			if err := tx.SetString(fmt.Append(nil, i), []byte("v"), 0); err != nil {
				return err
			}
		}
		_, err := tx.Delete([]byte("hash"))
		return err
	})
	h.swept()
	if err := errors.Join(h.b.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	store = start() // Restore holds what is there against what was counted
	if err := errors.Join(h.b.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}
