package page_test

import (
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestThePageIsThereBeforeTheServerServes(t *testing.T) {
	b := newSite(t, root()).browse()
	for _, path := range []string{"/", "/page/session"} {
		answer := b.ask("GET", path, "")
		if answer.StatusCode != 200 || answer.Header.Get("Content-Security-Policy") == "" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %v", path, answer.StatusCode, answer.Header)
		}
	}
	b.login("root")
	if code, text := b.command("QUEUES"); code != 503 || text != `{"error":"recovering"}` {
		t.Errorf("%d %s", code, text)
	}
	if code, text := b.text("GET", "/page/live", ""); code != 503 {
		t.Errorf("live: %d %s", code, text)
	}
}

func TestNothingOfThePageMayBeInlineOrFromElsewhere(t *testing.T) {
	policy := newSite(t).browse().ask("GET", "/", "").Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.ContainsAny(policy, "*:") {
		t.Error(policy)
	}
}

func TestThePageShowsEachMomentOfAPacketAsATime(t *testing.T) {
	var want []string
	for _, f := range words.PacketFields {
		if f.Kind == words.Moment {
			want = append(want, f.Name)
		}
	}
	holdList(t, "packet.js", "moments", want)
}

func TestThePageHasTheStatesOfTheWords(t *testing.T) {
	var want []string
	for _, s := range words.PacketStates {
		want = append(want, s.Name)
	}
	holdList(t, "state.js", "packetStates", want)
}

// holdList holds a list of texts in a script of the page to what is wanted.
func holdList(t *testing.T, script, name string, want []string) {
	t.Helper()
	_, text := newSite(t).browse().text("GET", "/page/"+script, "")
	_, list, _ := strings.Cut(text, "const "+name+" = [")
	list, _, _ = strings.Cut(list, "]")
	if got := `"` + strings.Join(want, `", "`) + `"`; got != list {
		t.Errorf("%s of %s are %s, in the words %s", name, script, list, got)
	}
}

func TestAFileIsSentOnce(t *testing.T) {
	b := newSite(t).browse()
	answer := b.ask("GET", "/", "")
	tag := answer.Header.Get("ETag")
	if kind := answer.Header.Get("Content-Type"); tag == "" || kind != "text/html; charset=utf-8" {
		t.Errorf("ETag %q, type %q", tag, kind)
	}
	if code := b.ask("GET", "/", "", "If-None-Match", tag).StatusCode; code != 304 {
		t.Errorf("again: %d", code)
	}
}

func TestWhatIsNotThereIsRefused(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/page/", 404},
		{"GET", "/page/none.js", 404},
		{"GET", "/page/index.html", 404},
		{"GET", "/page/static/index.html", 404},
		{"GET", "/page/command", 404},
		{"GET", "/page/login", 404},
		{"POST", "/page/session", 404},
		{"DELETE", "/page/command", 404},
		{"POST", "/", 404},
		{"GET", "/none", 404},
		{"POST", "/livez", 405},
	} {
		if code, text := b.text(c.method, c.path, ""); code != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, code, text, c.want)
		}
	}
}
