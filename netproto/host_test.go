package netproto

import (
	"net/netip"
	"testing"
)

func TestTheAddressesOfOneHostShareItsConnections(t *testing.T) {
	s := &Server{config: Config{MaxConns: 100, MaxConnsPerAddress: 2}, perAddr: make(map[netip.Addr]int)}
	var open []*conn
	add := func(address string) error {
		c := &conn{remote: netip.MustParseAddrPort(address)}
		err := s.add(c)
		if err == nil {
			open = append(open, c)
		}
		return err
	}
	for _, c := range []struct {
		address string
		fits    bool
	}{
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:1", true}, {"[2001:db8::3]:1", false}, {"[2001:db8:0:1::1]:1", true},
		{"192.0.2.1:1", true}, {"192.0.2.1:2", true}, {"192.0.2.1:3", false}, {"192.0.2.2:1", true},
		{"[::1]:1", true}, {"[::1]:2", true}, {"[::1]:3", true},
	} {
		if err := add(c.address); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.address, err)
		}
	}
	for _, c := range open {
		s.remove(c)
	}
	if len(s.perAddr) != 0 {
		t.Errorf("some are still counted: %v", s.perAddr)
	}
}
