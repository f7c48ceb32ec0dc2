package peer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// join has no body: behind one that is not read, the context would not end with the asker.
func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), joinTime)
	defer cancel()
	asked := r.URL.Query()
	if r.TLS != nil { // a node joins for itself alone
		host, _, _ := net.SplitHostPort(asked.Get("peer_url"))
		if err := r.TLS.PeerCertificates[0].VerifyHostname(host); err != nil {
			refuse(w, http.StatusForbidden, fmt.Errorf("node %s at %s joins by a certificate of another one: %w", asked.Get("node"), host, err))
			return
		}
	}
	cluster, err := s.config.Join(ctx, asked.Get("node"), asked.Get("peer_url"), asked.Get("process"))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	answer(w, http.StatusOK, cluster)
}

// Join asks a node to make one a learner, and returns etcd's initial cluster. peerURL is where
// etcd's members reach it, and process is Node.Process of who asks.
func (c *Client) Join(ctx context.Context, address, node, peerURL, process string) (cluster string, err error) {
	err = c.ask(ctx, http.MethodPost, address, "/join?"+url.Values{"node": {node}, "peer_url": {peerURL}, "process": {process}}.Encode(), nil, into(&cluster))
	return cluster, err
}
