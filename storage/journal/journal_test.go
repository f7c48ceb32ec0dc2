package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var kills = flag.Int("kills", 60, "how often the test of kills kills a writer")

const segmentSize = 4 * page

func open(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	o.SegmentSize = segmentSize
	j, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// content is what batch n says: a length that jumps, and bytes that only it has.
func content(n uint64) Content {
	body := make([]byte, int(n*n*977%9000))
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	_, _ = r.Read(body)
	return Content{Batch: n, Control: fmt.Appendf(nil, "control %d", n), Entries: uint32(n), Body: [][]byte{body[:len(body)/3], body[len(body)/3:]}}
}

func appendUpTo(t testing.TB, j *Journal, first, last uint64) (places []Place, marks []Mark) {
	t.Helper()
	for n := first; n <= last; n++ {
		p, m, err := j.Append(content(n))
		if err != nil {
			t.Fatal(err)
		}
		places, marks = append(places, p), append(marks, m)
	}
	return places, marks
}

// replayed reads a journal, checks each record against what was appended, and returns the last
// batch.
func replayed(t testing.TB, j *Journal, o ReplayOptions) (uint64, error) {
	t.Helper()
	end, err := replayedTo(t, j, o)
	return end.Batch, err
}

func replayedTo(t testing.TB, j *Journal, o ReplayOptions) (end Mark, err error) {
	t.Helper()
	if o.Note == nil {
		o.Note = func(string) {}
	}
	last := o.After.Batch
	end, err = j.Replay(o, func(r Record) error {
		want := content(r.Batch)
		if r.Batch != last+1 && !r.AfterHole {
			t.Errorf("batch %d comes after %d", r.Batch, last)
		}
		if last = r.Batch; string(r.Control) != string(want.Control) || r.Entries != want.Entries || !bytes.Equal(r.Body, slices.Concat(want.Body...)) {
			t.Errorf("batch %d differs", r.Batch)
		}
		return nil
	})
	if err == nil && end.Batch != last {
		t.Errorf("it ends at %d, the last record is %d", end.Batch, last)
	}
	return end, err
}

func TestWhatWasAppendedIsReadAgain(t *testing.T) {
	for _, weak := range []bool{false, true} {
		dir := t.TempDir()
		j := open(t, dir, Options{Weak: weak})
		places, marks := appendUpTo(t, j, 1, 40)
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		for i, p := range places {
			want := content(uint64(i + 1))
			got := make([]byte, len(want.Body[1]))
			if err := j.ReadAt(p, uint32(want.Overhead()+len(want.Body[0])), got); err != nil || !bytes.Equal(got, want.Body[1]) {
				t.Errorf("batch %d: %v", i+1, err)
			}
		}
		w, err := j.Window(marks[9], marks[29], false)
		if err != nil {
			t.Fatal(err)
		}
		for i := 10; i < 30; i++ {
			want := content(uint64(i + 1))
			if got := w.Bytes(places[i], uint32(want.Overhead()), uint32(len(want.Body[0]))); !bytes.Equal(got, want.Body[0]) {
				t.Errorf("batch %d differs in the window", i+1)
			}
		}
		w.Close()
		other := open(t, dir, Options{})
		for i := range marks {
			if last, err := replayed(t, other, ReplayOptions{After: marks[i]}); last != 40 || err != nil {
				t.Errorf("after batch %d it ends at %d: %v", i+1, last, err)
			}
		}
		if last, err := replayed(t, other, ReplayOptions{}); last != 40 || err != nil {
			t.Errorf("it ends at %d: %v", last, err)
		}
	}
}

func TestAnotherRunGoesOnBehindTheFirst(t *testing.T) {
	dir := t.TempDir()
	_, marks := appendUpTo(t, open(t, dir, Options{}), 1, 20)
	j := open(t, dir, Options{})
	if err := j.Begin(marks[19]); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%d files are left, %v", len(names), err)
	}
	appendUpTo(t, j, 21, 30)
	if last, err := replayed(t, j, ReplayOptions{After: marks[19]}); last != 30 || err != nil {
		t.Errorf("it ends at %d: %v", last, err)
	}
}

func TestReleasedSegmentsAreUsedAgain(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{Spares: 2})
	var floor Mark
	for n := uint64(1); n <= 300; n += 10 {
		_, marks := appendUpTo(t, j, n, n+9)
		if last, err := replayed(t, open(t, dir, Options{}), ReplayOptions{After: floor}); last != n+9 || err != nil {
			t.Fatalf("from %d on it ends at %d: %v", floor.Batch, last, err)
		}
		floor = marks[7]
		if err := errors.Join(j.Release(floor.Batch), j.Prepare()); err != nil {
			t.Fatal(err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 10 {
			t.Fatalf("there are %d files, %v", len(names), err)
		}
	}
	if err := j.SetSpares(4); err != nil {
		t.Fatal(err)
	}
	if _, spare := j.Size(); spare != 5*segmentSize {
		t.Errorf("spares have %d bytes, want %d", spare, 5*segmentSize)
	}
	if err := j.SetSpares(0); err != nil {
		t.Fatal(err)
	}
	if _, spare := j.Size(); spare != segmentSize {
		t.Errorf("spares have %d bytes, want %d", spare, segmentSize)
	}
}

func TestLongRecordHasAFileOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{Spares: 2})
	appendUpTo(t, j, 1, 3)
	long := make([]byte, 10*segmentSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(long)
	p, _, err := j.Append(Content{Batch: 4, Body: [][]byte{long}})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(long))
	if err := j.ReadAt(p, recordSize, got); err != nil || !bytes.Equal(got, long) {
		t.Error("the long record differs", err)
	}
	appendUpTo(t, j, 5, 8)
	if err := j.Release(4); err != nil {
		t.Fatal(err)
	}
	if used, spare := j.Size(); used+spare > 6*segmentSize {
		t.Errorf("the files have %d bytes after the long record was released", used+spare)
	}
}

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

func TestTornLastRecordIsTheEnd(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	places, marks := appendUpTo(t, j, 1, 19)
	all, last := files(t, dir), places[18]
	name := filepath.Base(j.current.path)
	c := content(19)
	length := int64(c.Overhead() + len(slices.Concat(c.Body...)))
	for cut := int64(last.Offset) + 1; cut < int64(last.Offset)+length; cut++ {
		for way, tear := range []func(b []byte){
			func(b []byte) { clear(b[cut:]) },
			func(b []byte) { // older bytes are there
				for i := range b[cut:] {
					b[cut+int64(i)] ^= 0x5a
				}
			},
			func(b []byte) { clear(b[last.Offset:cut]) },
		} {
			torn := slices.Clone(all[name])
			tear(torn)
			write(t, dir, name, torn)
			if got, err := replayed(t, j, ReplayOptions{}); err != nil || got != 18 {
				t.Fatalf("torn at %d in way %d it ends at %d: %v", cut, way, got, err)
			}
		}
	}
	if length < 100 || marks[18].End-int64(last.Offset) < length {
		t.Errorf("the last record has %d bytes", length)
	}
}

func TestEveryFlippedByteIsDamageOrHarmless(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	var n uint64
	for len(j.begun) < 4 {
		n++
		appendUpTo(t, j, n, n)
	}
	n-- // the last segment has one record, which may be torn
	damaged, harmless := 0, 0
	for name, b := range files(t, dir) {
		if filepath.Base(j.current.path) == name {
			continue
		}
		for i := range b {
			b[i] ^= 1 << (i % 8)
			write(t, dir, name, b)
			got, err := replayed(t, j, ReplayOptions{})
			switch {
			case errors.Is(err, ErrDamage):
				damaged++
			case err == nil && got == n+1:
				harmless++
			default:
				t.Fatalf("byte %d of %s: it ends at %d of %d: %v", i, name, got, n+1, err)
			}
			b[i] ^= 1 << (i % 8)
		}
		write(t, dir, name, b)
	}
	if damaged < segmentSize || harmless == 0 {
		t.Errorf("%d flips are damage and %d harmless", damaged, harmless)
	}
}

func TestAcceptedLossGoesOnBehindTheHole(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	places, _ := appendUpTo(t, j, 1, 30)
	for name, b := range files(t, dir) {
		if h, _, _, err := readHeader(b); err == nil && uint32(h.number) == places[9].Segment {
			b[places[9].Offset+recordSize] ^= 1
			write(t, dir, name, b)
		}
	}
	if last, err := replayed(t, j, ReplayOptions{}); last != 9 || !errors.Is(err, ErrDamage) || !strings.Contains(err.Error(), "batch 10") {
		t.Errorf("it ends at %d: %v", last, err)
	}
	notes, after := 0, 0
	o := ReplayOptions{AcceptLoss: true, Note: func(string) { notes++ }}
	end, err := j.Replay(o, func(r Record) error {
		if r.AfterHole {
			after++
		}
		return nil
	})
	if err != nil || end.Batch != 30 || after != 20 || notes != 1 {
		t.Errorf("it ends at %d, %d records behind the hole, %d notes: %v", end.Batch, after, notes, err)
	}
}

func TestUnsyncedHoleIsTheEndOfAWeakJournal(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{Weak: true})
	places, _ := appendUpTo(t, j, 1, 30)
	for name, b := range files(t, dir) {
		if h, _, _, err := readHeader(b); err == nil && uint32(h.number) == places[9].Segment {
			clear(b[places[9].Offset : places[9].Offset+page])
			write(t, dir, name, b)
		}
	}
	if last, err := replayed(t, j, ReplayOptions{}); last != 9 || err != nil {
		t.Errorf("it ends at %d: %v", last, err)
	}
}

func TestClientsBytesAreNoRecords(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, Options{})
	appendUpTo(t, j, 1, 2)
	// A payload that holds a whole record of batch 9, of another salt, at the start of a page.
	fake := make([]byte, recordSize+100)
	putRecord(fake, &[16]byte{1}, Content{Batch: 9}, j.end.Sum, true)
	body := make([]byte, 3*page)
	copy(body[page-recordSize:], fake)
	if _, _, err := j.Append(Content{Batch: 3, Body: [][]byte{body}}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(j.current.path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, recordMagic)
	if at%page != 0 || binary.BigEndian.Uint64(b[at+8:]) != 9 {
		t.Fatal("the payload is not where it could be mistaken")
	}
	b[at-page+1] ^= 1 // the record around it is torn
	if err := os.WriteFile(j.current.path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if last, err := replayed(t, j, ReplayOptions{}); last != 2 || err != nil {
		t.Errorf("it ends at %d: %v", last, err)
	}
}

func TestShortOrForeignFilesAreDamage(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"cut":        func(b []byte) []byte { return b[:len(b)-1] },
		"no header":  func(b []byte) []byte { return b[:100] },
		"other text": func(b []byte) []byte { return append([]byte("hello"), b[5:]...) },
	} {
		dir := t.TempDir()
		j := open(t, dir, Options{})
		appendUpTo(t, j, 1, 20)
		write(t, dir, "1"+suffix, spoil(files(t, dir)["1"+suffix]))
		if _, err := replayed(t, j, ReplayOptions{}); !errors.Is(err, ErrDamage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMain writes a journal when a test of kills asks for it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_WRITER"); dir != "" {
		fmt.Println("failed:", writer(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writer takes over a journal, says which batch is the last, and appends until it is killed. A file
// "floor" stands for the tables.
func writer(dir string) error {
	j, err := Open(filepath.Join(dir, "journal"), Options{SegmentSize: segmentSize, Spares: 1})
	if err != nil {
		return err
	}
	var end Mark
	floor := filepath.Join(dir, "floor")
	if b, err := os.ReadFile(floor); err == nil {
		if _, err := fmt.Sscan(string(b), &end.Batch, &end.Segment, &end.End, &end.Sum); err != nil {
			return err
		}
	}
	check := &testing.T{}
	if end, err = replayedTo(check, j, ReplayOptions{After: end}); err != nil || check.Failed() {
		return fmt.Errorf("%w; wrong contents: %v", err, check.Failed())
	}
	fmt.Println(end.Batch)
	setFloor := func() error {
		err := os.WriteFile(floor+".new", fmt.Appendln(nil, end.Batch, end.Segment, end.End, end.Sum), 0o600)
		return errors.Join(err, os.Rename(floor+".new", floor))
	}
	if err := errors.Join(setFloor(), j.Begin(end)); err != nil {
		return err
	}
	for {
		if _, end, err = j.Append(content(end.Batch + 1)); err != nil {
			return err
		}
		fmt.Println(end.Batch)
		if end.Batch%16 == 0 {
			if err := errors.Join(setFloor(), j.Release(end.Batch), j.Prepare()); err != nil {
				return err
			}
		}
	}
}

func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	last := 0
	for range *kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "JOURNAL_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, more := bufio.NewScanner(out), rand.IntN(40)
		for found := true; lines.Scan(); found = false {
			n, err := strconv.Atoi(lines.Text())
			if err != nil || found && n < last || !found && n != last+1 {
				t.Errorf("after batch %d: %s", last, lines.Text())
			}
			if last = n; more == 0 {
				_ = cmd.Process.Kill()
			}
			more--
		}
		if _ = cmd.Wait(); t.Failed() {
			return
		}
	}
	if last < *kills*5 {
		t.Errorf("only %d batches were written", last)
	}
}
