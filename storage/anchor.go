package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
)

// anchor is a small file outside Badger that remembers the last durable batch,
// because Badger cuts its log at the first bad record without a word: one
// flipped byte loses all that follows, and only an outside witness can tell.
//
// It is written with pwrite after each durable batch, so it is exact after a
// killed process, and synced at most once a second, so after a power cut it is
// at most that old. It never runs ahead of the store.
//
// Two slots of 512 bytes, a sector each, written in turn: a torn write leaves
// the other one whole.
//
//	"HFAN" | version u32 | epoch u64 | batch u64 | crc32c u32 of the 24 bytes before | zeros
type anchor struct {
	file *os.File
	slot int64
	last anchorMark
}

type anchorMark struct{ epoch, batch uint64 }

const (
	anchorMagic   = "HFAN"
	anchorVersion = 1
	anchorSlot    = 512
	anchorSize    = 2 * anchorSlot
	anchorBody    = 24
)

// openAnchor reads the anchor of a folder, making it when there is none.
func openAnchor(f *folder) (*anchor, error) {
	name := f.name(anchorName)
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		var b [anchorSize]byte
		encodeAnchor(b[:anchorSlot], anchorMark{})
		if err := f.create(anchorName, b[:]); err != nil {
			return nil, err
		}
		file, err = os.OpenFile(name, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the anchor: %w", err)
	}
	a := &anchor{file: file}
	if err := a.read(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return a, nil
}

func (a *anchor) read() error {
	var b [anchorSize]byte
	n, _ := a.file.ReadAt(b[:], 0)
	good := false
	for slot := range int64(2) {
		mark, ok := decodeAnchor(b[slot*anchorSlot : (slot+1)*anchorSlot])
		if ok && (!good || mark.after(a.last)) {
			good, a.last, a.slot = true, mark, slot
		}
	}
	if !good {
		return fmt.Errorf("%w: the anchor %s (%d bytes) has no valid slot, so nothing tells whether acknowledged batches "+
			"are missing; to open the folder as it is, remove this file", ErrDamaged, a.file.Name(), n)
	}
	return nil
}

// write notes a durable batch. Nothing is forced to the device.
func (a *anchor) write(m anchorMark) error {
	var b [anchorBody + crc32.Size]byte
	encodeAnchor(b[:], m)
	slot := 1 - a.slot
	if _, err := a.file.WriteAt(b[:], slot*anchorSlot); err != nil {
		return fmt.Errorf("cannot write the anchor: %w", err)
	}
	a.slot, a.last = slot, m
	return nil
}

func (a *anchor) sync() error {
	if err := fdatasync(a.file); err != nil {
		return fmt.Errorf("cannot sync the anchor: %w", err)
	}
	return nil
}

func (m anchorMark) after(o anchorMark) bool { return m.batch > o.batch }

func encodeAnchor(b []byte, m anchorMark) {
	copy(b, anchorMagic)
	binary.BigEndian.PutUint32(b[4:], anchorVersion)
	binary.BigEndian.PutUint64(b[8:], m.epoch)
	binary.BigEndian.PutUint64(b[16:], m.batch)
	binary.BigEndian.PutUint32(b[anchorBody:], crc32.Checksum(b[:anchorBody], crc32.MakeTable(crc32.Castagnoli)))
}

func decodeAnchor(b []byte) (anchorMark, bool) {
	if string(b[:4]) != anchorMagic || binary.BigEndian.Uint32(b[4:]) != anchorVersion {
		return anchorMark{}, false
	}
	crc := binary.BigEndian.Uint32(b[anchorBody:])
	m := anchorMark{epoch: binary.BigEndian.Uint64(b[8:]), batch: binary.BigEndian.Uint64(b[16:])}
	return m, crc == crc32.Checksum(b[:anchorBody], crc32.MakeTable(crc32.Castagnoli))
}
