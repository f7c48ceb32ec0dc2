package broker_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// set makes name that of a string.
func (h *harness) set(name, value string) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error { return tx.SetString([]byte(name), []byte(value), 0) })
}

// get returns a string as a client gets it, and what it is without a client.
func (h *harness) get(name string) string {
	h.t.Helper()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.together(func(tx *broker.Tx) error { return sendPart(tx, c, name, 0, 1<<20) })
	h.barrier()
	return strings.Join(r.got[0], "")
}

// bytesOf is a value of n bytes that is unlike those of other seeds.
func bytesOf(seed byte, n int) string {
	return string(bytes.Repeat([]byte{'a' + seed%26, '0' + seed/26}, n/2+1)[:n])
}

func TestStringsAreKeptOverARestart(t *testing.T) {
	for _, size := range []int{0, 1, 1024, 1025, 60_000} {
		h := newHarness(t)
		h.set("old", bytesOf(1, size))
		h.set("name", bytesOf(1, 70_000-size))
		h.set("name", bytesOf(2, size))
		if got := h.get("name"); got != bytesOf(2, size) {
			t.Errorf("%d bytes: got %d bytes %.20q", size, len(got), got)
		}
		h.restart()
		for name, want := range map[string]string{"old": bytesOf(1, size), "name": bytesOf(2, size)} {
			if got := h.get(name); got != want {
				t.Errorf("%d bytes: %s after a restart has %d bytes %.20q", size, name, len(got), got)
			}
		}
		h.b.Close()
	}
}

func TestNameHasOneType(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.set("string", "v")
	h.together(func(tx *broker.Tx) error {
		_, err := tx.SetField([]byte("hash"), []byte("f"), []byte("v"))
		return err
	})
	h.push("list", 1, 0, "k", "v")
	calls := map[string]func(tx *broker.Tx, name []byte) error{
		"push": func(tx *broker.Tx, name []byte) error {
			return pushError(tx.Push(broker.PushRequest{Queue: name, Priority: 1, Key: []byte("k"), Payload: []byte("v")}))
		},
		"push at an end": func(tx *broker.Tx, name []byte) error {
			_, err := tx.PushEnd(name, broker.Newest, [][]byte{[]byte("v")})
			return err
		},
		"patch": func(tx *broker.Tx, name []byte) error {
			_, err := tx.PatchString(name, 0, []byte("v"))
			return err
		},
		"get": func(tx *broker.Tx, name []byte) error {
			_, _, err := tx.String(name)
			return err
		},
		"set a field": func(tx *broker.Tx, name []byte) error {
			_, err := tx.SetField(name, []byte("f"), []byte("v"))
			return err
		},
		"length": func(tx *broker.Tx, name []byte) error {
			_, err := tx.HashLen(name)
			return err
		},
	}
	types := map[string]string{
		"push": "list", "push at an end": "list", "patch": "string", "get": "string", "set a field": "hash", "length": "hash",
	}
	for call, fn := range calls {
		for _, name := range []string{"string", "hash", "list"} {
			h.do(func(tx *broker.Tx) error {
				err := tx.Atomic(func() error { return fn(tx, []byte(name)) })
				if want := types[call] != name; errors.Is(err, broker.ErrWrongType) != want || err != nil && !want {
					t.Errorf("%s of the %s: %v", call, name, err)
				}
				if got := tx.Type([]byte(name)).String(); got != name {
					t.Errorf("%s is a %s after %s", name, got, call)
				}
				return nil
			})
		}
	}
}
