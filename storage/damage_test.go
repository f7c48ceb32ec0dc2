package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// copyFolder copies a data folder as a killed process would leave it: what
// was written is in the page cache, synced or not.
func copyFolder(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if rel == reserveName {
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// smallStore has small memory tables, so that copies of it are small.
func smallStore(t *testing.T, dir string) *Store {
	return openTest(t, dir, Options{MemTable: minMemTable})
}

// killed makes a folder of n batches of three puts and a delete as a killed
// process leaves it, and says where in its log each batch ends.
func killed(t *testing.T, batches int) (dir, log string, ends []int) {
	t.Helper()
	live := t.TempDir()
	s := smallStore(t, live)
	var b Batch
	log = filepath.Join(dbName, filepath.Base(s.wal.files[0].file.Name()))
	for i := range batches {
		b.Reset()
		for j := range 3 {
			b.Put(PacketID{1, uint32(j), uint64(i)}, &Packet{Key: fmt.Append(nil, i), Payload: make([]byte, 50)})
		}
		if i > 0 {
			b.Delete(PacketID{1, 0, uint64(i - 1)}, Removed{})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		bytes, err := os.ReadFile(filepath.Join(live, log))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, readLog(bytes, 0).at)
	}
	dir = t.TempDir()
	copyFolder(t, live, dir)
	return dir, log, ends
}

// check opens a folder that was tampered with. It returns the number of
// batches found, or the error that reports the damage; anything but a whole
// number of batches is a failure.
func check(t *testing.T, dir, what string, batches int) (int, error) {
	t.Helper()
	s, err := Open(dir, Options{MemTable: minMemTable})
	if err != nil {
		for _, known := range []error{ErrLoss, ErrDamaged} {
			if errors.Is(err, known) {
				return 0, err
			}
		}
		t.Fatalf("%s: not a sentence of ours: %v", what, err)
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
	want := map[PacketID]bool{}
	for i := range n {
		for j := range 3 {
			want[PacketID{1, uint32(j), uint64(i)}] = true
		}
		if i > 0 {
			delete(want, PacketID{1, 0, uint64(i - 1)})
		}
	}
	if len(ids) != len(want) {
		t.Fatalf("%s: %d packets after %d of %d batches, want %d", what, len(ids), n, batches, len(want))
	}
	for _, id := range ids {
		if !want[id] {
			t.Fatalf("%s: packet %v should not be there", what, id)
		}
	}
	return n, nil
}

// forget sets the anchor back, as if the last batches were never acknowledged.
func forget(t *testing.T, dir string, batch uint64) {
	t.Helper()
	var b [anchorSize]byte
	encodeAnchor(b[:anchorSlot], anchorMark{epoch: 1, batch: batch, always: true})
	if err := os.WriteFile(filepath.Join(dir, anchorName), b[:], 0o600); err != nil {
		t.Fatal(err)
	}
}

func step(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

func TestTornBatchIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir, log, ends := killed(t, 3)
	forget(t, dir, 2)
	whole, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	tear := map[string]func(b []byte, at int) []byte{
		"cut":     func(b []byte, at int) []byte { return b[:at] },
		"zeroed":  func(b []byte, at int) []byte { clear(b[at:ends[2]]); return b },
		"flipped": func(b []byte, at int) []byte { b[at] ^= 0x40; return b },
		"hole":    func(b []byte, at int) []byte { clear(b[ends[1]:at]); return b },
	}
	for name, fn := range tear {
		t.Run(name, func(t *testing.T) {
			for at := ends[1]; at < ends[2]; at += step(13, 41) {
				torn := t.TempDir()
				copyFolder(t, dir, torn)
				b := fn(append([]byte(nil), whole...), at)
				if err := os.WriteFile(filepath.Join(torn, log), b, 0o600); err != nil {
					t.Fatal(err)
				}
				n, err := check(t, torn, fmt.Sprint("byte ", at), 3)
				if err != nil {
					t.Fatalf("byte %d: a torn tail is not damage: %v", at, err)
				}
				if n != 2 && (name != "hole" || at > ends[1]) {
					t.Fatalf("byte %d: %d batches, want 2", at, n)
				}
				os.RemoveAll(torn)
			}
		})
	}
}

func TestFileThatWasMadeOrRemovedHalfwayIsNoDamage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"00000.mem", "00077.mem", "000000.vlog", "000077.vlog", "000077.sst", "MANIFEST-REWRITE", "REWRITE-KEYREGISTRY"} {
		t.Run(name, func(t *testing.T) {
			dir, _, _ := killed(t, 3)
			if err := os.WriteFile(filepath.Join(dir, dbName, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if n, err := check(t, dir, name, 3); err != nil || n != 3 {
				t.Errorf("%d batches, %v", n, err)
			}
		})
	}
}

func TestFlippedByteInTheLogIsReported(t *testing.T) {
	t.Parallel()
	const batches = 60
	dir, log, ends := killed(t, batches)
	whole, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	last := ends[batches-1]
	reported := 0
	places := 0
	for at := 0; at < last+30; at += last / step(200, 30) {
		places++
		anchored := places%2 == 0
		bad := t.TempDir()
		copyFolder(t, dir, bad)
		if !anchored {
			forget(t, bad, 1) // a power cut within the anchor's second
		}
		b := append([]byte(nil), whole...)
		b[at] ^= 0x10
		if err := os.WriteFile(filepath.Join(bad, log), b, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := check(t, bad, fmt.Sprint("byte ", at), batches)
		switch {
		case err != nil:
			reported++
		case n == batches: // a byte that nobody reads
		case n == batches-1 && !anchored && at >= ends[batches-2]: // cannot be told from a torn tail
		default:
			t.Errorf("byte %d, anchored %v: %d of %d batches and no report", at, anchored, n, batches)
		}
		os.RemoveAll(bad)
	}
	t.Logf("%d flips of %d were reported", reported, places)
	if reported < places/2 {
		t.Errorf("only %d flips of %d were reported", reported, places)
	}
}

func TestLogsThatDoNotJoinAreDamage(t *testing.T) {
	dir, log, ends := killed(t, 4)
	secret := secretOf(t, dir)
	whole, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	part := func(from, to int) []byte { // batches from+1 to to as a log
		b := append([]byte(nil), whole[:logHeader]...)
		start := logHeader
		if from > 0 {
			start = ends[from-1]
		}
		return append(append(b, whole[start:ends[to-1]]...), make([]byte, 100)...)
	}
	torn := part(0, 2)
	torn[ends[0]+30] ^= 1
	rows := map[string]struct {
		logs    [][]byte
		damaged bool
	}{
		"one log":                              {[][]byte{part(0, 4)}, false},
		"the second goes on where one ends":    {[][]byte{part(0, 2), part(2, 4)}, false},
		"an empty one between":                 {[][]byte{part(0, 2), make([]byte, 100), part(2, 4)}, false},
		"a torn batch written again":           {[][]byte{torn, part(1, 4)}, false},
		"a torn batch at the end":              {[][]byte{torn}, false},
		"a torn batch and the one after it":    {[][]byte{torn, part(2, 4)}, true},
		"a log is missing":                     {[][]byte{part(0, 1), part(2, 4)}, true},
		"the first log begins in the middle":   {[][]byte{part(2, 4)}, true},
		"the first log is zeros":               {[][]byte{make([]byte, 100), part(2, 4)}, true},
		"damage before a readable batch":       {[][]byte{append(torn[:len(torn)-100:len(torn)-100], part(2, 4)[logHeader:]...)}, true},
		"damage at the start, two batches on":  {[][]byte{append(make([]byte, logHeader+5), whole[ends[0]:ends[3]]...)}, true},
		"damage at the start, one batch stays": {[][]byte{append(make([]byte, logHeader+5), whole[ends[0]:ends[1]]...)}, true},
		"the first batch of all is torn":       {[][]byte{append(make([]byte, logHeader+5), whole[logHeader+5:ends[0]]...)}, false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			db := t.TempDir()
			for i, b := range row.logs {
				if err := os.WriteFile(filepath.Join(db, logName(i+1)), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := checkLogs(db, secret, nil); errors.Is(err, ErrDamaged) != row.damaged {
				t.Errorf("it gives %v", err)
			}
			var accepted findings
			if _, err := checkLogs(db, secret, accepted.add); err != nil || len(accepted.all()) > 0 != row.damaged {
				t.Errorf("accepted, it gives %v and %v", err, accepted.all())
			}
		})
	}
}

func TestFlippedByteInAnyOtherFileIsReportedOrHarmless(t *testing.T) {
	t.Parallel()
	live := t.TempDir()
	s := smallStore(t, live)
	var b Batch
	const batches = 40
	for i := range batches {
		b.Reset()
		for j := range 3 {
			b.Put(PacketID{1, uint32(j), uint64(i)}, &Packet{Key: fmt.Append(nil, i), Payload: make([]byte, 50)})
		}
		if i > 0 {
			b.Delete(PacketID{1, 0, uint64(i - 1)}, Removed{})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(live, dbName, "*"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(live, anchorName), filepath.Join(live, formatName), filepath.Join(live, secretName))
	reported := map[string]int{} // by extension
	for _, file := range files {
		rel, _ := filepath.Rel(live, file)
		t.Run(rel, func(t *testing.T) {
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			used := min(len(whole), 64<<10)
			for at := 0; at < used; at += max(1, used/step(30, 12)) {
				bad := t.TempDir()
				copyFolder(t, live, bad)
				b := append([]byte(nil), whole...)
				b[at] ^= 0x10
				if err := os.WriteFile(filepath.Join(bad, rel), b, 0o600); err != nil {
					t.Fatal(err)
				}
				n, err := check(t, bad, fmt.Sprint("byte ", at), batches)
				if err != nil {
					reported[filepath.Ext(file)]++
				} else if n != batches {
					t.Errorf("byte %d: %d of %d batches and no report", at, n, batches)
				}
				os.RemoveAll(bad)
			}
		})
	}
	// All packets are in the table by now, and each of its bytes counts.
	t.Log(reported)
	if reported[tableSuffix] < step(30, 12)/2 || reported[""] == 0 {
		t.Errorf("flips reported, by extension of the file: %v", reported)
	}
}
