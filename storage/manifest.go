package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// The manifest is Badger's list of tables: a log of changes. Badger reads it here, too; only the
// list of a scratch copy is written here.
//
//	manifest  "Bdgr" | 0 u16 | version u16 = 8 | change sets
//	set       length u32 | crc32c u32 of what follows | {1: change}…
//	change    {1: table, 3: level}
//
// Braces are protobuf messages.
const (
	manifestName  = badger.ManifestFilename
	manifestMagic = "Bdgr\x00\x00\x00\x08"

	maxLevels = 7 // of Badger's tree

	// maxManifest is the longest list that is read, in bytes. Badger writes the list anew when it
	// has 10,000 removed tables and ten times as many as are there, and a change takes 26 bytes at
	// most.
	maxManifest = 64 << 20
)

// manifest gives the level of each listed table.
type manifest map[uint64]uint8

// readManifest reads the list of tables of a database folder. gone reports that there is none.
func readManifest(path string) (m manifest, gone bool, err error) {
	name := filepath.Join(path, manifestName)
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	defer file.Close()
	m = make(manifest)
	info, err := file.Stat()
	if err == nil && info.Size() > maxManifest {
		err = fmt.Errorf("it has %d bytes, at most %d were expected", info.Size(), maxManifest)
	}
	var list badger.Manifest
	if err == nil {
		list, _, err = badger.ReplayManifestFile(file, 0, badger.Options{})
	}
	if err == nil {
		_, err = changesEnd(name)
	}
	for number, t := range list.Tables {
		if t.Level >= maxLevels || t.KeyID != 0 || t.Compression != options.None {
			err = fmt.Errorf("table %d has level %d, encryption key %d and compression %d, as this program writes none", number, t.Level, t.KeyID, t.Compression)
		}
		m[number] = t.Level
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: the list of tables %s cannot be read: %w", ErrDamaged, name, err)
	}
	return m, false, nil
}

// changesEnd returns where the last change set of a list ends that Badger can read. Zeros are sets
// without a change, whose checksum is right. Badger writes none but the first, so the error says
// that zeros took the place of others.
func changesEnd(name string) (end int64, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	const first, header = len(manifestMagic), 8
	last := first
	for at := first; at+header <= len(b); {
		length := int(binary.BigEndian.Uint32(b[at:]))
		next := at + header + length
		switch {
		case next > len(b): // a crash tore it
		case length > 0 && last < at:
			return 0, fmt.Errorf("zeros lie at byte %d, before other changes", last)
		case length > 0 || at == first:
			last = next
		}
		at = next
	}
	return int64(last), nil
}

// cutManifest cuts off what a power cut left behind the last change set. Badger does the same, but
// takes zeros for sets and writes on behind them.
func cutManifest(path string) error {
	name := filepath.Join(path, manifestName)
	end, err := changesEnd(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Truncate(name, end)
	}
	if err != nil {
		return fmt.Errorf("cannot cut the list of tables: %w", err)
	}
	return nil
}

// appendManifest appends a manifest of one set.
func appendManifest(dst []byte, m manifest) []byte {
	var set, change []byte
	for _, number := range slices.Sorted(maps.Keys(m)) {
		change = binary.AppendUvarint(append(change[:0], 1<<3), number)
		change = append(change, 3<<3, m[number])
		set = binary.AppendUvarint(append(set, 1<<3|2), uint64(len(change)))
		set = append(set, change...)
	}
	dst = append(dst, manifestMagic...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(set)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(set, castagnoli()))
	return append(dst, set...)
}
