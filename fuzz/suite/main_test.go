package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestPackagesAreToldAsTheyEndAndSkipsByTheirReasons(t *testing.T) {
	const events = `{"Action":"start","Package":"x/a"}
{"Action":"output","Package":"x/b","Test":"TestGood","Output":"    b_test.go:7: noise\n"}
{"Action":"pass","Package":"x/b","Test":"TestGood"}
{"Action":"output","Package":"x/b","Test":"TestBeside","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"x/b","Test":"TestBeside","Output":"Read at 0x1\n"}
{"Action":"pass","Package":"x/b","Test":"TestBeside"}
{"Action":"output","Package":"x/b","Test":"TestBad/case","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"x/b","Test":"TestBad/case"}
{"Action":"output","Package":"x/b","Test":"TestHangs","Output":"=== RUN   TestHangs\n"}
{"Action":"output","Package":"x/b","Output":"panic: too late\n"}
{"Action":"fail","Package":"x/b","Elapsed":1.25}
{"Action":"output","Package":"x/a","Test":"TestTool","Output":"=== RUN   TestTool\n"}
{"Action":"output","Package":"x/a","Test":"TestTool","Output":"    a_test.go:12: skipped: no tool\n"}
{"Action":"output","Package":"x/a","Test":"TestTool","Output":"--- SKIP: TestTool (0.00s)\n"}
{"Action":"skip","Package":"x/a","Test":"TestTool"}
{"Action":"skip","Package":"x/a","Test":"TestSilent"}
{"Action":"output","Package":"x/a","Output":"ok  \tx/a\t(cached)\n"}
{"Action":"pass","Package":"x/a","Elapsed":0}
{"Action":"skip","Package":"x/none"}
x/c/c.go:3:1: does not compile
`
	want := regexp.MustCompile(`^    b_test\.go:9: got 1, want 2
WARNING: DATA RACE
Read at 0x1
panic: too late
=== RUN   TestHangs
fail    1\.2 s    3 tests  x/b
pass   cached    0 tests  x/a
x/c/c\.go:3:1: does not compile
3 tests in 0 s, 2 skipped
    1 skipped: it says no reason
    1 skipped: no tool
$`)
	var told strings.Builder
	tell(&told, strings.NewReader(events))
	if !want.MatchString(told.String()) {
		t.Errorf("it tells\n%s", told.String())
	}
}
