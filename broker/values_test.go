package broker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const (
	tooLong = 20_000 // bytes of a value that the cache of the harness does not take
	cached  = 5_000  // and of one that it does
)

// onlyOnDisk is a broker whose string "n" and field "f" of the hash "h" have values of n bytes that
// neither the cache nor a batch has.
func onlyOnDisk(t *testing.T, n int) (h *harness, text, field string) {
	h = newHarness(t)
	text, field = bytesOf(1, n), bytesOf(2, n)
	h.set("n", text)
	h.setField("h", "f", field)
	h.restart()
	return h, text, field
}

// batchOf runs calls that all come into one batch, and returns the replies to c.
func (h *harness) batchOf(calls ...func(tx *broker.Tx, c *broker.Conn) error) []string {
	h.t.Helper()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.together(func(tx *broker.Tx) error {
		for _, call := range calls {
			if err := call(tx, c); err != nil {
				return err
			}
		}
		return nil
	})
	h.barrier()
	var got []string
	for _, reply := range r.got {
		got = append(got, strings.Join(reply, ""))
	}
	return got
}

// send replies to c with bytes [from, to) of a value, as far as it has them.
func send(tx *broker.Tx, c *broker.Conn, v broker.Value, from, to int) error {
	value, err := tx.Bytes(v)
	if to = min(to, len(value)); err == nil {
		boxOf(c).say(string(value[min(from, to):to]))
	}
	return err
}

// sendPart is send for a string.
func sendPart(tx *broker.Tx, c *broker.Conn, name string, from, to int) error {
	v, _, err := tx.String([]byte(name))
	if err == nil {
		err = send(tx, c, v, from, to)
	}
	return err
}

// keyCall is one call of a batch.
type keyCall = func(tx *broker.Tx, c *broker.Conn) error

func sendString(name string, from, to int) keyCall {
	return func(tx *broker.Tx, c *broker.Conn) error { return sendPart(tx, c, name, from, to) }
}

func sendField(name, field string) keyCall {
	return func(tx *broker.Tx, c *broker.Conn) error {
		v, _, err := tx.Field([]byte(name), []byte(field))
		if err == nil {
			err = send(tx, c, v, 0, v.Size)
		}
		return err
	}
}

func patchString(name string, at int, data string) keyCall {
	return func(tx *broker.Tx, _ *broker.Conn) error {
		_, err := tx.PatchString([]byte(name), at, []byte(data))
		return err
	}
}

func setString(name, value string) keyCall {
	return func(tx *broker.Tx, _ *broker.Conn) error {
		return tx.SetString([]byte(name), []byte(value), 0)
	}
}

func remove(name string) keyCall {
	return func(tx *broker.Tx, _ *broker.Conn) error {
		_, err := tx.Delete([]byte(name))
		return err
	}
}

func rename(from, to string) keyCall {
	return func(tx *broker.Tx, _ *broker.Conn) error {
		_, err := tx.Rename([]byte(from), []byte(to))
		return err
	}
}

func expire(name string, at int64) keyCall {
	return func(tx *broker.Tx, _ *broker.Conn) error {
		_, err := tx.SetExpiry([]byte(name), at)
		return err
	}
}

func TestLargeValuesComeFromTheDiskInTheOrderOfTheCalls(t *testing.T) {
	v := bytesOf(1, tooLong)
	patched := v[:7] + "patch" + v[12:]
	grown := patched + "end"
	f := bytesOf(2, tooLong)
	cases := map[string]struct {
		calls []keyCall
		want  []string          // the replies
		after map[string]string // the strings afterwards, and after a restart
	}{
		"read": {[]keyCall{sendString("n", 0, tooLong), sendField("h", "f")}, []string{v, f}, map[string]string{"n": v}},
		"part": {[]keyCall{sendString("n", 3, 9), sendString("n", 5, 5), sendString("n", tooLong-1, 1<<20)},
			[]string{v[3:9], "", v[tooLong-1:]}, map[string]string{"n": v}},
		"patch": {[]keyCall{patchString("n", 7, "patch")}, nil, map[string]string{"n": patched}},
		"gap":   {[]keyCall{patchString("n", tooLong+2, "x")}, nil, map[string]string{"n": v + "\x00\x00x"}},
		"read, patch, read, patch, read": {
			[]keyCall{sendString("n", 0, 20), patchString("n", 7, "patch"), sendString("n", 0, 20), patchString("n", tooLong, "end"), sendString("n", tooLong-2, tooLong+3)},
			[]string{v[:20], patched[:20], grown[tooLong-2:]}, map[string]string{"n": grown}},
		"patch, read, delete": {[]keyCall{patchString("n", 7, "patch"), sendString("n", 0, tooLong), remove("n")}, []string{patched}, map[string]string{"n": ""}},
		"read, set, read":     {[]keyCall{sendString("n", 0, 9), setString("n", "new"), sendString("n", 0, 9)}, []string{v[:9], "new"}, map[string]string{"n": "new"}},
		"patch, set large, patch": {[]keyCall{patchString("n", 7, "patch"), setString("n", f), patchString("n", 0, "!!"), sendString("n", 0, 4)},
			[]string{"!!" + f[2:4]}, map[string]string{"n": "!!" + f[2:]}},
		"rename, patch":      {[]keyCall{rename("n", "m"), patchString("m", 7, "patch"), sendString("m", 0, tooLong)}, []string{patched}, map[string]string{"n": "", "m": patched}},
		"patch, rename":      {[]keyCall{patchString("n", 7, "patch"), rename("n", "m")}, nil, map[string]string{"n": "", "m": patched}},
		"rename":             {[]keyCall{rename("n", "m")}, nil, map[string]string{"n": "", "m": v}},
		"patch, expire":      {[]keyCall{patchString("n", 7, "patch"), expire("n", startTime+9)}, nil, map[string]string{"n": patched}},
		"expire, persist":    {[]keyCall{expire("n", startTime+9), expire("n", 0)}, nil, map[string]string{"n": v}},
		"patch, delete, set": {[]keyCall{patchString("n", 7, "patch"), remove("n"), setString("n", "new"), sendString("n", 0, 9)}, []string{"new"}, map[string]string{"n": "new"}},
	}
	for name, c := range cases {
		h, _, _ := onlyOnDisk(t, tooLong)
		if got := h.batchOf(c.calls...); !slices.Equal(got, c.want) {
			t.Errorf("%s: the replies are %.20q, want %.20q", name, got, c.want)
		}
		for range 2 {
			for name2, want := range c.after {
				if got := h.get(name2); got != want {
					t.Errorf("%s: %s has %d bytes %.20q, want %d bytes %.20q", name, name2, len(got), got, len(want), want)
				}
			}
			h.restart()
		}
		h.b.Close()
	}
}

// countingStore counts the values that it is asked for.
type countingStore struct {
	*memStore
	values int
}

func (s *countingStore) ReadValues(ids []content.ValueID, fn func(int, []byte, error)) {
	s.values += len(ids)
	s.memStore.ReadValues(ids, fn)
}

// counting starts h anew on a store that counts reads of values.
func (h *harness) counting() *countingStore {
	h.t.Helper()
	s := &countingStore{memStore: h.store}
	h.b = restarted(h, s)
	return s
}

func TestRecentLargeValuesAreNotReadFromTheDisk(t *testing.T) {
	h, text, field := onlyOnDisk(t, cached)
	s := h.counting()
	defer h.close()
	read := func(want int) {
		t.Helper()
		if got := h.batchOf(sendString("n", 0, cached), sendField("h", "f")); !slices.Equal(got, []string{text, field}) {
			t.Errorf("got %.20q", got)
		}
		if s.values != want {
			t.Errorf("%d values were read, want %d", s.values, want)
		}
	}
	read(2)
	read(2)
	h.batchOf(expire("n", startTime+99), rename("n", "m"), rename("m", "n"))
	read(2)
	text = "new" + text[3:]
	h.batchOf(patchString("n", 0, "new"))
	read(2)
}

// damagedStore cuts all large values.
type damagedStore struct{ *memStore }

func (s *damagedStore) ReadValues(ids []content.ValueID, fn func(int, []byte, error)) {
	s.memStore.ReadValues(ids, func(i int, value []byte, damage error) { fn(i, value[:5], damage) })
}

func TestADamagedValueIsAnErrorOfTheCall(t *testing.T) {
	h, _, _ := onlyOnDisk(t, tooLong)
	h.b = restarted(h, &damagedStore{h.store})
	defer h.close()
	c := h.b.Attach(&inbox{}, groups)
	for name, call := range map[string]keyCall{
		"read": sendString("n", 0, 9), "read a field": sendField("h", "f"),
		"patch": patchString("n", 2, "patch"),
	} {
		h.do(func(tx *broker.Tx) error {
			before := tx.Everything()
			err := tx.Atomic(func() error { return call(tx, c) })
			if !errors.Is(err, broker.ErrUnreadable) || !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), "has 5 bytes") {
				t.Errorf("%s: got %v", name, err)
			}
			if after := tx.Everything(); after != before {
				t.Errorf("%s changes something", name)
			}
			return nil
		})
	}
	h.set("n", "whole")
	if got := h.get("n"); got != "whole" {
		t.Errorf("the new value is %q", got)
	}
}

func TestWhatIsOnItsWayToTheDiskIsReadThere(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.counting()
	text, r := bytesOf(1, tooLong), &inbox{}
	c := h.b.Attach(r, groups)
	h.b.hold(func() {
		h.together(func(tx *broker.Tx) error {
			err := tx.SetString([]byte("n"), []byte(text), 0)
			return errors.Join(err, pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte(text)})))
		})
	})
	h.together(func(tx *broker.Tx) error {
		return errors.Join(sendPart(tx, c, "n", 0, tooLong), reply(c)(tx.Pop([]byte("q"), groups)))
	})
	h.b.release()
	h.wantReplies(r, text, text)
}

// restarted closes h's broker and starts another one on a store.
func restarted(h *harness, s driven) *driver {
	h.t.Helper()
	if err := h.b.Close(); err != nil {
		h.t.Fatalf("close: %v", err)
	}
	state, err := recovery.Restore(h.store, recovery.Options{Now: h.now.Load()})
	if err != nil {
		h.t.Fatalf("recovery: %v", err)
	}
	return newDriver(s, state, broker.Options{Cache: 1 << 16}, h.clocks)
}
