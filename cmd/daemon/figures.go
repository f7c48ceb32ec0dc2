package daemon

import (
	runtime "runtime/metrics"

	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
)

// fillIn tells the page what the broker does not know.
func fillIn(w *page.Whole, s *metrics.Source) {
	f, disk := s.Store.Figures(), s.Store.Space()
	w.Disk.Free, w.Disk.Total = disk.Free, disk.Total
	w.Journal.Bytes, w.Tables = f.Journal, f.TableBytes
	for i, syncs := range f.Commits.Sync.Buckets {
		w.Journal.Syncs += syncs
		w.Journal.Batches += f.Commits.Latency.Buckets[i]
	}
	w.Journal.SyncUS, w.Journal.BatchUS = f.Commits.Sync.Sum, f.Commits.Latency.Sum
	heap := []runtime.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtime.Read(heap)
	w.Memory.Heap, w.Memory.RSS = int64(heap[0].Value.Uint64()), residentMemory()
	w.Connections = make(map[string]int)
	for name, door := range s.Doors {
		w.Connections[name], _ = door.Connections()
	}
	if at := s.LastBackup(); !at.IsZero() {
		w.Backup = &page.Backup{At: at.UnixMilli()}
	}
}
