package peer

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/archive"
)

// files streams a copy. An error in the middle aborts the connection, so that who asked sees it.
func (s *Server) files(w http.ResponseWriter, r *http.Request) {
	out := &pieces{to: w}
	switch err := s.config.Files(r.Context(), out); {
	case err == nil:
	case !out.begun:
		refuse(w, http.StatusServiceUnavailable, err)
	default:
		s.config.Logger.Warn("copy cut short", "remote", r.RemoteAddr, "error", err)
		panic(http.ErrAbortHandler)
	}
}

// pieces writes a copy, and gives the other node its time for each piece.
type pieces struct {
	to    http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	p.begun = true
	_ = http.NewResponseController(p.to).SetWriteDeadline(time.Now().Add(stallTime))
	return p.to.Write(b)
}

// Fetch makes the data folder dir, which is empty or not there, of a node's files. After an error
// nothing is left of it, but after one that wraps storage.ErrKept.
func (c *Client) Fetch(ctx context.Context, address, dir string) error {
	return c.ask(ctx, http.MethodGet, address, "/files", func(body io.Reader) error {
		r, err := archive.NewReader(body)
		if err != nil {
			return err
		}
		return r.Restore(ctx, dir, nil)
	})
}
