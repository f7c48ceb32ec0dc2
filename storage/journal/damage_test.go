package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// files reads all files of a journal, by name.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if all[n.Name()], err = os.ReadFile(filepath.Join(dir, n.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func write(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes bytes of a file where it is.
func overwrite(t testing.TB, f io.WriterAt, at int, b []byte) {
	t.Helper()
	if _, err := f.WriteAt(b, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// numbered returns the name of the file that has a segment.
func numbered(t testing.TB, dir string, number uint32) string {
	t.Helper()
	for name, b := range files(t, dir) {
		if h := readHeader(b); uint32(h.Number) == number {
			return name
		}
	}
	t.Fatalf("segment %d is not there", number)
	return ""
}

// A device that loses power while it writes a record has some of its new bytes, and elsewhere what
// was there before: zeros, or records of an earlier use of the file.
func TestTornLastRecordIsTheEnd(t *testing.T) {
	for name, test := range map[string]struct{ used, begins bool }{
		"in a new file":                {},
		"in a used file":               {used: true},
		"with the header of a new one": {begins: true},
		"with that of a used one":      {used: true, begins: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, dir, Options{Spares: 9})
			first := uint64(1)
			if test.used {
				_, marks := appendUpTo(t, j, 1, 50)
				if first = 51; j.Release(marks[49]) != nil || len(j.spare) < 9 {
					t.Fatal("nothing is used again")
				}
			}
			appendUpTo(t, j, first, first+5)
			before, after, place, end := lastAppend(t, j, test.begins)
			last, from := j.end.Batch, int(place.Offset)
			if test.begins {
				from = 512 // a header is in one sector of the device
			}
			for cut := from + 1 + rand.IntN(stride(23)); cut < int(j.end.End); cut += stride(23) {
				for way, torn := range [][]byte{
					slices.Concat(after[:cut], before[cut:]),
					slices.Concat(before[:cut], after[cut:]),
				} {
					overwrite(t, j.current.file, 0, torn[:j.end.End])
					want := last - 1
					if bytes.Equal(torn[:headerSize], after[:headerSize]) && bytes.Equal(torn[place.Offset:j.end.End], after[place.Offset:j.end.End]) {
						want = last
					}
					if got, err := reread(t, dir, ReplayOptions{After: end}); err != nil || got != want {
						t.Fatalf("torn at %d in way %d it ends at %d, not %d: %v", cut, way, got, want, err)
					}
				}
			}
		})
	}
}

// lastAppend appends until a record began a segment, or did not. It returns the bytes of its file
// before and after it, its place, and where the record before it ends.
func lastAppend(t *testing.T, j *Journal, begins bool) (before, after []byte, p Place, end Mark) {
	t.Helper()
	for {
		was := files(t, j.dir)
		end = j.end
		places, _ := appendUpTo(t, j, end.Batch+1, end.Batch+1)
		if p = places[0]; (p.Offset == page) == begins && j.end.End-int64(p.Offset) == 2*page {
			name := filepath.Base(j.current.file.Name())
			if before = was[name]; before == nil {
				before = make([]byte, segmentSize)
			}
			return before, files(t, j.dir)[name], p, end
		}
	}
}

func TestEveryFlippedByteIsDamageOrTheEndOrHarmless(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	var last, length uint64
	var place Place
	for len(j.begun) < 3 || j.end.End < 3*page {
		last++
		places, _ := appendUpTo(t, j, last, last)
		c := content(last)
		place, length = places[0], uint64(c.Overhead()+len(slices.Concat(c.Body...)))
	}
	var damaged, ends, harmless int
	for _, s := range j.begun {
		b := files(t, dir)[filepath.Base(s.file.Name())]
		for i := rand.IntN(stride(7)); i < len(b); i += stride(7) {
			overwrite(t, s.file, i, []byte{b[i] ^ 1<<(i%8)})
			got, err := reread(t, dir, ReplayOptions{})
			switch {
			case errors.Is(err, ErrDamage):
				damaged++
			case err == nil && got == last:
				harmless++
			case err == nil && got == last-1 && s == j.current && uint64(i)-uint64(place.Offset) < length:
				ends++
			default:
				t.Fatalf("byte %d of %s: it ends at %d of %d: %v", i, s.file.Name(), got, last, err)
			}
			overwrite(t, s.file, i, b[i:i+1])
		}
	}
	if damaged < 2*page/stride(7) || ends < int(length)/stride(7) || harmless == 0 {
		t.Errorf("%d flips are damage, %d the end, and %d harmless; the last record has %d bytes", damaged, ends, harmless, length)
	}
}

func TestAcceptedLossGoesOnBehindTheHole(t *testing.T) {
	dir := t.TempDir()
	places, marks := appendUpTo(t, open(t, dir, Options{}), 1, 30)
	name := numbered(t, dir, places[9].Segment)
	b := files(t, dir)[name]
	b[places[9].Offset+headSize] ^= 1
	write(t, dir, name, b)

	j := open(t, dir, Options{})
	if last, err := replayed(t, j, ReplayOptions{}); last != 9 || !errors.Is(err, ErrDamage) || !strings.Contains(err.Error(), "between batch 9 and batch 11") {
		t.Errorf("it ends at %d: %v", last, err)
	}
	if _, err := j.Window(Mark{}, marks[29]); !errors.Is(err, ErrDamage) {
		t.Errorf("a window of a loss that was not accepted: %v", err)
	}
	notes, after := 0, 0
	if last, err := replayed(t, j, ReplayOptions{AcceptBelow: 9}); last != 9 || !errors.Is(err, ErrDamage) {
		t.Errorf("it ends at %d, where damage before the end of batch 9 is accepted: %v", last, err)
	}
	o := ReplayOptions{AcceptBelow: 10, Note: func(string) { notes++ }}
	end, err := j.Replay(o, func(r Record) error {
		if r.AfterHole {
			after++
		}
		return nil
	})
	if err != nil || end != marks[29] || after != 20 || notes != 1 {
		t.Errorf("it ends at %d, %d records behind the hole, %d notes: %v", end.Batch, after, notes, err)
	}
	w, err := j.Window(Mark{}, end)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if c := content(30); !bytes.Equal(w.Bytes(behind(places[29], c.Overhead()), uint32(len(c.Body[0]))), c.Body[0]) {
		t.Error("batch 30 differs in the window")
	}
}

func TestUnsyncedHoleIsTheEndOfAWeakJournal(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{Weak: true})
	places, marks := appendUpTo(t, j, 1, 30)
	name := numbered(t, dir, places[9].Segment)
	b := files(t, dir)[name]
	clear(b[places[9].Offset : places[9].Offset+page])
	write(t, dir, name, b)
	if last, err := reread(t, dir, ReplayOptions{}); last != 9 || err != nil {
		t.Errorf("it ends at %d: %v", last, err)
	}
	// What was appended cannot end before its end.
	if _, err := j.Window(Mark{}, marks[29]); !errors.Is(err, ErrDamage) {
		t.Errorf("a window with a hole: %v", err)
	}
}

func TestClientsBytesAreNoRecords(t *testing.T) {
	for name, fake := range map[string]func(j *Journal, first []byte) []byte{
		"the next record, of another salt": func(j *Journal, _ []byte) []byte {
			b := make([]byte, headSize+100)
			seal(b, &[16]byte{1}, head{Batch: 4, Previous: j.end.Sum, Flags: flagOrdered})
			return b
		},
		"a later record, of no salt": func(*Journal, []byte) []byte {
			b := make([]byte, headSize+100)
			seal(b, new([16]byte), head{Batch: 1 << 60, Flags: flagOrdered})
			return b
		},
		"an earlier record of the same segment": func(_ *Journal, first []byte) []byte { return first },
		"lengths that reach over all":           func(*Journal, []byte) []byte { return []byte("HFRC\xff\xff\xff\xff") },
	} {
		dir := t.TempDir()
		j := open(t, dir, Options{})
		appendUpTo(t, j, 1, 2)
		b := files(t, dir)[filepath.Base(j.current.file.Name())]
		first := b[page : page+binary.BigEndian.Uint32(b[page+4:])]
		body := make([]byte, 2*page)
		copy(body[page-headSize:], fake(j, first))
		place, _, err := j.Append(Content{Batch: 3, Body: [][]byte{body}})
		if err != nil {
			t.Fatal(err)
		}
		torn := make([]byte, 1)
		overwrite(t, j.current.file, int(place.Offset), torn) // the record around it counts no more
		if last, err := reread(t, dir, ReplayOptions{}); last != 2 || err != nil {
			t.Errorf("%s: it ends at %d: %v", name, last, err)
		}
	}
}

// Who fills a segment with lengths would cost a start a sum of the rest of it for each page.
func TestWhatAClientsLengthReachesOverIsNotRead(t *testing.T) {
	b, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	record := b[page-headSize:]
	seal(record, &[16]byte{1}, head{Batch: 1})
	if err := unix.Mprotect(b[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if _, _, ok := readRecord(record, new(header)); ok {
		t.Error("it counts")
	}
}

func TestShortOrForeignFilesAreDamage(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"cut":        func(b []byte) []byte { return b[:page+1] },
		"no page":    func(b []byte) []byte { return b[:10] },
		"other text": func(b []byte) []byte { return append([]byte("hello"), b[5:]...) },
	} {
		dir := t.TempDir()
		j := open(t, dir, Options{})
		appendUpTo(t, j, 1, 20)
		first := numbered(t, dir, 1)
		write(t, dir, first, spoil(files(t, dir)[first]))
		if _, err := reread(t, dir, ReplayOptions{}); !errors.Is(err, ErrDamage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each file gets the bytes of any segment, or goes. What is read is what the segments up to the
// first missing one have; it is damage unless all behind that are missing, too.
func TestSegmentsInAnyOrderAreReadOrDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	var ends []uint64 // the last batch of each segment
	for n := uint64(1); len(j.begun) < 6; n++ {
		if appendUpTo(t, j, n, n); len(j.begun) > len(ends) {
			ends = append(ends, 0)
		}
		ends[len(ends)-1] = n
	}
	all := files(t, dir)
	names := slices.Sorted(maps.Keys(all))
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var read, damage int
	for range 500 {
		dir := t.TempDir()
		there := make([]bool, len(names)+1)
		keep := r.IntN(len(names) + 1)
		for i, from := range r.Perm(len(names)) {
			if r.IntN(3) == 0 {
				from = r.IntN(len(names)) // perhaps twice
			}
			if b := all[names[from]]; from < keep || r.IntN(4) == 0 {
				there[readHeader(b).Number-1] = true
				write(t, dir, names[i], b)
			}
		}
		missing := slices.Index(there, false)
		want := uint64(0)
		if missing > 0 {
			want = ends[missing-1]
		}
		got, err := reread(t, dir, ReplayOptions{})
		if damaged := slices.Contains(there[missing:], true); errors.Is(err, ErrDamage) != damaged || got != want {
			t.Errorf("seed %d: with the segments %v it ends at %d, not %d: %v", seed, there, got, want, err)
		} else if damaged {
			damage++
		} else {
			read++
		}
	}
	if read < 20 || damage < 20 {
		t.Errorf("%d arrangements were read, %d damaged", read, damage)
	}
}

func TestBytesOfAnotherSegmentAreDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	appendUpTo(t, j, 1, 30)
	second := numbered(t, dir, 2)
	b, other := files(t, dir)[second], files(t, dir)[numbered(t, dir, 1)]
	write(t, dir, second, slices.Concat(b[:page], other[page:]))
	if _, err := reread(t, dir, ReplayOptions{}); !errors.Is(err, ErrDamage) {
		t.Error(err)
	}
}

// A removal that was not synced may come back, under a name that is used by another file.
func TestFilesOfAnEarlierRunChangeNothing(t *testing.T) {
	dir := t.TempDir()
	_, marks := appendUpTo(t, open(t, dir, Options{}), 1, 20)
	old := files(t, dir)
	j := open(t, dir, Options{})
	if err := j.Begin(marks[19]); err != nil {
		t.Fatal(err)
	}
	appendUpTo(t, j, 21, 40)
	for name, b := range old {
		write(t, dir, "old-"+name, b)
	}
	if last, err := reread(t, dir, ReplayOptions{After: marks[19]}); last != 40 || err != nil {
		t.Errorf("it ends at %d: %v", last, err)
	}
}

// The tables of an older copy of the folder end where another history began.
func TestRecordsOfAnotherHistoryAreDamage(t *testing.T) {
	dir := t.TempDir()
	_, marks := appendUpTo(t, open(t, dir, Options{}), 1, 20)
	floor := marks[9]
	floor.Sum++
	if last, err := reread(t, dir, ReplayOptions{After: floor}); last != 10 || !errors.Is(err, ErrDamage) {
		t.Errorf("it ends at %d: %v", last, err)
	}
}
