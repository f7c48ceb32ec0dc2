package journal

import (
	"fmt"
	"io"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// Hold keeps what a journal has at one moment. It can be read while the journal goes on.
type Hold struct {
	journal  *Journal
	Segments []HeldSegment // by their numbers
	last     uint64        // batch
}

// HeldSegment is a segment up to its last record of the moment.
type HeldSegment struct {
	Number  uint64
	Size    int64
	segment *segment
	file    *disk.File // its own, since the journal closes what it removes
}

// Reader reads the segment from its beginning.
func (s *HeldSegment) Reader() io.Reader { return io.NewSectionReader(s.file, 0, s.Size) }

// Hold holds the journal; nobody appends meanwhile. Until Close the segments that are released are
// removed and not used again, and take room on the disk.
func (j *Journal) Hold() (*Hold, error) {
	h, err := &Hold{journal: j}, error(nil)
	j.mu.Lock()
	h.last = j.end.Batch
	for _, s := range j.begun {
		held := HeldSegment{Number: s.Number, Size: s.size, segment: s}
		if s == j.current {
			held.Size = j.end.End
		}
		if held.file, err = disk.Open(s.file.Name()); err != nil {
			break
		}
		s.holds++
		h.Segments = append(h.Segments, held)
	}
	j.mu.Unlock()
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Check reads what is held behind a mark once more, as a start would. The error wraps ErrDamage if
// something is not what was written.
func (h *Hold) Check(after Mark) error {
	r := reader{ReplayOptions: ReplayOptions{After: after, Note: func(string) {}}, end: after}
	defer r.Close()
	var segments []*segment
	for _, s := range h.Segments {
		b := make([]byte, headerSize)
		_, _ = s.file.ReadAt(b, 0) // zeros are no header
		segments = append(segments, &segment{header: readHeader(b), file: s.file, size: s.Size})
	}
	err := r.read(segments, h.last, func(Record) error { return nil })
	if err == nil && r.end.Batch != h.last {
		err = fmt.Errorf("%w: what follows batch %d cannot be read again", ErrDamage, r.end.Batch)
	}
	return err
}

// Close gives up what is held.
func (h *Hold) Close() {
	h.journal.mu.Lock()
	defer h.journal.mu.Unlock()
	for _, s := range h.Segments {
		s.segment.holds--
		_ = s.file.Close()
	}
}
