package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHealthSaysWhetherTheServerIsReady(t *testing.T) {
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0")
	r := command{}.run(t.Context(), "health", "--admin", s.addrs["admin"])
	if want := (result{exitOK, "ok\n", ""}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
	oneErrorLine(t, command{}.run(t.Context(), "health", "--admin", nobody), exitFailed, "no server answers")
	starting := adminOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "recovering: 1 of about 2 records are read\n")
	})
	oneErrorLine(t, command{}.run(t.Context(), "health", "--admin", starting), exitFailed, "is not ready: recovering: 1 of about 2")
	silent := adminOf(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	oneErrorLine(t, command{}.run(t.Context(), "health", "--admin", silent, "--timeout", "50ms"), exitFailed, "sent nothing for 50ms")
}

func TestServeHasProfilesOnlyWithDebug(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
	}{{nil, 404}, {[]string{"--debug"}, 200}} {
		s := serve(t, t.TempDir(), append([]string{"--admin", "127.0.0.1:0"}, c.args...)...)
		answer, err := http.Get("http://" + s.addrs["admin"] + "/debug/pprof/goroutine")
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != c.code {
			t.Errorf("%q: status %d, want %d", c.args, answer.StatusCode, c.code)
		}
	}
}

func TestDoctorPrintsALineForEachFinding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	r := command{}.run(t.Context(), "doctor", dir, "--max-conns", "1")
	for _, check := range []string{"CHECK", "files", "folder", "sync", "space"} {
		if !strings.Contains("\n"+r.stdout, "\n"+check+" ") {
			t.Errorf("no line %s in\n%s", check, r.stdout)
		}
	}
	r = command{}.run(t.Context(), "doctor", dir, "--json")
	for line := range strings.Lines(r.stdout) {
		var f struct{ Check, Verdict, Seen, Do string }
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Check == "" || f.Verdict == "" || f.Seen == "" {
			t.Errorf("line %s: %+v, %v", line, f, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r = (command{}).run(t.Context(), "doctor", file); r.code != exitFailed || !strings.Contains(r.stdout, "is not a folder") {
		t.Errorf("of a file: %+v", r)
	}
}
