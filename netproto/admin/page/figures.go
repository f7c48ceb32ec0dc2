package page

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Figures say how the server is, as the page is told each second. What follows Bytes is only for
// those who may look at all queues, or operate.
type Figures struct {
	At      int64   `json:"at"`     // Unix milliseconds
	Queues  int     `json:"queues"` // that the user may look at, as Packets and Bytes are in these
	Packets packets `json:"packets"`
	Bytes   int64   `json:"bytes"`
	*Whole
}

// packets are figures of queues that count packets now. As JSON they are an object.
type packets [words.Figures]int64

// MarshalJSON implements json.Marshaler.
func (p packets) MarshalJSON() ([]byte, error) { return object(words.Gauge, p), nil }

// totals are the figures that count packets ever.
type totals [words.Figures]int64

// MarshalJSON implements json.Marshaler.
func (t totals) MarshalJSON() ([]byte, error) { return object(words.Total, t), nil }

// object is an object of the figures of a kind.
func object(kind words.Kind, figures [words.Figures]int64) []byte {
	text := []byte("{")
	for i, f := range words.QueueFigures {
		if f.Kind == kind {
			text = fmt.Appendf(text, "%q:%d,", f.Name, figures[i])
		}
	}
	text[len(text)-1] = '}'
	return text
}

// Whole holds what concerns the whole server.
type Whole struct {
	Totals  totals `json:"totals"` // what all queues did since the start
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
		RSS     int64  `json:"rss"`
		Heap    int64  `json:"heap"`
		Counted int64  `json:"counted"`
		Limit   int64  `json:"limit"`   // 0: none is known
		Refuses string `json:"refuses"` // "", "pushes", or "claims", which means both
	} `json:"memory"`
	Connections map[string]int `json:"connections"` // by protocol
	Backup      *Backup        `json:"backup"`      // null if there is none that is known
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
	for i, n := range netproto.Figures(&q.QueueFigures) {
		f.Packets[i] += n
	}
}

// see notes what the broker says of the whole server.
func (w *Whole) see(f *broker.Figures) {
	w.Totals = totals(netproto.Figures(&broker.QueueFigures{Counters: f.Totals}))
	w.Memory.Counted, w.Memory.Limit = f.Memory.Used, f.Memory.Limit
	w.Memory.Refuses = [...]string{"", "pushes", "claims"}[f.Memory.Level]
	switch {
	case f.RefusesAll:
		w.Disk.Refuses = "all"
	case f.RefusesPushes:
		w.Disk.Refuses = "pushes"
	}
}
