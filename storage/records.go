package storage

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// records holds the records of which a store has one each.
type records struct {
	control content.Control
	flush   content.Flush
}

// readRecords reads them. One that is not there is as in an empty store. Each error wraps
// ErrDamaged: of the control record, of the flush record.
func readRecords(v *tables.View) (r records, errs [2]error) {
	r.control.Marks = content.FirstMarks()
	for i, key := range [...]string{content.ControlKey, content.FlushKey} {
		e, ok, err := v.Get([]byte(key))
		switch {
		case err != nil || !ok:
		case key == content.ControlKey:
			err = content.DecodeControl(e.Value, &r.control)
		default:
			r.flush, err = content.DecodeFlush(e.Value)
		}
		if err != nil {
			errs[i] = fmt.Errorf("%w: cannot read %s: %w", ErrDamaged, content.DescribeKey([]byte(key)), err)
		}
	}
	return r, errs
}
