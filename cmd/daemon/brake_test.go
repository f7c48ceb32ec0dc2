package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinesThatClientsCauseAreBraked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		all := slog.New(slog.NewTextHandler(&out, nil))
		log := Braked(all).With("protocol", "test")
		for range 1000 { // a second
			log.Warn("junk")
			all.Info("own")
			time.Sleep(time.Millisecond)
		}
		log.Error("failed")
		time.Sleep(2 * time.Second)
		log.Warn("later")
		for line, want := range map[string]int{
			"msg=junk protocol=test": 29, "msg=own": 1000, "msg=failed": 1, "msg=later": 1,
			`msg="lines that clients caused were left out" lines=971`: 1,
		} {
			if n := strings.Count(out.String(), line); n != want {
				t.Errorf("%d times %q, want %d", n, line, want)
			}
		}
	})
}
