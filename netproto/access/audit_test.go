package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnActionIsLoggedInALine(t *testing.T) {
	var out bytes.Buffer
	a := NewAudit(slog.New(slog.NewTextHandler(&out, nil)))
	x := Action{"redis", "u", here, "qpurge", 0}
	many := slices.Repeat([][]byte{[]byte("-9223372036854775808")}, 5_000)
	a.Note(x, netip.AddrPortFrom(here, 99), []byte("q\nlevel=ERROR msg=forged\xff"), nil, 7)
	a.Note(x, netip.AddrPortFrom(here, 99), bytes.Repeat([]byte("x"), 60_000), many, 0)
	a.Note(x, netip.AddrPortFrom(here, 99), nil, nil, -1)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, want := range []string{
		`level=INFO msg=audit protocol=redis user=u remote=192.0.2.1:99 command=qpurge queue="q\nlevel=ERROR msg=forged\xff" count=7`,
		"command=qpurge queue=" + strings.Repeat("x", maxAudited) + ` packets="` + strings.Repeat("-9223372036854775808 ", maxPackets) + `and 4980 more" count=0`,
		"command=qpurge",
	} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %q, want %q", lines[i], want)
		}
	}
	var none *Audit
	none.Note(x, here, nil, nil, 1)
	if all := a.Recent(); len(all) != 3 || len(all[1].Queue) != maxAudited || all[0].Count != 7 || all[0].Remote != "192.0.2.1:99" || none.Recent() != nil {
		t.Errorf("it remembers %+v", all)
	}
	for range 2 * maxRecent {
		a.Note(x, here, nil, nil, 1)
	}
	a.Flush()
	if all := a.Recent(); len(all) > maxRecent || all[len(all)-1].Times < maxRecent {
		t.Errorf("it remembers %d lines, the last %+v", len(all), all[len(all)-1])
	}
}

func TestActionsBeyondTheRateAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		a := NewAudit(slog.New(slog.NewTextHandler(&out, nil)))
		for i := range 1000 {
			a.Note(Action{"redis", "u", here, "del", 0}, netip.AddrPortFrom(here, 1), []byte("q"), nil, int64(i%2))
		}
		a.Note(Action{"redis", "u", here, "qpurge", 3}, netip.AddrPortFrom(here, 1), []byte("hidden"), nil, 5_000)
		time.Sleep(2 * auditPause)
		synctest.Wait()
		for line, want := range map[string]int{
			"command=del queue=q": auditsAtOnce,
			fmt.Sprintf("remote=192.0.2.1 command=del times=%d count=%d\n", 1000-auditsAtOnce, 500-auditsAtOnce/2): 1,
			"remote=192.0.2.1 command=qpurge database=3 times=1 count=5000\n":                                      1,
		} {
			if n := strings.Count(out.String(), line); n != want {
				t.Errorf("%d times %q, want %d", n, line, want)
			}
		}
		out.Reset()
		a.Note(Action{"redis", "u", here, "del", 0}, netip.AddrPortFrom(here, 1), []byte("q"), nil, 1)
		if !strings.Contains(out.String(), "queue=q") {
			t.Errorf("later: %q", out.String())
		}
	})
}

func TestFewActionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		a := NewAudit(slog.New(slog.NewTextHandler(&out, nil)))
		for i := range 3 * maxCounted {
			a.Note(Action{"redis", fmt.Sprint("u", i), here, "del", 0}, netip.AddrPortFrom(here, 1), nil, nil, 1)
			if len(a.counted) > maxCounted {
				t.Fatal("too many are kept")
			}
		}
		a.Flush()
		if n := strings.Count(out.String(), "\n"); n != 3*maxCounted {
			t.Errorf("%d lines, want %d", n, 3*maxCounted)
		}
	})
}
