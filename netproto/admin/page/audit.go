package page

import (
	"net/http"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// serveAudit tells what users have managed and operated of late, the newest first.
func (p *Page) serveAudit(w http.ResponseWriter, r *http.Request, _ visitor) {
	type line struct {
		At       int64           `json:"at"`
		User     string          `json:"user"`
		Remote   string          `json:"remote"`
		Protocol string          `json:"protocol"`
		Command  string          `json:"command"`
		Database uint8           `json:"database"`
		Queue    jsonbytes.Bytes `json:"queue"`
		Packets  string          `json:"packets"`
		Set      string          `json:"set"`
		Count    int64           `json:"count"`
		Times    int64           `json:"times"`
	}
	recent := admin.AuditOf(r).Recent()
	lines := make([]line, len(recent))
	for i, e := range recent {
		lines[len(recent)-1-i] = line{e.At, e.User, e.Remote, e.Protocol, e.Command, e.Database, jsonbytes.Bytes(e.Queue), e.Packets, e.Set, e.Count, e.Times}
	}
	answer(w, http.StatusOK, map[string][]line{"lines": lines})
}
