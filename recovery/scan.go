package recovery

import "github.com/holdfast-queue/holdfast/storage"

// scanBatch is how many packets go from the reader to the builder at a time.
const scanBatch = 2048

// scanned is a run of packets on its way from the reader to the builder. bytes holds their keys and
// tags.
type scanned struct {
	ids   []storage.PacketID
	metas []storage.Meta // without tags
	tags  [][]byte
	bytes []byte
}

func (s *scanned) add(id storage.PacketID, m *storage.Meta) {
	kept := *m
	kept.Tags = nil // the reader uses their array again
	kept.Key, kept.Unique = s.keep(m.Key), nil
	s.ids = append(s.ids, id)
	s.metas = append(s.metas, kept)
	from := len(s.bytes)
	s.bytes = storage.AppendTags(s.bytes, m.Tags)
	s.tags = append(s.tags, s.bytes[from:])
}

// keep returns a copy of some bytes, which may be nil.
func (s *scanned) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	from := len(s.bytes)
	s.bytes = append(s.bytes, b...)
	return s.bytes[from:len(s.bytes):len(s.bytes)]
}

func (s *scanned) reset() {
	s.ids, s.metas, s.tags, s.bytes = s.ids[:0], s.metas[:0], s.tags[:0], s.bytes[:0]
}

// scan reads all packets on this goroutine and builds the index on a second one, at the same time.
// It returns when both are done.
func (r *restorer) scan(src Source) error {
	full, empty, built := make(chan *scanned, 2), make(chan *scanned, 3), make(chan error, 1)
	for range cap(empty) {
		empty <- &scanned{bytes: []byte{}} // never nil: an empty key is a slice of it, and a nil key is none
	}
	go func() { // ends when full is closed
		var first error
		for s := range full {
			for i := range s.ids {
				if first == nil {
					first = r.packet(s.ids[i], &s.metas[i], s.tags[i])
				}
			}
			s.reset()
			empty <- s
		}
		built <- first
	}()
	run := <-empty
	err := src.Packets(func(id storage.PacketID, m *storage.Meta) error {
		if run.add(id, m); len(run.ids) == scanBatch {
			full <- run
			run = <-empty
		}
		return nil
	})
	full <- run
	close(full)
	if e := <-built; err == nil {
		err = e
	}
	return err
}
