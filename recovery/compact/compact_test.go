package compact

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

const now = 1000 // the time in these tests

// mostlyPopped makes a folder of n packets of 128 bytes and pops all but every tenth. It returns
// the bytes that the keys and records of the rest take.
func mostlyPopped(tb testing.TB, dir string, n int) (live int64) {
	tb.Helper()
	const keyBytes, run, keep = 18, 1000, 10
	s := openStore(tb, dir)
	rng := rand.New(rand.NewPCG(1, 2))
	var b storage.Batch
	b.PutQueue(storage.Queue{ID: 1, Name: []byte("jobs"), New: true})
	b.SetMarks(storage.Marks{NextSeq: 1<<63 + uint64(n), LowSeq: 1<<63 - 1, NextQueue: 2})
	p := storage.Packet{Key: make([]byte, 8), Payload: make([]byte, 128), EnqueuedAt: now}
	var popped []storage.PacketID
	for i := range n {
		id := storage.PacketID{Queue: 1, Priority: 1 + rng.Uint32N(250), Seq: 1<<63 + uint64(i)}
		binary.BigEndian.PutUint64(p.Key, id.Seq)
		op := b.Put(id, &p)
		if i%keep == 0 {
			live += keyBytes + int64(len(b.Record(op)))
		} else {
			popped = append(popped, id)
		}
		if i%run == run-1 {
			applyBatch(tb, s, &b)
		}
	}
	applyBatch(tb, s, &b)
	closeStore(tb, s) // what comes and goes before it is in tables leaves nothing
	s = openStore(tb, dir)
	defer closeStore(tb, s)
	rng.Shuffle(len(popped), func(i, j int) { popped[i], popped[j] = popped[j], popped[i] })
	for i, id := range popped {
		if b.Delete(id, storage.Removed{}); i%run == run-1 {
			applyBatch(tb, s, &b)
		}
	}
	applyBatch(tb, s, &b)
	return live
}

func openStore(tb testing.TB, dir string) *storage.Store {
	tb.Helper()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func closeStore(tb testing.TB, s *storage.Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

func applyBatch(tb testing.TB, s *storage.Store, b *storage.Batch) {
	tb.Helper()
	if err := s.Apply(b); err != nil {
		tb.Fatal(err)
	}
	b.Reset()
}

// restored starts on a folder and returns what a server would.
func restored(tb testing.TB, dir string, at int64) *recovery.State {
	tb.Helper()
	s := openStore(tb, dir)
	defer closeStore(tb, s)
	state, err := recovery.Restore(s, recovery.Options{Now: at})
	if err != nil {
		tb.Fatal(err)
	}
	return state
}

func TestCompactedFolderIsLittleLargerThanItsPackets(t *testing.T) {
	dir := t.TempDir()
	const n = 60_000
	live := mostlyPopped(t, dir, n)
	report, err := Folder(t.Context(), dir, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if report.Packets != n/10 || report.Expired != 0 || len(report.Findings) != 0 {
		t.Errorf("report %+v", report)
	}
	if after, err := storage.Sizes(dir); err != nil || after != report.After || after.Journal != 0 {
		t.Errorf("the folder takes %+v, the report says %+v, error %v", after, report.After, err)
	}
	if most := live*13/10 + 64<<10; report.After.Total > most || report.Before.Total <= most {
		t.Errorf("from %+v to %+v, at most %d are allowed", report.Before, report.After, most)
	}
	if r := restored(t, dir, now).Report; r.Packets != n/10 || r.Queues != 1 {
		t.Errorf("a start finds %+v", r)
	}
}

func TestCompactDeletesWhatHasExpiredAndNothingElse(t *testing.T) {
	const n = 3000 // more than a batch
	dir := t.TempDir()
	s := openStore(t, dir)
	var b storage.Batch
	b.PutQueue(storage.Queue{ID: 1, Name: []byte("jobs"), New: true})
	const at = 4_000_000_000_000 // past the wall clock, which Badger's own expiry follows
	for i := range n {
		payload := []byte("small")
		if i%100 == 0 {
			payload = make([]byte, 5000)
		}
		// At the moment, one before, one after, and never.
		expiry := []int64{at, at - 1, at + 1, 0}[i%4]
		b.Put(storage.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + uint64(i)}, &storage.Packet{Payload: payload, Expiry: expiry})
		if i%500 == 499 {
			applyBatch(t, s, &b)
		}
	}
	want := s.Control()
	closeStore(t, s)

	var steps []string
	report, err := Folder(t.Context(), dir, Options{Now: at, Progress: func(step string, _, _ int64) {
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps = append(steps, step)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Packets != n/2 || report.Expired != n/2 {
		t.Errorf("report %+v, want half of %d kept", report, n)
	}
	if len(steps) == 0 || steps[0] != "delete expired" {
		t.Errorf("steps %q", steps)
	}
	if r := restored(t, dir, 0).Report; r.Packets != n/2 {
		t.Errorf("a start finds %+v: what expired is still there, or more is gone", r)
	}
	s = openStore(t, dir)
	defer closeStore(t, s)
	if got := s.Control(); got.Live != want.Live || got.Hash != want.Hash || got.Marks != want.Marks {
		t.Errorf("control record %+v, before it was %+v", got, want)
	}
}

func TestCompactRefusesAFolderThatHasLostPacketsUnlessAccepted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	var b storage.Batch
	b.Put(storage.PacketID{Queue: 9, Priority: 1, Seq: 1 << 63}, &storage.Packet{}) // its queue has no definition
	applyBatch(t, s, &b)
	closeStore(t, s)
	if _, err := Folder(t.Context(), dir, Options{Now: now}); !errors.Is(err, storage.ErrLoss) {
		t.Fatalf("got %v, want ErrLoss", err)
	}
	report, err := Folder(t.Context(), dir, Options{Now: now, AcceptLoss: true})
	if err != nil || len(report.Findings) != 1 || report.Packets != 1 {
		t.Fatalf("report %+v, error %v", report, err)
	}
}

func TestCompactTellsWhatOpeningAccepted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	var b storage.Batch
	for i := range uint64(5) {
		b.Reset()
		b.PutQueue(storage.Queue{ID: 1, Name: []byte("q")})
		b.Put(storage.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + i}, &storage.Packet{})
		applyBatch(t, s, &b)
	}
	lost := t.TempDir() // as a kill leaves it, but for its logs
	if err := os.CopyFS(lost, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	logs, err := filepath.Glob(filepath.Join(lost, "journal", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, log := range logs {
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Folder(t.Context(), lost, Options{Now: now, AcceptLoss: true})
	if err != nil || len(report.Findings) != 1 || !strings.Contains(report.Findings[0], "batches 1 to 5 are lost") {
		t.Errorf("findings %q, error %v; want the batches that are lost", report.Findings, err)
	}
}

func TestCompactThatIsCancelledSaysThatTheFolderIsSound(t *testing.T) {
	dir := t.TempDir()
	mostlyPopped(t, dir, 20_000)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Folder(ctx, dir, Options{Now: now, Progress: func(step string, _, _ int64) {
		if step == "write out" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if r := restored(t, dir, now).Report; r.Packets != 2000 {
		t.Errorf("a start finds %+v", r)
	}
}

func TestCompactMakesNoFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Folder(t.Context(), dir, Options{}); !errors.Is(err, storage.ErrNotFolder) {
		t.Errorf("got %v, want ErrNotFolder", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the folder now holds %v, error %v", entries, err)
	}
}

// BenchmarkCompact compacts a folder of a million packets of which nine in ten were popped.
func BenchmarkCompact(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		live := mostlyPopped(b, dir, 1_000_000)
		b.StartTimer()
		report, err := Folder(b.Context(), dir, Options{Now: now})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(report.Before.Total)/1e6, "MB-before")
		b.ReportMetric(float64(report.After.Total)/1e6, "MB-after")
		b.ReportMetric(float64(live)/1e6, "MB-live")
	}
}

func TestStringsAndHashesAreKeptAndWhatIsLeftOverOfThemGoes(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	var b storage.Batch
	b.PutHead(&storage.Head{ID: 1, Kind: storage.Hash, Name: []byte("h"), Version: 1}, storage.Mark{})
	b.PutHead(&storage.Head{ID: 2, Kind: storage.String, Name: []byte("expired"), Version: 2, Expiry: now, Value: make([]byte, 5000)}, storage.Mark{})
	for hash := range uint64(2) { // that of 0 is left over
		b.PutField(&storage.Field{Hash: hash, ID: 3, Name: []byte("f"), Version: 4, Value: make([]byte, 5000)}, storage.Mark{})
	}
	b.SetFlush(storage.Flush{{Keys: 1, Queues: 1}})
	applyBatch(t, s, &b)
	closeStore(t, s)
	report, err := Folder(t.Context(), dir, Options{Now: now})
	if err != nil || report.Keys != 1 || report.Packets != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	s = openStore(t, dir)
	defer closeStore(t, s)
	state, err := recovery.Restore(s, recovery.Options{Now: now})
	if err != nil || state.Report.Keys != 1 || len(state.Leftovers) != 0 || s.Flush() != (storage.Flush{}) {
		t.Fatalf("%+v, %v", state, err)
	}
	if f := state.Names.Find(0, []byte("h")).Field([]byte("f")); f == nil || f.Len() != 5000 {
		t.Errorf("the field is %+v", f)
	}
}

func TestDeliveryStatesGoWithTheirPackets(t *testing.T) {
	src := recoverytest.OneOfEach()
	src.Try(storage.Delivery{Identity: 1<<63 + 50}) // of no packet
	dir := recoverytest.InFolder(t, src)
	if report, err := Folder(t.Context(), dir, Options{Now: recoverytest.Later}); err != nil || report.Packets != 8 || report.Expired != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	s := openStore(t, dir)
	defer closeStore(t, s)
	var left []uint64
	err := s.Deliveries(func(d *storage.Delivery, _ storage.Stored) error {
		left = append(left, d.Identity-1<<63)
		return nil
	})
	if want := []uint64{0, 1, 2, 3, 8, 20}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%d are left, %v, want %d: those of packets that are there", left, err, want)
	}
	if state, err := recovery.Restore(s, recovery.Options{Now: recoverytest.Later}); err != nil || len(state.Orphans)+len(state.Report.Findings) > 0 {
		t.Errorf("%v, %+v", err, state)
	}
}
