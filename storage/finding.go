package storage

import (
	"fmt"
	"strings"
	"sync"
)

// Finding is one thing that is wrong with a data folder.
type Finding struct {
	// Kind is one of the kinds below, or one of a caller's own.
	Kind string
	// Key names what it is about: a packet as PacketID.String gives it, a queue by its number, or a
	// file of the folder and an offset in it.
	Key string
	// What is a sentence: what was found, what was expected, what it means.
	What string
}

// Kinds of findings about files.
const (
	FindingFormat = "format" // the file that says the version
	FindingAnchor = "anchor" // the anchor, or what it says is missing
	FindingTable  = "table"
	FindingLog    = "log" // the journal
)

// Kinds of findings about what the database holds.
const (
	FindingRecord      = "record"      // one that cannot be read, or whose key is wrong
	FindingControl     = "control"     // the control record
	FindingLost        = "lost"        // packets that the control record counts are missing
	FindingResurrected = "resurrected" // there are packets that it does not count
	FindingOwner       = "owner"       // something belongs to what is not there
	FindingQueue       = "queue"       // a queue definition
)

// String gives the finding as one line.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Kind, f.Key, f.What) }

// plain is the text of an error as a finding has it, which says by itself that something is
// damaged.
func plain(err error) string { return strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": ") }

// maxFindings bounds the memory that findings take: past it they are counted.
const maxFindings = 10_000

// findings gathers what a tolerant view meets. Its methods may be called from any goroutine.
type findings struct {
	mu   sync.Mutex // guards what follows
	list []Finding
	seen map[Finding]bool // one thing is met as often as it is read
	more int
}

func (f *findings) add(found Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.seen[found]:
	case len(f.list) == maxFindings:
		f.more++
	default:
		if f.seen == nil {
			f.seen = make(map[Finding]bool)
		}
		f.seen[found] = true
		f.list = append(f.list, found)
	}
}

// all returns what was added so far, in order.
func (f *findings) all() []Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := append([]Finding(nil), f.list...)
	if f.more > 0 {
		all = append(all, Finding{FindingRecord, "", fmt.Sprintf("more than %d findings; those after them are not listed", maxFindings)})
	}
	return all
}
