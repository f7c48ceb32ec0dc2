package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Nodes is the cell of nodes that the server is of. Any goroutine may call its methods.
type Nodes interface {
	// Status says what the cell is. It takes a second or two while nodes do not answer.
	Status(ctx context.Context) (Cluster, error)
	// Remove takes a node out of the cell for ever. An error says why nothing was done; ErrUnknown: it
	// may be done.
	Remove(ctx context.Context, node string) error
	// HandOver has another node own the queues. An error is as that of Remove.
	HandOver(ctx context.Context, node string) error
}

// Changes of a cell, by their paths below /cluster.
const (
	Remove   = "remove"
	HandOver = "hand-over"
)

// changeTime is how long a change may wait for the nodes: less than a client waits for its answer.
const changeTime = 25 * time.Second

// Cluster is what a cell is, as one of its nodes knows it.
type Cluster struct {
	Cell     string `json:"cell"`     // its name
	ID       string `json:"id"`       // of the cell
	By       string `json:"by"`       // the node that says all this
	Majority bool   `json:"majority"` // a majority has answered; if not, this may be old
	Owner    string `json:"owner"`    // node that owns the queues; "": none
	Fence    int64  `json:"fence"`    // of its claim; each later one has a higher fence
	Leader   string `json:"leader"`   // node that leads etcd
	Head     uint64 `json:"head"`     // the last batch
	Cut      uint64 `json:"cut"`      // the batch up to which the log was cut
	Spare    int    `json:"spare"`    // how many nodes may be lost now
	ClockMS  int64  `json:"clock_ms"` // how far the cell's clock is ahead of that of the node that says this
	Nodes    []Node `json:"nodes"`
}

// Node is one node of a cell. What it says of itself is zero where it does not answer.
type Node struct {
	Name    string `json:"node"`
	Address string `json:"address"` // of its etcd, as others dial it
	Voter   bool   `json:"voter"`   // it counts for a majority
	Heard   bool   `json:"heard"`   // it answers
	Role    string `json:"role"`
	Batch   uint64 `json:"batch"`     // the last one that it has
	Epoch   uint64 `json:"epoch"`     // of the term which that is of
	Lag     uint64 `json:"lag"`       // batches that it does not have yet
	LagMS   int64  `json:"lag_ms"`    // milliseconds since it had all that there was; 0 below some 4,000
	Floor   uint64 `json:"floor"`     // the batch up to which its tables have everything, as the cell knows
	ClockMS int64  `json:"clock_ms"`  // how far its clock is ahead of that of the node that says this
	TermMS  int64  `json:"-"`         // the same of the clock of the cell, where it owns the queues
	Room    int64  `json:"disk_free"` // bytes
	Version string `json:"version"`
}

// changing makes a change, which the name of a node is for.
func (s *Server) changing(what string, make func(ctx context.Context, node string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), changeTime)
		defer cancel()
		node := r.URL.Query().Get("node")
		switch err := make(ctx, node); {
		case errors.Is(err, ErrUnknown):
			refuse(w, http.StatusGatewayTimeout, err.Error())
			return
		case err != nil:
			refuse(w, http.StatusConflict, err.Error())
			return
		}
		s.audit(r, "cluster "+what+" "+node, "")
		ok(w)
	}
}

func (s *Server) serveCluster(w http.ResponseWriter, r *http.Request) {
	said, err := s.config.Nodes.Status(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(said) // or the client has gone
}
