package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Before Badger opens a folder the logs of its memory tables are read once here, because Badger
// cuts a log at the first record that it cannot read and says nothing, and because it takes memory
// for any length that a damaged record claims. A cut is right for the tail that a crash left; in
// the middle it throws acknowledged batches away.
//
// The two are told apart by the versions of the transactions, which rise by one. Only one batch is
// ever in flight, and every earlier one was on the device before it began: so after the first
// unreadable record a crash can have left pieces of that one batch and nothing else. The control
// record of a later transaction behind it, or a gap to the next log, is damage, and so is one
// between the tables and the oldest log. Every transaction has a control record (transact), and it
// counts only when it carries the folder's secret: the pieces of a torn batch are payloads, too,
// and a client may send what looks like a record.
//
// The layout is that of Badger's memtable.go and structs.go:
//
//	log     20 bytes of header | records | zeros
//	record  meta u8 | user u8 | key length uvarint | value length uvarint | expiry uvarint |
//	        key | value | crc32c u32 of all before
//	key     as given | ^version u64
const (
	logHeader   = 20
	metaTxn     = 1 << 6    // a record of a transaction
	metaFinTxn  = 1 << 7    // its end; the value is the version in digits
	maxLogBytes = 2<<30 - 1 // of a log or table: Badger makes none that is larger
)

type logRecord struct {
	meta    byte
	user    byte
	version uint64
	expires uint64
	key     []byte // without the version
	stored  []byte // the key with its version, as tables have it, too
	value   []byte
	size    int
}

// parseLogRecord reads the record at the start of b.
func parseLogRecord(b []byte) (r logRecord, ok bool) {
	if r, ok = splitLogRecord(b); !ok {
		return logRecord{}, false
	}
	end := r.size - crc32.Size
	if crc32.Checksum(b[:end], castagnoli()) != binary.BigEndian.Uint32(b[end:]) {
		return logRecord{}, false
	}
	return r, true
}

// splitLogRecord is parseLogRecord of a record whose checksum is not looked at.
func splitLogRecord(b []byte) (r logRecord, ok bool) {
	if len(b) < 2 {
		return r, false
	}
	at := 2
	var n [3]uint64 // key length, value length, expiry
	for i := range n {
		v, size := binary.Uvarint(b[at:])
		if size <= 0 {
			return r, false
		}
		n[i], at = v, at+size
	}
	if n[0] <= 8 || n[0] > math.MaxUint16 || n[1] > maxLogBytes {
		return r, false
	}
	end := at + int(n[0]) + int(n[1])
	if end+crc32.Size > len(b) {
		return r, false
	}
	value := at + int(n[0])
	return logRecord{
		meta:    b[0],
		user:    b[1],
		expires: n[2],
		key:     b[at : value-8],
		stored:  b[at:value],
		version: math.MaxUint64 - binary.BigEndian.Uint64(b[value-8:]),
		value:   b[value:end],
		size:    end + crc32.Size,
	}, true
}

// logEnd tells how far a log can be read.
type logEnd struct {
	at   int    // where the last whole transaction ends
	last uint64 // version of it, or of the last one before this log, or anyVersion
	torn uint64 // version of the transaction that cannot be read whole; 0 when that is not known
	gap  bool   // versions are missing

	arena int64 // bytes that a memory table of the whole transactions takes
}

// nodeBytes is what an entry takes in a memory table beside its key and value: a node of its list,
// of average height, and what stands before the value.
const nodeBytes = 30 + 4

// memTableFor returns the least memory table that Badger can read logs of arena bytes into: it
// takes 1.3 times as much memory, and ends the process where that is too little. A log may have
// been written with larger memory tables than the ones asked for now.
func memTableFor(arena int64) int64 {
	const round = 1 << 20
	least := (arena+arena/50)*10/13 + 4096
	return (least + round - 1) / round * round
}

// anyVersion stands for the version before a log where nothing tells it.
const anyVersion = math.MaxUint64

// readLog reads a log that follows transaction last: 0 when it is the first log ever, anyVersion
// when that is not known.
func readLog(b []byte, last uint64) logEnd {
	end := logEnd{at: min(logHeader, len(b)), last: last}
	version := uint64(0) // of the transaction being read
	arena := int64(0)
	for at := end.at; ; {
		r, ok := parseLogRecord(b[at:])
		at += r.size
		switch {
		case ok && r.meta&metaTxn != 0 && (version == 0 || version == r.version):
			version = r.version
			arena += int64(nodeBytes + len(r.stored) + len(r.value))
		case ok && r.meta&metaFinTxn != 0 && string(r.value) == strconv.FormatUint(version, 10):
			end.gap = end.gap || end.last != anyVersion && version != end.last+1
			end.last, version, end.at, end.arena = version, 0, at, arena
		default:
			if end.torn = version; version == 0 && end.last != anyVersion {
				end.torn = end.last + 1
			}
			return end
		}
	}
}

// laterBatch reports whether b, what follows the last whole transaction, holds the control record
// of one after torn, the only one that a crash may have cut. When torn is not known, two different
// ones tell as much.
func laterBatch(b []byte, torn uint64, secret []byte) bool {
	return findControl(b, secret, func(r *logRecord) bool {
		if torn == 0 {
			torn = r.version
		}
		return r.version > torn
	})
}

// findControl reports whether b holds a control record with the secret for which is is true.
//
// What is looked at for each place is bounded by the length of a control record: a payload made of
// its beginnings cannot hold a start up.
func findControl(b, secret []byte, is func(r *logRecord) bool) bool {
	const (
		before = 5          // meta, user, and three lengths of one byte each
		most   = 1<<7 - 1   // the longest value whose length takes one byte
		after  = most + 100 // the rest of the record
	)
	for at := 0; ; at++ {
		next := bytes.Index(b[at:], []byte(controlKey))
		if next < 0 {
			return false
		}
		if at += next; at < before {
			continue
		}
		r, ok := parseLogRecord(b[at-before : min(len(b), at+after)])
		if ok && string(r.key) == controlKey && bears(r.value, secret) && is(&r) {
			return true
		}
	}
}

// removeEmpty removes the logs, and the files of the value log, that are empty. A crash leaves
// them: Badger makes a file and sizes it after that, and cuts one to nothing before it removes it.
// It cannot open them again.
func removeEmpty(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("cannot read the database folder: %w", err)
	}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); ext != logSuffix && ext != valueLogSuffix {
			continue
		}
		if info, err := entry.Info(); err != nil || info.Size() > 0 {
			continue // what cannot be looked at is opened, and reported then
		}
		if err := os.Remove(filepath.Join(path, entry.Name())); err != nil {
			return fmt.Errorf("cannot remove an empty log: %w", err)
		}
	}
	return nil
}

// checkLogs reads every log of a database folder and cuts the torn tail off, as Badger would. It
// returns the least memory table that Badger can read them with, or an error that wraps ErrDamaged
// when batches in the middle cannot be read, unless accept is set: that is told of such a loss, and
// the rest is cut off.
func checkLogs(path string, secret []byte, accept acceptance) (memTable int64, err error) {
	names, err := logNames(path)
	if err != nil {
		return 0, err
	}
	last, err := beforeLogs(path, names)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		end, later, err := checkLog(name, last, secret)
		if err != nil {
			return 0, fmt.Errorf("%w: cannot read the log %s: %w", ErrDamaged, name, err)
		}
		if end.gap {
			err = accept.loss(FindingLog, name, "there is a gap in the log %s or before it", name)
		}
		if later && err == nil {
			err = accept.loss(FindingLog, name, "they lie behind byte %[2]d of the log %[1]s, which cannot be read from there on", name, end.at)
		}
		if err != nil {
			return 0, err
		}
		last = end.last
		memTable = max(memTable, memTableFor(end.arena))
		// Also when nothing can be read: Badger would take the first record at its word.
		if end.at >= logHeader {
			if err := cutFile(name, int64(end.at)); err != nil {
				return 0, err
			}
		}
	}
	return memTable, nil
}

// checkLog reads one log, and reports whether a later batch than a crash can have cut lies behind
// its end.
func checkLog(name string, last uint64, secret []byte) (end logEnd, later bool, err error) {
	end.last = last
	b, err := readLogFile(name)
	if err == nil && len(b) > 0 {
		end = readLog(b, last)
		later = laterBatch(b[end.at:], end.torn, secret)
	}
	return end, later, err
}

// logNames returns the logs of a database folder, oldest first.
func logNames(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the database folder: %w", err)
	}
	var numbers []int
	for _, entry := range entries {
		if number, ok := logNumber(entry.Name()); ok {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	names := make([]string, len(numbers))
	for i, number := range numbers {
		names[i] = filepath.Join(path, logName(number))
	}
	return names, nil
}

const (
	logSuffix      = ".mem"
	valueLogSuffix = ".vlog"
)

func logName(number int) string { return fmt.Sprintf("%05d%s", number, logSuffix) }

func logNumber(name string) (int, bool) {
	digits, ok := strings.CutSuffix(name, logSuffix)
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil && number >= 0
}

func cutFile(name string, size int64) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot open the log to cut its torn tail: %w", err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return fmt.Errorf("cannot cut the torn tail of the log: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("cannot sync the log: %w", err)
	}
	return nil
}

// recoverFault makes an error of a panic, also of the fault that reading a mapped file gives where
// the device cannot. Use: defer recoverFault(&err)().
func recoverFault(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			*err = faultError(p)
		}
	}
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
