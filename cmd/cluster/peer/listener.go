package peer

import "net"

// Duplicate makes another listener of the socket of l, on which nobody accepts meanwhile. So each
// term of a node has its own, and closes it at its end: the socket stays open, and who connects
// then waits for the next term.
func Duplicate(l *net.TCPListener) (*net.TCPListener, error) {
	file, err := l.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	another, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	return another.(*net.TCPListener), nil
}
