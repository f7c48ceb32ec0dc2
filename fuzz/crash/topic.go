package crash

import "sync"

// The topic is a list that all clients of the Redis protocol push to. They pop from it, or move an
// element to a second list and remove it there later, as rfq does.
const (
	topicName = "topic"
	nextName  = "topic:next"
)

// itemState is what the clients know of an element of the topic.
type itemState uint8

const (
	itemSent       itemState = iota // its push has no reply: in the topic, or nowhere
	itemQueued                      // it was acknowledged
	itemClaimed                     // a client has moved it
	itemCommitting                  // its removal has no reply: in the second list, or nowhere
)

// topic knows every element that may still be there. Any goroutine may use it.
type topic struct {
	mu    sync.Mutex // guards what follows
	items map[ID]itemState
	last  map[int]uint64 // by client: serial of its last push

	pops, moves int // without a reply; they belong to the harness
}

func newTopic() *topic { return &topic{items: map[ID]itemState{}, last: map[int]uint64{}} }

// len is how many elements may still be there.
func (t *topic) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.items)
}

// add makes the identity of an element that is about to be pushed.
func (t *topic) add(client int) ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[client]++
	id := makeID(client, t.last[client])
	t.items[id] = itemSent
	return id
}

// ack notes that a push was acknowledged. Another client may have the element already.
func (t *topic) ack(id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, known := t.items[id]; known && s == itemSent {
		t.items[id] = itemQueued
	}
}

// take notes that a client popped an element, or moved it. broken is empty, or says which promise
// that breaks.
func (t *topic) take(id ID, moved bool) (broken Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if broken = t.stateLocked(id); broken != "" {
		return broken
	}
	if t.items[id] >= itemClaimed {
		return Returned
	}
	if moved {
		t.items[id] = itemClaimed
	} else {
		delete(t.items, id)
	}
	return ""
}

// stateLocked says what is wrong with meeting an element, if anything is.
func (t *topic) stateLocked(id ID) (broken Kind) {
	if id.serial() == 0 || id.serial() > t.last[id.part()] {
		return Corrupt
	}
	if _, known := t.items[id]; !known {
		return Returned
	}
	return ""
}

// committing notes that the removal of a moved element is about to be sent.
func (t *topic) committing(id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items[id] = itemCommitting
}

// committed notes that a removal was acknowledged.
func (t *topic) committed(id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.items, id)
}

// checkTopic compares both lists after a restart with what the clients know. It returns the
// elements of the second list that no client knows to be its own.
func (r *run) checkTopic(queued, next []string) (unowned []string) {
	t := r.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[ID]bool{}
	moved := 0
	for i, values := range [2][]string{queued, next} {
		left := map[int]ID{} // by client: its element to the left
		for _, v := range values {
			id, whole := parsePayload([]byte(v))
			if !whole {
				r.report(Corrupt, "an element of the topic has %d bytes that nobody pushed", len(v))
				continue
			}
			if broken := t.stateLocked(id); broken != "" {
				r.report(broken, "element %v is in list %d of the topic, where it was taken or never pushed", id, i)
				continue
			}
			if seen[id] {
				r.report(Doubled, "element %v is in the topic twice", id)
			}
			if other := left[id.part()]; other != 0 && id > other {
				r.report(Order, "element %v of the topic is to the right of %v, which is older", id, other)
			}
			seen[id], left[id.part()] = true, id
			switch s := t.items[id]; {
			case i == 0 && s >= itemClaimed:
				r.report(Returned, "element %v is in the topic again after it was moved", id)
			case i == 0:
				t.items[id] = itemQueued
			case s < itemClaimed:
				moved++
				fallthrough
			case s == itemCommitting:
				unowned = append(unowned, v)
				t.items[id] = itemClaimed
			}
		}
	}
	r.checkTopicMissingLocked(seen, moved)
	return unowned
}

// checkTopicMissingLocked compares the elements that were not seen, and forgets them.
func (r *run) checkTopicMissingLocked(seen map[ID]bool, moved int) {
	t := r.topic
	var missing []ID
	for id, s := range t.items {
		if seen[id] {
			continue
		}
		if s == itemClaimed {
			r.report(Lost, "element %v of the topic is gone after it was moved", id)
		}
		if s == itemQueued {
			missing = append(missing, id)
		}
		delete(t.items, id)
	}
	if len(missing) > t.pops {
		r.report(Lost, "%d acknowledged elements of the topic are gone and %d pops had no reply: %s",
			len(missing), t.pops, describe(missing))
	}
	if moved > t.moves {
		r.report(Order, "%d elements of the topic were moved that no client knows, and %d moves had no reply", moved, t.moves)
	}
	t.pops, t.moves = 0, 0
}
