package recovery

import "github.com/holdfast-queue/holdfast/storage"

// twins finds packets of one queue that have the same sequence, which load refuses. Packets are
// added in the order of their keys; flush follows the last.
type twins struct {
	*sequences
	queue uint32 // of the packet added last
	any   bool
}

// newTwins calls found once for each packet beyond the first of a sequence, when its queue has ended.
func newTwins(found func(queue uint32, seq uint64)) *twins {
	t := &twins{}
	t.sequences = newSequences(func(seq uint64) { found(t.queue, seq) })
	return t
}

func (t *twins) add(id storage.PacketID) {
	if t.any && id.Queue != t.queue {
		t.flush()
	}
	t.queue, t.any = id.Queue, true
	t.sequences.add(id.Priority, id.Seq)
}

// rest looks at the shares of sequences that there was no room for: pass adds all packets once more.
func (t *twins) rest(pass func() error) error {
	for t.share+1 < t.shares {
		t.share++
		t.any = false
		err := pass()
		t.flush()
		if err != nil {
			return err
		}
	}
	return nil
}
