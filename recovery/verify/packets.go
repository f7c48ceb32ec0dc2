package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// delivery checks a delivery state. The packets are held against them later.
func (v *verifier) delivery(ctx context.Context) func(*content.Delivery, content.Stored, error) error {
	return func(d *content.Delivery, _ content.Stored, damage error) error {
		if damage != nil {
			v.unreadable(storage.StateKey(d.Identity), "record", damage)
			return ctx.Err()
		}
		v.deliveries.Add(d, content.StoredDelivery, 0)
		wrong := func(format string, args ...any) {
			v.report.Add(storage.FindingRecord, storage.StateKey(d.Identity), format, args...)
		}
		switch {
		case d.State == content.Claimed && (d.Token == 0 || d.Attempts == 0):
			wrong("the packet is claimed, with the token %d and after %d attempts: nobody can acknowledge it", d.Token, d.Attempts)
		case d.State == content.Done && d.Expiry == 0:
			wrong("the packet is done and never expires: it stays for ever")
		}
		if d.Token >= v.control.NextSeq {
			wrong("its token %d is not below %d, the next one: another claim may get the same", d.Token, v.control.NextSeq)
		}
		if d.Origin >= v.control.NextQueue {
			wrong("its packet came from queue %d, and no queue had a number above %d", d.Origin, v.control.NextQueue-1)
		}
		return ctx.Err()
	}
}

// payload is where a payload lies that has a record of its own.
type payload struct {
	queue uint32
	seq   uint64
}

// orphans are packets of a queue without a definition.
type orphans struct {
	first content.PacketID
	count int64
}

// checkPackets reads, decodes and counts every packet, and then looks for what belongs to none.
func (v *verifier) checkPackets(ctx context.Context) error {
	var p content.Packet
	var lost []orphans
	scanned, at := int64(0), 0
	v.cut = false
	err := v.walk(storage.Visitor{Packet: func(id content.PacketID, _ *content.Meta, rec []byte, damage error) error {
		for at < len(v.report.Queues) && v.report.Queues[at].ID < id.Queue { // queues and packets come in the same order
			at++
		}
		q := new(QueueCount)
		known := at < len(v.report.Queues) && v.report.Queues[at].ID == id.Queue
		if known {
			q = &v.report.Queues[at]
		}
		v.checkMarks("sequence", id, id.Seq)
		if damage == nil {
			damage = content.DecodeRecord(rec, &p)
		}
		live := true
		if damage != nil {
			v.deliveries.Match(id.Seq)
			v.unreadable(id.String(), "record", damage)
		} else {
			live = v.packet(q, id, &p)
		}
		if live && !known {
			if len(lost) == 0 || lost[len(lost)-1].first.Queue != id.Queue {
				lost = append(lost, orphans{first: id})
			}
			lost[len(lost)-1].count++
		}
		return v.tell(ctx, "packets", &scanned, v.control.Live)
	}})
	if err != nil || v.cut { // what is missing may lie behind the cut
		return err
	}
	for _, l := range lost {
		v.report.Add(storage.FindingOwner, storage.QueueKey(l.first.Queue),
			"it has no definition, so no client can reach its packets: there are %d, the first is %v", l.count, l.first)
	}
	for i := range v.deliveries.List {
		switch d := &v.deliveries.List[i]; {
		case d.Matched:
		case d.Expires():
			v.report.LeftOver++ // a server deletes it
		default:
			v.report.Add(storage.FindingOwner, storage.StateKey(d.Identity), "it belongs to no packet that is there, and its packet never expires")
		}
	}
	return v.checkPayloads(ctx)
}

// packet counts a packet that can be read, and reports whether it has not expired.
func (v *verifier) packet(q *QueueCount, id content.PacketID, p *content.Packet) bool {
	if p.Identity != 0 {
		v.checkMarks("identity", id, p.Identity)
	}
	if content.IsLarge(len(p.Payload)) {
		v.large[payload{id.Queue, id.Seq}] = true
	}
	identity := cmp.Or(p.Identity, id.Seq)
	d, _ := v.deliveries.Match(identity)
	leased := d.Leased(v.Now)
	switch {
	case q.dropped:
		v.report.LeftOver++
		return false
	case p.Expired(v.Now) && !leased:
		q.Expired++
		v.report.Expired++
		return false
	}
	if !v.numbers.Add(id.Seq, identity) {
		v.report.Add(storage.FindingOwner, id.String(), "it has the sequence or the identity of another packet, %d: a server sets one of them aside", identity)
	}
	size := int64(len(p.Key) + len(p.Payload))
	q.Bytes += size
	v.report.Bytes += size
	v.report.Packets++
	until, tried := p.NotBefore, content.Ready
	switch {
	case d == nil:
	case d.State == content.Claimed && !leased:
		until = 0
	case d.State == content.Delayed:
		until = d.Until
	default:
		until, tried = 0, d.State
	}
	q.Counts[recovery.StateOf(id.Priority, until, tried, v.Now)]++
	return true
}

// checkMarks finds a number that was never handed out to a packet.
func (v *verifier) checkMarks(what string, id content.PacketID, n uint64) {
	if c := &v.control; n >= c.NextSeq || n <= c.LowSeq {
		v.report.Add(storage.FindingRecord, id.String(), "its %s %d is not between %d and %d, the sequences of the next packets at the two ends: "+
			"another packet may get the same", what, n, c.LowSeq, c.NextSeq)
	}
}

// checkPayloads finds payloads that belong to no packet.
func (v *verifier) checkPayloads(ctx context.Context) error {
	err := v.src.Payloads(func(queue uint32, seq uint64, size int64) error {
		if !v.large[payload{queue, seq}] {
			v.report.Add(storage.FindingOwner, fmt.Sprintf("%d/*/%d", queue, seq), "a payload of %d bytes belongs to no packet that can be read", size)
		}
		return ctx.Err()
	})
	if err != nil {
		return v.wrong(err)
	}
	return nil
}
