package page_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

func TestTheAuditIsForThoseWhoOperate(t *testing.T) {
	s := newSite(t, root(), user("ann", access.Everything()...)).serve()
	ann, operator := s.browse(), s.browse()
	ann.login("ann")
	operator.login("root")
	s.redis("QMPUSH", "jobs\xff", "2", "x", "y")
	for _, words := range [][]string{{"QPUSH", "jobs", "x"}, {"QDEL", "jobs", "17", "18"}} {
		ann.command(words...)
	}
	s.redis("QPURGE", "jobs\xff")
	s.redis("QSET", "jobs", "lease", "1000", "bound", "5")
	for _, path := range []string{"/page/audit", "/page/settings", "/page/cluster"} {
		if code, text := ann.text("GET", path, ""); code != http.StatusForbidden {
			t.Errorf("ann gets %d %s", code, text)
		}
	}
	if code, text := operator.text("GET", "/page/settings", ""); code != http.StatusOK || text != `{"settings":[]}` {
		t.Errorf("without settings: %d %s", code, text)
	}
	var got struct {
		Lines []struct {
			User, Command, Packets, Set string
			Queue                       any
			Count                       int64
		}
	}
	code, text := operator.text("GET", "/page/audit", "")
	if err := json.Unmarshal([]byte(text), &got); code != http.StatusOK || err != nil || len(got.Lines) != 3 {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if l := got.Lines[2]; l.User != "ann" || l.Command != "qdel" || l.Packets != "17 18" || l.Queue != "jobs" || l.Count != 0 {
		t.Errorf("the first is %+v", l)
	}
	if l := got.Lines[0]; l.Command != "qset" || l.Set != "lease 1000 bound 5" {
		t.Errorf("the settings are %+v", l)
	}
	if l := got.Lines[1]; l.User != "root" || l.Command != "qpurge" || l.Count != 2 {
		t.Errorf("the last is %+v", l)
	}
}
