package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// A log has what is not in tables yet. Its layout is that of Badger's memtable.go and structs.go:
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
	files, err := os.ReadDir(db)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b os.DirEntry) int { // by number: names have five digits or more
		return cmp.Or(len(a.Name())-len(b.Name()), strings.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".mem" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(db, f.Name()))
		if err == nil {
			err = m.readLog(b)
		}
		if err != nil {
			return fmt.Errorf("log %s: %w", f.Name(), err)
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

// carryOut deletes what a redo record lists, and the record: a map of one field with the bytes
//
//	(queue uvarint | priority uvarint | count uvarint | count × (step uvarint | flags u8 | identity varint?))…
//
// The first flag says that there is a payload record, the next three are Stored, and the last one
// that an identity follows, less the sequence. Of queue 0 only the delivery states go.
func (m *migration) carryOut(rec []byte) error {
	const flagLarge, flagStored, flagIdentity = 1 << 0, 1 << 1, 1 << 4
	var r oldReader
	fields := reader{b: rec}
	for fields.next() {
		r.b = fields.bin()
	}
	if err := fields.err(); err != nil {
		return fmt.Errorf("the redo record cannot be read: %w", err)
	}
	for len(r.b) > 0 && !r.bad {
		queue, priority, count, seq := r.uvarint(), r.uvarint(), r.uvarint(), uint64(0)
		for ; count > 0 && !r.bad; count-- {
			seq += r.uvarint()
			flags, identity := r.bytes(1)[0], seq
			if flags&flagIdentity != 0 {
				identity += uint64(r.varint())
			}
			for kind := range NoteKind(stateKinds) {
				if flags&(flagStored<<kind) != 0 {
					m.delete(appendStateKey(nil, NoteID{identity, kind}))
				}
			}
			if id := (PacketID{uint32(queue), uint32(priority), seq}); queue != 0 {
				m.delete(appendPacketKey(nil, id))
				if flags&flagLarge != 0 {
					m.delete(appendPayloadKey(nil, id))
				}
			}
		}
	}
	if r.bad {
		return errors.New("the redo record is cut short")
	}
	m.delete([]byte(redoKey))
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
