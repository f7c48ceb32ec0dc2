package resp

import (
	"bytes"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
)

// A look at very many names, fields or elements is made in slices, so that others have their turn
// in between. Its reply is kept until it is whole. A look at what has one name is of one moment: if
// that is changed meanwhile the look begins again, and at last it is made at once. In a transaction
// every look is made at once.

// look is a look that is under way.
type look struct {
	under  bool
	cursor uint64   // where the next slice begins
	seen   int      // for the command: what it has looked at until there, and found
	found  int      //
	stamp  uint64   // of the name, when it began
	begun  int      // how many times
	out    int      // the bytes in Out when the present slice began
	steps  int      // and what was left of the session's steps
	kept   [][]byte // the reply until there
	size   int      // bytes of that
	head   []byte   // of the reply, if the command knows it at the end only
}

const (
	// maxBegun is how many times a look begins in slices.
	maxBegun = 3
	// sliceBytes is how many bytes of replies end a slice.
	sliceBytes = 1 << 20
)

// inSlices makes a look at what has a name, or at all names if that is nil. step makes a slice of
// it from a cursor on, 0 at first, and returns where the next one begins, 0 after the last. It
// returns errUnfinished until the last slice is made: the command is called again then.
func (s *session) inSlices(tx *broker.Tx, name []byte, step func(cursor uint64) (next uint64, err error)) error {
	for l := &s.look; ; {
		stamp := stampOf(tx, name)
		if !l.under || stamp != l.stamp {
			*l = look{under: true, stamp: stamp, begun: l.begun + 1}
			s.peer.Out = s.peer.Out[:s.commandStart]
		}
		l.out, l.steps = len(s.peer.Out), s.steps
		next, err := step(l.cursor)
		l.cursor = next
		switch {
		case err != nil || s.overLimit:
			return err
		case stampOf(tx, name) != l.stamp: // an element cannot be read, and is none any more
		case next == 0:
			return nil
		}
		if !s.inExec && l.begun <= maxBegun {
			return errUnfinished
		}
	}
}

func stampOf(tx *broker.Tx, name []byte) uint64 {
	if name == nil {
		return 0
	}
	return tx.Stamp(name)
}

// sliceFull says that a slice that has looked at n names or fields is long enough.
func (s *session) sliceFull(n int) bool {
	return n == broker.LookSlice || len(s.peer.Out)-s.look.out >= sliceBytes || s.look.steps-s.steps > maxServeSteps || s.overLimit
}

// keep keeps what the command has replied until now.
func (l *look) keep(s *session) {
	l.kept = append(l.kept, bytes.Clone(s.peer.Out[s.commandStart:]))
	l.size += len(s.peer.Out) - s.commandStart
	s.peer.Out = s.peer.Out[:s.commandStart]
}

// endLook replies with what was kept.
func (s *session) endLook() {
	l, out := &s.look, s.peer.Out
	if l.kept != nil {
		l.keep(s)
		out = append(s.peer.Out, l.head...)
		for _, part := range l.kept {
			out = append(out, part...)
		}
	} else {
		out = slices.Insert(out, s.commandStart, l.head...)
	}
	s.peer.Out, s.look = out, look{}
}
