package admin

import (
	"net/http"
	"net/http/pprof"
	"strings"
)

// profiles is where Go's tools look for profiles.
const profiles = "/debug/pprof/"

// serveProfile answers with a profile of the process. The command line is none of them: it may have
// a password. The library gives long profiles the time they need.
func (s *Server) serveProfile(w http.ResponseWriter, r *http.Request) {
	if !s.profile.TryLock() {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "another profile is under way, and there is one at a time: try again when it has ended")
		return
	}
	defer s.profile.Unlock()
	defer Keep(r)()
	s.audit(r, "profile", "")
	switch strings.TrimPrefix(r.URL.Path, profiles) {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}
