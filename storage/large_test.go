package storage

import (
	"bytes"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"os"
	"slices"
	"testing"
)

// longPayload is every byte, so often that it is the longest.
func longPayload() []byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return bytes.Repeat(every, content.MaxPayload/len(every))
}

// payloads are those of all packets, by sequence.
func payloads(t *testing.T, s *Store) map[uint64][]byte {
	t.Helper()
	ids, _ := scanned(t, s)
	found := make(map[uint64][]byte)
	s.Read(ids, func(i int, rec []byte, damage error) {
		var p content.Packet
		if damage != nil || content.DecodeRecord(rec, &p) != nil {
			t.Errorf("packet %v: %v", ids[i], damage)
		}
		found[ids[i].Seq] = bytes.Clone(p.Payload)
	})
	return found
}

func TestTheLongestPayloadIsReadWhereverItLies(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB are written a few times")
	}
	dir, long := t.TempDir(), longPayload()
	s := openTest(t, dir, Options{MaxPayload: content.MaxPayload, Window: 512 << 20})
	applied(t, s, one(1, content.Packet{Payload: []byte("short")}))
	applied(t, s, one(2, content.Packet{Payload: long}))
	check := func(where string, s *Store, want int) {
		t.Helper()
		got := payloads(t, s)
		if len(got) != want || want > 1 && !bytes.Equal(got[2], long) || string(got[1]) != "short" {
			t.Errorf("%s: %d packets, of which the second has %d bytes; want %d packets", where, len(got), len(got[2]), want)
		}
	}
	whole := killed(t, s)
	for _, at := range []int{4096, 5000, 32 << 20, content.MaxPayload} {
		torn := t.TempDir()
		copyFolder(t, whole, torn)
		long := slices.IndexFunc(logFiles(t, torn), func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && info.Size() > content.MaxPayload
		})
		if err := overwrite(logFiles(t, torn)[long], at, make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		forget(t, torn, 1)
		check(fmt.Sprint("torn at ", at), openTest(t, torn, Options{}), 1)
	}
	check("after a kill", openTest(t, whole, Options{}), 2)
	inTables(t, s)
	check("in tables", s, 2)
	var b content.Batch
	b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: 2}, content.Removed{Large: true})
	applied(t, s, &b)
	check("deleted", settled(t, s), 1)
}

func TestASmallDiskKeepsRoomForLongPayloads(t *testing.T) {
	const total, long = 1 << 30, content.MaxPayload
	free := int64(keepWindows*long - 1)
	o := Options{MaxPayload: long, tune: tuning{stat: func(string) (int64, int64, error) { return free, total, nil }}}
	if level := openTest(t, t.TempDir(), o).Space().Level; level != NoPush {
		t.Errorf("one byte less than is kept free: %v, want %v", level, NoPush)
	}
	free++
	if level := openTest(t, t.TempDir(), o).Space().Level; level != Normal {
		t.Errorf("all that is kept free: %v, want %v", level, Normal)
	}
	o.tune.stat = func(string) (int64, int64, error) { return free, total / 2, nil }
	if s, err := Open(t.TempDir(), o); err == nil {
		_ = s.Close()
		t.Error("a disk of 512 MiB takes payloads of 64 MiB")
	}
}
