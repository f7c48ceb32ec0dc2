package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-queue/holdfast/storage/content"
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

// QueueKey and StateKey are the keys of findings about a queue and about a delivery state.
func QueueKey(id uint32) string       { return fmt.Sprint("queue ", id) }
func StateKey(identity uint64) string { return fmt.Sprint("delivery state ", identity) }

// Plain is the text of an error as a finding has it, which says by itself that something is
// damaged.
func Plain(err error) string { return strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": ") }

// Found lists what is wrong with a folder. Memory is bounded: findings past ten thousand are
// counted.
type Found struct {
	Findings []Finding // none of a sound folder
	More     int       // that are not listed
}

const maxFindings = 10_000

// Add adds a finding.
func (f *Found) Add(kind, key, format string, args ...any) {
	f.add(Finding{kind, key, fmt.Sprintf(format, args...)})
}

func (f *Found) add(found Finding) (listed bool) {
	if len(f.Findings) == maxFindings {
		f.More++
		return false
	}
	f.Findings = append(f.Findings, found)
	return true
}

// Compare adds how a folder differs from its control record, once. Where there is no control record
// there is nothing to compare with, and opening the folder has said so.
func (f *Found) Compare(control *content.Control, err error) {
	mismatch, ok := errors.AsType[*content.MismatchError](err)
	if !ok || control.Epoch == 0 {
		return
	}
	found := Finding{FindingLost, mismatch.What(), mismatch.Error()}
	if mismatch.CameBack() {
		found.Kind = FindingResurrected
	}
	if !slices.Contains(f.Findings, found) {
		f.add(found)
	}
}

// findings gathers what a tolerant view meets. Its methods may be called from any goroutine.
type findings struct {
	mu    sync.Mutex // guards what follows
	found Found
	seen  map[Finding]bool // one thing is met as often as it is read
}

func (f *findings) add(found Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = make(map[Finding]bool)
	}
	if !f.seen[found] && f.found.add(found) {
		f.seen[found] = true
	}
}

// all returns what was added so far, in order.
func (f *findings) all() []Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := append([]Finding(nil), f.found.Findings...)
	if f.found.More > 0 {
		all = append(all, Finding{FindingRecord, "", fmt.Sprintf("more than %d findings; those after them are not listed", maxFindings)})
	}
	return all
}
