package crash

import (
	"slices"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// drainer empties queues by pops while no other client is connected. So what comes out is what was
// in a queue, in its order.
type drainer struct {
	r    *run
	part int // its own pushes in the ledger
	link *link
}

// drainDepth is how many pops are sent at a time.
const drainDepth = 64

// empty takes all packets out of the queue and returns them by reply. A packet of priority 0 comes
// only with another packet of its key, so lift pushes one for each key.
func (d *drainer) empty(q int) ([][]packet, error) {
	name := d.r.queues.all[q].name
	var replies [][]packet
	for nothing := 0; nothing == 0; {
		for range drainDepth {
			d.link.add(pinpriq.OpPop, name)
		}
		asked := d.r.ledger.now()
		if err := d.link.send(); err != nil {
			return nil, err
		}
		for range drainDepth {
			group, err := d.reply(q, asked)
			if err != nil {
				return nil, err
			}
			if len(group) == 0 {
				nothing++
				continue
			}
			if nothing > 0 {
				d.r.report(Order, "a pop of %s gave nothing, and the next one gave %s", name, describe(ids(group)))
			}
			replies = append(replies, group)
		}
	}
	d.r.checkDrained(q, replies)
	if d.r.plain {
		return replies, nil
	}
	lifted, err := d.lift(q)
	return append(replies, lifted...), err
}

// lift takes out what is left under the group keys, one key after the other. It returns the replies
// without the packets that it pushed.
func (d *drainer) lift(q int) ([][]packet, error) {
	name := d.r.queues.all[q].name
	asked := d.r.ledger.now()
	var lifters [groupKeys]ID
	for k := range lifters {
		p := d.r.ledger.add(d.part, packet{sent: asked, queue: int16(q), prio: 1, key: keyOf(k)}, false)
		lifters[k] = p.id
		d.link.addPush(name, &p, payloadHeader)
		d.link.add(pinpriq.OpPop, name)
	}
	if err := d.link.send(); err != nil {
		return nil, err
	}
	var replies [][]packet
	for _, lifter := range lifters {
		group, err := d.reply(q, asked)
		if err != nil {
			return nil, err
		}
		if len(group) == 0 || group[0].id != lifter {
			d.r.report(Order, "a pop of %s after a push of %v gave %s", name, lifter, describe(ids(group)))
			continue
		}
		d.r.checkGroup(q, group)
		if len(group) > 1 {
			replies = append(replies, group[1:])
		}
	}
	return replies, nil
}

func (d *drainer) reply(q int, asked int64) ([]packet, error) {
	var group []packet
	err := d.link.receive(func(key, payload []byte) {
		if t, ok := d.r.take(q, key, payload, asked); ok {
			group = append(group, t)
		}
	})
	return slices.Clip(group), err
}
