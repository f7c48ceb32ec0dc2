package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// damageFolder is a small folder that has everything: packets of several
// blocks, large payloads, expiry, deletes and queues, strings and a hash; in
// tables, or in tables and a log that a kill left.
type damageFolder struct {
	dir     string
	control Control
	want    map[PacketID]bool
	items   map[ValueID]uint64 // their versions
}

// saltedPayload is the payload of a packet, which tells whose it is.
func saltedPayload(id PacketID) []byte {
	size := 300
	if id.Seq%11 == 3 {
		size = 2000
	}
	b := fmt.Appendf(nil, "<%v>", id)
	for len(b) < size {
		b = append(b, byte(len(b)*7)^byte(id.Seq))
	}
	return b
}

// saltedItem is the item with that version in a damageFolder. Every sixth is a hash.
func saltedItem(v ValueID, version uint64) item {
	i := item{name: fmt.Append(nil, v), version: version, value: []byte{}}
	switch {
	case v.IsField:
		i.value = saltedPayload(PacketID{9, uint32(v.ID), v.Field})
	case v.ID%6 == 0:
		i.kind = Hash
	default:
		i.kind, i.value = String, saltedPayload(PacketID{9, 9, v.ID*31 + version})
	}
	return i
}

// changeItems puts, overwrites and deletes items with batch i of a damageFolder.
func (f *damageFolder) changeItems(b *Batch, i uint64) {
	write := func(v ValueID) {
		next := saltedItem(v, i+1)
		old := Mark{Version: f.items[v]}
		if old.Version > 0 {
			old.Large = IsLarge(len(saltedItem(v, old.Version).value))
		}
		put(b, v, next, 0, false, old)
		f.items[v] = next.version
	}
	write(ValueID{ID: 1}) // again and again
	write(ValueID{ID: 10 + i})
	write(ValueID{6, i % 7, true})
	if v := (ValueID{ID: 8 + i}); i%3 == 0 && f.items[v] > 0 {
		remove(b, v, Mark{Version: f.items[v], Large: IsLarge(len(saltedItem(v, f.items[v]).value))})
		delete(f.items, v)
	}
}

func newDamageFolder(t *testing.T, kill bool) damageFolder {
	t.Helper()
	live := t.TempDir()
	f := damageFolder{want: make(map[PacketID]bool), items: make(map[ValueID]uint64)}
	s := smallStore(t, live)
	var b Batch
	for i := range uint64(40) {
		b.Reset()
		for j := range uint64(4) {
			id := PacketID{1 + uint32(i%2), uint32(j), i*4 + j}
			p := Packet{Key: []byte("k"), Payload: saltedPayload(id)}
			if j == 2 {
				p.Expiry = time.Now().Add(time.Hour).UnixMilli()
			}
			b.PutQueue(Queue{ID: id.Queue, Name: fmt.Append(nil, "queue ", id.Queue)})
			b.Put(id, &p)
			f.want[id] = true
		}
		if i > 1 {
			gone := PacketID{1 + uint32(i%2), 1, (i-2)*4 + 1}
			b.Delete(gone, Removed{Large: IsLarge(len(saltedPayload(gone)))})
			delete(f.want, gone)
		}
		f.changeItems(&b, i)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if i == 13 || i == 27 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = smallStore(t, live)
		}
	}
	f.control = s.Control()
	if !kill {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f.dir = t.TempDir()
	copyFolder(t, live, f.dir)
	return f
}

// outcome is what a view of a damaged folder shows.
type outcome struct {
	findings []Finding
	lost     int // packets that are not there or cannot be read
	extra    int // packets and items that should not be there
	items    int // that are not there or cannot be read
	right    bool
}

// salvaged reads all that a tolerant view gives. A packet that it gives must be the right one.
func salvaged(t *testing.T, f damageFolder, dir string) (o outcome, err error) {
	t.Helper()
	v, err := OpenView(dir, ViewOptions{Tolerant: true})
	if err != nil {
		return o, err
	}
	defer func() {
		if err := v.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	got, read := 0, make(map[PacketID]bool)
	damaged := 0
	var p Packet
	err = v.Records(QueueRange{}, func(id PacketID, rec []byte, damage error) error {
		switch {
		case damage != nil:
			damaged++
			return nil
		case DecodeRecord(rec, &p) != nil || !bytes.Equal(p.Payload, saltedPayload(id)):
			t.Errorf("packet %v is given with a wrong payload", id)
		case read[id]:
			t.Errorf("packet %v is given twice", id)
		}
		if read[id] = true; f.want[id] {
			got++
		} else {
			o.extra++
		}
		return nil
	})
	if err != nil {
		t.Errorf("records: %v", err)
	}
	if err := errors.Join(v.Queues(func(Queue) error { return nil }), v.Payloads(func(uint32, uint64, int64) error { return nil }),
		v.Packets(QueueRange{}, func(PacketID, *Meta) error { return nil })); err != nil {
		t.Errorf("the other scans: %v", err)
	}
	items := 0
	err = v.Items(func(id ValueID, h *Head, field *Field, damage error) error {
		i := item{}
		switch {
		case damage != nil:
			return nil
		case h != nil:
			i = item{kind: h.Kind, name: h.Name, version: h.Version, value: h.Value}
		default:
			i = item{name: field.Name, version: field.Version, value: field.Value}
		}
		if !sameItem(i, saltedItem(id, i.version)) {
			t.Errorf("%v is given with a wrong content", id)
		}
		if f.items[id] == i.version {
			items++
		} else {
			o.extra++
		}
		return nil
	})
	if err != nil {
		t.Errorf("items: %v", err)
	}
	o.findings, o.lost, o.items = v.Findings(), len(f.want)-got, len(f.items)-items
	o.right = v.Control() == f.control
	return o, nil
}

// copied returns a copy of the folder in which one file was changed; change
// may return nil to remove it.
func (f damageFolder) copied(t *testing.T, name string, change func(b []byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	copyFolder(t, f.dir, dir)
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b = change(b); b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// file returns the n-th file of the database with a suffix, as a path in the folder.
func (f damageFolder) file(t *testing.T, suffix string, n int) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, dbName, "*"+suffix))
	if err != nil || len(names) <= n {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	return filepath.Join(dbName, filepath.Base(names[n]))
}

// place finds where a packet's payload is in a file.
func place(t *testing.T, b []byte, id PacketID) int {
	t.Helper()
	at := bytes.Index(b, saltedPayload(id)[:60])
	if at < 0 {
		t.Fatalf("packet %v is not in the file", id)
	}
	return at
}

func TestSalvageBringsOutWhatCanBeReadAndSaysWhatCannot(t *testing.T) {
	stopped, killed := newDamageFolder(t, false), newDamageFolder(t, true)
	tableFile, logFile, manifestFile := stopped.file(t, tableSuffix, 1), killed.file(t, logSuffix, 0), filepath.Join(dbName, manifestName)
	inTable, inLog := PacketID{1, 0, 88}, PacketID{1, 0, 128}
	flipAt := func(offsets ...int) func(t *testing.T, b []byte, id PacketID) []byte {
		return func(t *testing.T, b []byte, id PacketID) []byte {
			at := place(t, b, id)
			for _, off := range offsets {
				b[at+off] ^= 0x5a
			}
			return b
		}
	}
	end := func(change func(b []byte) []byte) func(*testing.T, []byte, PacketID) []byte {
		return func(_ *testing.T, b []byte, _ PacketID) []byte { return change(b) }
	}
	rows := []struct {
		name    string
		folder  damageFolder
		file    string
		corrupt func(t *testing.T, b []byte, id PacketID) []byte
		lost    int    // at most
		says    string // in a finding
	}{
		{"one byte of a block", stopped, tableFile, flipAt(50), 14, "records are lost, from "},
		{"one byte that says how long a key is", stopped, tableFile, flipAt(-38), 14, "records are lost, from "},
		{"the index", stopped, tableFile, end(func(b []byte) []byte { clear(b[len(b)-300 : len(b)-20]); return b }), 0, "found by their checksums"},
		{"one byte of the index", stopped, tableFile, end(func(b []byte) []byte { b[len(b)-120] ^= 8; return b }), 0, "found by their checksums"},
		{"the length of the index", stopped, tableFile, end(func(b []byte) []byte { b[len(b)-12] ^= 8; return b }), 0, "found by their checksums"},
		{"the checksum of the index", stopped, tableFile, end(func(b []byte) []byte { b[len(b)-6] ^= 8; return b }), 0, "found by their checksums"},
		{"the length of the checksum", stopped, tableFile, end(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), 0, "found by their checksums"},
		{"the second half of a table", stopped, tableFile, end(func(b []byte) []byte { return b[:len(b)/2] }), 40, "found by their checksums"},
		{"a table", stopped, tableFile, end(func([]byte) []byte { return nil }), 60, "left out"},
		{"all of a table's bytes", stopped, tableFile, end(func(b []byte) []byte { clear(b); return b }), 60, "left out"},
		{"a table's file is empty", stopped, tableFile, end(func(b []byte) []byte { return b[:0] }), 60, "left out"},
		{"one byte of a record in a log", killed, logFile, flipAt(50), 1, "of packet " + inLog.String() + ", has a wrong checksum"},
		{"one byte of a length in a log", killed, logFile, flipAt(-40), 4, "is lost"},
		{"a length and more in a log", killed, logFile, flipAt(-40, -39, -38, -37, 10, 20), 4, "cannot be read and is lost"},
		{"a page of a log", killed, logFile, func(t *testing.T, b []byte, id PacketID) []byte {
			clear(b[place(t, b, id)-100:][:4096])
			return b
		}, 16, "cannot be read and is lost"},
		{"the last batch", killed, logFile, func(t *testing.T, b []byte, _ PacketID) []byte {
			at := place(t, b, PacketID{2, 0, 156})
			b[at+70], b[at+80] = 0, 0
			return b
		}, 1, "of packet 2/0/156"},
		{"the beginning of a log", killed, logFile, end(func(b []byte) []byte { clear(b[:200]); return b }), 4, "acknowledged batches lie behind"},
		{"the list of tables, one byte", stopped, manifestFile, end(func(b []byte) []byte { b[20] ^= 4; return b }), 0, "list of tables"},
		{"the list of tables, cut", stopped, manifestFile, end(func(b []byte) []byte { return b[:len(b)-5] }), 0, "does not name table"},
		{"the list of tables, its first bytes", stopped, manifestFile, end(func(b []byte) []byte { clear(b[:8]); return b }), 0, "bad magic"},
		{"the list of tables, all", stopped, manifestFile, end(func([]byte) []byte { return nil }), 0, "it is missing"},
		{"the anchor", killed, anchorName, end(func(b []byte) []byte { clear(b); return b }), 0, "no valid slot"},
		{"the anchor is gone", killed, anchorName, end(func([]byte) []byte { return nil }), 0, "it is missing"},
		{"the anchor is ahead", killed, anchorName, end(func(b []byte) []byte {
			encodeAnchor(b, anchorMark{epoch: 9, batch: 77, always: true})
			return b
		}), 0, "batches 41 to 77 are lost"},
		{"the secret", killed, secretName, end(func(b []byte) []byte { b[3] ^= 1; return b }), 0, "does not hold a secret"},
		{"the secret is gone", killed, secretName, end(func([]byte) []byte { return nil }), 0, "does not hold what the control record has"},
		{"the format", killed, formatName, end(func([]byte) []byte { return []byte("x\n") }), 0, "instead of a version number"},
		{"the format is gone", killed, formatName, end(func([]byte) []byte { return nil }), 0, "the file is missing"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			id := inTable
			if row.file == logFile {
				id = inLog
			}
			dir := row.folder.copied(t, row.file, func(b []byte) []byte { return row.corrupt(t, b, id) })
			o, err := salvaged(t, row.folder, dir)
			if err != nil {
				t.Fatal(err)
			}
			said := false
			for _, found := range o.findings {
				t.Log(found)
				said = said || strings.Contains(found.What, row.says)
			}
			if !said {
				t.Errorf("no finding says %q", row.says)
			}
			if o.lost > row.lost {
				t.Errorf("%d packets are lost, at most %d need to be", o.lost, row.lost)
			}
		})
	}
}

func TestPayloadThatLooksLikeALogIsNotSalvagedAsOne(t *testing.T) {
	live := t.TempDir()
	s := smallStore(t, live)
	secret := bytes.Repeat([]byte{7}, secretLen) // one of the client's own
	var fake []byte
	for version := range uint64(40) {
		key := string(appendPacketKey(nil, PacketID{1, 1, 1000 + version}))
		fake = append(fake, logRecordOf(metaTxn, key, version, AppendRecord(nil, &Packet{Payload: []byte("fake")}))...)
		control := Control{Epoch: 1, Batch: version, Marks: firstMarks()}
		fake = append(fake, logRecordOf(metaTxn, controlKey, version, appendControl(nil, &control, secret))...)
		fake = append(fake, logRecordOf(metaFinTxn, "!badger!txn", version, fmt.Append(nil, version))...)
	}
	var b Batch
	for i := range uint64(4) {
		b.Reset()
		payload := []byte("plain")
		if i == 1 {
			payload = fake
		}
		b.Put(PacketID{1, 1, i}, &Packet{Payload: payload})
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	copyFolder(t, live, dir)
	log := filepath.Join(dir, dbName, filepath.Base(s.wal.files[0].file.Name()))
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole, fake)
	clear(whole[at-60 : at]) // what comes before it, so that reading stops there
	if err := os.WriteFile(log, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	ids := viewed(t, v)
	t.Log(ids, v.Findings())
	for _, id := range ids {
		if id.Seq >= 1000 {
			t.Errorf("packet %v comes out of a payload", id)
		}
	}
	if !slices.Contains(ids, PacketID{1, 1, 2}) || !slices.Contains(ids, PacketID{1, 1, 3}) {
		t.Errorf("of the batches behind, %v are there", ids)
	}
}

func TestBadBlockOfPayloadsCostsTheseAlone(t *testing.T) {
	const size = 5000
	s, ids, name := inOneTable(t, 40, size)
	dir := s.folder.path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(bytes.Index(whole, numbered(7, size)) + 2000)
	flip(t, name, at)
	damaged := func(v *View) (bad []PacketID) {
		err := v.Records(QueueRange{}, func(id PacketID, rec []byte, damage error) error {
			if damage != nil {
				bad = append(bad, id)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return bad
	}
	if _, err := OpenView(dir, ViewOptions{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("without tolerance: %v", err)
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	if bad := damaged(v); !slices.Equal(bad, ids[7:8]) || len(v.Findings()) != 1 || !strings.Contains(v.Findings()[0].What, "from the payload of sequence 7 ") {
		t.Errorf("%v cannot be read, findings %v", bad, v.Findings())
	}
}
