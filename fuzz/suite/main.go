// Suite runs "go test" and tells what it does: each package as it ends, what a test that failed
// printed, and at the end how many tests were skipped for each reason. Its arguments are those of
// go test. go test alone prints packages in the order in which they are named, so one that takes
// long keeps all others back, and it is silent about skips.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		tell(os.Stdout, out)
		err = cmd.Wait()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "go test: %v\n", err)
		os.Exit(1)
	}
}

// event is a line of go test's -json: what a test, a package or a build does.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// record is what is known of a package: its tests that ended, and what was printed but not told.
type record struct {
	ran, skipped int
	cached       bool
	raced        bool                // a data race was found
	printed      map[string][]string // by test, "" is the package
}

// tell reads events of go test and writes what a person wants to see of them.
func tell(to io.Writer, from io.Reader) {
	packages, reasons := make(map[string]*record), make(map[string]int)
	begun, ran := time.Now(), 0
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "build-output", Output: string(line)}
			}
			if packages[e.Package] == nil {
				packages[e.Package] = &record{printed: make(map[string][]string)}
			}
			packages[e.Package].note(to, e, reasons)
		}
		if err != nil {
			break
		}
	}
	skipped := 0
	for _, p := range packages {
		ran, skipped = ran+p.ran, skipped+p.skipped
	}
	fmt.Fprintf(to, "%d tests in %.0f s, %d skipped\n", ran, time.Since(begun).Seconds(), skipped)
	byCount := func(a, b string) int { return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b)) }
	for _, why := range slices.SortedFunc(maps.Keys(reasons), byCount) {
		fmt.Fprintf(to, "%5d skipped: %s\n", reasons[why], why)
	}
}

// note takes in an event of the package, and tells of it if it is the end of something.
func (p *record) note(to io.Writer, e event, reasons map[string]int) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(to, e.Output)
	case e.Action == "output":
		p.printed[e.Test] = append(p.printed[e.Test], e.Output)
		p.raced = p.raced || strings.HasPrefix(e.Output, raceFound)
		p.cached = p.cached || e.Test == "" && strings.HasSuffix(e.Output, "(cached)\n")
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		p.ended(to, e)
	case e.Action == "pass":
		p.ran++
		p.forget(e.Test)
	case e.Action == "skip":
		p.skipped++
		reasons[reason(p.printed[e.Test])]++
		p.forget(e.Test)
	case e.Action == "fail":
		p.ran++
		fmt.Fprint(to, strings.Join(p.printed[e.Test], ""))
		delete(p.printed, e.Test)
	}
}

// raceFound begins a report of the race detector. Of tests that run beside each other, go test says
// that one printed it, and another one fails.
const raceFound = "WARNING: DATA RACE"

// forget drops what a test printed that did not fail, unless it may be of a race.
func (p *record) forget(test string) {
	if p.raced {
		p.printed[""] = append(p.printed[""], p.printed[test]...)
	}
	delete(p.printed, test)
}

// ended tells that the package is done. What a test printed that never ended is told, too.
func (p *record) ended(to io.Writer, e event) {
	if e.Action == "fail" {
		for _, test := range slices.Sorted(maps.Keys(p.printed)) {
			fmt.Fprint(to, strings.Join(p.printed[test], ""))
		}
	}
	p.printed = nil
	if e.Action == "skip" {
		return // it has no tests
	}
	how := fmt.Sprintf("%6.1f s", e.Elapsed)
	if p.cached {
		how = "  cached"
	}
	fmt.Fprintf(to, "%-4s %s %4d tests  %s\n", e.Action, how, p.ran, e.Package)
}

var place = regexp.MustCompile(`^\s+\S+\.go:\d+: (?:skipped: )?(.*)`)

// reason returns what a test that was skipped said last.
func reason(printed []string) string {
	for _, line := range slices.Backward(printed) {
		if m := place.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			return m[1]
		}
	}
	return "it says no reason"
}
