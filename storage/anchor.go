package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

// anchor is a small file that remembers the last durable batch. A damaged record of the journal
// shows by those behind it, but the newest has none: only something outside can tell that it was
// there.
//
// It is written with pwrite after each durable batch, so it is exact after a killed process, and
// synced at most once a second, so after a power cut it is at most that old. It never runs ahead of
// the store.
//
// Two slots of 512 bytes, a sector each, written in turn: a torn write leaves the other one whole.
//
//	"HFAN" | version u16 | flags u16 | epoch u64 | batch u64 | crc32c u32 of the 24 bytes before | zeros
//
// Of two whole slots the one with the higher (epoch, batch) counts: the batch alone falls when a
// loss was accepted.
type anchor struct {
	file *disk.File

	// Of who makes batches durable: the holder of commitMu, or the goroutine of the sync interval;
	// of Open and Close when neither runs.
	slot int64
	last anchorMark

	dirty atomic.Bool // written since flush
}

type anchorMark struct {
	epoch  uint64 // of the start that wrote it
	batch  uint64 // the last one known to be on the device
	always bool   // flag 1: every batch is synced before the next begins
}

const (
	anchorMagic   = "HFAN"
	anchorVersion = 1
	anchorAlways  = 1
	anchorSlot    = 512
	anchorSize    = 2 * anchorSlot
	anchorBody    = 24
)

// openAnchor reads the anchor of a folder, making it when there is none. The caller closes its
// file, also after an error.
func openAnchor(f *folder) (*anchor, error) {
	name, a := f.name(anchorName), &anchor{}
	if _, err := disk.Stat(name); errors.Is(err, fs.ErrNotExist) {
		var b [anchorSize]byte
		encodeAnchor(b[:anchorSlot], anchorMark{})
		if err := f.create(anchorName, b[:]); err != nil {
			return a, err
		}
	}
	var err error
	if a.file, err = disk.OpenFile(name, os.O_RDWR, 0); err != nil {
		return a, fmt.Errorf("cannot open the anchor: %w", err)
	}
	return a, a.read()
}

func (a *anchor) read() error {
	var b [anchorSize]byte
	n, err := a.file.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("cannot read the anchor, try again: %w", err)
	}
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

// readAnchor reads the anchor of a folder and nothing else; of one that is missing it is zero.
func readAnchor(f *folder) (anchorMark, error) {
	file, err := disk.Open(f.name(anchorName))
	if errors.Is(err, fs.ErrNotExist) {
		return anchorMark{}, nil
	}
	if err != nil {
		return anchorMark{}, fmt.Errorf("cannot open the anchor: %w", err)
	}
	defer file.Close()
	a := &anchor{file: file}
	err = a.read()
	return a.last, err
}

// write notes a durable batch. Nothing is forced to the device. Where the disk is full the anchor
// stays behind until the next batch, as some file systems need room for what is there already.
func (a *anchor) write(m anchorMark) error {
	var b [anchorBody + crc32.Size]byte
	encodeAnchor(b[:], m)
	slot := 1 - a.slot
	if _, err := a.file.WriteAt(b[:], slot*anchorSlot); isFull(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot write the anchor: %w", err)
	}
	a.slot, a.last = slot, m
	a.dirty.Store(true)
	return nil
}

// flush forces what was written to the device. Any goroutine may call it.
func (a *anchor) flush() error {
	if !a.dirty.Swap(false) {
		return nil
	}
	if err := journal.Datasync(a.file); err != nil {
		return fmt.Errorf("cannot sync the anchor: %w", err)
	}
	return nil
}

func (m anchorMark) after(o anchorMark) bool {
	return m.epoch > o.epoch || m.epoch == o.epoch && m.batch > o.batch
}

func encodeAnchor(b []byte, m anchorMark) {
	copy(b, anchorMagic)
	binary.BigEndian.PutUint16(b[4:], anchorVersion)
	if m.always {
		b[7] = anchorAlways
	}
	binary.BigEndian.PutUint64(b[8:], m.epoch)
	binary.BigEndian.PutUint64(b[16:], m.batch)
	binary.BigEndian.PutUint32(b[anchorBody:], crc32.Checksum(b[:anchorBody], crc32.MakeTable(crc32.Castagnoli)))
}

func decodeAnchor(b []byte) (anchorMark, bool) {
	if string(b[:4]) != anchorMagic || binary.BigEndian.Uint16(b[4:]) != anchorVersion {
		return anchorMark{}, false
	}
	crc := binary.BigEndian.Uint32(b[anchorBody:])
	m := anchorMark{
		epoch:  binary.BigEndian.Uint64(b[8:]),
		batch:  binary.BigEndian.Uint64(b[16:]),
		always: b[7]&anchorAlways != 0,
	}
	return m, crc == crc32.Checksum(b[:anchorBody], crc32.MakeTable(crc32.Castagnoli))
}
