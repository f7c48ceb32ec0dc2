//go:build !linux

package netproto

func newPoller(bool) (poller, error) { return newBell(), nil }

// acceptRaw is acceptFed where the system has no epoll.
var acceptRaw = acceptFed
