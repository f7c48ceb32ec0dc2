package resp

import (
	"bytes"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// A look at very many names, fields or elements is made in slices, so that others have their turn
// in between. Its reply is kept until it is whole. What is there all the time comes once, what
// comes or goes meanwhile may come or not. In a transaction every look is made at once.

// look is a look that is under way.
type look struct {
	under     bool
	cursor    uint64 // where the next slice begins: of names
	fields    broker.FieldCursor
	list      broker.ListCursor
	consumers broker.ConsumerLook
	shares    broker.ShareLook
	ids       []int64  // of sessions
	found     int      // for the command: how much it has replied with
	out       int      // the bytes in Out when the present slice began
	steps     int      // and what was left of the session's steps
	kept      [][]byte // the reply until there
	size      int      // bytes of that
	head      []byte   // of the reply, which the command knows at the end only
}

const (
	// sliceBytes is how many bytes of replies end a slice: who allocates much at once works for the
	// collector meanwhile, up to 50 ms a MiB.
	sliceBytes = 256 << 10
	// sliceSteps is how many steps of patterns end one.
	sliceSteps = maxSteps / 10
	// idBytes is what the id of a session takes.
	idBytes = 8
)

// inSlices makes a look. step makes a slice of it, and says whether there are more. It returns
// errUnfinished until the last slice is made: the command is called again then.
func (s *session) inSlices(step func() (more bool, err error)) error {
	for l := &s.look; ; {
		l.under, l.out, l.steps = true, len(s.peer.Out), s.steps
		more, err := step()
		switch {
		case err == broker.ErrChanged: // the slice has replied nothing
		case err != nil || !more || s.overLimit:
			return err
		}
		switch {
		case !s.inExec:
			return errUnfinished
		case s.cmd.looks() && !s.tx.MayLook():
			return broker.ErrTooManyLooks
		}
	}
}

// sliceFull says that a slice that has looked at n names or fields is long enough.
func (s *session) sliceFull(n int) bool {
	return n >= broker.LookSlice || len(s.peer.Out)-s.look.out >= sliceBytes || s.look.steps-s.steps > sliceSteps || s.overLimit
}

// nameSlice is how many names or fields a slice of a command takes that only names them: that is
// cheap.
const nameSlice = 4096

// eachName calls for each of the names of a command, in slices.
func (s *session) eachName(names [][]byte, call func(name []byte) error) error {
	l := &s.look
	return s.inSlices(func() (bool, error) {
		left := names[l.cursor:]
		n := 0
		for n < min(len(left), nameSlice) && (n == 0 || len(s.peer.Out)-l.out < sliceBytes) && !s.overLimit {
			if err := call(left[n]); err != nil {
				return false, err
			}
			n++
		}
		l.cursor += uint64(n)
		return n < len(left), nil
	})
}

// keptBytes is the room in which replies of short slices are kept together. So a turn takes little
// memory, and a long reply leaves as long messages, which are not copied again.
const keptBytes = 64 << 10

// keep keeps what the command has replied until now.
func (s *session) keep() {
	l, from := &s.look, s.commandStart
	part := s.peer.Out[from:]
	switch last := len(l.kept) - 1; {
	case len(part) == 0:
		return
	case len(part) > keptBytes/2: // Out gets a new buffer
		l.kept, s.peer.Out = append(l.kept, part), s.peer.Out[:from:from]
	case last < 0 || len(part) > cap(l.kept[last])-len(l.kept[last]):
		l.kept = append(l.kept, append(make([]byte, 0, keptBytes), part...))
		s.peer.Out = s.peer.Out[:from]
	default:
		l.kept[last] = append(l.kept[last], part...)
		s.peer.Out = s.peer.Out[:from]
	}
	l.size += len(part)
	s.peer.Owe(len(part))
}

// endLook replies with what was kept.
func (s *session) endLook() {
	kept, head, out := s.look.kept, s.look.head, s.peer.Out
	s.dropLook()
	switch {
	case kept == nil: // it was short
		s.peer.Out = slices.Insert(out, s.commandStart, head...)
	case !s.noReply:
		last := bytes.Clone(out[s.commandStart:])
		s.peer.Out = append(out[:s.commandStart], head...)
		for _, part := range kept {
			s.peer.Send(netproto.NewMessage(part))
		}
		s.peer.Out = append(s.peer.Out, last...)
	}
}

// dropLook ends a look without a reply.
func (s *session) dropLook() {
	s.peer.Owe(-s.look.size - idBytes*len(s.look.ids))
	s.look.list.End()
	s.look = look{}
}
