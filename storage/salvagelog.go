package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
)

// logSalvager reads on in a log past what cannot be read, which Badger never
// does: what lies behind are batches that were acknowledged. The log is a
// private copy, and mended in place.
//
// Who could write into the middle of a payload what looks like the next record
// would put packets of his own there. So after a place that cannot be read the
// next record counts only when records without a gap lead from it to a control
// record with the folder's secret.
type logSalvager struct {
	*looker
	key  string // of findings
	log  []byte
	run  *logRun
	last uint64 // the last transaction taken, or anyVersion

	mends int // records that it was tried to mend

	version uint64     // of the transaction that is being read
	pending []logPlace // its records
	sure    bool       // it was on the device, although its end may not be found
}

// maxMends bounds how many records of a log it is tried to mend, which takes
// up to a tenth of a second each.
const maxMends = 200

// readOn takes what can be read from at on, where the first transaction begins
// that is not whole. It ends at the tail that a crash may have left.
func (s *logSalvager) readOn(at int) {
	defer func() {
		if s.sure {
			s.take()
		}
	}()
	for at < len(s.log) {
		r, ok := parseLogRecord(s.log[at:])
		if ok {
			s.record(at, &r)
			at += r.size
			continue
		}
		torn := s.version
		if torn == 0 && s.last != anyVersion {
			torn = s.last + 1
		}
		if !laterBatch(s.log[at:], torn, s.secret) && !s.durable(s.log[at:]) && !s.sure {
			return
		}
		if at, ok = s.passHole(at); !ok {
			return
		}
	}
}

// record takes one record. A transaction counts when its end is there, or when
// another begins: that had to wait for it.
func (s *logSalvager) record(at int, r *logRecord) {
	if r.meta&metaFinTxn != 0 {
		if string(r.value) == strconv.FormatUint(s.version, 10) {
			s.take()
		}
		return
	}
	if s.version != r.version {
		s.take()
	}
	s.version = r.version
	if string(r.key) == controlKey && bears(r.value, s.secret) && s.anchored(r) {
		s.sure = true
	}
	one := logRun{log: s.log}
	one.take(at, r)
	s.pending = append(s.pending, one.records...)
}

func (s *logSalvager) take() {
	s.run.records = append(s.run.records, s.pending...)
	if s.last == anyVersion && s.version != 0 {
		s.last = s.version
	}
	s.last = max(s.last, s.version)
	s.version, s.pending, s.sure = 0, s.pending[:0], false
}

// passHole mends the record at a place that cannot be read, or finds the next
// one behind it.
func (s *logSalvager) passHole(at int) (next int, ok bool) {
	if s.mends++; s.mends > maxMends {
		// No single byte that went bad: a log of nonsense takes no longer.
	} else if off, ok := mendRecord(s.log[at:]); ok {
		r, _ := parseLogRecord(s.log[at:])
		s.found(at, "byte %d was wrong, in %s; it is mended by the checksum, and used", at+off, describeKey(r.key))
		return at, true
	}
	what := "the record there, whose key cannot be read,"
	r, ok := splitLogRecord(s.log[at:])
	if ok {
		what = describeRecord(r.key)
		if _, sound := parseLogRecord(s.log[at+r.size:]); sound && plausibleKey(r.key) {
			s.found(at, "%s has more than one wrong byte and is lost; %s", what, lostWith)
			return at + r.size, true
		}
	}
	if next, ok = s.resume(at + 1); !ok {
		s.found(at, "%s and all behind it cannot be read, and acknowledged batches lie there; %s", what, lostWith)
		return 0, false
	}
	s.found(at, "%s and what follows it, up to byte %d, cannot be read and is lost; %s", what, next, lostWith)
	return next, true
}

func (s *logSalvager) found(at int, format string, args ...any) {
	s.findings.add(Finding{FindingLog, fmt.Sprintf("%s byte %d", s.key, at), fmt.Sprintf(format, args...)})
}

// resumeWork is in bytes what resume looks at in a log of any length, besides
// 64 times its length: one of nonsense takes no longer.
const resumeWork = 128 << 20

// resume finds the first place from at on where records can be read again.
func (s *logSalvager) resume(at int) (int, bool) {
	work := resumeWork + 64*len(s.log)
	for ; at < len(s.log) && work > 0; at++ {
		if r, ok := splitLogRecord(s.log[at:]); !ok || r.user != 0 || r.meta&^1 != metaTxn && r.meta != metaFinTxn || !plausibleKey(r.key) {
			continue
		}
		for next := at; work > 0; {
			r, ok := parseLogRecord(s.log[next:])
			if work -= r.size + 64; !ok {
				break
			}
			if string(r.key) == controlKey && bears(r.value, s.secret) {
				return at, true
			}
			next += r.size
		}
	}
	return 0, false
}

// describeRecord names a record that cannot be read by its key, of which the
// length may be wrong.
func describeRecord(key []byte) string {
	if len(key) >= packetKeyLen && bytes.HasPrefix(key, []byte(packetPrefix)) {
		key = key[:packetKeyLen]
	}
	if !plausibleKey(key) {
		return "the record there, whose key cannot be read,"
	}
	return "the record there, of " + describeKey(key) + ","
}

// plausibleKey tells of a key that the store or Badger may have written.
func plausibleKey(key []byte) bool {
	return len(key) > 2 && (key[0] == ' ' && key[1] >= 'a' && key[1] <= 'z' || bytes.HasPrefix(key, []byte("!badger!")))
}

// mendRecord mends the record at the start of b in place when one byte of it
// is wrong. It returns where.
func mendRecord(b []byte) (at int, ok bool) {
	r, ok := splitLogRecord(b)
	if ok && plausibleKey(r.key) {
		data, stored := b[:r.size-crc32.Size], b[r.size-crc32.Size:r.size]
		want := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli()))
		if at, ok := oneByteOff(stored, want); ok {
			stored[at] = want[at]
			return len(data) + at, true
		}
		if at, diff, ok := mendByte(data, binary.BigEndian.Uint32(stored)); ok {
			data[at] ^= diff
			if r, ok := parseLogRecord(b); ok && plausibleKey(r.key) {
				return at, true
			}
			data[at] ^= diff
		}
	}
	// A wrong length makes the checksum one of something else: any value of
	// any byte before the key is tried.
	const header = 2 + 3 + 4 + 6
	for at := range min(header, len(b)) {
		was := b[at]
		for v := range 256 {
			b[at] = byte(v)
			if r, ok := splitLogRecord(b); ok && plausibleKey(r.key) && r.size <= 2*maxRecord {
				if _, ok := parseLogRecord(b); ok {
					return at, true
				}
			}
		}
		b[at] = was
	}
	return 0, false
}
