package daemon

import (
	"context"
	"fmt"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

const (
	// tellPause is how often the supervisor is told how far a start is.
	tellPause = 5 * time.Second
	// A start asks for moreTime each time: enough even if some requests are late.
	moreTime = time.Minute
)

// tell tells systemd, if that has started the process. It is of no use to know that it failed: then
// systemd ends the process.
func tell(format string, args ...any) {
	_, _ = systemd.SdNotify(false, fmt.Sprintf(format, args...))
}

// supervise tells systemd again and again how the run goes: while it starts that it needs more
// time, unless ctx has ended, and then that the loop turns. The returned function ends that.
func (h *health) supervise(ctx context.Context) (stop func()) {
	pause := tellPause
	watchdog, _ := systemd.SdWatchdogEnabled(false)
	if watchdog > 0 {
		pause = min(pause, watchdog/2)
	}
	h.tellState(ctx, watchdog > 0)
	done := make(chan struct{})
	go func() { // ends when stop is called
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				h.tellState(ctx, watchdog > 0)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (h *health) tellState(ctx context.Context, watchdog bool) {
	state := "STATUS=serving"
	if err := h.Stores(); err != nil {
		state = "STATUS=" + err.Error()
	}
	select {
	case <-h.served:
		if watchdog && h.Live() == nil {
			state += "\n" + systemd.SdNotifyWatchdog
		}
	default:
		if ctx.Err() == nil { // a start that is to end may as well be killed
			state += fmt.Sprintf("\nEXTEND_TIMEOUT_USEC=%d", moreTime.Microseconds())
		}
	}
	tell("%s", state)
}

// Reloading runs a reload, and tells systemd when it begins and ends.
func Reloading(reload func()) {
	tell("%s\n%s", systemd.SdNotifyReloading, systemd.SdNotifyMonotonicUsec())
	defer tell(systemd.SdNotifyReady)
	reload()
}
