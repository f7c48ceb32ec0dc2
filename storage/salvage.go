package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// What follows a block that is lost. Deletes live in tables as packets do.
const lostWith = "deletes may be lost with it, so packets that were popped may be there again"

// noPage is what a device that does not read gives.
const noPage = "the device does not give this page: %v"

// salvage puts what can still be read of a damaged table into the scratch copy, under the same
// number and level. All that is wrong becomes a finding.
func (l *viewBuilder) salvage(number uint64) error {
	l.salvaging.Lock() // in memory, so one at a time
	defer l.salvaging.Unlock()
	s := &salvager{viewBuilder: l, key: l.key(table.IDToFilename(number))}
	data, err := s.bringOut(table.NewFilename(number, l.db))
	if refusedBySystem(err) {
		return err
	}
	if err != nil {
		s.found(s.key, "it cannot be read (%v) and is left out; %s", err, lostWith)
	}
	if err != nil || len(data) == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.levels, number)
		return nil
	}
	if err := os.WriteFile(table.NewFilename(number, l.scratch), data, 0o600); err != nil {
		return fmt.Errorf("cannot write into a temporary folder: %w", err)
	}
	return nil
}

// salvager works on one table, in memory.
type salvager struct {
	*viewBuilder
	key  string // of findings
	data []byte
}

// bringOut returns a table of the blocks that are sound, nothing when there is none.
func (s *salvager) bringOut(name string) (data []byte, err error) {
	defer recoverFault(&err)()
	if s.data, err = readPages(name, func(at int, err error) { s.found(s.at(at), noPage, err) }); err != nil {
		return nil, err
	}
	return s.rebuild(s.blocks()), nil
}

func (s *salvager) found(key, format string, args ...any) {
	s.findings.add(Finding{FindingTable, key, fmt.Sprintf(format, args...)})
}

func (s *salvager) at(offset int) string { return fmt.Sprintf("%s byte %d", s.key, offset) }

// blocks returns the sound blocks in order, without their checksums. Where the index is damaged
// they are found without it.
func (s *salvager) blocks() (sound [][]byte) {
	t := &tableFile{data: s.data}
	if err := t.parse(); err != nil {
		return s.search(err)
	}
	for i := range t.blocks {
		first, from, to := t.block(i)
		if data, ok := soundData(s.data[from:to]); ok {
			sound = append(sound, data)
			continue
		}
		end := "the end of the table"
		if next := t.nextBlock(i); next != nil {
			end = "before " + describeKey(next[:len(next)-8])
		}
		s.found(fmt.Sprintf("%s block at byte %d", s.key, from), "its checksum is wrong and its records are lost, from %s to %s; %s",
			describeKey(first[:len(first)-8]), end, lostWith)
	}
	return sound
}

// search finds blocks without an index.
func (s *salvager) search(cause error) (sound [][]byte) {
	found, lost := findBlocks(s.data)
	for _, f := range found {
		data, _ := soundData(s.data[f.from:f.to])
		sound = append(sound, data)
	}
	if len(found) == 0 {
		s.found(s.key, "%v: nothing of its %d bytes can be read, and it is left out; %s", cause, len(s.data), lostWith)
		return nil
	}
	// Behind the last block is what is left of the index, or more blocks.
	rest := len(s.data) - found[len(found)-1].to
	s.found(s.key, "%v: of %d bytes, %d blocks are found by their checksums; %d bytes between them and %d behind them are not known; %s",
		cause, len(s.data), len(found), lost, rest, lostWith)
	return sound
}

// rebuild makes a table of sound blocks. Keys keep their versions and what Badger notes of them.
func (s *salvager) rebuild(blocks [][]byte) []byte {
	type entry struct{ key, value []byte }
	var entries []entry
	for _, data := range blocks {
		eachEntry(data, func(_ int, key, value []byte) {
			entries = append(entries, entry{bytes.Clone(key), value})
		})
	}
	if len(entries) == 0 {
		return nil
	}
	// Blocks found by their checksums may be of anything.
	slices.SortStableFunc(entries, func(a, b entry) int { return y.CompareKeys(a.key, b.key) })
	b := newTableBuilder()
	defer b.Close()
	for i, e := range entries {
		if i > 0 && bytes.Equal(e.key, entries[i-1].key) {
			continue
		}
		expires, n := binary.Uvarint(e.value[2:])
		b.Add(e.key, y.ValueStruct{Meta: e.value[0], UserMeta: e.value[1], ExpiresAt: expires, Value: e.value[2+n:]}, 0)
	}
	return b.Finish()
}
