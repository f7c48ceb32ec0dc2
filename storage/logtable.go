package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// logRun gathers records of a log, to write them as tables. They hold the same as the memory table
// that Badger would make of the log, and take no memory.
type logRun struct {
	log     []byte
	records []logPlace
}

// logPlace says where the key of a record is: log[at+key:][:size], with the version. Eight bytes a
// record, because a log may have a million.
type logPlace struct {
	at        uint32
	key, size uint16
}

// runTable is the size in bytes from which another table is begun.
const runTable = 8 << 20

// whole takes the records of whole transactions, which lie from one place to another and were read
// before.
func (r *logRun) whole(from, to int) {
	for at := from; at < to; {
		rec, ok := splitLogRecord(r.log[at:to])
		if !ok {
			return
		}
		r.take(at, &rec)
		at += rec.size
	}
}

// take takes one record that begins at at. Ends of transactions are not for tables.
func (r *logRun) take(at int, rec *logRecord) {
	if rec.meta&metaFinTxn != 0 {
		return
	}
	key := rec.size - crc32.Size - len(rec.value) - len(rec.stored)
	r.records = append(r.records, logPlace{uint32(at), uint16(key), uint16(len(rec.stored))})
}

func (r *logRun) key(p logPlace) []byte { return r.log[p.at:][p.key:][:p.size] }

// write adds the records to a scratch copy as tables. Of records with the same key and version the
// last one counts.
func (r *logRun) write(l *viewBuilder) error {
	slices.SortFunc(r.records, func(a, b logPlace) int {
		return cmp.Or(y.CompareKeys(r.key(a), r.key(b)), cmp.Compare(a.at, b.at))
	})
	var b *table.Builder
	size := 0
	finish := func() error {
		if b == nil {
			return nil
		}
		data := b.Finish()
		b.Close()
		b, size = nil, 0
		return l.add(data)
	}
	for i, p := range r.records {
		if i+1 < len(r.records) && bytes.Equal(r.key(p), r.key(r.records[i+1])) {
			continue
		}
		rec, ok := splitLogRecord(r.log[p.at:])
		if !ok {
			continue // it was read before
		}
		if b == nil {
			b = newTableBuilder()
		}
		b.Add(rec.stored, y.ValueStruct{Meta: rec.meta, UserMeta: rec.user, ExpiresAt: rec.expires, Value: rec.value}, 0)
		if size += rec.size; size >= runTable {
			if err := finish(); err != nil {
				return err
			}
		}
	}
	return finish()
}

// newTableBuilder builds a table as Badger does with badgerOptions.
func newTableBuilder() *table.Builder {
	opt := badgerOptions("", minMemTable)
	return table.NewTableBuilder(table.Options{
		TableSize:          runTable,
		BlockSize:          opt.BlockSize,
		BloomFalsePositive: opt.BloomFalsePositive,
		ChkMode:            opt.ChecksumVerificationMode,
		Compression:        opt.Compression,
	})
}

// logs makes tables of the logs, oldest first.
func (l *viewBuilder) logs(names []string) error {
	names, obsolete, err := l.splitObsolete(names)
	if err == nil {
		err = l.obsolete(obsolete)
	}
	if err != nil {
		return err
	}
	last, err := beforeLogs(l.db, names)
	switch {
	case refusedBySystem(err) || err != nil && l.findings == nil:
		return err
	case err != nil:
		last = anyVersion // what cannot be read is reported when it is its turn
	}
	for _, name := range names {
		end, err := l.log(name, last)
		if err != nil {
			return err
		}
		last = end
		l.progress(name)
	}
	return nil
}

// log makes tables of one log, which follows transaction last. It returns the last one now.
func (l *viewBuilder) log(name string, last uint64) (uint64, error) {
	var unread error
	b, err := readPages(name, func(at int, err error) {
		if unread = err; l.findings != nil {
			l.findings.add(Finding{FindingLog, fmt.Sprintf("%s byte %d", l.key(name), at), fmt.Sprintf(noPage, err)})
		}
	})
	if err == nil && l.findings == nil {
		err = unread
	}
	switch {
	case err == nil && len(b) > 0:
		return l.transactions(name, b, last)
	case err == nil:
		return last, nil
	case refusedBySystem(err):
		return last, err
	}
	return last, l.reportUnread(FindingLog, l.key(name), fmt.Errorf("%w: cannot read the log %s: %w; %s", ErrDamaged, name, err, lostWith))
}

// transactions makes tables of what a log holds.
func (l *viewBuilder) transactions(name string, b []byte, last uint64) (uint64, error) {
	end := readLog(b, last)
	run := &logRun{log: b}
	run.whole(logHeader, end.at)
	if len(b) >= 8 && binary.BigEndian.Uint64(b) != 0 {
		// Nothing is read with it here.
		if err := l.report(FindingLog, l.key(name), "its header names an encryption key, and there is none"); err != nil {
			return last, err
		}
	}
	if err := l.damagedLog(name, run, &end); err != nil {
		return last, err
	}
	return end.last, run.write(l)
}

// damagedLog reports what a log has behind its last whole transaction, and salvages it, unless it
// is what a crash leaves.
func (l *viewBuilder) damagedLog(name string, run *logRun, end *logEnd) error {
	rest := run.log[end.at:]
	switch {
	case l.synced():
		if end.gap {
			err := l.report(FindingLog, l.key(name), "transactions are missing before it or in it; %s", lostWith)
			if err != nil {
				return err
			}
		}
		if !laterBatch(rest, end.torn, l.secret) && !l.durable(rest) {
			return nil
		}
	case !l.durable(rest):
		// A power cut may leave any of the last batches.
		return nil
	}
	err := l.report(FindingLog, l.key(name), "it cannot be read past byte %d, and acknowledged batches lie behind", end.at)
	if err != nil {
		return err
	}
	s := &logSalvager{viewBuilder: l, key: l.key(name), log: run.log, run: run, last: end.last}
	s.readOn(end.at)
	end.last = s.last
	return nil
}

// synced reports whether each batch was on the device before the next began. The anchor tells;
// without an anchor a salvage assumes it.
func (l *viewBuilder) synced() bool { return l.mark.always || l.unmarked && l.findings != nil }

// durable reports whether b holds a batch that was on the device by the anchor. What cannot be read
// before it is then damage. A start needs no such check: it compares the last batch with the
// anchor.
func (l *viewBuilder) durable(b []byte) bool {
	return l.findings != nil && findControl(b, l.secret, l.anchored)
}

// anchored reports whether the batch of a control record was on the device.
func (l *viewBuilder) anchored(r *logRecord) bool {
	var c Control
	return decodeControl(r.value, &c) == nil && c.Batch <= l.mark.batch
}
