package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sys/unix"
)

// Before Badger opens a folder its tables are checked here, every block of them: Badger leaves a
// table with a bad index out and goes on without it, ends the process on a bad footer (y.Check, in
// goroutines of its own), and ends an iteration early at a bad block. A compaction is an iteration,
// too, and removes the tables it read: all that lay behind the bad block is gone then, so nothing
// may be compacted that was not sound.
//
// It takes 0.3 s for 1 GB of large payloads that are in the page cache, and otherwise as long as
// the device needs to read all tables once: 1 s for the same from an NVMe disk.
//
// The layout is that of Badger's table/builder.go:
//
//	table  blocks | index | index length u32 | checksum | checksum length u32
//	block  entries | offsets of entries u32 each | their number u32 | checksum | checksum length u32

const tableSuffix = ".sst"

// tableNumber reads the number of a table from the name of its file.
func tableNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(filepath.Base(name), tableSuffix)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	return number, err == nil && filepath.Base(name) == table.IDToFilename(number)
}

// checkTables returns an error that wraps ErrDamaged for a table that is missing or cannot be read
// whole. No start goes on without such a table, also where a loss is accepted: a compaction would
// lose more.
func checkTables(path string) error {
	m, _, err := readManifest(path)
	if err != nil {
		return err
	}
	numbers := slices.Collect(maps.Keys(m))
	return eachTable(numbers, func(number uint64) error {
		return checkTable(table.NewFilename(number, path), everyBlock)
	})
}

// eachTable calls fn for every table, for several at a time.
func eachTable(numbers []uint64, fn func(number uint64) error) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, len(numbers))
	for range min(len(numbers), runtime.GOMAXPROCS(0)) {
		wait.Go(func() { // ends when there is no more
			for i := next.Add(1) - 1; i < int64(len(numbers)); i = next.Add(1) - 1 {
				errs[i] = fn(numbers[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// removeUnlisted removes the tables that the manifest does not list: what a crash left of an
// unfinished compaction. Badger does the same when it opens, but the room they take is needed
// before that.
func removeUnlisted(path string) error {
	m, gone, err := readManifest(path)
	if err != nil || gone {
		return err
	}
	unlisted, err := unlistedTables(path, m)
	if err != nil {
		return err
	}
	for _, number := range unlisted {
		if err := os.Remove(table.NewFilename(number, path)); err != nil {
			return fmt.Errorf("cannot remove a table of an unfinished compaction: %w", err)
		}
	}
	return nil
}

// checkTable returns an error that wraps ErrDamaged for a table that cannot be read: its index, and
// the blocks that checked tells to check.
func checkTable(name string, checked blockFilter) (err error) {
	defer func() {
		if errors.Is(err, errFault) {
			err = whyFault(name)
		}
		switch {
		case errors.Is(err, errNoRoom):
			err = fmt.Errorf("table %s: %w", name, err)
		case err != nil && !errors.Is(err, ErrDamaged):
			err = fmt.Errorf("%w: table %s: %w", ErrDamaged, name, err)
		}
	}()
	defer recoverFault(&err)()
	t, err := openTableFile(name)
	if err != nil {
		return err
	}
	defer t.close()
	for i := range t.blocks {
		first, from, to := t.block(i)
		if !checked(first, t.nextBlock(i)) {
			continue
		}
		if _, ok := soundData(t.data[from:to]); !ok {
			return fmt.Errorf("the checksum of the block at byte %d is wrong", from)
		}
	}
	return nil
}

// tableFile is a table taken apart as far as its index, which is sound.
type tableFile struct {
	data   []byte
	body   int // bytes before the index
	root   *fb.TableIndex
	blocks int
}

// openTableFile maps a table and checks its footer, its index, and where the index says that the
// blocks are.
func openTableFile(name string) (_ *tableFile, err error) {
	data, err := mapFile(name)
	if err != nil {
		return nil, err
	}
	t := &tableFile{data: data}
	if err := t.parse(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tableFile) close() {
	if t.data != nil {
		_ = unix.Munmap(t.data)
	}
}

func (t *tableFile) parse() (err error) {
	defer func() {
		if p := recover(); p != nil { // the index is not one, although its checksum is right
			if err = faultError(p); !errors.Is(err, errFault) {
				err = fmt.Errorf("the index cannot be taken apart: %w", err)
			}
		}
	}()
	if len(t.data) == 0 {
		return errors.New("the file is empty")
	}
	index, err := t.index()
	if err != nil {
		return err
	}
	return t.setIndex(index)
}

// index returns the index that the footer describes.
func (t *tableFile) index() ([]byte, error) {
	body, sum, ok := splitChecksum(t.data)
	if !ok {
		return nil, errors.New("no footer")
	}
	body, size, ok := splitLength(body)
	if !ok || size == 0 {
		return nil, errors.New("no index")
	}
	t.body = len(body) - size
	index := body[t.body:]
	if crc32.Checksum(index, castagnoli()) != sum {
		return nil, errors.New("the checksum of the index is wrong")
	}
	return index, nil
}

// setIndex takes a sound index, whose offsets can be trusted: it is what Badger wrote.
func (t *tableFile) setIndex(index []byte) error {
	t.root = fb.GetRootAsTableIndex(index, 0)
	t.blocks = t.root.OffsetsLength()
	if t.blocks == 0 {
		return errors.New("the index names no block")
	}
	for i := range t.blocks {
		var block fb.BlockOffset
		if !t.root.Offsets(&block, i) || len(block.KeyBytes()) <= 8 {
			return errors.New("the index is cut short")
		}
		if uint64(block.Offset())+uint64(block.Len()) > uint64(t.body) {
			return errors.New("a block lies outside of the table")
		}
	}
	return nil
}

// block returns the first key of a block, with its version, and where the block is.
func (t *tableFile) block(i int) (first []byte, from, to int) {
	var block fb.BlockOffset
	t.root.Offsets(&block, i)
	from = int(block.Offset())
	return block.KeyBytes(), from, from + int(block.Len())
}

// nextBlock returns the first key of the block after block i, with its version, and nil behind the
// last one.
func (t *tableFile) nextBlock(i int) []byte {
	if i+1 >= t.blocks {
		return nil
	}
	next, _, _ := t.block(i + 1)
	return next
}

// blockFilter tells which blocks to check, by their first key and that of the block behind it, nil
// when there is none, with versions.
type blockFilter func(first, next []byte) bool

func everyBlock([]byte, []byte) bool { return true }

// keyRange is the keys from ≤ key < to.
type keyRange struct{ from, to []byte }

// blocksOf checks the blocks that may hold a key of one of the ranges.
func blocksOf(ranges ...keyRange) blockFilter {
	return func(first, next []byte) bool {
		return slices.ContainsFunc(ranges, func(r keyRange) bool {
			const version = 8
			return bytes.Compare(first[:len(first)-version], r.to) < 0 &&
				(next == nil || bytes.Compare(next[:len(next)-version], r.from) >= 0)
		})
	}
}

// onlyPayloads tells from the first key of a block and of the next one that the block holds
// payloads of large packets, or large values, and nothing else.
func onlyPayloads(first, next []byte) bool {
	for _, prefix := range []string{payloadPrefix, valuePrefix} {
		if strings.HasPrefix(string(first), prefix) && strings.HasPrefix(string(next), prefix) {
			return true
		}
	}
	return false
}

// splitChecksum splits the checksum off the end of b. Stored is a protobuf message {1: algorithm,
// 2: sum}, in which CRC-32C, number 0, is left out.
func splitChecksum(b []byte) (rest []byte, sum uint32, ok bool) {
	b, size, ok := splitLength(b)
	if !ok || size > len(b) {
		return nil, 0, false
	}
	rest, message := b[:len(b)-size], b[len(b)-size:]
	if len(message) == 0 {
		return rest, 0, true
	}
	const sumField = 2 << 3
	v, n := binary.Uvarint(message[1:])
	if message[0] != sumField || n != len(message)-1 || v>>32 != 0 {
		return nil, 0, false
	}
	return rest, uint32(v), true
}

func splitLength(b []byte) (rest []byte, n int, ok bool) {
	if len(b) < 4 {
		return nil, 0, false
	}
	at := len(b) - 4
	length := binary.BigEndian.Uint32(b[at:])
	return b[:at], int(length), uint64(length) <= uint64(at)
}
