package resp

import (
	"bytes"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// A look at very many names, fields or elements is made in slices, so that others have their turn
// in between. Its reply is kept until it is whole. A look at what has one name is of one moment: if
// that is changed meanwhile the look begins again, and at last it is made at once. In a transaction
// every look is made at once.

// look is a look that is under way.
type look struct {
	under  bool
	cursor uint64              // where the next slice begins
	found  int                 // for the command: how much it has replied with
	stamp  uint64              // of the name, when it began
	begun  int                 // how many times it began again
	out    int                 // the bytes in Out when the present slice began
	steps  int                 // and what was left of the session's steps
	kept   []*netproto.Message // the reply until there
	size   int                 // bytes of that
	head   []byte              // of the reply, if the command knows it at the end only
}

const (
	// maxBegun is how many times a look begins again, before it is made at once.
	maxBegun = 3
	// sliceBytes is how many bytes of replies end a slice.
	sliceBytes = 1 << 20
	// sliceSteps is how many steps of patterns end one.
	sliceSteps = maxSteps / 10
)

// inSlices makes a look at what has a name, or at all names if that is nil. step makes a slice of
// it from a cursor on, 0 at first, and returns where the next one begins, 0 after the last. It
// returns errUnfinished until the last slice is made: the command is called again then.
func (s *session) inSlices(tx *broker.Tx, name []byte, step func(cursor uint64) (next uint64, err error)) error {
	for l := &s.look; ; {
		if l.cursor != 0 && l.stamp != stampOf(tx, name) {
			s.beginAgain()
		}
		l.under, l.out, l.steps = true, len(s.peer.Out), s.steps
		next, err := step(l.cursor)
		switch {
		case err == broker.ErrChanged:
			s.beginAgain()
		case err != nil || next == 0 || s.overLimit:
			return err
		default:
			l.stamp, l.cursor = stampOf(tx, name), next
		}
		if !s.inExec && l.begun < maxBegun {
			return errUnfinished
		}
	}
}

// beginAgain has the look begin again.
func (s *session) beginAgain() {
	begun := s.look.begun + 1
	s.dropLook()
	s.look.begun = begun
	s.peer.Out = s.peer.Out[:s.commandStart]
}

func stampOf(tx *broker.Tx, name []byte) uint64 {
	if name == nil {
		return 0
	}
	return tx.Stamp(name)
}

// sliceFull says that a slice that has looked at n names or fields is long enough.
func (s *session) sliceFull(n int) bool {
	return n == broker.LookSlice || len(s.peer.Out)-s.look.out >= sliceBytes || s.look.steps-s.steps > sliceSteps || s.overLimit
}

// keep keeps what the command has replied until now.
func (s *session) keep() {
	part := bytes.Clone(s.peer.Out[s.commandStart:])
	s.peer.Out = s.peer.Out[:s.commandStart]
	s.look.kept = append(s.look.kept, netproto.NewMessage(part))
	s.look.size += len(part)
	s.peer.Owe(len(part))
}

// endLook replies with what was kept.
func (s *session) endLook() {
	l, out := s.look, s.peer.Out
	s.dropLook()
	switch {
	case l.kept == nil: // it was short
		s.peer.Out = slices.Insert(out, s.commandStart, l.head...)
	case !s.noReply:
		last := bytes.Clone(out[s.commandStart:])
		s.peer.Out = append(out[:s.commandStart], l.head...)
		for _, part := range l.kept {
			s.peer.Send(part)
		}
		s.peer.Out = append(s.peer.Out, last...)
	}
}

// dropLook ends a look without a reply.
func (s *session) dropLook() {
	s.peer.Owe(-s.look.size)
	s.look = look{}
}
