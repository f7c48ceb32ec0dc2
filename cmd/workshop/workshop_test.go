package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// The test program doubles as a server that this package can start and kill:
// behaviour is the first argument, address the second.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve-empty" {
		serveEmpty(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == "serve-board" {
		serveBoard(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == "refuse" {
		fmt.Fprintln(os.Stderr, "starting\nlevel=ERROR the folder is in use\nbye")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// serveEmpty answers every pinpriq pop with "nothing", and swallows pushes that
// it takes for pops of the barrier. It ends with the process.
func serveEmpty(addr string) {
	signal.Ignore(os.Interrupt)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() { // ends when the client hangs up
			defer conn.Close()
			frame := loadgen.PinpriqPop(loadgen.BarrierQueue).Append(nil, 0, 1)
			for {
				if _, err := io.ReadFull(conn, frame); err != nil {
					return
				}
				if _, err := conn.Write([]byte{0, 0}); err != nil {
					return
				}
			}
		}()
	}
}

// helper is a peer played by this program.
func helper(t *testing.T, behaviour string) *peer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &peer{
		label: "helper", binary: self,
		args: []string{behaviour, "ADDRESS"},
		asks: asks{"pop": func(target) loadgen.Protocol { return loadgen.PinpriqPop(loadgen.BarrierQueue) }},
	}
}

func testBench(t *testing.T) *bench {
	t.Helper()
	b, err := newBench(t.TempDir(), 2, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

func TestAServerIsStartedKilledAndStartedAgain(t *testing.T) {
	b := testBench(t)
	s, err := b.newServer(helper(t, "serve-empty"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.serve(t.Context()); err != nil {
			t.Fatal(err)
		}
		addr, exited := s.addr, s.exited
		s.kill()
		select {
		case <-exited:
		default:
			t.Error("kill returned before the process was gone")
		}
		if _, err := loadgen.Ask(t.Context(), addr, s.peer.asks["pop"](target{})); err == nil {
			t.Error("a killed server answered")
		}
	}
	if err := b.discard(s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a discarded server is still there: %v", err)
	}
}

func TestCloseKillsServersAndDeletesTheirData(t *testing.T) {
	b := testBench(t)
	s, err := b.newServer(helper(t, "serve-empty"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	exited := s.exited
	b.close()
	<-exited
	if _, err := os.Stat(b.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestAServerThatEndsAtOnceIsReportedWithItsError(t *testing.T) {
	b := testBench(t)
	s, err := b.newServer(helper(t, "refuse"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.serve(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended before it served; its log says: starting\nlevel=ERROR the folder is in use") {
		t.Errorf("the error is %v", err)
	}
}

func TestACancelledStartLeavesNothingRunning(t *testing.T) {
	b := testBench(t)
	s, err := b.newServer(helper(t, "serve-empty"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	never := func(loadgen.Progress) bool { cancel(); return false }
	if _, err := s.start(ctx, s.peer.args, unusedQueue, never); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, expected context.Canceled", err)
	}
	exited := s.exited
	b.close()
	<-exited
}

func TestACaseMeasuresEveryRoundAndLeavesOutAFailedServer(t *testing.T) {
	b := testBench(t)
	good, bad := helper(t, "serve-empty"), helper(t, "refuse")
	good.label, bad.label = "good", "bad"
	c := &benchCase{name: "pop", peers: []peer{*good, *bad}, traffic: traffic{loads: []load{{"pop", 2, 2, 0}}}}
	rows, err := rates(t.Context(), b, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows[0].Samples) != 2 || len(rows[1].Samples) != 0 || len(b.failed) != 1 {
		t.Errorf("%d and %d rounds, failures %q; expected 2, 0 and one failure", len(rows[0].Samples), len(rows[1].Samples), b.failed)
	}
	var r report
	r.add(rows)
	if len(r.Rows) != 1 || r.Rows[0].Server != "good" {
		t.Errorf("%d rows are reported, expected the one that was measured", len(r.Rows))
	}
}

func TestEveryRoundMeasuresAllServers(t *testing.T) {
	b := &bench{}
	c := &benchCase{peers: []peer{{label: "a"}, {label: "b"}, {label: "c"}}}
	var order strings.Builder
	err := b.each(t.Context(), c, 2, func(_, i int) error {
		order.WriteString(c.peers[i].label)
		return nil
	})
	if err != nil || order.String() != "abcabc" {
		t.Errorf("the order is %s, %v; expected abcabc", order.String(), err)
	}
}

func TestMedianAndSpread(t *testing.T) {
	for _, row := range []struct {
		samples []float64
		median  float64
		spread  string
	}{
		{nil, 0, ""},
		{[]float64{7}, 7, ""},
		{[]float64{30, 10, 20}, 20, "-50 +50 %"},
		{[]float64{4, 1, 3, 2}, 2.5, "-60 +60 %"},
		{[]float64{0, 0, 0}, 0, ""},
	} {
		if m, s := median(row.samples), spread(row.samples); m != row.median || s != row.spread {
			t.Errorf("%v: median %v, spread %q; expected %v, %q", row.samples, m, s, row.median, row.spread)
		}
	}
}

func TestTheReportShowsRowsRatiosAndFailures(t *testing.T) {
	r := report{Rounds: 5, Skipped: []string{"redis is skipped: not found"}, Failed: []string{"x, redis, round 1: it broke"}}
	r.add([]*row{
		{Case: "x", Server: "holdfast", Unit: "packets/s", Samples: []float64{300}, P50: []float64{0.25}, RSS: []float64{12}},
		{Case: "x", Server: "redis", Unit: "packets/s", Samples: []float64{200, 100, 300}},
	})
	if r.Rows[0].Ratio != 0 || r.Rows[1].Ratio != 1.5 {
		t.Errorf("ratios %v and %v; expected none for holdfast, 1.5 for redis", r.Rows[0].Ratio, r.Rows[1].Ratio)
	}
	var text bytes.Buffer
	if err := r.write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"medians of 5 rounds", "redis is skipped: not found", "holdfast     300  packets/s", "1.50", "0.25", "12.0", "failed: x, redis, round 1: it broke"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

func TestCasesAreChosenByPattern(t *testing.T) {
	cases := allCases(allPrograms("holdfast"), false)
	for pattern, want := range map[string]string{
		"push*": "push-64 push-1", "*-1": "push-1 pop-1 mixed-1 subscribe-1 update-1 next-1 shifts-1 lpush-1 rpop-1 brpop-1 work-1 cell-1", "start": "start",
		"*-16": "update-16 next-16 shifts-16",
	} {
		chosen, err := chooseCases(cases, pattern)
		var names []string
		for _, c := range chosen {
			names = append(names, c.name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%q chooses %q, %v; expected %q", pattern, got, err, want)
		}
	}
	for _, bad := range []string{"nothing", "[", ""} {
		if _, err := chooseCases(cases, bad); err == nil {
			t.Errorf("%q gave no error", bad)
		}
	}
}

func TestAMissingPeerIsSkippedWithALine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs, skipped, err := choosePrograms(&options{Holdfast: self})
	if err != nil || len(programs) != 1 || programs[0].binary != self || len(skipped) != 5 || !strings.HasPrefix(skipped[0], "redis is skipped: ") {
		t.Errorf("%d programs, skipped %q, %v; expected only Holdfast, and a line about each other", len(programs), skipped, err)
	}
	if _, _, err := choosePrograms(&options{Holdfast: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a missing Holdfast gave %v, expected a sentence about building it", err)
	}
}

func TestCasesAreListedWithoutServers(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "")
	o := options{Holdfast: "bin/holdfast", List: true}
	programs, skipped, err := choosePrograms(&o)
	if err != nil || len(skipped) > 0 {
		t.Fatalf("%v %v, want that none is looked for", skipped, err)
	}
	cases, err := chooseCases(allCases(programs, true), "*")
	if err != nil || len(cases) != len(allCases(programs, true)) {
		t.Errorf("%d cases (%v), want all", len(cases), err)
	}
}

func TestEachPeerOfACaseKnowsWhatItIsAsked(t *testing.T) {
	for _, c := range allCases(allPrograms("holdfast"), false) {
		if len(c.peers) == 0 || c.peers[0].label != "holdfast" {
			t.Errorf("%s is not measured on Holdfast first", c.name)
		}
		asked := []string{"pop"}
		for _, l := range c.loads {
			asked = append(asked, l.ask)
		}
		for _, f := range c.fill {
			asked = append(asked, f.ask)
		}
		for _, p := range c.peers {
			for _, ask := range asked {
				if p.asks[ask] == nil && p.measure == nil {
					t.Errorf("%s: %s has no %s", c.name, p.label, ask)
				}
			}
		}
	}
}
