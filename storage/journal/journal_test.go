package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

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

// reread reads the journal of a folder as replayed does.
func reread(t testing.TB, dir string, o ReplayOptions) (uint64, error) {
	t.Helper()
	j, err := Open(dir, Options{SegmentSize: segmentSize})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return replayed(t, j, o)
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
		if last = r.Batch; string(r.Control) != string(want.Control) || r.Entries != want.Entries || !bytes.Equal(r.Body[0], slices.Concat(want.Body...)) {
			t.Errorf("batch %d differs", r.Batch)
		}
		return nil
	})
	if err == nil && end.Batch != last {
		t.Errorf("it ends at %d, the last record is %d", end.Batch, last)
	}
	return end, err
}

// behind is so many bytes behind the beginning of a record.
func behind(p Place, n int) Place { return Place{p.Segment, p.Offset + uint32(n)} }

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
			if err := j.ReadAt(behind(p, want.Overhead()+len(want.Body[0])), got); err != nil || !bytes.Equal(got, want.Body[1]) {
				t.Errorf("batch %d: %v", i+1, err)
			}
		}
		w, err := j.Window(marks[9], marks[29])
		if err != nil {
			t.Fatal(err)
		}
		for i := 10; i < 30; i++ {
			want := content(uint64(i + 1))
			if got := w.Bytes(behind(places[i], want.Overhead()), uint32(len(want.Body[0]))); !bytes.Equal(got, want.Body[0]) {
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
		if last, err := reread(t, dir, ReplayOptions{After: floor}); last != n+9 || err != nil {
			t.Fatalf("from %d on it ends at %d: %v", floor.Batch, last, err)
		}
		floor = marks[7]
		if err := errors.Join(j.Release(floor), j.Prepare()); err != nil {
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
	if err := j.DropSpares(); err != nil {
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
	if err := j.ReadAt(behind(p, headSize), got); err != nil || !bytes.Equal(got, long) {
		t.Error("the long record differs", err)
	}
	_, marks := appendUpTo(t, j, 5, 8)
	if err := j.Release(marks[0]); err != nil {
		t.Fatal(err)
	}
	if used, spare := j.Size(); used+spare > 6*segmentSize {
		t.Errorf("the files have %d bytes after the long record was released", used+spare)
	}
}

// The kernel may take what it lost for written, so a sync that succeeds later would prove nothing.
func TestASyncThatFailedIsNotTriedAgain(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := simulated.Mount(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Unmount)
	j := open(t, dir, Options{})
	appendUpTo(t, j, 1, 1)
	d.Hook = func(_ int64, c *disk.Call) error { return map[disk.Op]error{disk.OpSync: syscall.EIO}[c.Op] }
	_, _, err = j.Append(content(2))
	calls := d.Calls()
	d.Hook = nil
	_, _, again := j.Append(content(2))
	for _, err := range []error{err, again, j.MakeRoom(content(2)), j.Sync()} {
		if !errors.Is(err, ErrUnknown) || d.Calls() != calls {
			t.Errorf("%d calls behind a sync that failed: %v", d.Calls()-calls, err)
		}
	}
}
