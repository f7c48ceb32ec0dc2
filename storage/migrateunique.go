package storage

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// olderUniques is what folders before format 5 have of unique pushes: field 12 of packets, and
// strings that are windows.
type olderUniques struct {
	known   map[UniqueID]bool // those that have a record: a later version wrote it
	packets []Unique
	windows []Head // or a user's own
	queues  []Queue
	flush   Flush
}

func (o *olderUniques) packet(id PacketID, m *Meta) {
	if len(m.Unique) > 0 {
		o.packets = append(o.packets, Unique{UniqueID{id.Queue, cmp.Or(m.Identity, id.Seq)}, bytes.Clone(m.Unique), 0})
	}
}

func (o *olderUniques) head(v ValueID, i *item) {
	if _, _, ok := parseWindow(i.name); ok && i.kind == String && i.expiry != 0 {
		o.windows = append(o.windows, Head{
			ID: v.ID, Database: i.db, Name: bytes.Clone(i.name), Version: i.version, Expiry: i.expiry, Value: bytes.Clone(i.value),
		})
	}
}

// takeOverUniques makes records of ids that have none, in a batch of its own, and reports whether
// there were any. A window goes with that, and a queue that is not there any more is made for it.
func (m *migration) takeOverUniques() bool {
	o, control, queues := &m.older, m.control, make(map[string]uint32)
	for _, q := range o.queues {
		if !o.flush.DropsQueue(&q) {
			queues[string(q.Name)] = q.ID
		}
	}
	put := func(u Unique) {
		if !o.known[u.UniqueID] {
			control.AddUnique(u.UniqueID)
			m.put(appendUniqueKey(nil, u.UniqueID), appendUnique(nil, &u))
		}
	}
	for _, u := range o.packets {
		put(u)
	}
	for _, h := range o.windows {
		name, id, _ := parseWindow(h.Name)
		first, err := strconv.ParseInt(string(h.Value), 10, 64)
		queue, there := queues[string(name)]
		if err != nil || o.flush.Drops(&h) || !there && control.NextQueue == math.MaxUint32 {
			continue
		}
		if !there {
			queue = control.NextQueue
			control.NextQueue++
			queues[string(name)] = queue
			m.put(appendQueueKey(nil, queue), appendQueue(nil, &Queue{ID: queue, Name: name}))
		}
		v := ValueID{ID: h.ID}
		control.Keys--
		control.KeyHash -= ItemHash(v, h.Version)
		m.delete(appendItemKey(nil, v))
		put(Unique{UniqueID{queue, uint64(first) + firstMarks().NextSeq}, id, h.Expiry})
	}
	if control == m.control {
		return false
	}
	control.Batch++
	m.put([]byte(controlKey), appendControl(nil, &control))
	return true
}

// parseWindow splits the name that the string of a window had in version 4: "unique:", the bytes of
// the queue's name in digits, and behind a colon each that name and the id.
func parseWindow(name []byte) (queue, id []byte, ok bool) {
	const word = "unique:"
	rest, ok := bytes.CutPrefix(name, []byte(word))
	digits, rest, found := bytes.Cut(rest, []byte(":"))
	n, err := strconv.Atoi(string(digits))
	if !ok || !found || err != nil || n < 0 || n >= len(rest)-1 || rest[n] != ':' || len(rest)-n-1 > MaxUnique {
		return nil, nil, false
	}
	return rest[:n], rest[n+1:], true
}
