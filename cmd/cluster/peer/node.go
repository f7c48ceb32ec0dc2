// Package peer is a node's own port, by which the nodes of a cell ask each other: what they say of
// themselves, to pass a client on, for a copy, and to join. It speaks HTTP/1.1, over TLS with
// certificates of the cell's own authority at both ends. It knows neither etcd nor who owns.
package peer

import (
	"context"
	"net/http"
)

// Node is what a node says of itself.
type Node struct {
	Cell     string            `json:"cell"`             // id; "" before it has one
	Name     string            `json:"node"`             // as --nodes has it
	Process  string            `json:"process"`          // a word that no other process has
	Version  string            `json:"version"`          // of the program
	Role     string            `json:"role"`             // one word
	Owner    string            `json:"owner,omitempty"`  // name of the node that owns the queues, as this one knows; "": none
	Batch    uint64            `json:"batch"`            // the last one that it has applied
	Epoch    uint64            `json:"epoch"`            // of the term that it is of
	Behind   int64             `json:"behind"`           // milliseconds since it had applied all that there was
	Floor    uint64            `json:"floor"`            // the last one that is whole in its tables
	Floors   map[string]uint64 `json:"floors,omitempty"` // of all nodes by name, as this one last knew them
	Clock    int64             `json:"clock"`            // its wall's, in Unix milliseconds
	Term     int64             `json:"term,omitempty"`   // the cell's clock, where it owns the queues
	Room     int64             `json:"room"`             // free bytes of its disk
	Database int64             `json:"database"`         // bytes of etcd's database
	Fetched  bool              `json:"fetched"`          // etcd's leader has sent it a snapshot within half a minute
	Digest   string            `json:"digest"`           // of what must be the same on all nodes
	Nodes    map[string]string `json:"nodes,omitempty"`  // addresses by name, as its --nodes has them: the same, too
}

func (s *Server) node(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.config.Node())
}

// Node asks a node what it says of itself.
func (c *Client) Node(ctx context.Context, address string) (n Node, err error) {
	err = c.ask(ctx, http.MethodGet, address, "/node", nil, into(&n))
	return n, err
}
