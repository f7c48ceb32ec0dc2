package storage

import (
	"bytes"
	"fmt"
	"strconv"
)

// logSalvager reads a log past a place that cannot be read, which Badger never does: acknowledged
// batches may lie behind.
//
// A client could put into a payload what looks like a record. So behind such a place a record
// counts only when records without a gap lead from it to a control record with the folder's secret.
type logSalvager struct {
	*viewBuilder
	key  string // of findings
	log  []byte
	run  *logRun
	last uint64 // the last transaction taken, or anyVersion

	version uint64     // of the transaction that is being read
	records []logPlace // its records
	sure    bool       // it was on the device, although its end may not be found
}

// readOn takes what can be read from byte at on, where the first transaction begins that is not
// whole. It ends at the tail that a crash may have left.
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

// record takes one record. A transaction counts when its end is there, or when another begins: that
// had to wait for it.
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
	s.records = append(s.records, one.records...)
}

func (s *logSalvager) take() {
	s.run.records = append(s.run.records, s.records...)
	if s.last == anyVersion && s.version != 0 {
		s.last = s.version
	}
	s.last = max(s.last, s.version)
	s.version, s.records, s.sure = 0, s.records[:0], false
}

// passHole finds the next record behind one that cannot be read.
func (s *logSalvager) passHole(at int) (next int, ok bool) {
	what := "the record there, whose key cannot be read,"
	r, ok := splitLogRecord(s.log[at:])
	if ok {
		what = describeRecord(r.key)
		if _, sound := parseLogRecord(s.log[at+r.size:]); sound && plausibleKey(r.key) {
			s.found(at, "%s has a wrong checksum and is lost; %s", what, lostWith)
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

// resumeWork bounds, in bytes, what resume looks at beside 64 times the length of the log, so that
// a log of nonsense takes no longer.
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

// describeRecord names a record that cannot be read by its key, of which the length may be wrong.
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
