package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/storage"
)

// clocked is a folder that is served again and again, each time under a clock of its own.
type clocked struct {
	*testing.T
	dir string
	rdb *redis.Client // of the present start
}

// under serves the folder under a clock that is off, until do returns.
func (c *clocked) under(off time.Duration, do func()) {
	c.Helper()
	listening := make(chan net.Addr, 1)
	s, err := Begin(c.Context(), Config{Data: c.dir, Redis: "127.0.0.1:0", Listening: func(_ string, addr net.Addr) { listening <- addr }})
	if err != nil {
		c.Fatal(err)
	}
	store, err := storage.Open(c.dir, s.StorageOptions())
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- s.End(s.Serve(ctx, store, Term{Clock: func() int64 { return time.Now().Add(off).UnixMilli() }}))
	}()
	defer cancel()
	select {
	case addr := <-listening:
		c.rdb = redis.NewClient(&redis.Options{Addr: addr.String(), DisableIdentity: true, MaxRetries: -1})
	case err = <-ended:
		c.Fatalf("a start under a clock that is %v ahead gave %v", off, err)
	}
	c.call("PING")
	do()
	_ = c.rdb.Close()
	cancel()
	if err = <-ended; err != nil {
		c.Fatal(err)
	}
}

func (c *clocked) call(words ...any) any {
	c.Helper()
	v, err := c.rdb.Do(c.Context(), words...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		c.Fatalf("%v: %v", words, err)
	}
	return v
}

// states returns the payloads of a queue's packets, each with its state.
func (c *clocked) states(queue string) string {
	c.Helper()
	var all []string
	for _, v := range c.call("QLIST", queue).([]any)[1].([]any) {
		p := v.(map[any]any)
		all = append(all, fmt.Sprintf("%v %v", p["payload"], p["state"]))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// times are those that the table gives to packets and queues.
var times = []time.Duration{30 * time.Second, 30 * time.Minute, 30 * 24 * time.Hour}

func TestAStartUnderAnotherClockAndOneUnderTheRightClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Minute, time.Hour, 365 * 24 * time.Hour} {
		for _, off := range []time.Duration{ahead, -ahead} {
			t.Run(off.String(), func(t *testing.T) {
				t.Parallel()
				c := &clocked{T: t, dir: t.TempDir()}
				want := make(map[string]string)
				c.under(0, func() {
					for _, d := range times {
						ms, over := d.Milliseconds(), d < off
						expect := func(queue, payload, state string) {
							if state != "" {
								want[queue] = strings.TrimPrefix(want[queue]+", "+payload+" "+state, ", ")
							} else if want[queue] == "" {
								want[queue] = ""
							}
						}
						either := func(a, b string) string {
							if over {
								return a
							}
							return b
						}
						plain, own := fmt.Sprint("plain-", d), fmt.Sprint("own-", d)
						c.call("QSET", own, "retain", ms)
						for _, q := range []string{plain, own} {
							c.call("QPUSH", q, "expires", "TTL", ms)
							c.call("QPUSH", q, "large", "TTL", ms, "META", strings.Repeat("m", 100), "PRIO", 3)
							c.call("QPUSH", q, "delayed", "DELAY", ms)
							expect(q, "delayed", "delayed")
							expect(q, "expires", either("", "ready"))
							expect(q, "large", either("", "ready"))
						}
						alone := fmt.Sprint("alone-", d)
						c.call("QPUSH", alone, strings.Repeat("x", 5000), "TTL", ms)
						expect(alone, strings.Repeat("x", 5000), either("", "ready"))
						claims := fmt.Sprint("claims-", d)
						c.call("QPUSH", claims, "claimed")
						c.call("QCLAIM", claims, "LEASE", ms, "CONSUMER", "w")
						c.call("QPUSH", claims, "claimed expires", "TTL", times[0].Milliseconds())
						c.call("QCLAIM", claims, "LEASE", ms, "CONSUMER", "w")
						expect(claims, "claimed", either("ready", "claimed"))
						if !over {
							expect(claims, "claimed expires", "claimed")
						}
						kept := fmt.Sprint("kept-", d)
						c.call("QSET", kept, "retain", ms)
						c.call("QPUSH", kept, "done")
						p := c.call("QCLAIM", kept).([]any)[0].(map[any]any)
						c.call("QACK", kept, p["id"], p["token"])
						expect(kept, "done", either("", "done"))
						c.call("QPAUSE", fmt.Sprint("pause-", d), "UNTIL", time.Now().UnixMilli()+ms)
						c.call("QPUSH", fmt.Sprint("window-", d), "first", "UNIQUE", "id", "WINDOW", ms)
						c.call("QPOP", fmt.Sprint("window-", d))
					}
				})
				see := func() {
					for queue, states := range want {
						if got := c.states(queue); got != states {
							t.Errorf("%s has %q, want %q", queue, got, states)
						}
					}
					for _, d := range times {
						paused := c.call("QGET", fmt.Sprint("pause-", d)).(map[any]any)["pause-out"]
						if (paused == "yes") != (d >= off) {
							t.Errorf("pause-out after %v is %v", d, paused)
						}
					}
				}
				c.under(off, func() {})
				c.under(0, see)
				c.under(0, func() {
					see()
					for _, d := range times {
						c.call("QPUSH", fmt.Sprint("window-", d), "second", "UNIQUE", "id", "WINDOW", d.Milliseconds())
						if got, again := c.states(fmt.Sprint("window-", d)), d < off; (got == "second ready") != again {
							t.Errorf("a second push within %v gives %q", d, got)
						}
					}
				})
			})
		}
	}
}

func TestRestsAreAsLongAsTheyWereAfterAClockThatWasAhead(t *testing.T) {
	c := &clocked{T: t, dir: t.TempDir()}
	queues := []string{"ahead", "after"}
	for i, q := range queues {
		c.under([...]time.Duration{365 * 24 * time.Hour, 0}[i], func() {
			c.call("QSET", q, "share-by", "key")
			c.call("QPUSH", q, "p", "KEY", "k")
			c.call("QSHARE", q, "k", "HOLD", time.Hour.Milliseconds())
		})
	}
	gives := func(want bool) func() {
		return func() {
			for _, q := range queues {
				if got := len(c.call("QCLAIM", q).([]any)) > 0; got != want {
					t.Errorf("%s gives a packet: %v, want %v", q, got, want)
				}
			}
		}
	}
	for range 3 {
		c.under(0, gives(false))
	}
	c.under(2*time.Hour, gives(true))
}

func TestAStartBeginsWhereAMajorityOfClocksSays(t *testing.T) {
	const s, min, h, year = 1000, 60_000, 3_600_000, 365 * 24 * 3_600_000
	now := time.Now().UnixMilli()
	for name, row := range map[string]struct {
		voters, away int64 // away is negative where nobody knows
		last         int64 // all times are from now on
		clocks       []int64
		want         int64
		sure         bool
	}{
		"alone":                    {1, -1, -h, []int64{0}, 0, true},
		"alone, behind by a year":  {1, -1, 0, []int64{-year}, -year, true},
		"alone, ahead by a year":   {1, -1, 0, []int64{year}, year, true},
		"all agree":                {3, -1, -h, []int64{0, 2 * s, -2 * s}, 0, true},
		"one of three is ahead":    {3, -1, -h, []int64{0, h, 2 * s}, 2 * s, true},
		"one of three is behind":   {3, -1, -h, []int64{0, -year, 2 * s}, 0, true},
		"two of three agree":       {3, -1, -h, []int64{0, 2 * s}, 0, true},
		"one of two is ahead":      {3, -1, -min, []int64{0, h}, -min, false},
		"one of two is behind":     {3, -1, -min, []int64{-year, 0}, -min, true},
		"all differ":               {3, -1, -h, []int64{-2 * min, 0, h}, -h, false},
		"one is heard of":          {3, -1, -h, []int64{0}, -h, false},
		"none is":                  {3, -1, -h, nil, -h, false},
		"the last batch was ahead": {3, -1, h, []int64{0, s, 2 * s}, s, true},
		"the last batch was ahead, as two of two say":  {3, -1, h, []int64{0, 10 * s}, 10 * s, true},
		"the last batch was ahead, as one of two says": {3, -1, h, []int64{0, h}, h, true},
		"a little":                            {3, -1, 30 * s, []int64{0, s, 2 * s}, 30 * s, true},
		"a takeover":                          {3, 10 * s, -10 * s, []int64{-5 * s, 20 * s, 25 * s}, 0, true},
		"a takeover, and the cell was behind": {3, 10 * s, -h, []int64{0, s, -s}, 0, true},
		"a takeover, and one clock is ahead":  {3, 10 * s, -10 * s, []int64{0, year, -s}, 0, true},
		"a takeover, and the cell was ahead":  {3, 10 * s, h, []int64{0, s, -s}, 0, true},
		"two voters":                          {2, -1, -h, []int64{0, 2 * s}, 0, true},
		"five voters, three clocks":           {5, -1, -h, []int64{0, s, 2 * s}, 0, true},
	} {
		m := Moment{Last: now + row.last, Away: time.Duration(row.away) * time.Millisecond, Voters: int(row.voters)}
		for _, off := range row.clocks {
			m.Clocks = append(m.Clocks, now+off)
		}
		if at, sure := m.Begins(); at != now+row.want || sure != row.sure {
			t.Errorf("%s: it begins at %d and is sure: %v; want %d, %v", name, at-now, sure, row.want, row.sure)
		}
	}
}
