package crash

// slots is a queue that nobody takes from. Clients push to it with few unique ids, its slots, and
// so race for each. A slot is taken by the first push: for a window if its number is odd, else for
// good.
const (
	slots     = "slots"
	slotCount = 8
)

// slotWindow is the window of a slot, in milliseconds; 0: none. Some end within two cycles, others
// are longer than a slow start.
func slotWindow(slot int) int64 { return [...]int64{0, 600, 0, 3000}[slot%4] }

// slotPush is a push for a slot. Its payload is its place among all of them.
type slotPush struct {
	slot        int
	asked, came int64  // it was carried out between these moments
	name        string // the id in the reply; empty: it had none
}

// takeSlot adds a push for a slot.
func (c *taskClient) takeSlot() {
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &slotPush{slot: c.rng.IntN(slotCount), asked: c.r.ledger.now()}
	args := []string{"QPUSH", slots, string(appendPayload(nil, ID(len(t.slots)), payloadHeader)), "UNIQUE", decimal(int64(p.slot))}
	if window := slotWindow(p.slot); window != 0 {
		args = append(args, "WINDOW", decimal(window))
	}
	t.slots = append(t.slots, p)
	op := taskOp{args: args, answer: func(reply any) {
		name, ok := reply.(string)
		if !ok {
			c.unexpected(args, reply)
		}
		p.came, p.name = c.r.ledger.now(), name
	}}
	c.link.addCommand(args...)
	c.ops = append(c.ops, op)
}

// settleSlots notes that no push is carried out any more.
func (t *tasks) settleSlots(now int64) {
	for _, p := range t.slots {
		if p.came == 0 {
			p.came = now
		}
	}
}

// checkSlots compares the slots after a restart with what was pushed. If all is true it then frees
// them.
func (r *run) checkSlots(link *link, all bool) error {
	ask := one("QLIST", slots, "COUNT", decimal(atOnce))
	if all {
		ask = append(ask, []string{"QPURGE", slots}, []string{"DEL", slots})
	}
	replies, err := link.ask(ask)
	if err != nil {
		return err
	}
	v, _ := parseReply(replies[0])
	if list, _ := v.([]any); len(list) == 2 && list[0] == "0" {
		r.compareSlots(shownTasks(list[1]))
	} else {
		r.report(Corrupt, "the list of %s is %.300q", slots, v)
	}
	if all {
		r.tasks.slots = nil
	}
	return nil
}

// compareSlots compares the packets of the slots, in the order in which they were pushed.
func (r *run) compareSlots(shown []shownTask) {
	const slack = int64(clockSlack)
	made := map[string]*slotPush{} // by name
	var last [slotCount]*slotPush
	for i := range shown {
		s := &shown[i]
		if !s.whole || int(s.id) >= len(r.tasks.slots) {
			r.report(Corrupt, "packet %s of %s was never pushed, or not so", s.name, slots)
			continue
		}
		p := r.tasks.slots[s.id]
		before, window := last[p.slot], slotWindow(p.slot)*1e6
		if before != nil && (window == 0 || p.came < before.asked+window-slack) {
			r.report(Doubled, "slot %d was taken by packet %s, %d ms or less after one before", p.slot, s.name, (p.came-before.asked)/1e6)
		}
		if p.name != "" && p.name != s.name {
			r.report(Doubled, "the push of packet %s for slot %d was answered with %s", s.name, p.slot, p.name)
		}
		last[p.slot], made[s.name] = p, p
	}
	for _, p := range r.tasks.slots {
		window := slotWindow(p.slot) * 1e6
		switch first := made[p.name]; {
		case p.name == "":
		case first == nil || first.slot != p.slot:
			r.report(Lost, "packet %s has slot %d by a reply, and is not there or has another", p.name, p.slot)
		case window != 0 && p.asked > first.came+window+slack:
			r.report(Stuck, "slot %d has packet %s %d ms after its push", p.slot, p.name, (p.asked-first.came)/1e6)
		}
	}
}
