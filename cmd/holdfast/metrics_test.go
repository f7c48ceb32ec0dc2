package main

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRulesForAlertsNameWhatAServerShows(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0", "--metrics-queues", "mail-*,other")
	s.must(t, "push", "mail-1", "never shown")
	s.must(t, "backup", "--to", filepath.Join(t.TempDir(), "backup"))
	answer, err := http.Get("http://" + s.addrs["admin"] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	page := string(text)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %s, %v: %s", answer.Status, err, page)
	}
	r := command{}.run(t.Context(), "metrics", "rules")
	names := regexp.MustCompile(`holdfast_\w+`).FindAllString(r.stdout, -1)
	if r.code != exitOK || len(names) < 12 {
		t.Fatalf("%+v", r)
	}
	for _, name := range names {
		switch name {
		case "holdfast_failed_logins_total", "holdfast_tls_certificate_expiry_timestamp_seconds": // without users and TLS
			continue
		}
		isOfACell := strings.HasPrefix(name, "holdfast_node_") || strings.HasPrefix(name, "holdfast_cell_")
		if !isOfACell && !strings.Contains(page, "\n"+name) {
			t.Errorf("the page has no %s", name)
		}
	}
	for _, line := range []string{"holdfast_ready 1\n", `holdfast_queue_packets{database="0",queue="mail-1",state="ready"} 1`, `holdfast_connections{door="redis"}`, `holdfast_build_info{`} {
		if !strings.Contains(page, line) {
			t.Errorf("the page has no %s", line)
		}
	}
	if strings.Contains(page, "never shown") {
		t.Error("the page shows a payload")
	}
}

func TestOnlyAWholeBackupOfEverythingIsTheLastOne(t *testing.T) {
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0")
	last := func() (at float64) {
		for line := range strings.Lines(fetch(t, "http://"+s.addrs["admin"]+"/metrics")) {
			if value, ok := strings.CutPrefix(line, "holdfast_last_backup_timestamp_seconds "); ok {
				at, _ = strconv.ParseFloat(strings.TrimSpace(value), 64)
			}
		}
		return at
	}
	s.must(t, "bench", "push", "--count", "600", "--size", "20000", "--keep")
	file := filepath.Join(t.TempDir(), "backup")
	s.must(t, "backup", "--to", file, "--queue", "*")
	answer, err := http.Get("http://" + s.addrs["admin"] + "/backup")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // who leaves has not got all of 12 MB
	for r := s.run(t, "backup", "--to", file, "--queue", "q"); r.code != exitOK; r = s.run(t, "backup", "--to", file, "--queue", "q") {
		if !strings.Contains(r.stderr, "another backup is under way") { // until the server has noticed
			t.Fatalf("%+v", r)
		}
	}
	if at := last(); at != 0 {
		t.Errorf("the last backup was at %f, want none", at)
	}
	before := time.Now().UnixMilli()
	s.must(t, "backup", "--to", file)
	if at := int64(last() * 1000); at < before || at > time.Now().UnixMilli() {
		t.Errorf("the last backup was at %d, want %d or a little later", at, before)
	}
}

// fetch is what a page says.
func fetch(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
