package doors

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	suite       = flag.Bool("suite", false, "run TestCelerySuite: it fetches Celery's source and takes minutes")
	suiteSource = flag.String("source", "", "folder of Celery's source, in place of fetching it")
	suiteOnly   = flag.String("only", "", "one test of the suite, such as test_canvas.py::test_chord, in place of all")
)

// suiteFiles are Celery's tests of what a transport and a backend carry. Others are of certificates
// or of services of others.
var suiteFiles = []string{"test_canvas.py", "test_tasks.py", "test_inspect.py"}

// TestCelerySuite runs Celery's own tests with a broker and a backend of holdfast://. Of its source
// nothing is kept here.
func TestCelerySuite(t *testing.T) {
	if !*suite {
		t.Skip("runs with -suite only: see make celery-suite")
	}
	installed, folder, s := install(t), adaptedSuite(t), start(t)
	files := suiteFiles
	if *suiteOnly != "" {
		files = []string{*suiteOnly}
	}
	args := []string{"-m", "pytest", "-v", "-rfExXs", "--timeout=120", "-Wignore", "-pno:cacheprovider", "-opython_classes=test_*",
		"-pcelery.contrib.pytest", "-padapt"}
	for _, file := range files {
		args = append(args, "t/integration/"+file)
	}
	cmd := exec.CommandContext(t.Context(), installed, args...) // which is bounded by the test's own time
	cmd.Dir = folder
	address := "holdfast://" + s.addr
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "TEST_BROKER="+address, "TEST_BACKEND="+address, "TEST_REDIS=redis://"+s.addr)
	said, err := cmd.CombinedOutput()
	_, summary, _ := strings.Cut(string(said), "short test summary info")
	t.Log(summary)
	if err != nil {
		t.Errorf("%v (apt install python3-pytest python3-pytest-subtests python3-pytest-timeout?); it says:\n%s", err, said)
	}
}

// adaptedSuite returns a folder with the tests, which know of one server and of Redis alone.
func adaptedSuite(t *testing.T) string {
	t.Helper()
	folder, from := t.TempDir(), *suiteSource
	if from == "" {
		fetch := exec.Command("apt-get", "source", "-qq", "celery")
		fetch.Dir = folder
		if said, err := fetch.CombinedOutput(); err != nil {
			t.Fatalf("Celery's source cannot be fetched (has apt sources of type deb-src?): %v\n%s", err, said)
		}
		found, err := filepath.Glob(filepath.Join(folder, "celery-*", "t"))
		if err != nil || len(found) != 1 {
			t.Fatalf("apt-get source brought %q, %v; want one folder with tests", found, err)
		}
		from = filepath.Dir(found[0])
	}
	folder = filepath.Join(folder, "suite")
	for to, source := range map[string]string{
		folder: "testdata/celerysuite", filepath.Join(folder, "t/integration"): filepath.Join(from, "t/integration"),
	} {
		if err := os.CopyFS(to, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "t", "__init__.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][3]string{
		{"test_canvas.py", `\.result_backend\.startswith\(['"]redis['"]\)`, `.result_backend.startswith("holdfast")`},
		{"test_canvas.py", `str\(uuid\.uuid4\(\)\)\.encode\(\)`, `str(uuid.uuid4())`}, // kombu 5.2 has no bytes in JSON
		{"conftest.py", `StrictRedis\(host=os\.environ\.get\('REDIS_HOST'\)\)`, `StrictRedis.from_url(os.environ["TEST_REDIS"])`},
	} {
		name := filepath.Join(folder, "t/integration", change[0])
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		changed := regexp.MustCompile(change[1]).ReplaceAll(text, []byte(change[2]))
		if string(changed) == string(text) {
			t.Fatalf("%s is not as it was in Celery 5.2: it has no %s", change[0], change[1])
		}
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
