//go:build !linux

package netproto

import "net"

func newPoller(bool) (poller, error) { return newBell(), nil }

func newLink(nc net.Conn, c *conn) (link, error) { return newFed(nc, c), nil }
