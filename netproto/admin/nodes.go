package admin

import (
	"context"
	"encoding/json"
	"net/http"
)

// Nodes is the cell of nodes that the server is of. Any goroutine may call its methods.
type Nodes interface {
	// Status says what the cell is. It takes a second or two while nodes do not answer.
	Status(ctx context.Context) (Cluster, error)
}

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
	LagMS   int64  `json:"lag_ms"`    // milliseconds between its last batch and that of the owner
	Floor   uint64 `json:"floor"`     // the batch up to which its tables have everything, as the cell knows
	ClockMS int64  `json:"clock_ms"`  // how far its clock is ahead of that of the node that says this
	Room    int64  `json:"disk_free"` // bytes
	Version string `json:"version"`
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
