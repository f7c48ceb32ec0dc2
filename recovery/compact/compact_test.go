package compact

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const now = 1000 // the time in these tests

// mostlyPopped makes a folder of n packets of 128 bytes and pops all but every tenth. It returns
// the bytes that the keys and records of the rest take.
func mostlyPopped(tb testing.TB, dir string, n int) (live int64) {
	tb.Helper()
	const keyBytes, run, keep = 18, 1000, 10
	s := openStore(tb, dir)
	rng := rand.New(rand.NewPCG(1, 2))
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true})
	b.SetMarks(content.Marks{NextSeq: 1<<63 + uint64(n), LowSeq: 1<<63 - 1, NextQueue: 2})
	p := content.Packet{Key: make([]byte, 8), Payload: make([]byte, 128), EnqueuedAt: now}
	var popped []content.PacketID
	for i := range n {
		id := content.PacketID{Queue: 1, Priority: 1 + rng.Uint32N(250), Seq: 1<<63 + uint64(i)}
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
		if b.Delete(id, content.Removed{}); i%run == run-1 {
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

func applyBatch(tb testing.TB, s *storage.Store, b *content.Batch) {
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

func TestWhatHasExpiredLeavesTheTablesAndNothingElseDoes(t *testing.T) {
	const n, size = 3000, 5000
	dir := t.TempDir()
	s := openStore(t, dir)
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true})
	for i := range n {
		p := content.Packet{Payload: []byte("small")}
		if i%2 == 0 {
			p = content.Packet{Payload: make([]byte, size), Expiry: 1} // long ago
		}
		rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(p.Payload)
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + uint64(i)}, &p)
		if i%100 == 99 {
			applyBatch(t, s, &b)
		}
	}
	want := s.Control()
	closeStore(t, s)
	report, err := Folder(t.Context(), dir, Options{})
	if err != nil || report.Packets != n/2 || report.After.Total > n*size/8 {
		t.Fatalf("report %+v, error %v, want half of %d kept, and little room taken", report, err, n)
	}
	if r := restored(t, dir, 0).Report; r.Packets != n/2 {
		t.Errorf("a start finds %+v", r)
	}
	s = openStore(t, dir)
	defer closeStore(t, s)
	if got := s.Control(); got.Live != want.Live || got.Hash != want.Hash || got.Marks != want.Marks {
		t.Errorf("control record %+v, before it was %+v", got, want)
	}
}

// A claimed packet stays beyond its own time for as long as its claim lasts.
func TestWhatIsClaimedStaysThoughItHasExpired(t *testing.T) {
	const at, long = 3_600_000, 600_000
	dir := t.TempDir()
	s := openStore(t, dir)
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true})
	for i := range uint64(2) { // claimed, and not
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + i}, &content.Packet{Payload: []byte("work"), Expiry: at - long})
	}
	b.PutDelivery(&content.Delivery{Identity: 1 << 63, State: content.Claimed, Token: 1<<63 + 2, Until: at + long, LastClaim: at - 2*long, Expiry: at - long}, 0)
	b.SetMarks(content.Marks{NextSeq: 1<<63 + 3, LowSeq: 1<<63 - 1, NextQueue: 2})
	applyBatch(t, s, &b)
	closeStore(t, s)
	if report, err := Folder(t.Context(), dir, Options{Now: at}); err != nil || report.Packets != 1 || report.Claimed != 1 {
		t.Fatalf("report %+v, error %v", report, err)
	}
	if r := restored(t, dir, at).Report; r.Packets != 1 || r.Claimed != 1 {
		t.Errorf("a start finds %+v", r)
	}
	if _, err := Folder(t.Context(), dir, Options{Now: at + 2*long}); err != nil {
		t.Fatal(err)
	}
	if r := restored(t, dir, at).Report; r.Packets != 0 {
		t.Errorf("once the lease has ended a start finds %+v", r)
	}
}

func TestCompactRefusesAFolderThatHasLostPacketsUnlessAccepted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	var b content.Batch
	b.Put(content.PacketID{Queue: 9, Priority: 1, Seq: 1 << 63}, &content.Packet{}) // its queue has no definition
	applyBatch(t, s, &b)
	closeStore(t, s)
	if _, err := Folder(t.Context(), dir, Options{Now: now}); !errors.Is(err, storage.ErrLoss) {
		t.Fatalf("got %v, want ErrLoss", err)
	}
	report, err := Folder(t.Context(), dir, Options{Now: now, AcceptLoss: true})
	if err != nil || len(report.Findings) == 0 || report.Packets != 0 {
		t.Fatalf("report %+v, error %v", report, err)
	}
}

func TestCompactTellsWhatOpeningAccepted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	var b content.Batch
	for i := range uint64(5) {
		b.Reset()
		b.PutQueue(content.Queue{ID: 1, Name: []byte("q")})
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + i}, &content.Packet{})
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
