package page

import (
	"net/http"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// Setting is a setting of the server that is in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as the config file has it; of a password that it is not shown
	From  string `json:"from"`  // default, file, environment or flag
}

// serveSettings tells which settings are in force.
func (p *Page) serveSettings(w http.ResponseWriter, _ *http.Request, _ visitor) {
	all := []Setting{}
	if p.config.Settings != nil {
		all = p.config.Settings()
	}
	answer(w, http.StatusOK, map[string][]Setting{"settings": all})
}

// serveCluster tells of the cell that the server is of: of no nodes if it is alone.
func (p *Page) serveCluster(w http.ResponseWriter, r *http.Request, _ visitor) {
	said, err := admin.Cluster{Nodes: []admin.Node{}}, error(nil)
	if p.config.Nodes != nil {
		said, err = p.config.Nodes.Status(r.Context())
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, said)
}
