package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportedItemsAreExportedInTheOrderOfTheBoard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, filepath.Join(dir, "data"), "--barbershop", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	snapshot, exported := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	lines := "17 250\n4294967295 0\n0 4294967295\n18 250\n5 1\n17 1\n19 250\n" // 17 gets 251, and 18 is in the pool before 19
	if err := os.WriteFile(snapshot, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.must(t, "barbershop", "import", snapshot); got != "7 lines imported\n" {
		t.Errorf("printed %q", got)
	}
	want := "0 4294967295\n17 251\n18 250\n19 250\n5 1\n4294967295 0\n"
	if out := s.must(t, "barbershop", "export", exported); out != "6 items exported\n" {
		t.Errorf("printed %q, want how many items", out)
	}
	if b, err := os.ReadFile(exported); err != nil || string(b) != want {
		t.Errorf("exported\n%s%v, want\n%s", b, err, want)
	}
	if r := s.run(t, "barbershop", "export", "-"); r != (result{exitOK, want, "holdfast: 6 items exported\n"}) {
		t.Errorf("%+v, want all items and a line on standard error", r)
	}
	// What was exported makes the same board: nothing is lost on the way there and back.
	other := serve(t, filepath.Join(dir, "other"), "--barbershop", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--barbershop-queue", "*")
	if got := other.must(t, "barbershop", "import", exported); got != "6 lines imported\n" {
		t.Errorf("printed %q", got)
	}
	other.must(t, "push", "**", "of a queue that the board's name as a pattern would match", "--key", "1")
	if got := other.must(t, "barbershop", "export", "-", "--barbershop-queue", "*"); got != want {
		t.Errorf("the other board has\n%swant\n%s", got, want)
	}
}

func TestExportTellsOfPacketsThatAreNoItems(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--barbershop", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	for _, args := range [][]string{
		{"seventeen", "--key", "17x"}, {"", "--key", "017"}, {"", "--key", ""}, {"with a payload", "--key", "17"},
		{"", "--key", "18", "--priority", "0"}, {"", "--key", "4294967296"}, {"", "--key", "19", "--ttl", "60s"},
	} {
		s.must(t, append([]string{"push", "barbershop"}, args...)...)
	}
	if r := s.runWith(t, "20 7\n", "barbershop", "import", "-"); r.code != exitOK {
		t.Fatalf("import: %+v", r)
	}
	r := s.run(t, "barbershop", "export", "-")
	if r.code != exitFailed || r.stdout != "20 7\n" || !strings.Contains(r.stderr, "1 item exported; left out of queue \"barbershop\": 7 packets that are no items") {
		t.Errorf("%+v, want the item, and an error about 7 others", r)
	}
}

func TestExportWritesAnItemOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--barbershop", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	for _, priority := range []string{"9", "4", "5"} {
		s.must(t, "push", "barbershop", "", "--key", "17", "--priority", priority)
	}
	r := s.run(t, "barbershop", "export", "-")
	if r.code != exitFailed || r.stdout != "17 4294967291\n" || !strings.Contains(r.stderr, "2 packets that are no items on the board or not the best of one") {
		t.Errorf("%+v, want the item with its best score, and an error about 2 others", r)
	}
}

func TestExportOfAQueueThatIsNotThereKeepsTheOlderSnapshot(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--barbershop", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if r := s.runWith(t, "20 7\n", "barbershop", "import", "-"); r != (result{exitOK, "1 line imported\n", ""}) {
		t.Fatalf("import: %+v", r)
	}
	file := filepath.Join(t.TempDir(), "snapshot")
	if out := s.must(t, "barbershop", "export", file); out != "1 item exported\n" {
		t.Errorf("printed %q", out)
	}
	oneErrorLine(t, s.run(t, "barbershop", "export", file, "--barbershop-queue", "barbreshop"), exitFailed, `has no queue "barbreshop"`)
	oneErrorLine(t, s.run(t, "barbershop", "export", "-", "--barbershop-queue", "barbreshop"), exitFailed, "check --barbershop-queue")
	if b, err := os.ReadFile(file); err != nil || string(b) != "20 7\n" {
		t.Errorf("the older snapshot is now %q (%v)", b, err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v (%v), want the snapshot alone", entries, err)
	}
}

func TestExportHintsAtTheOperatorPort(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--barbershop", "127.0.0.1:0")
	for _, protocol := range []string{"pinpriq", "barbershop"} {
		oneErrorLine(t, s.run(t, "barbershop", "export", "-", "--admin", s.addrs[protocol]), exitFailed, "check that --admin "+s.addrs[protocol])
	}
}

func TestBoardCommandsSayWhenNobodyAnswers(t *testing.T) {
	for name, args := range map[string][]string{
		"import":              {"import", "-", "--barbershop", nobody},
		"export":              {"export", "-", "--admin", nobody},
		"import of no file":   {"import", filepath.Join(t.TempDir(), "none")},
		"export to no folder": {"export", filepath.Join(t.TempDir(), "none", "file"), "--admin", nobody},
		"import of a folder":  {"import", t.TempDir()},
	} {
		want := "no server answers at"
		switch {
		case strings.Contains(name, "no file"):
			want = "no such file"
		case strings.Contains(name, "of a folder"):
			want = "is a folder"
		}
		oneErrorLine(t, command{}.run(t.Context(), append([]string{"barbershop"}, args...)...), exitFailed, want)
	}
}
