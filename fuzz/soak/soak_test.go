package soak

import (
	"context"
	"flag"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

var (
	duration = flag.Duration("duration", 10*time.Second, "how long TestSoak loads the server")
	backlog  = flag.Int64("backlog", 0, "packets that stand in the queues, 0 for 1,000,000, or 100,000 in a run under a minute")
)

const (
	conns = 16
	depth = 64

	// minRate is the load below which a server stands more than it works. It says nothing of speed:
	// machines that build and test are slow and shared, and the race detector takes most of them.
	minRate = 500

	fillLimit = 10 * time.Minute
)

func TestSoak(t *testing.T) {
	if *backlog == 0 {
		*backlog = 1_000_000
		if *duration < time.Minute {
			*backlog = 100_000
		}
	}
	dir := t.TempDir()
	s := startServer(t, dir)
	fill(t, s)
	w := watch(t, s, dir)
	packets, bytes := large()
	w.large = bytes
	stop := startLarge(t, s)
	loaded := loadServer(t, s, w)
	stop()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	for _, wrong := range w.check(minRate) {
		t.Error(wrong)
	}
	count(t, dir, w.filled+loaded.pushed.Load()-loaded.popped.Load()+packets)
}

// fill pushes the backlog, an equal part of it to a queue of each connection.
func fill(t *testing.T, s *server) {
	t.Helper()
	var groups []loadgen.Group
	for conn := range conns {
		packets := loadgen.Packets{Queue: queueName(conn, false), Size: payloadBytes, Levels: levels}
		groups = append(groups, loadgen.Group{
			Name: packets.Queue, Conns: 1, Depth: depth, Count: *backlog / conns,
			New: func() loadgen.Protocol { return loadgen.PinpriqPush(packets) },
		})
	}
	result, err := loadgen.Run(t.Context(), loadgen.Spec{Addr: s.addr, Groups: groups, Limit: fillLimit})
	if err != nil {
		t.Fatalf("fill: %v", err)
	}
	if got := result.Packets(); got != *backlog/conns*conns {
		t.Fatalf("filled %d packets in %v, want %d", got, result.Elapsed, *backlog)
	}
	t.Logf("filled with %d packets in %v", *backlog/conns*conns, result.Elapsed.Round(time.Millisecond))
}

func TestMemoryThatGrowsIsToldOnlyOverManyWindows(t *testing.T) {
	const record, window, ops = 64, 64 << 20, 1 << 18 // eight samples a window, half of the operations push
	run := func(samples int, memory func(sample int) int64) []string {
		w := &watcher{window: window, record: record, dead: 4 * window}
		for i := range samples {
			s := sample{at: time.Duration(i) * time.Millisecond, ops: int64(i) * ops, live: 1}
			s.usage.Anon = memory(i)
			w.samples = append(w.samples, s)
		}
		return w.check(minRate)
	}
	saw := func(i int) int64 { return int64(100+50*(i%8)) << 20 }
	leak := func(i int) int64 { return saw(i) + int64(i)<<20 }
	for samples := 3; samples < 400; samples++ {
		if wrong := run(samples, saw); len(wrong) > 0 {
			t.Fatalf("%d samples of memory that grows with windows alone: %q", samples, wrong)
		}
	}
	if wrong := run(400, leak); len(wrong) != 1 {
		t.Fatalf("memory that grows: %q", wrong)
	}
}

func watch(t *testing.T, s *server, dir string) *watcher {
	t.Helper()
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	window := min(max(int64(disk.Blocks)*disk.Bsize/64, 2<<20), 64<<20) // by the size of the file system
	const keyOnDisk = 18                                                // FORMAT.md, section keys
	record := content.AppendRecord(nil, &content.Packet{
		Key: make([]byte, keyBytes), Payload: make([]byte, payloadBytes), EnqueuedAt: time.Now().UnixMilli(),
	})
	return &watcher{
		dir: dir, pid: s.cmd.Process.Pid, all: &traffic{}, window: window, dead: 4 * window, step: 16 * window,
		filled: *backlog / conns * conns, record: keyOnDisk + int64(len(record)),
	}
}

// loadServer runs the load for the duration. Meanwhile it takes samples and prints a row now and
// then.
func loadServer(t *testing.T, s *server, w *watcher) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := make(chan int, conns) // the numbers of the connections
	for conn := range conns {
		next <- conn
	}
	ended := make(chan error, 1)
	w.began = time.Now()
	go func() { // ends with the duration, or with ctx
		_, err := loadgen.Run(ctx, loadgen.Spec{Addr: s.addr, Limit: *duration, Groups: []loadgen.Group{{
			Name: "churn", Conns: conns, Depth: depth,
			New: func() loadgen.Protocol { return newChurn(w.all, <-next) },
		}}})
		ended <- err
	}()
	tick := time.NewTicker(max(*duration/1800, min(2*time.Second, *duration/50)))
	defer tick.Stop()
	rows, printed := min(time.Minute, *duration/5), 0
	t.Log(header)
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("load: %v", err)
			}
			if printed < len(w.samples) {
				t.Log(w.row(printed))
			}
			return w.all
		case err := <-s.end:
			t.Fatalf("under load: %v", err)
		case <-tick.C:
			if err := w.look(); err != nil {
				t.Fatal(err)
			}
			if n := len(w.samples); w.samples[n-1].at-w.samples[max(0, printed-1)].at >= rows {
				t.Log(w.row(printed))
				printed = n
			}
		}
	}
}

// count opens the folder that the server left and counts its packets. The last window of each
// connection was cut off. So each of its pushes and pops may or may not have been carried out.
func count(t *testing.T, dir string, want int64) {
	t.Helper()
	store, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	state, err := recovery.Restore(store, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	got := int64(state.Report.Packets)
	const cut = conns * depth
	if got < want-cut || got > want+cut || len(state.Report.Findings) > 0 {
		t.Errorf("%d packets are left, want %d and at most %d more or less; findings %q", got, want, cut, state.Report.Findings)
	}
	t.Logf("%d packets are left", got)
}
