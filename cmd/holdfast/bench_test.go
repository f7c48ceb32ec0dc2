package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// benchJSON is what a bench prints as JSON.
type benchJSON struct {
	Items   int
	Seconds float64
	Packets int64
	Queue   string
	Groups  []struct {
		Name           string
		Packets, Empty int64
		Rate           float64 `json:"packets_per_s"`
		P50            float64 `json:"p50_us"`
		P99            float64 `json:"p99_us"`
	}
}

func TestBenchCountsWhatItDid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		groups map[string]int64 // packets
		left   int              // packets in the folder afterwards
	}{
		"push":       {[]string{"push", "--count", "500"}, map[string]int64{"push": 500}, 0},
		"pop":        {[]string{"pop", "--count", "500"}, map[string]int64{"pop": 500}, 0},
		"mixed":      {[]string{"mixed", "--count", "500"}, map[string]int64{"push": 500, "pop": 500}, 0},
		"push keep":  {[]string{"push", "--count", "500", "--keep"}, map[string]int64{"push": 500}, 500},
		"redis":      {[]string{"mixed", "--count", "500", "--protocol", "redis"}, map[string]int64{"push": 500, "pop": 500}, 0},
		"redis keep": {[]string{"push", "--count", "500", "--protocol", "redis", "--keep"}, map[string]int64{"push": 500}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := serve(t, dir, "--redis", "127.0.0.1:0")
			out := s.must(t, append([]string{"bench", "--connections", "4", "--depth", "8", "--json"}, c.args...)...)
			var report benchJSON
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err)
			}
			for _, g := range report.Groups {
				if g.Packets != c.groups[g.Name] || g.Rate <= 0 || g.P99 < g.P50 || g.P50 <= 0 {
					t.Errorf("group %+v, want %d packets and figures", g, c.groups[g.Name])
				}
			}
			if len(report.Groups) != len(c.groups) || report.Seconds <= 0 {
				t.Errorf("report %+v, want groups %v", report, c.groups)
			}
			if kept := report.Queue != ""; kept != (c.left > 0) {
				t.Errorf("queue %q named, want that only where packets are kept", report.Queue)
			}
			s.stop()
			if s = serve(t, dir); s.recovered != c.left {
				t.Errorf("%d packets are left, want %d", s.recovered, c.left)
			}
		})
	}
}

func TestBenchEndsAfterItsDuration(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	out := s.must(t, "bench", "mixed", "--all", "--duration", "50ms", "--connections", "4", "--depth", "8")
	if !strings.Contains(out, "packets/s in all") || !strings.Contains(out, "p99") {
		t.Errorf("printed %q, want a table", out)
	}
	s.stop()
	if s = serve(t, dir); s.recovered != 0 {
		t.Errorf("%d packets are left, want none", s.recovered)
	}
}

func TestASignalEndsABenchThatSaysWhatItHas(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	bench := s.command().start(t, "bench", "push", "--all", "--connections", "1", "--depth", "1", "--json")
	for pushed := 0; pushed < 2; { // the second follows the answer to the first
		var queue struct{ Ready int }
		_ = json.Unmarshal([]byte(s.must(t, "stats", "--json")), &queue) // of none, before the first
		pushed = queue.Ready
	}
	bench.interrupt()
	r := <-bench.ended
	var report benchJSON
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || report.Packets < 1 || r.code != exitFailed || !strings.Contains(r.stderr, "interrupted") {
		t.Errorf("%+v (%v), want a report of some packets, and that it was interrupted", r, err)
	}
}

func TestBenchOfTheBoardCountsWhatItDid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		groups map[string]int64 // operations
		left   int              // items on the board afterwards
	}{
		"update":      {[]string{"update"}, map[string]int64{"update": 500}, 0},
		"next":        {[]string{"next"}, map[string]int64{"next": 500}, 0},
		"mixed":       {[]string{"mixed"}, map[string]int64{"update": 500, "next": 500}, 0},
		"update keep": {[]string{"update", "--keep"}, map[string]int64{"update": 500}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := serve(t, dir, "--barbershop", "127.0.0.1:0")
			args := append([]string{"bench", "--protocol", "barbershop", "--connections", "4", "--depth", "8", "--count", "500", "--items", "1000"}, c.args...)
			var report benchJSON
			if err := json.Unmarshal([]byte(s.must(t, append(args, "--json")...)), &report); err != nil {
				t.Fatal(err)
			}
			for _, g := range report.Groups {
				if g.Packets != c.groups[g.Name] || g.Rate <= 0 || g.P50 <= 0 {
					t.Errorf("group %+v, want %d operations and figures", g, c.groups[g.Name])
				}
			}
			if len(report.Groups) != len(c.groups) || report.Items != 1000 {
				t.Errorf("report %+v, want groups %v", report, c.groups)
			}
			if c.left > 0 {
				oneErrorLine(t, s.run(t, args...), exitFailed, "has 1000 items")
			} else if out := s.must(t, args...); !strings.Contains(out, "operations/s in all, 1000 items") {
				t.Errorf("printed %q, want a table", out)
			}
			s.stop()
			if s = serve(t, dir); s.recovered != c.left {
				t.Errorf("%d items are left, want %d", s.recovered, c.left)
			}
		})
	}
}

func TestBenchOfTheBoardMakesAsManyItemsAsItTakes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"next", "mixed"} {
		s := serve(t, t.TempDir(), "--barbershop", "127.0.0.1:0")
		var report benchJSON
		out := s.must(t, "bench", mode, "--protocol", "barbershop", "--connections", "4", "--depth", "8", "--count", "500", "--items", "1", "--json")
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		if report.Items != 500 {
			t.Errorf("%s reports %d items, want 500", mode, report.Items)
		}
		for _, g := range report.Groups {
			if g.Packets != 500 || g.Empty != 0 {
				t.Errorf("%s: group %+v, want 500 operations, and none that found nothing", mode, g)
			}
		}
	}
}

func TestBenchOfABoardInUseSaysHowManyItemsItHas(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--barbershop", "127.0.0.1:0")
	if r := s.runWith(t, "20 7\n", "barbershop", "import", "-"); r.code != exitOK {
		t.Fatalf("import: %+v", r)
	}
	oneErrorLine(t, s.run(t, "bench", "update", "--protocol", "barbershop"), exitFailed, "has 1 item, which a bench would change")
}

func TestBenchWithoutAPortIsWrongUsage(t *testing.T) {
	r := command{}.run(t.Context(), "bench", "update", "--protocol", "barbershop", "--barbershop", "foo")
	oneErrorLine(t, r, exitUsage, `--barbershop: expected HOST:PORT, such as 127.0.0.1:8002`)
}
