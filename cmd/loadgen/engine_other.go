//go:build !linux

package loadgen

// drive serves the connections until the run is over.
func (r *run) drive(conns []dialed) { r.driveGoroutines(conns) }
