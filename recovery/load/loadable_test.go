package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestWhatLoadWouldRefuseIsNotDumpedAndSalvagedSoThatItIsLoaded(t *testing.T) {
	if testing.Short() {
		t.Skip("folders are loaded one after the other")
	}
	const packets = 2100
	base := recoverytest.InFolder(t, recoverytest.Many(packets))
	put := func(ids ...content.PacketID) func(b *content.Batch) {
		return func(b *content.Batch) {
			for _, id := range ids {
				b.Put(id, &content.Packet{Payload: []byte("put")})
			}
		}
	}
	for name, c := range map[string]struct {
		harm  func(b *content.Batch)
		plain string // the dump's error
		say   string // findings and packets left out of a salvage
		kept  int64  // packets of it
	}{
		"sequence above the marks": {put(content.PacketID{Queue: 2, Priority: 9, Seq: 1<<63 + 5000}),
			"packet 2/9/9223372036854780808: the packet has the sequence 9223372036854780808: expected one between", "the dump has wider marks", packets + 1},
		"sequences below the marks": {put(content.PacketID{Queue: 2, Priority: 9, Seq: 1<<63 - 1}, content.PacketID{Queue: 3, Priority: 9, Seq: 1<<63 - 70}),
			"expected one between", "sequences are between 9223372036854775737 and", packets + 2},
		"sequence that no store gives": {put(content.PacketID{Queue: 2, Priority: 9, Seq: 0}),
			"packet 2/9/0: the packet has the sequence 0", "packet 2/9/0: it is left out: the packet has the sequence 0", packets},
		"packet of no possible queue": {put(content.PacketID{Queue: 1<<32 - 1, Priority: 9, Seq: 1 << 63}),
			"belongs to a queue without a definition", "has the id 4294967295: expected 1 to 7", packets},
		"one name for two queues": {func(b *content.Batch) { b.PutQueue(content.Queue{ID: 3, Name: []byte("queue 2")}) },
			`queue 3: two queues have the name "queue 2"`, `queue 3: it has the name "queue 2", and so has another queue: it is dumped as "lost-queue-3"`, packets},
		"one name for three, and a lost queue of that name": {
			func(b *content.Batch) {
				for id, name := range map[uint32]string{3: "queue 2", 4: "queue 2", 5: "lost-queue-3"} {
					b.PutQueue(content.Queue{ID: id, Name: []byte(name)})
				}
				b.DeleteQueue(6)
			},
			"two queues have the name", `it is dumped as "lost-queue-3."`, packets,
		},
		"queue beyond the marks": {
			func(b *content.Batch) { b.PutQueue(content.Queue{ID: 80, Name: []byte("x")}) },
			"has the id 80: expected 1 to 7", "", packets,
		},
		"queue of no possible number": {
			func(b *content.Batch) { b.PutQueue(content.Queue{ID: 1<<32 - 1, Name: []byte("x")}) },
			"has the id 4294967295: expected 1 to 7", "has the id 4294967295: expected 1 to 7", packets,
		},
		"one identity for two packets": {
			func(b *content.Batch) {
				b.Put(content.PacketID{Queue: 7, Priority: 30, Seq: 1<<63 + 5000}, &content.Packet{Identity: 1 << 63})
				b.PutDelivery(&content.Delivery{Identity: 1 << 63, State: content.Dead}, 0)
				b.SetMarks(content.Marks{NextSeq: 1<<63 + 6000, LowSeq: 1<<63 - 1, NextQueue: 8})
			},
			"have the identity 9223372036854775808", "have the identity 9223372036854775808: one of them loses its delivery state", packets + 1,
		},
		"one identity for two packets, first the one that did not give it": {
			func(b *content.Batch) {
				b.Put(content.PacketID{Queue: 1, Priority: 0, Seq: 1<<63 + 5000}, &content.Packet{Identity: 1<<63 + 6})
				b.PutDelivery(&content.Delivery{Identity: 1<<63 + 6, State: content.Dead}, 0)
				b.SetMarks(content.Marks{NextSeq: 1<<63 + 6000, LowSeq: 1<<63 - 1, NextQueue: 8})
			},
			"have the identity 9223372036854775814", "have the identity 9223372036854775814: one of them loses its delivery state", packets + 1,
		},
		"key too long": {
			func(b *content.Batch) {
				b.Put(content.PacketID{Queue: 2, Priority: 9, Seq: 1<<63 + 5000}, &content.Packet{Key: make([]byte, 1<<16)})
				b.SetMarks(content.Marks{NextSeq: 1<<63 + 6000, LowSeq: 1<<63 - 1, NextQueue: 8})
			},
			`field "key" has 65536 bytes`, `field "key" has 65536 bytes`, packets,
		},
		"unique id too long": {
			func(b *content.Batch) {
				b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 2, Identity: 1<<63 + 1}, ID: make([]byte, 256)})
			},
			"has an id of 256 bytes", "has an id of 256 bytes", packets,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recoverytest.CopyOf(t, base)
			recoverytest.Tamper(t, dir, c.harm)
			view, err := storage.OpenView(dir, storage.ViewOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []dump.Options{{Now: recoverytest.Later}, {Now: recoverytest.Later, Limit: 2 * packets}} {
				if _, err := dump.Dump(view, io.Discard, o); !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), c.plain) {
					t.Errorf("a plain dump with limit %d: %v, want %q", o.Limit, err, c.plain)
				}
			}
			_ = view.Close()
			if view, err = storage.OpenView(dir, storage.ViewOptions{Tolerant: true}); err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			text, report := dumpOf(t, view, dump.Options{Salvage: true})
			if said := fmt.Sprint(report.Findings); report.Packets != c.kept || !strings.Contains(said, c.say) {
				t.Errorf("salvage: %d packets, said %s; want %d and %q", report.Packets, said, c.kept, c.say)
			}
			to := t.TempDir()
			if loaded := load(t, to, text, Options{}); loaded.Packets != c.kept {
				t.Errorf("%d packets can be loaded of %d", loaded.Packets, c.kept)
			}
			if report := verified(t, to); !report.Sound() {
				t.Errorf("what was loaded: %v", report.Findings)
			}
		})
	}
}

func TestLimitedDumpIsOnlyRefusedForPacketsThatItHolds(t *testing.T) {
	s := recoverytest.Many(3 * 1024)
	last := s.Stored[len(s.Stored)-1].ID
	s.Put(last.Queue, last.Priority+2, 1<<63-5, content.Packet{}) // outside of the marks
	for limit, want := range map[int64]string{100: "", 3 * 1024: "", 3*1024 + 1: "expected one between"} {
		var out bytes.Buffer
		_, err := dump.Dump(s, &out, dump.Options{Now: recoverytest.Later, Limit: limit})
		if want == "" && err == nil {
			load(t, t.TempDir(), out.Bytes(), Options{})
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("limit %d: %v, want %q", limit, err, want)
		}
	}
}
