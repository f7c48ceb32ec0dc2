package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// damageFolder is a small folder that has everything: packets of several blocks, large payloads,
// expiry, deletes and queues, strings and a hash; in tables, or in tables and a journal that a kill
// left.
type damageFolder struct {
	dir     string
	control content.Control
	want    map[content.PacketID]bool
	items   map[content.ValueID]uint64 // their versions
}

// saltedPayload is the payload of a packet, which tells whose it is.
func saltedPayload(id content.PacketID) []byte {
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
func saltedItem(v content.ValueID, version uint64) content.Item {
	i := content.Item{Name: fmt.Append(nil, v), Version: version, Value: []byte{}}
	switch {
	case v.IsField:
		i.Value = saltedPayload(content.PacketID{Queue: 9, Priority: uint32(v.ID), Seq: v.Field})
	case v.ID%6 == 0:
		i.Kind = content.Hash
	default:
		i.Kind, i.Value = content.String, saltedPayload(content.PacketID{Queue: 9, Priority: 9, Seq: v.ID*31 + version})
	}
	return i
}

// changeItems puts, overwrites and deletes items with batch i of a damageFolder.
func (f *damageFolder) changeItems(b *content.Batch, i uint64) {
	mark := func(v content.ValueID) (old content.Mark) {
		if old.Version = f.items[v]; old.Version > 0 {
			old.Large = content.IsLarge(len(saltedItem(v, old.Version).Value))
		}
		return old
	}
	for _, v := range []content.ValueID{{ID: 1}, {ID: 10 + i}, {ID: 6, Field: i % 7, IsField: true}} {
		put(b, v, saltedItem(v, i+1), 0, false, mark(v))
		f.items[v] = i + 1
	}
	if v := (content.ValueID{ID: 8 + i}); i%3 == 0 && f.items[v] > 0 {
		remove(b, v, mark(v))
		delete(f.items, v)
	}
}

func newDamageFolder(t *testing.T, kill bool) damageFolder {
	t.Helper()
	f := damageFolder{dir: t.TempDir(), want: make(map[content.PacketID]bool), items: make(map[content.ValueID]uint64)}
	s := smallStore(t, f.dir)
	var b content.Batch
	for i := range uint64(40) {
		for j := range uint64(4) {
			id := content.PacketID{Queue: 1 + uint32(i%2), Priority: uint32(j), Seq: i*4 + j}
			p := content.Packet{Key: []byte("k"), Payload: saltedPayload(id)}
			if j == 2 {
				p.Expiry = time.Now().Add(time.Hour).UnixMilli()
			}
			b.PutQueue(content.Queue{ID: id.Queue, Name: fmt.Append(nil, "queue ", id.Queue)})
			b.Put(id, &p)
			f.want[id] = true
		}
		if i > 1 {
			gone := content.PacketID{Queue: 1 + uint32(i%2), Priority: 1, Seq: (i-2)*4 + 1}
			b.Delete(gone, content.Removed{Large: content.IsLarge(len(saltedPayload(gone)))})
			delete(f.want, gone)
		}
		f.changeItems(&b, i)
		applied(t, s, &b)
		if i == 13 || i == 27 {
			settled(t, s)
		}
	}
	f.control = s.Control()
	if kill {
		f.dir = killed(t, s)
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// copied returns a copy of the folder in which one file was changed.
func (f *damageFolder) copied(t *testing.T, name string, change func(b []byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	copyFolder(t, f.dir, dir)
	edit(t, filepath.Join(dir, name), change)
	return dir
}

// relative returns the name of a file in the folder.
func (f *damageFolder) relative(t *testing.T, path string) string {
	t.Helper()
	rel, err := filepath.Rel(f.dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

// corruption is one way in which a file goes bad.
type corruption struct {
	name   string
	change func(b []byte) []byte // nil: the file is removed
}

// corruptions truncate, zero, flip and shift at some places of what a file uses: its zeros at the
// end apart.
func corruptions() []corruption {
	used := func(b []byte) int { return max(len(bytes.TrimRight(b, "\x00")), min(len(b), 16)) }
	list := []corruption{
		{"removed", func([]byte) []byte { return nil }},
		{"emptied", func(b []byte) []byte { return b[:0] }},
		{"all zeros", func(b []byte) []byte { clear(b); return b }},
		{"doubled", func(b []byte) []byte { return append(b, b...) }},
	}
	for where, place := range map[string]func(n int) int{
		"header": func(n int) int { return min(9, n-1) },
		"early":  func(n int) int { return n / 4 },
		"middle": func(n int) int { return n / 2 },
		"tail":   func(n int) int { return n * 9 / 10 },
		"footer": func(n int) int { return n - min(n, 3) },
	} {
		list = append(list,
			corruption{"truncated at the " + where, func(b []byte) []byte { return b[:place(used(b))] }},
			corruption{"zeroed at the " + where, func(b []byte) []byte {
				at := place(used(b))
				clear(b[at:min(at+100, len(b))])
				return b
			}},
			corruption{"flipped at the " + where, func(b []byte) []byte { b[place(used(b))] ^= 0x10; return b }},
			corruption{"shifted at the " + where, func(b []byte) []byte {
				at := place(used(b))
				copy(b[at:], b[at+1:])
				return b
			}},
		)
	}
	return list
}

// TestDamageOfAnyFileIsReportedOrHarmless is what holds of single damages: the folder is refused,
// or it has all that it had.
func TestDamageOfAnyFileIsReportedOrHarmless(t *testing.T) {
	stopped, left := newDamageFolder(t, false), newDamageFolder(t, true)
	stoppedTables, leftTables := tableFiles(t, stopped.dir), tableFiles(t, left.dir)
	rows := []struct {
		build string
		f     *damageFolder
		file  string
	}{
		{"stopped", &stopped, stopped.relative(t, stoppedTables[0])},
		{"stopped", &stopped, stopped.relative(t, stoppedTables[len(stoppedTables)-1])},
		{"stopped", &stopped, filepath.Join(dbName, manifestName)},
		{"stopped", &stopped, anchorName},
		{"stopped", &stopped, formatName},
		{"stopped", &stopped, lockName},
		{"killed", &left, left.relative(t, leftTables[1])},
		{"killed", &left, filepath.Join(dbName, manifestName)},
		{"killed", &left, anchorName},
	}
	for _, log := range logFiles(t, left.dir) {
		rows = append(rows, rows[0])
		rows[len(rows)-1].build, rows[len(rows)-1].f, rows[len(rows)-1].file = "killed", &left, left.relative(t, log)
	}
	first, stride := some(t, 3)
	n := stride - first
	for _, row := range rows {
		for _, c := range corruptions() {
			if n++; n%stride != 0 {
				continue
			}
			t.Run(row.build+"/"+row.file+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				row.f.judge(t, row.f.copied(t, row.file, c.change))
			})
		}
	}
}

// A file may be whole and yet not the one that belongs there, as after a copy that mixed names up.
func TestAFileThatIsNotOfThisFolderIsReported(t *testing.T) {
	if testing.Short() {
		t.Skip("folders are opened one after the other")
	}
	f := newDamageFolder(t, false)
	all := tableFiles(t, f.dir)
	log := append(bytes.Repeat([]byte{7}, 20), "an entry"...)
	for i, name := range all {
		name := f.relative(t, name)
		for j, other := range all {
			if i == j {
				continue
			}
			t.Run(fmt.Sprint(filepath.Base(other), " in place of ", filepath.Base(name)), func(t *testing.T) {
				b, err := os.ReadFile(other)
				if err != nil {
					t.Fatal(err)
				}
				dir := f.copied(t, name, func([]byte) []byte { return b })
				f.judge(t, dir)
				noticed(t, dir)
			})
		}
	}
	for _, name := range []string{f.relative(t, all[0]), filepath.Join(dbName, manifestName)} {
		t.Run("1 TiB of "+filepath.Base(name), func(t *testing.T) {
			dir := f.copied(t, formatName, func(b []byte) []byte { return b })
			if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil {
				t.Skip("the file system takes no such file:", err)
			}
			noticed(t, dir)
			if s, err := Open(dir, Options{}); err == nil {
				t.Error("it can be opened")
				_ = s.Close()
			} else {
				reported(t, "a start", err)
			}
		})
	}
	t.Run("a log of another program", func(t *testing.T) {
		dir := f.copied(t, formatName, func(b []byte) []byte { return b })
		if err := os.WriteFile(filepath.Join(dir, dbName, "000001.mem"), log, 0o600); err != nil {
			t.Fatal(err)
		}
		noticed(t, dir)
	})
}

// noticed checks that no look takes a folder for sound.
func noticed(t *testing.T, dir string) {
	t.Helper()
	for what, tolerant := range map[string]bool{"a tolerant": true, "a strict": false} {
		v, err := OpenView(dir, ViewOptions{Tolerant: tolerant})
		if err != nil {
			reported(t, what, err)
			continue
		}
		if len(v.Findings()) == 0 {
			t.Errorf("%s view says nothing", what)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Many places at once, of several files: nothing that is given may be wrong, and nothing may be
// missing without a word.
func TestRandomDamageIsReportedAndNeverGivesWrongPackets(t *testing.T) {
	folders := []damageFolder{newDamageFolder(t, false), newDamageFolder(t, true)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range step(40, 10) {
		f := folders[round%2]
		dir := t.TempDir()
		copyFolder(t, f.dir, dir)
		files, err := filepath.Glob(filepath.Join(dir, "[dj]*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + random.IntN(3) {
			edit(t, files[random.IntN(len(files))], func(b []byte) []byte { return garbled(random, b) })
		}
		f.judge(t, dir)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		os.RemoveAll(dir)
	}
}

// garbled changes some bytes of what a file uses.
func garbled(random *rand.Rand, b []byte) []byte {
	used := max(len(bytes.TrimRight(b, "\x00")), min(len(b), 16))
	if used == 0 {
		return b
	}
	for range 1 + random.IntN(4) {
		at := random.IntN(used)
		to := min(used, at+1+random.IntN(1<<random.IntN(10)))
		switch random.IntN(4) {
		case 0:
			b[at] ^= 1 << random.IntN(8)
		case 1:
			clear(b[at:to])
		case 2:
			for i := at; i < to; i++ {
				b[i] = byte(random.Uint32())
			}
		case 3:
			copy(b[at:to], b[random.IntN(used):])
		}
	}
	return b
}

// judge looks at a damaged copy of the folder in all ways there are.
func (f *damageFolder) judge(t *testing.T, dir string) {
	t.Helper()
	before := state(t, dir)
	f.tolerant(t, dir)
	f.strict(t, dir)
	if !equalMaps(before, state(t, dir)) {
		t.Error("looking changed the folder")
	}
	f.opened(t, dir)
}

// whole tells whether scans show all that the folder had and nothing else.
func (f *damageFolder) whole(packets func(fn func(content.PacketID, *content.Meta) error) error, items func(fn func(content.ValueID, content.Item) error) error, control content.Control) error {
	n := 0
	err := packets(func(id content.PacketID, m *content.Meta) error {
		if !f.want[id] {
			return fmt.Errorf("packet %v should not be there", id)
		}
		n++
		return nil
	})
	err = errors.Join(err, items(func(v content.ValueID, i content.Item) error {
		if f.items[v] != i.Version {
			return fmt.Errorf("%v should not be there", v)
		}
		n++
		return nil
	}))
	if want := len(f.want) + len(f.items); err == nil && n != want {
		err = fmt.Errorf("%d packets and items of %d", n, want)
	}
	if err == nil && control != f.control {
		err = fmt.Errorf("control record %+v instead of %+v", control, f.control)
	}
	return err
}

// reported fails the test when an error is not one that says what is wrong.
func reported(t *testing.T, what string, err error) {
	t.Helper()
	for _, known := range []error{ErrLoss, ErrDamaged, ErrNotFolder, ErrFormat} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Errorf("%s: not a sentence of ours: %v", what, err)
}

func (f *damageFolder) opened(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir, Options{Window: minWindow})
	if err != nil {
		reported(t, "open", err)
		return
	}
	control := s.Control()
	_, tally := scanned(t, s)
	if err := s.Verify(tally); err != nil {
		reported(t, "open", err)
	} else if err := f.whole(s.Packets, func(fn func(content.ValueID, content.Item) error) error { return eachItem(s, fn) }, control); err != nil {
		t.Errorf("open, without a word: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func (f *damageFolder) strict(t *testing.T, dir string) {
	t.Helper()
	v, err := OpenView(dir, ViewOptions{})
	if err != nil {
		reported(t, "view", err)
		return
	}
	records := v.Records(QueueRange{}, func(_ content.PacketID, _ []byte, damage error) error { return damage })
	packets := func(fn func(content.PacketID, *content.Meta) error) error { return v.Packets(fn) }
	items := func(fn func(content.ValueID, content.Item) error) error {
		return v.Items(func(id content.ValueID, h *content.Head, f *content.Field, damage error) error {
			switch {
			case damage != nil:
				return damage
			case h != nil:
				return fn(id, content.Item{Version: h.Version})
			}
			return fn(id, content.Item{Version: f.Version})
		})
	}
	if records != nil {
		reported(t, "view", records)
	} else if err := f.whole(packets, items, v.Control()); errors.Is(err, ErrLoss) || errors.Is(err, ErrDamaged) {
		reported(t, "view", err)
	} else if err != nil {
		t.Errorf("view, without a word: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// tolerant reads all that a tolerant view gives. What it gives must be right, and what is missing
// must be found.
func (f *damageFolder) tolerant(t *testing.T, dir string) {
	t.Helper()
	v, err := OpenView(dir, ViewOptions{Tolerant: true})
	if err != nil {
		reported(t, "tolerant view", err)
		return
	}
	defer func() {
		if err := v.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	read, items, extra := make(map[content.PacketID]bool), 0, 0
	var p content.Packet
	err = v.Records(QueueRange{}, func(id content.PacketID, rec []byte, damage error) error {
		switch {
		case damage != nil:
			return nil
		case content.DecodeRecord(rec, &p) != nil || !bytes.Equal(p.Payload, saltedPayload(id)) || read[id]:
			t.Errorf("packet %v is given twice, or with a wrong payload", id)
		}
		if read[id] = f.want[id]; !f.want[id] {
			extra++
		}
		return nil
	})
	err = errors.Join(err,
		v.Queues(func(content.Queue) error { return nil }),
		v.Payloads(func(uint32, uint64, int64) error { return nil }),
		v.Packets(func(content.PacketID, *content.Meta) error { return nil }),
		v.Items(func(id content.ValueID, h *content.Head, field *content.Field, damage error) error {
			i := content.Item{}
			switch {
			case damage != nil:
				return nil
			case h != nil:
				i = content.Item{Kind: h.Kind, Name: h.Name, Version: h.Version, Value: h.Value}
			default:
				i = content.Item{Name: field.Name, Version: field.Version, Value: field.Value}
			}
			if !sameItem(i, saltedItem(id, i.Version)) {
				t.Errorf("%v is given with a wrong content", id)
			}
			if items++; f.items[id] != i.Version {
				extra++
			}
			return nil
		}))
	if err != nil {
		t.Errorf("scans of a tolerant view: %v", err)
	}
	if len(v.Findings()) == 0 && (len(read) != len(f.want) || items != len(f.items) || extra > 0 || v.Control() != f.control) {
		t.Errorf("a tolerant view shows without a word %d of %d packets, %d of %d items, %d of them wrong, and %+v",
			len(read), len(f.want), items, len(f.items), extra, v.Control())
	}
}

// journalFolder is a folder whose packets are in the journal alone, as a kill leaves it: each batch
// puts three and deletes one.
type journalFolder struct {
	dir  string
	log  string // of dir, the one segment that has begun
	ends []int  // of each batch in it, without padding
}

func newJournalFolder(t *testing.T, batches int) (f journalFolder) {
	t.Helper()
	s := smallStore(t, t.TempDir())
	var b content.Batch
	for i := range batches {
		for j := range 3 {
			b.Put(content.PacketID{Queue: 1, Priority: uint32(j), Seq: uint64(i)}, &content.Packet{Key: fmt.Append(nil, i), Payload: make([]byte, 50)})
		}
		if i > 0 {
			b.Delete(content.PacketID{Queue: 1, Priority: 0, Seq: uint64(i - 1)}, content.Removed{})
		}
		applied(t, s, &b)
	}
	f.dir = killed(t, s)
	logs := logFiles(t, f.dir)
	if len(logs) != 1 {
		t.Fatal(logs)
	}
	whole, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	f.log, _ = filepath.Rel(f.dir, logs[0])
	for at := journalPage; bytes.HasPrefix(whole[at:], []byte("HFRC")); {
		f.ends = append(f.ends, at+int(binary.BigEndian.Uint32(whole[at+4:])))
		at = (f.ends[len(f.ends)-1] + journalPage - 1) / journalPage * journalPage
	}
	if len(f.ends) != batches {
		t.Fatalf("%d records of %d batches", len(f.ends), batches)
	}
	return f
}

const journalPage = 4096

// begin is where a batch begins in the segment; they count from 0.
func (f *journalFolder) begin(batch int) int {
	if batch == 0 {
		return journalPage
	}
	return (f.ends[batch-1] + journalPage - 1) / journalPage * journalPage
}

// check opens a copy whose segment was changed, and where the anchor tells of a batch unless that
// is 0. It returns the number of batches found, or the error that reports the damage; anything but
// a whole number of batches is a failure.
func (f *journalFolder) check(t *testing.T, what string, anchor uint64, o Options, change func(b []byte) []byte) (int, error) {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	copyFolder(t, f.dir, dir)
	edit(t, filepath.Join(dir, f.log), change)
	if anchor > 0 {
		forget(t, dir, anchor)
	}
	o.Window = minWindow
	s, err := Open(dir, o)
	if err != nil {
		if !errors.Is(err, ErrLoss) && !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: not a sentence of ours: %v", what, err)
		}
		return 0, err
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", what, err)
		}
	}()
	ids, tally := scanned(t, s)
	if err := s.Verify(tally); err != nil {
		return 0, err
	}
	n := int(s.Control().Batch)
	var want []content.PacketID
	for j := range uint32(3) {
		for i := range n {
			if j > 0 || i == n-1 {
				want = append(want, content.PacketID{Queue: 1, Priority: j, Seq: uint64(i)})
			}
		}
	}
	if !slices.Equal(ids, want) {
		t.Fatalf("%s: after %d batches %v are there", what, n, ids)
	}
	return n, nil
}

func TestTornBatchIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := newJournalFolder(t, 3)
	begin, end := f.begin(2), f.ends[2]
	for name, tear := range map[string]func(b []byte, at int) []byte{
		"cut":     func(b []byte, at int) []byte { clear(b[at:]); return b },
		"flipped": func(b []byte, at int) []byte { b[at] ^= 0x40; return b },
		"hole":    func(b []byte, at int) []byte { clear(b[begin : at+1]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			for at := begin + rand.IntN(step(7, 41)); at < end; at += step(7, 41) {
				what := fmt.Sprint("byte ", at)
				n, err := f.check(t, what, 2, Options{}, func(b []byte) []byte { return tear(b, at) })
				if err != nil {
					t.Fatalf("%s: a torn tail is not damage: %v", what, err)
				}
				if n != 2 && !(name == "cut" && n == 3 && at > end-8) { // it may have been zeros
					t.Fatalf("%s: %d batches, want 2", what, n)
				}
				if _, err := f.check(t, what, 3, Options{}, func(b []byte) []byte { return tear(b, at) }); !errors.Is(err, ErrLoss) && n == 2 {
					t.Fatalf("%s: a batch that was answered is torn: %v", what, err)
				}
			}
		})
	}
}

func TestFlippedByteInTheJournalIsReported(t *testing.T) {
	t.Parallel()
	const batches = 12
	f := newJournalFolder(t, batches)
	last := f.ends[batches-1]
	reported := 0
	for batch := range batches {
		for at := f.begin(batch) + rand.IntN(step(11, 60)); at < f.ends[batch]; at += step(11, 60) {
			anchor := uint64(at % 2) // 1: a power cut within the anchor's second
			n, err := f.check(t, fmt.Sprint("byte ", at), anchor, Options{}, func(b []byte) []byte { b[at] ^= 0x10; return b })
			switch {
			case err != nil:
				reported++
			case n == batches-1 && anchor > 0 && batch == batches-1: // cannot be told from a torn tail
			default:
				t.Errorf("byte %d, anchor at %d: %d of %d batches and no report", at, anchor, n, batches)
			}
		}
	}
	if reported < 10 {
		t.Errorf("only %d flips were reported", reported)
	}
	// What nobody reads does not matter.
	if n, err := f.check(t, "padding", 0, Options{}, func(b []byte) []byte { b[last+1] ^= 1; b[70] ^= 1; return b }); n != batches || err != nil {
		t.Errorf("flips of padding give %d batches, %v", n, err)
	}
}

func TestAcceptedHoleIsPassedOverAndToldOnce(t *testing.T) {
	f := newDamageFolder(t, true)
	log := f.relative(t, logFiles(t, f.dir)[0])
	at := func(b []byte) int { // where batch 34 begins; tables have 28
		for at, n := journalPage, 1; ; at += journalPage {
			if bytes.HasPrefix(b[at:], []byte("HFRC")) {
				if n++; n > 34 {
					return at
				}
			}
		}
	}
	for name, row := range map[string]struct {
		damage func(b []byte) []byte
		kinds  []string // of what was accepted
	}{
		"nothing is wrong":          {func(b []byte) []byte { return b }, nil},
		"the segment is removed":    {func([]byte) []byte { return nil }, []string{FindingAnchor}},
		"the end of it is zeros":    {func(b []byte) []byte { clear(b[at(b):]); return b }, []string{FindingAnchor}},
		"a record in it is zeros":   {func(b []byte) []byte { clear(b[at(b):][:journalPage]); return b }, []string{FindingLog}},
		"two pages in it are zeros": {func(b []byte) []byte { clear(b[at(b)-journalPage:][:2*journalPage]); return b }, []string{FindingLog}},
		"its header is zeros":       {func(b []byte) []byte { clear(b[:journalPage]); return b }, []string{FindingAnchor}},
		"its header is damaged":     {func(b []byte) []byte { b[20]++; return b }, []string{FindingAnchor, FindingLog}},
		"it is cut":                 {func(b []byte) []byte { return b[:at(b)] }, []string{FindingAnchor}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := f.copied(t, log, row.damage)
			if row.kinds != nil {
				if _, err := Open(dir, Options{Window: minWindow}); !errors.Is(err, ErrLoss) {
					t.Fatalf("it opens with %v", err)
				}
			}
			for again, want := range [][]string{row.kinds, nil} {
				s, err := Open(dir, Options{Window: minWindow, AcceptLoss: true})
				if err != nil {
					t.Fatal(err)
				}
				var kinds []string
				for _, f := range s.Accepted() {
					kinds = append(kinds, f.Kind)
				}
				if slices.Sort(kinds); !slices.Equal(kinds, want) {
					t.Errorf("accepted: %v, want %v", s.Accepted(), want)
				}
				_, tally := scanned(t, s)
				if err := s.Verify(tally); (err != nil) != (again == 0 && slices.Contains(want, FindingLog) && !slices.Contains(want, FindingAnchor)) {
					t.Errorf("start %d: the tally gives %v", again, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s := smallStore(t, dir)
			if _, tally := scanned(t, s); s.Verify(tally) != nil {
				t.Errorf("a start behind it gives %v", s.Verify(tally))
			}
		})
	}
}

// A packet that lies in tables, whose delete is lost, comes back with the next batch and goes.
func TestWhatIsDeletedBehindAnAcceptedHoleStaysDeleted(t *testing.T) {
	s := smallStore(t, t.TempDir())
	id := content.PacketID{Queue: 1, Priority: 1, Seq: 1}
	applied(t, s, one(1, content.Packet{}))
	settled(t, s)
	var b content.Batch
	b.Delete(id, content.Removed{}) // which is lost
	applied(t, s, &b)
	applied(t, s, one(1, content.Packet{}))
	b.Delete(id, content.Removed{})
	applied(t, s, &b)
	dir := killed(t, s)
	for _, log := range logFiles(t, dir) {
		edit(t, log, func(b []byte) []byte {
			at := bytes.LastIndex(b, []byte("HFRC")) - 2*journalPage
			clear(b[at : at+journalPage])
			return b
		})
	}
	s = openTest(t, dir, Options{Window: minWindow, AcceptLoss: true})
	if len(s.Accepted()) == 0 {
		t.Fatal("nothing was lost: the test proves nothing")
	}
	if ids, _ := scanned(t, s); len(ids) != 0 {
		t.Errorf("%v came back", ids)
	}
}

func TestFilesThatNoListNamesGo(t *testing.T) {
	for _, name := range []string{"000077.sst", "MANIFEST.new", "KEYREGISTRY", "DISCARD", "LOCK", "00001.mem", "000001.vlog"} {
		t.Run(name, func(t *testing.T) {
			f := newDamageFolder(t, false)
			path := filepath.Join(f.dir, dbName, name)
			content := make([]byte, 100)
			if strings.HasSuffix(name, "sst") || strings.HasSuffix(name, "new") {
				content[50] = 1 // of a flush that a kill cut short
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			before := state(t, f.dir)
			f.strict(t, f.dir)
			if !equalMaps(before, state(t, f.dir)) {
				t.Error("looking changed the folder")
			}
			f.opened(t, f.dir)
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

func TestDamagedListOfTablesIsRefusedAndNoTableIsRemoved(t *testing.T) {
	f := newDamageFolder(t, false)
	tables := len(tableFiles(t, f.dir))
	for name, change := range map[string]func(b []byte) []byte{
		"removed":                  func([]byte) []byte { return nil },
		"emptied":                  func(b []byte) []byte { return b[:0] },
		"cut":                      func(b []byte) []byte { return b[:len(b)-1] },
		"flipped":                  func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"written by Badger itself": func(b []byte) []byte { return append(b, b[8:]...) },
	} {
		dir := f.copied(t, filepath.Join(dbName, manifestName), change)
		for _, o := range []Options{{}, {AcceptLoss: true}} {
			if _, err := Open(dir, o); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrLoss) || !strings.Contains(err.Error(), manifestName) {
				t.Errorf("%s: it opens with %v", name, err)
			}
		}
		if left, err := filepath.Glob(filepath.Join(dir, dbName, "*.sst")); err != nil || len(left) != tables {
			t.Errorf("%s: of %d tables %v are left, %v", name, tables, left, err)
		}
	}
}

func TestDamagedTableIsRefusedAlsoWhenALossIsAccepted(t *testing.T) {
	f := newDamageFolder(t, false)
	dir := f.copied(t, f.relative(t, tableFiles(t, f.dir)[1]), func(b []byte) []byte { b[len(b)/3] ^= 4; return b })
	for _, o := range []Options{{}, {AcceptLoss: true}} {
		if _, err := Open(dir, o); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrLoss) || !strings.Contains(err.Error(), ".sst") {
			t.Errorf("it opens with %v", err)
		}
	}
	s, err := Open(dir, Options{Checked: true})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Errorf("a copy is checked again: %v", err)
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	if found := v.Findings(); len(found) == 0 || found[0].Kind != FindingTable {
		t.Errorf("findings %v", found)
	}
	if ids := viewed(t, v); len(ids) == 0 {
		t.Error("nothing is shown")
	}
}

func TestAMissingTableIsPassedOverOnceWhenALossIsAccepted(t *testing.T) {
	f := newDamageFolder(t, false)
	for _, table := range tableFiles(t, f.dir) {
		name := f.relative(t, table)
		dir := f.copied(t, name, func([]byte) []byte { return nil })
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrLoss) || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("without %s it opens with %v", name, err)
		}
		s, err := Open(dir, Options{Window: minWindow, AcceptLoss: true})
		if err != nil {
			t.Fatal(err)
		}
		if found := s.Accepted(); len(found) != 1 || found[0].Kind != FindingTable || found[0].Key != name {
			t.Errorf("without %s it accepts %v", name, found)
		}
		ids, tally := scanned(t, s)
		if err := s.Verify(tally); err != nil && !errors.Is(err, ErrLoss) {
			t.Errorf("without %s the tally gives %v", name, err)
		}
		if v := openView(t, killed(t, s), ViewOptions{Tolerant: true}); len(v.Findings()) > 0 {
			t.Errorf("without %s a look at what a start has accepted finds %v", name, v.Findings())
		}
		var b content.Batch
		id := content.PacketID{Queue: 1, Priority: 1, Seq: s.Control().NextSeq}
		if c := s.Control(); c.Batch < f.control.Batch || c.NextSeq < f.control.NextSeq || slices.Contains(ids, id) {
			t.Errorf("without %s the control record is %+v, it was %+v", name, c, f.control)
		}
		b.Put(id, &content.Packet{Payload: []byte("x")})
		applied(t, s, &b)
		s = smallStore(t, killed(t, s)) // which accepts nothing
		if left, tally := scanned(t, s); len(left) != len(ids)+1 || !slices.Contains(left, id) || s.Verify(tally) != nil {
			t.Errorf("without %s, and after a kill, %d packets are left of %d: %v", name, len(left), len(ids)+1, s.Verify(tally))
		}
	}
}

func TestSystemARecordThatPromisesMoreThanItHasTakesNoMemory(t *testing.T) {
	const gigabyte = "\xc6\x40\x00\x00\x00"
	for name, rec := range map[string]string{
		"name":        "\x81\x01" + gigabyte,
		"dead letter": "\x82\x01\xc4\x01q\x08" + gigabyte,
		"order":       "\x82\x01\xc4\x01q\x13\x81\xdb\x40\x00\x00\x00",
		"later field": "\x82\x01\xc4\x01q\x7f" + gigabyte,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := content.DecodeQueue([]byte(rec), new(content.Queue))
		runtime.ReadMemStats(&after)
		if grew := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, content.ErrRecord) || grew > 1<<20 {
			t.Errorf("%s: %v, with %d bytes", name, err, grew)
		}
	}
}

func TestProgressOfAViewReachesItsEnd(t *testing.T) {
	f := newDamageFolder(t, true)
	last, end := int64(0), int64(0)
	openView(t, f.dir, ViewOptions{Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d of %d bytes after %d", done, total, last)
		}
		last, end = done, total
	}})
	if last == 0 || last != end {
		t.Errorf("it ends at %d of %d bytes", last, end)
	}
}
