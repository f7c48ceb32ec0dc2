package page

import (
	"github.com/holdfast-queue/holdfast/broker"
)

// Figures say how the server is, as the page is told each second. What follows Bytes is only for
// those who may look at all queues, or operate.
type Figures struct {
	At      int64   `json:"at"`     // Unix milliseconds
	Queues  int     `json:"queues"` // that the user may look at, as Packets and Bytes are in these
	Packets Packets `json:"packets"`
	Bytes   int64   `json:"bytes"`
	*Whole
}

// Packets counts packets by their states.
type Packets struct {
	Ready   int `json:"ready"`
	Hidden  int `json:"hidden"`
	Delayed int `json:"delayed"`
	Claimed int `json:"claimed"`
	Dead    int `json:"dead"`
	Done    int `json:"done"`
	Damaged int `json:"damaged"`
}

// Whole is what concerns the whole server.
type Whole struct {
	Totals  Totals `json:"totals"`
	Disk    Disk   `json:"disk"`
	Journal struct {
		Bytes   int64  `json:"bytes"`
		Syncs   uint64 `json:"syncs"` // since the start, as those below
		Batches uint64 `json:"batches"`
		SyncUS  uint64 `json:"sync_us"`  // microseconds of all syncs
		BatchUS uint64 `json:"batch_us"` // and of all batches until they were on disk
	} `json:"journal"`
	Tables int64 `json:"tables"` // bytes
	Memory struct {
		RSS  int64 `json:"rss"`
		Heap int64 `json:"heap"`
	} `json:"memory"`
	Connections map[string]int `json:"connections"` // by protocol
	Backup      *Backup        `json:"backup"`      // null if there is none that is known
}

// Totals count what all queues did since the start.
type Totals struct {
	Pushed  uint64 `json:"pushed"`
	Popped  uint64 `json:"popped"`
	Acked   uint64 `json:"acked"`
	Nacked  uint64 `json:"nacked"`
	Expired uint64 `json:"expired"`
	Died    uint64 `json:"died"`
	Dropped uint64 `json:"dropped"`
}

// Disk is the file system of the data folder.
type Disk struct {
	Free    int64  `json:"free"` // bytes
	Total   int64  `json:"total"`
	Refuses string `json:"refuses"` // "", "pushes" or "all"
}

// Backup is the last good one.
type Backup struct {
	At int64 `json:"at"` // Unix milliseconds
}

// add adds a queue.
func (f *Figures) add(q *broker.Surveyed) {
	f.Queues++
	f.Bytes += q.Bytes
	p := &f.Packets
	p.Ready += q.Ready
	p.Hidden += q.Hidden
	p.Delayed += q.Delayed
	p.Claimed += q.Claimed
	p.Dead += q.Dead
	p.Done += q.Done
	p.Damaged += q.Damaged
}

// see notes what the broker says of the whole server.
func (w *Whole) see(f *broker.Figures) {
	c := &f.Totals
	w.Totals = Totals{Pushed: c.Pushed, Popped: c.Popped, Acked: c.Acked, Nacked: c.Nacked, Expired: c.Expired, Died: c.Dead, Dropped: c.Dropped}
	switch {
	case f.RefusesAll:
		w.Disk.Refuses = "all"
	case f.RefusesPushes:
		w.Disk.Refuses = "pushes"
	}
}
