package loadgen

import (
	"errors"
	"io"
	"sync"
	"time"
)

// driveGoroutines serves each connection by a goroutine of its own, which works
// everywhere. It returns, with all connections closed and all goroutines gone,
// when the run is over.
func (r *run) driveGoroutines(conns []dialed) {
	var done sync.WaitGroup
	for _, d := range conns {
		c := newConn(r.newWorker()[d.group])
		done.Go(func() { // ends when the run is over, because the socket is closed then
			if err := r.converse(c, d); err != nil {
				r.end(c.failed(err))
			}
		})
	}
	<-r.ended
	closeAll(conns)
	done.Wait()
}

// converse writes and reads until the run is over or the connection fails.
func (r *run) converse(c *conn, d dialed) error {
	c.request(time.Now())
	for !r.over.Load() {
		if len(c.out) > 0 {
			if _, err := d.socket.Write(c.out); err != nil {
				return err
			}
			c.out = c.out[:0]
		}
		n, err := d.socket.Read(c.in[c.held:])
		if errors.Is(err, io.EOF) {
			return errHungUp
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if err := c.reply(n, now); err != nil {
			return err
		}
		c.request(now)
	}
	return nil
}
