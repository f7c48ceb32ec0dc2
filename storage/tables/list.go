package tables

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// ErrDamaged: a table, or the list of tables, is not what was written. errors.Is finds it.
var ErrDamaged = errors.New("the tables are damaged")

// ErrList is an ErrDamaged of the list: nobody knows then which tables count.
var ErrList = fmt.Errorf("%w: the list of tables", ErrDamaged)

// Table is a table of the list.
type Table struct {
	ID      uint64
	Level   int    // 0 is the newest
	Size    int64  // of its file in bytes
	Sum     uint64 // xxhash64 of its file
	Entries uint64 // all versions, with those that are deleted or expired
	// Version is the highest of its entries. In level 0 all of them have it; it is 0 if they have
	// several, as in a table that Badger itself made.
	Version uint64
}

const suffix = ".sst"

// Name returns the name of the table's file.
func (t Table) Name() string { return fmt.Sprintf("%06d%s", t.ID, suffix) }

// Floor says up to where a journal is in tables. The tables do not look into it.
type Floor struct{ Batch, Segment, Offset, Sum uint64 }

// List holds what MANIFEST says. It is replaced as a whole, and never changed.
type List struct {
	Format int
	Window uint64 // the number of the last window that was written
	Floor  Floor
	LastID uint64 // no table had a higher one
	Tables []Table
	Sums   `json:"-"`
}

// Sums are of the tables of a list. They are asked for at each batch.
type Sums struct {
	Entries   uint64 // as long as a merge is not over some stand in two tables
	Bytes     int64
	Zero      int // tables of level 0
	ZeroBytes int64
	Windows   int // that level 0 has
	Besides   int // tables that merges beside others made
}

// sum fills the sums in.
func (l *List) sum() {
	l.Sums = Sums{}
	versions := make(map[uint64]bool)
	for _, t := range l.Tables {
		l.Entries += t.Entries
		l.Bytes += t.Size
		switch t.Level {
		case 0:
			l.Zero++
			l.ZeroBytes += t.Size
			versions[t.Version] = true
		case besideLevel:
			l.Besides++
		}
	}
	l.Windows = len(versions)
}

// MANIFEST is a file of Badger's with one set of changes, which makes all tables:
//
//	magic "Bdgr" | version u32 = 8 | length of the set u32 | its crc32c u32 | the set
//
// The set is a message of Badger's. Field 1000, which Badger passes over, has our List as JSON.
const (
	listFormat = 1
	listField  = 1000
	headSize   = 16
	levels     = 7 // Badger has so many
)

func head(set []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte("Bdgr\x00\x00\x00\x08"), uint32(len(set)))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(set, crc32.MakeTable(crc32.Castagnoli)))
}

// changes are Badger's part of MANIFEST.
func (l *List) changes() *pb.ManifestChangeSet {
	set := &pb.ManifestChangeSet{}
	for _, t := range l.Tables {
		set.Changes = append(set.Changes, &pb.ManifestChange{Id: t.ID, Op: pb.ManifestChange_CREATE, Level: uint32(t.Level)})
	}
	return set
}

// encode returns the bytes of MANIFEST.
func (l *List) encode() ([]byte, error) {
	own, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	changes := l.changes()
	changes.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, listField, protowire.BytesType), own))
	set, err := proto.Marshal(changes)
	return append(head(set), set...), err
}

// decode reads the bytes of MANIFEST.
func decode(b []byte) (*List, error) {
	if len(b) < headSize || !bytes.Equal(b[:headSize], head(b[headSize:])) {
		return nil, errors.New("it is not one whole list of tables; another program may have added to it")
	}
	set := &pb.ManifestChangeSet{}
	if err := proto.Unmarshal(b[headSize:], set); err != nil {
		return nil, err
	}
	rest := set.ProtoReflect().GetUnknown()
	field, _, n := protowire.ConsumeTag(rest)
	if n < 0 || field != listField {
		return nil, errors.New("it lacks the part that holdfast writes: another program wrote it")
	}
	own, n := protowire.ConsumeBytes(rest[n:])
	if n < 0 {
		return nil, errors.New("the part that holdfast writes is cut")
	}
	l := &List{}
	if err := json.Unmarshal(own, l); err != nil {
		return nil, fmt.Errorf("the part that holdfast writes: %w", err)
	}
	if l.Format != listFormat {
		return nil, fmt.Errorf("it has format %d, this program reads %d", l.Format, listFormat)
	}
	l.sum()
	set.ProtoReflect().SetUnknown(nil)
	if !proto.Equal(set, l.changes()) || slices.ContainsFunc(set.Changes, func(c *pb.ManifestChange) bool { return c.Level >= levels }) {
		return nil, errors.New("what it says to Badger is not what holdfast writes: another program wrote it")
	}
	return l, nil
}

// maxList is more than the bytes of a list of all the tables that a process can map.
const maxList = 64 << 20

// ReadList reads the list of the tables in a folder, which may be empty.
func ReadList(dir string) (*List, error) {
	path := filepath.Join(dir, badger.ManifestFilename)
	if info, err := disk.Stat(path); err == nil && info.Size() > maxList { // a damaged file may have any length
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrList, badger.ManifestFilename, maxList)
	}
	b, err := disk.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return noList(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	l, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrList, badger.ManifestFilename, err)
	}
	return l, nil
}

// noList is the list of a folder that has no MANIFEST, and so no tables.
func noList(dir string) (*List, error) {
	tables, err := fs.Glob(os.DirFS(dir), "*"+suffix)
	if len(tables) > 0 || err != nil {
		return nil, errors.Join(fmt.Errorf("%w: there are tables, and %s is missing", ErrList, badger.ManifestFilename), err)
	}
	return &List{Format: listFormat}, nil
}
