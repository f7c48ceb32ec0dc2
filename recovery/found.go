package recovery

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Found is what is wrong with a folder. Memory is bounded: findings past ten thousand are counted.
type Found struct {
	Findings []storage.Finding // none of a sound folder
	More     int               // that are not listed
}

const maxFindings = 10_000

// Add adds a finding.
func (f *Found) Add(kind, key, format string, args ...any) {
	if len(f.Findings) == maxFindings {
		f.More++
		return
	}
	f.Findings = append(f.Findings, storage.Finding{Kind: kind, Key: key, What: fmt.Sprintf(format, args...)})
}

// Compare adds how a folder differs from its control record, once. Where there is no control record
// there is nothing to compare with, and opening the folder has said so.
func (f *Found) Compare(control *content.Control, err error) {
	mismatch, ok := errors.AsType[*content.MismatchError](err)
	if !ok || control.Epoch == 0 {
		return
	}
	found := storage.Finding{Kind: storage.FindingLost, Key: mismatch.What(), What: mismatch.Error()}
	if mismatch.CameBack() {
		found.Kind = storage.FindingResurrected
	}
	if !slices.Contains(f.Findings, found) {
		f.Add(found.Kind, found.Key, "%s", found.What)
	}
}
