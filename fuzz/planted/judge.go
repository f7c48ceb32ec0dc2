package planted

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var seeds = flag.Int("planted.seeds", 0, "how many seeds a simulation plays where it is a judge, from 1 on; 0: the one that is named")

// longest is how long a test runs that a bug makes hang, and then it is found.
const longest = "60s"

// judge is the folder, the test and the test's arguments that judge a bug.
func (b Bug) judge() (folder, test string, args []string) {
	f := append(strings.Fields(b.Judge), "", "")
	args = f[2:max(len(f)-2, 2)]
	if *seeds > 0 && strings.Contains(b.Judge, "-sim.seed=") {
		args = []string{"-sim.from=1", fmt.Sprint("-sim.seeds=", *seeds), "-sim.file=" + os.DevNull, "-test.timeout=1h"}
	}
	return f[0], f[1], args
}

var ofBug = regexp.MustCompile(`planted(\d+)\.go:\d+(?::\d+)?: (.*)`)

// Build builds tests with all bugs into dir: those of each package that has a bug or judges one.
func Build(dir string, bugs []Bug) error {
	overlay, err := Overlay(dir, bugs)
	if err != nil {
		return err
	}
	packages := make(map[string]bool)
	for _, b := range bugs {
		packages["./"+path.Join("storage", path.Dir(b.File))] = true
		if folder, _, _ := b.judge(); folder != "" && folder != Always {
			packages["./"+folder] = true
		}
	}
	folders := slices.Sorted(maps.Keys(packages))
	if err := Depend(folders...); err != nil {
		return err
	}
	out, err := run(append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-overlay", overlay, "-o", dir + "/"}, folders...))
	var named []error
	for _, m := range ofBug.FindAllStringSubmatch(out, -1) {
		n, _ := strconv.Atoi(m[1])
		named = append(named, fmt.Errorf("%q does not compile: %s", bugs[n-1].Name, m[2]))
	}
	if named != nil {
		return errors.Join(named...)
	}
	return err
}

// Depend has Go's cache of results know that a test depends on packages that it builds: it knows of
// what a test reads.
func Depend(folders ...string) error {
	list, err := run(append([]string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}, folders...))
	for folder := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		_, unread := os.ReadDir(folder)
		err = errors.Join(err, unread)
	}
	_, unread := os.ReadFile(filepath.Join(root, "go.mod"))
	return errors.Join(err, unread)
}

// run runs the go command in the root.
func run(args []string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", cmd, err, out)
	}
	return string(out), err
}

// Judge has each bug judged, and prints a table of them. It fails for a bug that is not found, and
// for a judge that fails without a bug. A bug without a judge is only built.
func Judge(t *testing.T, bugs []Bug) {
	dir, rows, tests := t.TempDir(), make([]string, len(bugs)), make(map[string][]string)
	if err := Build(dir, bugs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { t.Log("\n" + strings.Join(rows, "\n")) })
	for i, b := range bugs {
		folder, test, args := b.judge()
		if rows[i] = fmt.Sprintf("%3d  %-64s not judged", i+1, b.Name); folder == "" {
			continue
		}
		in := strings.Join(append([]string{folder}, args...), " ")
		tests[in] = append(tests[in], test)
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			begun, found := time.Now(), "found"
			by := fails(t, dir, folder, strconv.Itoa(i+1), []string{test}, args...)
			if by == "" {
				t.Errorf("%s does not find bug %d; another seed may: -planted.seeds 100", b.Judge, i+1)
				found = "not found"
			}
			if *seeds > 0 {
				t.Log(by)
			}
			rows[i] = fmt.Sprintf("%3d  %-64s %-9s  %6.2f s  %s", i+1, b.Name, found, time.Since(begun).Seconds(), b.Judge)
		})
	}
	for in, tests := range tests {
		t.Run("none in "+in, func(t *testing.T) {
			t.Parallel()
			f := strings.Fields(in)
			if by := fails(t, dir, f[0], "", tests, f[1:]...); by != "" {
				t.Errorf("without a bug there is %q", by)
			}
		})
	}
}

var (
	failedTest  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)|^(fatal error: .*)|^\d{4}/\d\d/\d\d [\d:]{8} .*`) // the last is Badger's end
	skippedTest = regexp.MustCompile(`(?m)^.*\n--- SKIP: `)
)

// fails runs tests of a package that was built, with a bug or without any, and returns what fails
// first; "" if nothing does.
func fails(t *testing.T, dir, folder, bug string, tests []string, args ...string) string {
	t.Helper()
	only := "^" + strings.ReplaceAll(strings.Join(tests, "$|^"), "/", "$/^") + "$"
	args = append([]string{"-test.run", only, "-test.failfast", "-test.v", "-test.timeout", longest}, args...)
	cmd := exec.Command(filepath.Join(dir, path.Base(folder)+".test"), args...)
	cmd.Dir = filepath.Join(root, folder)
	cmd.Env = append(os.Environ(), "PLANTED="+bug, "TMPDIR="+t.TempDir()) // what a panic leaves goes with it
	out, err := cmd.CombinedOutput()
	if skipped := skippedTest.FindString(string(out)); skipped != "" && bug != "" {
		t.Skipf("skipped: its judge is: %s", skipped)
	}
	if err == nil {
		return ""
	}
	by := strings.Join(failedTest.FindAllString(string(out), -1), ", ")
	if by == "" {
		t.Fatalf("%v fails by something else: %v: %s", args, err, out)
	}
	return by
}
