package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// The manifest is Badger's list of tables: a log of changes, which is read to
// its end. Badger reads it, too; here it is read without trusting it, and
// written for the shadow of a view.
//
//	manifest  "Bdgr" | 0 u16 | version u16 = 8 | change sets
//	set       length u32 | crc32c u32 of what follows | {1: change}…
//	change    {1: table, 2: 0 made or 1 removed, 3: level, 4: encryption key, 5: encryption, 6: compression}
//
// Braces are protobuf messages.
const (
	manifestName  = badger.ManifestFilename
	manifestMagic = "Bdgr\x00\x00\x00\x08"
	manifestSet   = 8 // bytes before the changes of a set

	maxLevels = 7 // of Badger's tree

	// A list is written anew when it has more than 10,000 removed tables and
	// ten times as many as are there; a change takes 26 bytes at most. So it
	// has less than manifestBase, and manifestEach for each table that lies
	// beside it, and a damaged one is not read at any size.
	manifestBase = 4 << 20
	manifestEach = 1 << 10
)

// manifest is what a list of tables says in the end.
type manifest struct {
	levels     map[uint64]uint8 // of the tables that are there
	compressed map[uint64]bool  // of those: see expand
	removed    map[uint64]bool  // tables that are not there any more
	end        int              // of the last whole set
}

// readManifest reads the list of tables of a database folder, and tells when
// it is gone. An error that wraps ErrDamaged leaves what could be read.
func readManifest(path string) (m manifest, gone bool, err error) {
	name := filepath.Join(path, manifestName)
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{}, true, nil
	}
	if err != nil {
		return manifest{}, false, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	defer file.Close()
	tables, err := unlistedTables(path, manifest{})
	if err != nil {
		return manifest{}, false, err
	}
	most := int64(manifestBase + manifestEach*len(tables))
	b, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return manifest{}, false, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	if int64(len(b)) > most {
		err = fmt.Errorf("more than %d bytes, and beside it lie %d tables", most, len(tables))
	} else {
		m, err = parseManifest(b)
	}
	if err != nil {
		err = fmt.Errorf("%w: the list of tables %s has %w", ErrDamaged, name, err)
	}
	return m, false, err
}

// parseManifest reads as far as it can. The error says what is wrong where;
// what comes before it is in the manifest all the same. Bytes of a set that is
// not whole at the end are what a crash leaves, and no error.
func parseManifest(b []byte) (manifest, error) {
	m := manifest{levels: make(map[uint64]uint8), compressed: make(map[uint64]bool), removed: make(map[uint64]bool)}
	if !strings.HasPrefix(string(b), manifestMagic) {
		return m, errors.New("no beginning of a version that this program reads")
	}
	for at := len(manifestMagic); ; {
		m.end = at
		if len(b)-at < manifestSet {
			return m, nil
		}
		size, sum := binary.BigEndian.Uint32(b[at:]), binary.BigEndian.Uint32(b[at+4:])
		if uint64(size) > uint64(len(b)) {
			return m, fmt.Errorf("a length of %d bytes at byte %d, past its end", size, at)
		}
		if uint64(size) > uint64(len(b)-at-manifestSet) {
			return m, nil
		}
		set := b[at+manifestSet:][:size]
		if crc32.Checksum(set, castagnoli()) != sum {
			return m, fmt.Errorf("a wrong checksum at byte %d", at)
		}
		if !m.apply(set) {
			return m, fmt.Errorf("changes that cannot be at byte %d", at)
		}
		at += manifestSet + int(size)
	}
}

// apply carries one set out, as a whole or, when it is not a set, as far as it can be read.
func (m *manifest) apply(set []byte) bool {
	for len(set) > 0 {
		tag, value, rest, ok := protoField(set)
		if !ok || tag != 1<<3|2 || !m.change(value.bytes) {
			return false
		}
		set = rest
	}
	return true
}

func (m *manifest) change(b []byte) bool {
	var fields [7]uint64
	for len(b) > 0 {
		tag, value, rest, ok := protoField(b)
		if !ok || tag&7 != 0 || tag>>3 >= uint64(len(fields)) {
			return false
		}
		fields[tag>>3], b = value.number, rest
	}
	table, op, level, key, compression := fields[1], fields[2], fields[3], fields[4], fields[6]
	_, there := m.levels[table]
	switch {
	case op == 0 && !there && level < maxLevels && key == 0 && compression <= snappyCompression && table < 1<<32:
		m.levels[table] = uint8(level)
		if compression != 0 {
			m.compressed[table] = true
		}
		delete(m.removed, table)
	case op == 1:
		delete(m.levels, table)
		delete(m.compressed, table)
		m.removed[table] = true
	default:
		return false
	}
	return true
}

// appendManifest appends a manifest of one set.
func appendManifest(dst []byte, levels map[uint64]uint8) []byte {
	tables := make([]uint64, 0, len(levels))
	for number := range levels {
		tables = append(tables, number)
	}
	slices.Sort(tables)
	var set, change []byte
	for _, number := range tables {
		change = binary.AppendUvarint(append(change[:0], 1<<3), number)
		change = append(change, 3<<3, levels[number])
		set = binary.AppendUvarint(append(set, 1<<3|2), uint64(len(change)))
		set = append(set, change...)
	}
	dst = append(dst, manifestMagic...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(set)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(set, castagnoli()))
	return append(dst, set...)
}

type protoValue struct {
	number uint64 // of wire type 0
	bytes  []byte // of wire type 2
}

// protoField takes the first field off a protobuf message. Only the two wire
// types that Badger's messages have are read.
func protoField(b []byte) (tag uint64, value protoValue, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag&7 != 0 && tag&7 != 2 {
		return 0, value, nil, false
	}
	b = b[n:]
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, value, nil, false
	}
	b = b[n:]
	if tag&7 == 0 {
		return tag, protoValue{number: v}, b, true
	}
	if v > uint64(len(b)) {
		return 0, value, nil, false
	}
	return tag, protoValue{bytes: b[:v]}, b[v:], true
}
