package storage

import (
	"errors"
	"fmt"
	"os"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/klauspost/compress/snappy"
)

// Tables are written without compression here. Another program that opened the
// folder with Badger's defaults has left tables whose blocks are compressed one
// by one, checksum included; they are read, and written anew without it when
// they are compacted.

// snappyCompression is the only compression that is read: Badger's default.
const snappyCompression = 1

// maxExpanded bounds the memory that a damaged block can ask for. A block holds
// 4 KiB, or one entry.
const maxExpanded = 16 << 20

// expand returns a compressed block as it was.
func expand(block []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	if err == nil && n > maxExpanded {
		err = fmt.Errorf("%d bytes when expanded, more than a block has", n)
	}
	if err != nil {
		return nil, err
	}
	return snappy.Decode(nil, block)
}

// unpack puts a compressed table into the shadow as one that is not.
func (l *looker) unpack(number uint64) error {
	name := table.NewFilename(number, l.db)
	s := &salvager{looker: l, key: l.key(name)}
	blocks, err := s.unpacked(name)
	if starved(err) {
		return err
	}
	if err != nil {
		if err := l.wrong(FindingTable, s.key, "%w, and it is left out; %s", err, lostWith); err != nil {
			return err
		}
	}
	data := s.rebuild(blocks)
	if data == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.levels, number)
		return nil
	}
	if err := os.WriteFile(table.NewFilename(number, l.shadow), data, 0o600); err != nil {
		return fmt.Errorf("cannot write into a temporary folder: %w", err)
	}
	return nil
}

// unpacked returns the blocks of a compressed table that are sound. The error
// is about the table as a whole, or a block where nothing is tolerated.
func (s *salvager) unpacked(name string) (sound [][]byte, err error) {
	defer recoverFault(&err)()
	t, err := openTableFile(name)
	if err != nil {
		return nil, err
	}
	defer t.close()
	for i := range t.blocks {
		first, from, to := t.block(i)
		block, err := expand(t.data[from:to])
		data, ok := []byte(nil), false
		if err == nil {
			if data, ok = soundData(block); !ok {
				err = errors.New("the checksum is wrong")
			}
		}
		if err != nil {
			key := fmt.Sprintf("%s block at byte %d, from %s", s.key, from, describeKey(first[:len(first)-8]))
			if err := s.wrong(FindingTable, key, "the compressed block cannot be read (%w) and is left out; %s", err, lostWith); err != nil {
				return nil, err
			}
			continue
		}
		sound = append(sound, data)
	}
	return sound, nil
}
