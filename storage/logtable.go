package storage

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"slices"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// logRun gathers records of a log, to write them as tables. A table holds the
// same as the memory table that Badger would make of the log, and unlike one
// it takes no memory.
type logRun struct {
	log     []byte
	records []logPlace
}

// logPlace says where the key of a record is: log[at+key:][:size], with the
// version. Eight bytes a record, because a log may have a million.
type logPlace struct {
	at        uint32
	key, size uint16
}

// runTable is the size in bytes from which another table is begun.
const runTable = 8 << 20

// whole takes the records of whole transactions, which lie from one place to
// another and were read before.
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

// secret returns the folder's secret as a control record bears it, nil when
// none does.
func (r *logRun) secret() []byte {
	for _, p := range r.records {
		if string(r.key(p)[:int(p.size)-8]) != controlKey {
			continue
		}
		if rec, ok := splitLogRecord(r.log[p.at:]); ok && len(rec.value) > secretLen {
			if secret := rec.value[len(rec.value)-secretLen:]; bears(rec.value, secret) {
				return bytes.Clone(secret)
			}
		}
	}
	return nil
}

func (r *logRun) key(p logPlace) []byte { return r.log[p.at:][p.key:][:p.size] }

// write adds the records to a shadow as tables. Of records with the same key
// and version the last one counts.
func (r *logRun) write(l *looker) error {
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
