package planted

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var server = flag.Bool("planted.server", false, "have the bugs of the server judged, too")

func TestPlantedBugsAreFound(t *testing.T) {
	Judge(t, bugs())
}

func TestBugsOfTheServerAreFound(t *testing.T) {
	if !*server {
		t.Skip("skipped: the tests that judge these bugs take minutes together; -planted.server runs them")
	}
	Judge(t, serverBugs())
}

func TestABugThatCannotBePlantedIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	text := "package x\n\nvar a = 1\n\nfunc b() int { return 1 }\n\nfunc c(_ int) { a = 2; a = 2 }\n\nfunc d(int) { a = 3 }\n\nfunc (x) e() { a = 4 }\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, want := range map[string]string{
		"a = 5":    "0 times",
		"a = 2":    "2 times",
		"a = 1":    "in no function",
		"; a":      "without a name",
		"a = 3":    "without a name",
		"a = 4":    "without a name",
		"return 1": "",
	} {
		_, err := Overlay(t.TempDir(), []Bug{{Name: "it is " + old, File: file, Old: old}})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && (!strings.Contains(got, "it is "+old) || !strings.Contains(got, want)) {
			t.Errorf("%s: %v, want %q", old, err, want)
		}
	}
}

func TestABugThatDoesNotCompileIsNamed(t *testing.T) {
	size := Bug{Name: "no size", File: "../broker/cache/cache.go", Old: "return len(c.ring)", New: "return 0"}
	err := Build(t.TempDir(), []Bug{size, {Name: "no bounds", File: size.File, Old: "size = max(size, 1<<16)", New: "size = none"}})
	if want := `"no bounds" does not compile: undefined: none`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestANumberThatNoBugHasIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := Build(dir, []Bug{{Name: "no size", File: "../broker/cache/cache.go", Old: "return len(c.ring)", New: "return 0"}}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"0", "2", "x"} {
		t.Setenv("PLANTED", n)
		out, err := exec.Command(filepath.Join(dir, "cache.test")).CombinedOutput()
		if want := "PLANTED is " + n + ": no planted bug has this number\n"; err == nil || string(out) != want {
			t.Errorf("%v: %s, want %s", err, out, want)
		}
	}
}
