package recovery

import (
	"errors"
	"fmt"

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

// Compare adds what Check, CheckKeys or CheckDeliveries of a control record say. Where there is no
// control record there is nothing to compare with, and opening the folder has said so.
func (f *Found) Compare(control *content.Control, err error) {
	if mismatch, ok := errors.AsType[*content.MismatchError](err); ok && control.Epoch != 0 {
		kind := storage.FindingLost
		if mismatch.CameBack() {
			kind = storage.FindingResurrected
		}
		f.Add(kind, mismatch.What(), "%v", mismatch)
	}
}
