package archive

import (
	"context"

	"github.com/holdfast-queue/holdfast/storage"
)

// Restore makes the data folder dir, which is empty or not there, of the rest of an archive. After
// an error dir is as it was, but for one that wraps storage.ErrKept.
func (r *Reader) Restore(ctx context.Context, dir string, progress func(done, total int64)) error {
	to, err := storage.Restore(dir, r.Header.Bytes())
	if err != nil {
		return err
	}
	if err := r.Each(ctx, to.Add, progress); err != nil {
		to.Discard()
		return err
	}
	return to.Keep()
}
