package model

import "fmt"

// A QCLAIM with FILL waits for a whole batch once there is something. It takes nothing until then.

// line is what those have in common of whom one fills at a time, "" for who fills nothing.
func (c call) line() string {
	if !c.has("FILL") {
		return ""
	}
	match := c.number("ANY", int64(len(c.filters)))
	return fmt.Sprint(c.name, c.number("COUNT", 0), c.number("FILL", 0), c.has("SHARE"), []byte(c.options["SHARE"]), c.filters, match)
}

// fills says that a command waits for more than there is.
func (s *Server) fills(c call, list []*packet) bool {
	return c.has("FILL") && !c.exec && !c.filled && len(list) < int(c.number("COUNT", 0))
}

// awaitBatch has a command wait for a whole batch. How long it does counts from when it found the
// first packet.
func (s *Server) awaitBatch(c call) any {
	if c.again == "" {
		s.park(c, []string{c.name}, false, c.number("BLOCK", 0))
	}
	o := s.conns[c.conn]
	if !o.wait.fills {
		w := *o.wait
		w.fills, w.until = true, s.steady+c.number("FILL", 0)
		o.wait = &w
	}
	return Waits{}
}

// waitOn has a command that has filled wait as its BLOCK says, as others have taken all.
func (s *Server) waitOn(o *conn) any {
	w := *o.wait
	w.fills, w.until = false, w.blocks
	if o.wait = &w; w.until != 0 && w.until <= s.steady {
		return nil
	}
	return Waits{}
}

// begins says that a client would fill, if its command were made again.
func (s *Server) begins(client, queue string) bool {
	if s.kind(queue) == isList {
		s.carryOut(call{conn: client, words: s.conns[client].wait.words, again: queue})
	}
	return s.conns[client].wait.fills
}

// filler is who fills of a line, nil if nobody does.
func (s *Server) filler(line string) *waiting {
	for _, o := range s.conns {
		if o.wait != nil && o.wait.fills && o.wait.line == line {
			return o.wait
		}
	}
	return nil
}
