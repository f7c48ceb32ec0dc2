package verify

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/recovery/contents"
	"github.com/holdfast-queue/holdfast/storage"
)

// checkDeliveries reads every delivery state. The packets are held against them later.
func (v *verifier) checkDeliveries(ctx context.Context) error {
	return v.src.Deliveries(func(d *storage.Delivery, damage error) error {
		if damage != nil {
			v.lostStates++
			v.finding(storage.FindingRecord, stateKey(d.Identity), "the record cannot be read: %s", plain(damage))
			return ctx.Err()
		}
		v.tally.AddDelivery(d.Identity)
		v.deliveries = append(v.deliveries, contents.NewDelivery(d, storage.StoredDelivery))
		v.checkState(d)
		return ctx.Err()
	})
}

func stateKey(identity uint64) string { return fmt.Sprint("delivery state ", identity) }

// checkState finds what no server writes.
func (v *verifier) checkState(d *storage.Delivery) {
	wrong := func(format string, args ...any) {
		v.finding(storage.FindingRecord, stateKey(d.Identity), format, args...)
	}
	switch {
	case d.State == storage.Claimed && (d.Token == 0 || d.Attempts == 0):
		wrong("the packet is claimed, with the token %d and after %d attempts: nobody can acknowledge it", d.Token, d.Attempts)
	case d.State == storage.Done && d.Expiry == 0:
		wrong("the packet is done and never expires: it stays for ever")
	}
	if !v.hasControl() {
		return
	}
	if d.Token >= v.control.NextSeq {
		wrong("its token %d is not below %d, the next one: another claim may get the same", d.Token, v.control.NextSeq)
	}
	if d.Origin >= v.control.NextQueue {
		wrong("its packet came from queue %d, and no queue had a number above %d", d.Origin, v.control.NextQueue-1)
	}
}

// match holds the packets of a run against the delivery states that it found.
func (v *verifier) match(r *run) {
	for _, m := range r.matched {
		if m.delivery.Matched {
			v.finding(storage.FindingOwner, m.id.String(), "it has the identity %d, and so has another packet: one of them loses its delivery state", m.delivery.Identity)
		}
		m.delivery.Matched = true
	}
}

// checkOwners finds delivery states without a packet. Where the packet has expired a server deletes
// them.
func (v *verifier) checkOwners(ctx context.Context) error {
	for i := range v.deliveries {
		switch d := &v.deliveries[i]; {
		case d.Matched:
		case d.Expired(v.Now):
			v.report.LeftOver++
		default:
			v.finding(storage.FindingOwner, stateKey(d.Identity), "it belongs to no packet that is there, and its packet has not expired")
		}
	}
	return ctx.Err()
}
