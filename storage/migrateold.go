package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// What folders have until format 5 and later ones have not. The layout of a log is that of Badger's
// memtable.go and structs.go:
//
//	log     20 bytes of header | records | zeros
//	record  meta u8 | user u8 | key length uvarint | value length uvarint | expiry uvarint |
//	        key | value | crc32c u32 of all before
//	key     as given | ^version u64
//
// A transaction ends with a record whose value is the version in digits.
const (
	oldLogHeader = 20
	oldDeleted   = 1 << 0 // bits of meta
	oldInside    = 1 << 6
	oldEnd       = 1 << 7
)

// readLogs reads the logs, oldest first.
func (m *migration) readLogs(db string) error {
	logs, err := filepath.Glob(filepath.Join(db, "*.mem"))
	if err != nil {
		return err
	}
	slices.SortFunc(logs, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err == nil {
			err = m.readLog(b)
		}
		if err != nil {
			return fmt.Errorf("log %s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

// readLog takes the whole transactions of a log, up to where it is torn or ends.
func (m *migration) readLog(b []byte) error {
	r := oldReader{b: b[min(oldLogHeader, len(b)):]}
	var txn []tables.Entry
	for {
		meta, e := r.record()
		switch {
		case r.bad:
			return nil
		case meta&oldInside != 0 && (len(txn) == 0 || txn[0].Version == e.Version):
			txn = append(txn, e)
		case meta&oldEnd != 0 && len(txn) > 0 && string(e.Value) == strconv.FormatUint(txn[0].Version, 10):
			if err := m.take(txn); err != nil {
				return err
			}
			txn = txn[:0]
		default:
			return nil
		}
	}
}

// take adds a transaction to the window, unless the tables have it: they have all up to their last
// one. The versions of transactions rise by one, so a gap is one that is lost.
func (m *migration) take(txn []tables.Entry) error {
	switch version := txn[0].Version; {
	case version <= m.set.List().Window:
		return nil
	case version != m.last+1:
		return fmt.Errorf("transaction %d follows %d", version, m.last)
	default:
		m.last = version
	}
	for _, e := range txn {
		m.window[string(e.Key)] = e
	}
	return nil
}

// oldReader reads numbers and records. After what cannot be read all is 0.
type oldReader struct {
	b   []byte
	bad bool
}

func (r *oldReader) bytes(n uint64) []byte {
	if r.bad = r.bad || n > uint64(len(r.b)); r.bad {
		return make([]byte, min(n, 8))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *oldReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.bad = r.bad || n <= 0
	r.bytes(uint64(max(n, 0)))
	return v
}

func (r *oldReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// record reads one of a log.
func (r *oldReader) record() (meta byte, e tables.Entry) {
	whole := r.b
	meta = r.bytes(2)[0]
	keySize, valueSize, expires := r.uvarint(), r.uvarint(), r.uvarint()
	key, value := r.bytes(keySize), r.bytes(valueSize)
	read := whole[:len(whole)-len(r.b)]
	sum := binary.BigEndian.Uint32(r.bytes(crc32.Size))
	if r.bad = r.bad || len(key) <= 8 || crc32.Checksum(read, crc32.MakeTable(crc32.Castagnoli)) != sum; r.bad {
		return 0, e
	}
	name, version := key[:len(key)-8], ^binary.BigEndian.Uint64(key[len(key)-8:])
	return meta, tables.Entry{Key: name, Value: value, Version: version, Expires: expires, Deleted: meta&oldDeleted != 0}
}

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
	m.put([]byte(controlKey), appendControl(nil, &control, nil))
	return true
}
