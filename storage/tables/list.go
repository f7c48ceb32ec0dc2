package tables

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// ErrDamaged: a table, or the list of tables, is not what was written. errors.Is finds it.
var ErrDamaged = errors.New("the tables are damaged")

// Table is a table of the list.
type Table struct {
	ID      uint64
	Level   int    // 0 is the newest
	Size    int64  // of its file in bytes
	Sum     uint64 // xxhash64 of its file
	Entries uint64 // all versions, with those that are deleted or expired
	Version uint64 // the highest of its entries; of a new one in level 0 that of all
	First   []byte // its first key
}

// Floor says up to where a journal is in tables. The tables do not look into it.
type Floor struct{ Batch, Segment, Offset, Sum uint64 }

// List is what MANIFEST says. It is replaced as a whole, and never changed.
type List struct {
	Tables  []Table // by level; in level 0 by version, and then by key
	Window  uint64  // the number of the last window that was written
	Floor   Floor
	Doubled uint64 // entries that stand in two tables, as long as a merge is not over
	next    uint64 // ID of the next table
}

// Entries is how many different entries the tables have.
func (l *List) Entries() (n uint64) {
	for _, t := range l.Tables {
		n += t.Entries
	}
	return n - l.Doubled
}

// Bytes is the size of all tables.
func (l *List) Bytes() (n int64) {
	for _, t := range l.Tables {
		n += t.Size
	}
	return n
}

const (
	newManifest = badger.ManifestFilename + ".new"
	suffix      = ".sst"

	listVersion = 1
	listField   = 1000 // of Badger's message, which passes over fields that it does not know
)

// head is how a MANIFEST begins: Badger's magic, no magic of ours, and the version of its format.
var head = []byte("Bdgr\x00\x00\x00\x08")

// encode returns the bytes of MANIFEST: one set of changes that makes each table, and our own
// field.
func (l *List) encode() ([]byte, error) {
	var set pb.ManifestChangeSet
	own := binary.AppendUvarint(nil, listVersion)
	own = binary.AppendUvarint(own, l.Window)
	for _, n := range []uint64{l.Floor.Batch, l.Floor.Segment, l.Floor.Offset} {
		own = binary.AppendUvarint(own, n)
	}
	own = binary.BigEndian.AppendUint64(own, l.Floor.Sum)
	own = binary.AppendUvarint(own, l.next)
	own = binary.AppendUvarint(own, l.Doubled)
	own = binary.AppendUvarint(own, uint64(len(l.Tables)))
	for _, t := range l.Tables {
		set.Changes = append(set.Changes, &pb.ManifestChange{
			Id: t.ID, Op: pb.ManifestChange_CREATE, Level: uint32(t.Level), EncryptionAlgo: pb.EncryptionAlgo_aes,
		})
		own = binary.AppendUvarint(binary.AppendUvarint(own, t.ID), uint64(t.Size))
		own = binary.BigEndian.AppendUint64(own, t.Sum)
		own = binary.AppendUvarint(binary.AppendUvarint(own, t.Entries), t.Version)
		own = append(binary.AppendUvarint(own, uint64(len(t.First))), t.First...)
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&set)
	if err != nil {
		return nil, err
	}
	body = protowire.AppendBytes(protowire.AppendTag(body, listField, protowire.BytesType), own)
	b := binary.BigEndian.AppendUint32(slices.Clone(head), uint32(len(body)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	return append(b, body...), nil
}

// decode reads the bytes of MANIFEST.
func decode(b []byte) (*List, error) {
	if !bytes.HasPrefix(b, head) || len(b) < len(head)+8 {
		return nil, errors.New("its head is not that of a list of tables")
	}
	size, sum, body := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]), b[16:]
	if uint64(size) != uint64(len(body)) {
		return nil, errors.New("it has more than one set of changes: another program wrote it")
	}
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, errors.New("its sum is wrong")
	}
	var set pb.ManifestChangeSet
	if err := proto.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	field, _, n := protowire.ConsumeTag(set.ProtoReflect().GetUnknown())
	if n < 0 || field != listField {
		return nil, errors.New("it lacks the part that holdfast writes: another program wrote it")
	}
	own, n := protowire.ConsumeBytes(set.ProtoReflect().GetUnknown()[n:])
	if n < 0 {
		return nil, errors.New("the part that holdfast writes is cut")
	}
	l, err := decodeOwn(own)
	if err != nil {
		return nil, err
	}
	if len(l.Tables) != len(set.Changes) {
		return nil, fmt.Errorf("it names %d tables, and describes %d: another program wrote it", len(set.Changes), len(l.Tables))
	}
	for i, c := range set.Changes {
		if c.Op != pb.ManifestChange_CREATE || c.Id != l.Tables[i].ID || c.KeyId != 0 || c.Compression != 0 || c.Level > 6 {
			return nil, fmt.Errorf("what it says of table %d is not what holdfast writes", c.Id)
		}
		l.Tables[i].Level = int(c.Level)
	}
	return l, nil
}

// decodeOwn reads our own field. The levels stand in Badger's.
func decodeOwn(b []byte) (*List, error) {
	r := fieldReader{b: b}
	if v := r.uvarint(); v != listVersion && !r.bad {
		return nil, fmt.Errorf("it has version %d, this program reads %d", v, listVersion)
	}
	l := &List{
		Window: r.uvarint(),
		Floor:  Floor{Batch: r.uvarint(), Segment: r.uvarint(), Offset: r.uvarint(), Sum: r.sum()},
		next:   r.uvarint(), Doubled: r.uvarint(),
	}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		l.Tables = append(l.Tables, Table{
			ID: r.uvarint(), Size: int64(r.uvarint()), Sum: r.sum(), Entries: r.uvarint(), Version: r.uvarint(),
			First: r.bytes(r.uvarint()),
		})
	}
	if r.bad || len(r.b) > 0 {
		return nil, errors.New("the part that holdfast writes is damaged")
	}
	return l, nil
}

// fieldReader reads numbers. After a bad one all are 0.
type fieldReader struct {
	b   []byte
	bad bool
}

func (r *fieldReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *fieldReader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	b := slices.Clone(r.b[:n])
	r.b = r.b[n:]
	return b
}

func (r *fieldReader) sum() uint64 {
	if b := r.bytes(8); !r.bad {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// ReadList reads the list of the tables in a folder. A folder without one has no tables: a start
// writes it before there is a table.
func ReadList(dir string) (*List, error) {
	b, err := os.ReadFile(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		if left, _ := filepath.Glob(filepath.Join(dir, "*"+suffix)); len(left) > 0 {
			return nil, fmt.Errorf("%w: there is no %s, and %d tables are there", ErrDamaged, badger.ManifestFilename, len(left))
		}
		return &List{next: 1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	l, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, badger.ManifestFilename, err)
	}
	return l, nil
}

// with returns a list that has some tables more, and lacks others.
func (l *List) with(add []Table, drop []Table) *List {
	next := *l
	next.Tables = slices.DeleteFunc(slices.Clone(l.Tables), func(t Table) bool { return contains(drop, t.ID) })
	next.Tables = append(next.Tables, add...)
	slices.SortFunc(next.Tables, func(a, b Table) int {
		byAge := 0
		if a.Level == 0 {
			byAge = cmp.Compare(a.Version, b.Version)
		}
		return cmp.Or(cmp.Compare(a.Level, b.Level), byAge, bytes.Compare(a.First, b.First))
	})
	return &next
}

func contains(tables []Table, id uint64) bool {
	return slices.ContainsFunc(tables, func(t Table) bool { return t.ID == id })
}

// level returns the tables of a level.
func (l *List) level(n int) (tables []Table) {
	for _, t := range l.Tables {
		if t.Level == n {
			tables = append(tables, t)
		}
	}
	return tables
}

func tableName(id uint64) string { return fmt.Sprintf("%06d%s", id, suffix) }

// Upper returns how many windows level 0 has, and how many tables.
func (l *List) Upper() (windows, tables int) {
	last := uint64(0)
	for _, t := range l.level(0) {
		if tables++; windows == 0 || t.Version != last {
			windows, last = windows+1, t.Version
		}
	}
	return windows, tables
}

// Without returns the list without a table.
func (l *List) Without(id uint64) *List {
	for _, t := range l.Tables {
		if t.ID == id {
			return l.with(nil, []Table{t})
		}
	}
	return l
}

// Name is that of the table's file.
func (t *Table) Name() string { return tableName(t.ID) }
