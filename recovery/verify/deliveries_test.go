package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// try makes a delivery state as servers write it, for packet i of a folder.
func try(i int, s content.State, until int64) content.Delivery {
	d := content.Delivery{Identity: first + uint64(i), State: s, Until: until, Attempts: 1, Token: first, FirstClaim: 1, LastClaim: 1}
	if s == content.Done {
		d.Expiry = later + 1
	}
	return d
}

// tryAll puts delivery states.
func tryAll(all ...content.Delivery) func(b *content.Batch) {
	return func(b *content.Batch) {
		for i := range all {
			b.PutDelivery(&all[i], 0)
			b.PutNote(content.NoteID{Identity: all[i].Identity, Kind: content.NoteReason}, []byte("why"), 0)
		}
	}
}

func TestPacketsAreCountedByTheirDeliveryStates(t *testing.T) {
	const leased = 10
	queue := []content.Queue{{ID: 1, Name: []byte("jobs")}}
	dir := fill(t, queue, 12, func(i int) (content.PacketID, content.Packet) {
		p := content.Packet{Payload: []byte("x")}
		switch i {
		case leased, leased + 1:
			p.Expiry = later
		case 9:
			p.Identity = first + 8 // below the marks, and of no other packet: packet 8 has one of its own
		case 8:
			p.Identity = first + 9
		}
		return content.PacketID{Queue: 1, Priority: uint32(min(i, 1)), Seq: first + uint64(i)}, p
	})
	claimed, ended := try(leased, content.Claimed, later+1), try(leased+1, content.Claimed, later)
	claimed.Expiry, ended.Expiry = later, later
	recoverytest.Tamper(t, dir, tryAll(
		try(0, content.Claimed, later+1), // of priority 0
		try(1, content.Claimed, 0),       // without end
		try(2, content.Claimed, later),   // has ended: ready
		try(3, content.Delayed, later),   // ready
		try(4, content.Delayed, later+1), // delayed
		try(5, content.Dead, 0),          //
		try(8, content.Dead, 0),          // of packet 9
		try(9, content.Done, 0),          // of packet 8
		claimed, ended,                   //
		content.Delivery{Identity: first + 11_000, Expiry: later}, // its packet has expired
	))
	report := verified(t, dir)
	want := QueueCount{ID: 1, Name: []byte("jobs"), Counts: Counts{0, 4, 1, 3, 2, 1}, Expired: 1, Bytes: 11}
	if !report.Sound() || report.Packets != 11 || report.LeftOver != 1 || fmt.Sprint(report.Queues) != fmt.Sprint([]QueueCount{want}) {
		t.Errorf("%+v, want sound, and %+v", report, want)
	}
}

func TestEachHarmOfADeliveryStateIsAFinding(t *testing.T) {
	const n = 40
	base := recoverytest.InFolder(t, recoverytest.Many(n))
	recoverytest.Tamper(t, base, tryAll(try(7, content.Claimed, 1), try(8, content.Dead, 0)))
	change := func(fn func(d *content.Delivery)) func(b *content.Batch) {
		d := try(5, content.Claimed, 1)
		fn(&d)
		return tryAll(d)
	}
	for name, c := range map[string]struct {
		harm func(b *content.Batch)
		want string
	}{
		"without a packet": {
			tryAll(try(n, content.Dead, 0)), "owner: delivery state 9223372036854775848: it belongs to no packet",
		},
		"lost": {
			tryAll(try(7, content.Dead, 0)), // counted twice
			"lost: delivery states: delivery states are missing: the control record counts 3, the scan found 2",
		},
		"lost, and its notes are there": {
			func(b *content.Batch) { b.DeleteDelivery(first+7, content.StoredDelivery) },
			"record: delivery state 9223372036854775815: the record cannot be read",
		},
		"claimed without a token": {
			change(func(d *content.Delivery) { d.Token = 0 }), "record: delivery state 9223372036854775813: the packet is claimed, with the token 0",
		},
		"claimed without an attempt": {
			change(func(d *content.Delivery) { d.Attempts = 0 }), "record: delivery state 9223372036854775813: the packet is claimed, with the token",
		},
		"done for ever": {
			change(func(d *content.Delivery) { d.State = content.Done }), "record: delivery state 9223372036854775813: the packet is done and never",
		},
		"token not given out": {
			change(func(d *content.Delivery) { d.Token = first + n }), "record: delivery state 9223372036854775813: its token",
		},
		"origin that never was": {
			change(func(d *content.Delivery) { d.Origin = 8 }), "record: delivery state 9223372036854775813: its packet came from queue 8",
		},
		"origin that is gone": {change(func(d *content.Delivery) { d.Origin = 7 }), ""},
		"one identity for two packets": {
			func(b *content.Batch) {
				b.Delete(at(9, n), content.Removed{})
				b.Put(at(9, n), &content.Packet{Identity: first + 8})
			},
			"owner: " + at(9, n).String() + ": it has the sequence or the identity of another packet, 9223372036854775816",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recoverytest.CopyOf(t, base)
			recoverytest.Tamper(t, dir, c.harm)
			report := verified(t, dir)
			if c.want == "" && report.Sound() {
				return
			}
			if len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].String(), c.want) {
				t.Fatalf("findings %v, want %s", report.Findings, c.want)
			}
		})
	}
}
