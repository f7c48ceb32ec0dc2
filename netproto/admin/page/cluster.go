package page

import (
	"net/http"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// serveCluster tells of the cell that the server is of.
func (p *Page) serveCluster(w http.ResponseWriter, r *http.Request, _ visitor) {
	if p.config.Nodes == nil {
		answer(w, http.StatusOK, admin.Cluster{Nodes: []admin.Node{}})
		return
	}
	said, err := p.config.Nodes.Status(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, said)
}
