package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// corruption is one way in which a file goes bad.
type corruption struct {
	name   string
	change func(b []byte) []byte // nil: the file is removed
}

// corruptions truncate, zero and flip at the header, in the middle, at the
// tail and in the footer of what a file uses: its zeros at the end apart.
func corruptions() []corruption {
	used := func(b []byte) int {
		n := len(b)
		for n > 0 && b[n-1] == 0 {
			n--
		}
		return max(n, min(len(b), 16))
	}
	list := []corruption{
		{"removed", func([]byte) []byte { return nil }},
		{"emptied", func(b []byte) []byte { return b[:0] }},
		{"all zeros", func(b []byte) []byte { clear(b); return b }},
		{"doubled", func(b []byte) []byte { return append(b, b...) }},
	}
	places := map[string]func(n int) int{
		"header": func(n int) int { return min(9, n-1) },
		"early":  func(n int) int { return n / 4 },
		"middle": func(n int) int { return n / 2 },
		"tail":   func(n int) int { return n * 9 / 10 },
		"footer": func(n int) int { return n - min(n, 3) },
	}
	for where, place := range places {
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
	slices.SortFunc(list, func(a, b corruption) int { return len(a.name) - len(b.name) })
	return list
}

func TestDamageOfAnyFileIsReportedOrHarmless(t *testing.T) {
	folders := map[string]damageFolder{"stopped": newDamageFolder(t, false), "killed": newDamageFolder(t, true)}
	rows := []struct{ build, file string }{
		{"stopped", folders["stopped"].file(t, tableSuffix, 0)},
		{"stopped", folders["stopped"].file(t, tableSuffix, 2)},
		{"stopped", filepath.Join(dbName, manifestName)},
		{"stopped", anchorName},
		{"stopped", secretName},
		{"stopped", formatName},
		{"stopped", lockName},
		{"stopped", filepath.Join(dbName, "KEYREGISTRY")},
		{"stopped", filepath.Join(dbName, "DISCARD")},
		{"stopped", folders["stopped"].file(t, valueLogSuffix, 0)},
		{"killed", folders["killed"].file(t, logSuffix, 0)},
		{"killed", folders["killed"].file(t, tableSuffix, 1)},
		{"killed", filepath.Join(dbName, manifestName)},
		{"killed", folders["killed"].file(t, valueLogSuffix, 0)},
	}
	for _, row := range rows {
		for _, c := range corruptions() {
			if testing.Short() && len(c.name)%3 != 0 {
				continue
			}
			t.Run(row.build+"/"+filepath.Base(row.file)+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				f := folders[row.build]
				dir := f.copied(t, row.file, c.change)
				tolerant(t, f, dir)
				strict(t, f, dir)
				opened(t, f, dir)
			})
		}
	}
}

// whole tells whether scans show all that the folder had and nothing else.
func (f *damageFolder) whole(packets func(fn func(PacketID, *Meta) error) error, items func(fn func(ValueID, item) error) error, control Control) error {
	n := 0
	err := packets(func(id PacketID, m *Meta) error {
		if !f.want[id] {
			return fmt.Errorf("packet %v should not be there", id)
		}
		n++
		return nil
	})
	err = errors.Join(err, items(func(v ValueID, i item) error {
		if f.items[v] != i.version {
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
	for _, known := range []error{ErrLoss, ErrDamaged, ErrNotFolder, ErrNewerFormat} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Errorf("%s: not a sentence of ours: %v", what, err)
}

func opened(t *testing.T, f damageFolder, dir string) {
	s, err := Open(dir, Options{MemTable: minMemTable})
	if err != nil {
		reported(t, "open", err)
		return
	}
	control := s.Control()
	_, tally := scanned(t, s)
	if err := s.Verify(tally); err != nil {
		reported(t, "open", err)
	} else if err := f.whole(s.Packets, func(fn func(ValueID, item) error) error { return eachItem(s, fn) }, control); err != nil {
		t.Errorf("open, without a word: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func strict(t *testing.T, f damageFolder, dir string) {
	before := state(t, dir)
	v, err := OpenView(dir, ViewOptions{})
	if err != nil {
		reported(t, "view", err)
	} else {
		records := v.Records(QueueRange{}, func(_ PacketID, _ []byte, damage error) error { return damage })
		packets := func(fn func(PacketID, *Meta) error) error { return v.Packets(QueueRange{}, fn) }
		items := func(fn func(ValueID, item) error) error {
			return v.Items(func(id ValueID, h *Head, f *Field, damage error) error {
				switch {
				case damage != nil:
					return damage
				case h != nil:
					return fn(id, item{version: h.Version})
				}
				return fn(id, item{version: f.Version})
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
	if !equalMaps(before, state(t, dir)) {
		t.Error("looking changed the folder")
	}
}

func tolerant(t *testing.T, f damageFolder, dir string) {
	before := state(t, dir)
	o, err := salvaged(t, f, dir)
	switch {
	case err != nil:
		reported(t, "tolerant view", err)
	case len(o.findings) == 0 && (o.lost > 0 || o.items > 0 || o.extra > 0 || !o.right):
		t.Errorf("tolerant view, without a word: %d packets and %d items lost, %d returned, control record right: %v", o.lost, o.items, o.extra, o.right)
	}
	if !equalMaps(before, state(t, dir)) {
		t.Error("looking changed the folder")
	}
}

func TestDamagedListOfTablesIsRefusedAndNoTableIsRemoved(t *testing.T) {
	f := newDamageFolder(t, false)
	for name, change := range map[string]func(b []byte) []byte{
		"removed": func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"empty":   func(b []byte) []byte { return b[:len(manifestMagic)] },
		// Of three sets of 12 bytes; zeros are sets without a change, whose checksum is right.
		"zeroed": func(b []byte) []byte { clear(b[len(b)-36 : len(b)-12]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir := f.copied(t, filepath.Join(dbName, manifestName), change)
			tolerant(t, f, dir)
			if _, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("it opens with %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, dbName, "*"+tableSuffix)); err != nil || len(left) != 3 {
				t.Errorf("of 3 tables %v are left, %v", left, err)
			}
		})
	}
}

// Many places at once, of several files: nothing that is given may be wrong,
// and nothing may be missing without a word.
func TestRandomDamageIsReportedAndNeverGivesWrongPackets(t *testing.T) {
	folders := []damageFolder{newDamageFolder(t, false), newDamageFolder(t, true)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range step(60, 15) {
		f := folders[round%2]
		dir := t.TempDir()
		copyFolder(t, f.dir, dir)
		files, err := filepath.Glob(filepath.Join(dir, dbName, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + random.IntN(3) {
			name := files[random.IntN(len(files))]
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			garble(random, b)
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tolerant(t, f, dir)
		strict(t, f, dir)
		opened(t, f, dir)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		os.RemoveAll(dir)
	}
}

// garble changes some bytes of what a file uses.
func garble(random *rand.Rand, b []byte) {
	used := max(len(bytes.TrimRight(b, "\x00")), min(len(b), 16))
	if used == 0 {
		return
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

// What a power cut leaves where batches are not synced one by one: a table
// that was just written is on the device, its log is not, and the list does
// not name it yet.
func TestTableWithoutItsLogIsNoDamageWhereBatchesAreNotSynced(t *testing.T) {
	for _, sync := range []SyncMode{SyncAlways(), SyncInterval(time.Minute), SyncNever()} {
		t.Run(sync.String(), func(t *testing.T) {
			dir, late := t.TempDir(), t.TempDir()
			o := Options{MemTable: minMemTable, Sync: sync}
			s := openTest(t, dir, o)
			if err := errors.Join(s.Apply(one(1, Packet{})), s.Close()); err != nil {
				t.Fatal(err)
			}
			copyFolder(t, dir, late)
			s = openTest(t, late, o)
			if err := errors.Join(s.Apply(one(2, Packet{})), s.Close()); err != nil {
				t.Fatal(err)
			}
			unlisted, err := filepath.Glob(filepath.Join(late, dbName, "*2"+tableSuffix))
			if err != nil || len(unlisted) != 1 {
				t.Fatal(unlisted, err)
			}
			if err := copyFile(unlisted[0], filepath.Join(dir, dbName, filepath.Base(unlisted[0]))); err != nil {
				t.Fatal(err)
			}
			want := error(nil)
			if sync == SyncAlways() {
				want = ErrDamaged
			}
			v, err := OpenView(dir, ViewOptions{})
			if !errors.Is(err, want) {
				t.Errorf("looking gives %v", err)
			}
			if err == nil {
				v.Close()
			}
			if s, err = Open(dir, o); !errors.Is(err, want) {
				t.Errorf("serving gives %v", err)
			}
			if err == nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
