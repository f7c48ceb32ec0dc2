package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
	"github.com/holdfast-queue/holdfast/storage"
)

// sample is one look at the server.
type sample struct {
	at    time.Duration // since the load began
	sizes storage.FileSizes
	live  int64 // packets
	ops   int64 // pushes and pops so far
	usage loadgen.Usage
	fds   int
}

// watcher takes samples of one server. It belongs to one goroutine.
type watcher struct {
	dir     string
	pid     int
	all     *traffic
	filled  int64 // packets that were there before the load
	record  int64 // live bytes of one packet: key and record
	large   int64 // live bytes of the large packets, which are always as many
	window  int64 // bytes in memory before a table is made of them
	dead    int64 // bytes that the folder may always take, however little is live
	step    int64 // bytes that a merge makes before they take the place of what they were made of
	began   time.Time
	samples []sample
}

func (w *watcher) look() error {
	s := sample{at: time.Since(w.began)}
	pushed, popped := w.all.pushed.Load(), w.all.popped.Load()
	s.ops, s.live = pushed+popped, w.filled+pushed-popped
	var err error
	if s.sizes, err = storage.Sizes(w.dir); err != nil {
		return err
	}
	if s.usage, err = loadgen.ReadUsage(w.pid); err != nil {
		return err
	}
	names, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(w.pid), "fd"))
	if err != nil {
		return fmt.Errorf("count the server's descriptors: %w", err)
	}
	s.fds = len(names)
	w.samples = append(w.samples, s)
	return nil
}

// liveBytes are those of all packets.
func (w *watcher) liveBytes(s *sample) int64 { return s.live*w.record + w.large }

// ratio is dead bytes divided by live bytes. Dead is all but the live packets and the journal.
func (w *watcher) ratio(s *sample) float64 {
	live := float64(w.liveBytes(s))
	return (float64(s.sizes.Total-s.sizes.Journal) - live) / live
}

// trendWindows is how many windows a third of a run fills before a trend of memory is told. Memory
// grows with each window until a table is made of it, and with the first ones by itself.
const trendWindows = 4

const header = "   time     ops/s  cpu us/op    live MB  folder MB  dead/live  highest    of bound  rss MB  anon MB  fds"

// row describes the samples from number from on: rates over all of them, sizes of the last one.
func (w *watcher) row(from int) string {
	first, last := &w.samples[max(0, from-1)], &w.samples[len(w.samples)-1]
	ops := float64(last.ops - first.ops)
	highest, bound := 0.0, 0.0
	for i := from; i < len(w.samples); i++ {
		highest = max(highest, w.ratio(&w.samples[i]))
		bound = max(bound, w.ofBound(&w.samples[i]))
	}
	return fmt.Sprintf("%7s %9.0f %10.2f %10.1f %10.1f %10.2f %8.2f %10.0f%% %7.0f %8.0f %4d",
		last.at.Round(time.Second), ops/(last.at-first.at).Seconds(), float64((last.usage.CPU-first.usage.CPU).Microseconds())/max(ops, 1),
		mb(w.liveBytes(last)), mb(last.sizes.Total-last.sizes.Journal), w.ratio(last), highest, 100*bound,
		mb(last.usage.RSS), mb(last.usage.Anon), last.fds)
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

// most is what the folder may take without its journal: as much may be dead as is live, and dead.
// Beside that stands what a merge has made and not yet adopted: a step at most, and never more than
// is live.
func (w *watcher) most(s *sample) int64 {
	live := w.liveBytes(s)
	return 2*live + w.dead + min(live, w.step)
}

// ofBound is the size of the folder as a part of the most that is allowed.
func (w *watcher) ofBound(s *sample) float64 {
	return float64(s.sizes.Total-s.sizes.Journal) / float64(w.most(s))
}

// check returns what is wrong with the run, a sentence each.
func (w *watcher) check(minRate float64) (wrong []string) {
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for i := range w.samples {
		if s := &w.samples[i]; w.ofBound(s) > 1 {
			report("after %v the folder takes %+v with %d live bytes, at most %d are allowed",
				s.at.Round(time.Second), s.sizes, w.liveBytes(s), w.most(s))
			break
		}
	}
	last := &w.samples[len(w.samples)-1]
	if rate := float64(last.ops) / last.at.Seconds(); rate < minRate {
		report("%.0f operations a second, at least %.0f are needed for the run to prove anything", rate, minRate)
	}
	third := len(w.samples) / 3
	if third == 0 || (last.ops-w.samples[0].ops)/2*w.record < 3*trendWindows*w.window {
		return wrong
	}
	middle, end := w.samples[third:2*third], w.samples[2*third:]
	// Pages of files that are mapped while windows become tables come and go by their own clock.
	memory := func(s *sample) float64 { return float64(s.usage.Anon) }
	const growth, room = 1.1, 32 << 20
	if m, e := mean(middle, memory), mean(end, memory); e > m*growth+room {
		report("memory grows: %.0f MB in the middle third, %.0f MB in the last one", m/1e6, e/1e6)
	}
	descriptors := func(s *sample) float64 { return float64(s.fds) }
	const files = 32 // tables come and go
	if m, e := mean(middle, descriptors), mean(end, descriptors); e > m*growth+files {
		report("descriptors grow: %.0f in the middle third, %.0f in the last one", m, e)
	}
	return wrong
}

func mean(samples []sample, of func(*sample) float64) (m float64) {
	for i := range samples {
		m += of(&samples[i])
	}
	return m / float64(len(samples))
}
