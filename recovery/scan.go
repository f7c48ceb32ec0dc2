package recovery

import (
	"context"

	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// scanBatch is how many packets go from the reader to the builder at a time.
const scanBatch = 1024

// scanned is a run of packets on its way from the reader to the builder. bytes holds their keys and
// tags.
type scanned struct {
	ids   []content.PacketID
	metas []content.Meta // without tags
	tags  [][]byte
	bytes []byte // never nil: an empty key is a slice of it, and a nil key is none
}

func (s *scanned) add(id content.PacketID, m *content.Meta) {
	kept := *m
	kept.Tags = nil // the reader uses its array again
	if from := len(s.bytes); m.Key != nil {
		s.bytes = append(s.bytes, m.Key...)
		kept.Key = s.bytes[from:len(s.bytes):len(s.bytes)]
	}
	s.ids = append(s.ids, id)
	s.metas = append(s.metas, kept)
	from := len(s.bytes)
	s.bytes = content.AppendTags(s.bytes, m.Tags)
	s.tags = append(s.tags, s.bytes[from:])
}

// scan reads all packets on one goroutine and builds the index on this one, at the same time.
func (r *restorer) scan(src Source) error {
	return pipeline.Run(context.Background(), pipeline.Stages[*scanned]{
		New: func() *scanned { return &scanned{bytes: []byte{}} },
		Read: func(next func() (*scanned, error)) error {
			run, err := next()
			if err == nil {
				err = src.Walk(storage.Visitor{Uncounted: true, Step: r.Step, Packet: func(id content.PacketID, m *content.Meta, _ []byte, damage error) error {
					if damage != nil {
						return damage
					}
					if run.add(id, m); len(run.ids) == scanBatch {
						run, err = next()
					}
					return err
				}})
			}
			if err == nil {
				_, err = next()
			}
			return err
		},
		Work: func(*scanned) {},
		Deliver: func(s *scanned) error {
			for i := range s.ids {
				if err := r.packet(s.ids[i], &s.metas[i], s.tags[i]); err != nil {
					return err
				}
			}
			s.ids, s.metas, s.tags, s.bytes = s.ids[:0], s.metas[:0], s.tags[:0], s.bytes[:0]
			return nil
		},
	})
}
