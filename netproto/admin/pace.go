package admin

import (
	"fmt"
	"time"
)

// pace measures how fast a client takes a backup. Only the time that the server waits for the
// client counts: a backup whose packets are hard to find is not the client's fault.
type pace struct {
	least  int64         // bytes a second, on average over window
	window time.Duration // of waiting
	bytes  int64         // taken in this window
	waited time.Duration // in this window
}

// add notes that the client took n bytes while the server waited. The error says that the client is
// too slow.
func (p *pace) add(n int, waited time.Duration) error {
	p.bytes += int64(n)
	p.waited += waited
	if p.waited < p.window {
		return nil
	}
	rate := int64(float64(p.bytes) / p.waited.Seconds())
	if rate < p.least {
		return fmt.Errorf("the client takes %d bytes a second, expected %d or more on average over %v", rate, p.least, p.window)
	}
	p.bytes, p.waited = 0, 0
	return nil
}
