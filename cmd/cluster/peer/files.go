package peer

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/storage"
)

// files streams a copy. An error in the middle aborts the connection, so that who asked sees it.
func (s *Server) files(w http.ResponseWriter, r *http.Request) {
	out := &pieces{to: w}
	had, err := io.ReadAll(io.LimitReader(r.Body, maxList))
	if err == nil {
		err = s.config.Files(out, had)
	}
	switch {
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

const (
	shortRound = 5 * time.Second // what is new behind a round that took less is little
	maxRounds  = 10
	maxList    = 64 << 20 // bytes of a list of tables: a folder of a terabyte has some 4 MiB
)

// Fetch makes the data folder dir, which is empty or not there, of a node's files, in rounds: each
// gets the tables that are new. hold is called before the last one: what comes behind that must be
// in the log. After an error nothing is left of dir, but after one that wraps storage.ErrKept.
func (c *Client) Fetch(ctx context.Context, address, dir string, hold func() error) error {
	to, err := storage.Restore(dir, 0)
	if err != nil {
		return err
	}
	var had []byte
	for round := 1; err == nil && round < maxRounds; round++ {
		begun := time.Now()
		if had, err = c.round(ctx, address, to, had); time.Since(begun) < shortRound {
			break
		}
	}
	if err == nil {
		err = hold()
	}
	if err == nil {
		_, err = c.round(ctx, address, to, had)
	}
	if err != nil {
		to.Discard()
		return err
	}
	return to.Keep()
}

// round adds what is new behind a list of tables, and returns the list that is there then.
func (c *Client) round(ctx context.Context, address string, to *storage.Restoration, had []byte) ([]byte, error) {
	err := c.ask(ctx, http.MethodGet, address, "/files", had, func(body io.Reader) error {
		r, err := archive.NewReader(body)
		if err == nil {
			err = to.Again(r.Header.Bytes())
		}
		if err == nil {
			err = r.Each(ctx, to.Add, nil)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return to.Tables()
}
