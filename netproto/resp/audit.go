package resp

import (
	"bytes"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// audited says whether a command is logged once it is carried out: it manages or operates. What
// also pushes, as SET, stores a value, and is none of these.
func (c *command) audited() bool {
	return c.right&(access.Manage|access.Operate) != 0 && c.right&access.Push == 0
}

// audit notes a command that was carried out, and what it has replied. One that goes slice by slice
// is noted by endSlices. Who may not operate has ended a wait or a connection of its own. What a
// client does for itself is left out.
func (s *session) audit(c *command, args [][]byte) {
	if s.forItself || !c.audited() || c.flags&flagSlices != 0 || c.right == access.Operate && !s.pass.May(access.Operate, nil) {
		return
	}
	var queue []byte
	if c.first > 0 {
		queue = args[c.first]
	}
	count := int64(-1)
	reply := s.peer.Out[s.commandStart:]
	if end := bytes.IndexByte(reply, '\r'); end > 1 && reply[0] == ':' {
		if n, ok := wire.ParseInt(reply[1:end]); ok {
			count = n
		}
	}
	var packets [][]byte
	if c.packets > 0 {
		packets = args[2 : c.packets+1]
	} else if c.packets < 0 {
		packets = args[2 : len(args)+c.packets+1]
	}
	var set [][]byte
	if c.sets {
		set = args[2:]
	}
	s.note(c, queue, packets, count, set...)
}

// endSlices ends a change that goes slice by slice, and notes how far it came.
func (s *session) endSlices() {
	b, c := s.sliced, s.slicing
	s.sliced, s.slicing = nil, nil
	if b != nil && !b.DryRun {
		s.note(c, b.Queue(), nil, int64(b.Done))
	}
}

func (s *session) note(c *command, queue []byte, packets [][]byte, count int64, set ...[]byte) {
	x := access.Action{Protocol: Name, User: s.userName(), Host: s.peer.Host(), Command: c.name, Database: s.consumer.Database()}
	s.protocol.config.Audit.Note(x, s.peer.Remote(), queue, packets, count, set...)
}
