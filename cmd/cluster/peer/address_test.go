package peer

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestANodeBindsWhatOthersDialUnlessThatIsAName(t *testing.T) {
	for name, row := range map[string]struct{ address, listen, want string }{
		"an IP":            {"10.0.0.1:7380", "", "10.0.0.1:7380"},
		"loopback":         {"localhost:7380", "", "localhost:7380"},
		"a name":           {"a.example:7380", "", net.JoinHostPort(anyHost(), "7380")},
		"behind a NAT":     {"192.0.2.1:7381", "10.0.0.1", "10.0.0.1:7381"},
		"a name, by an IP": {"a.example:7380", "fd00::1", "[fd00::1]:7380"},
		"all of IPv6":      {"[fd00::2]:7380", "::", "[::]:7380"},
	} {
		if got := (&Self{Listen: row.listen}).Bound(row.address); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestANameIsBoundForBothKindsOfAddresses(t *testing.T) {
	l, err := net.Listen("tcp", (&Self{}).Bound("a.example:0"))
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"127.0.0.1", "::1"} {
		if free, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			continue // this machine does not have it
		} else {
			_ = free.Close()
		}
		conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s does not lead there: %v", host, err)
			continue
		}
		_ = conn.Close()
	}
}

func TestAddressesAndNamesThatCannotServeAreRefused(t *testing.T) {
	for name, c := range map[string]Self{
		"itself is not named":     {Nodes: map[string]string{"b": "127.0.0.1:7380"}},
		"no port":                 {Nodes: map[string]string{"a": "127.0.0.1"}},
		"no next port of another": {Nodes: map[string]string{"a": "127.0.0.1:7380", "b": "127.0.0.1:65535"}},
		"no next port":            {Nodes: map[string]string{"a": "127.0.0.1:65535"}},
		"plain beyond loopback":   {Nodes: map[string]string{"a": "127.0.0.1:7380", "b": "10.0.0.2:7380"}},
		"plain, a name of a host": {Nodes: map[string]string{"a": "127.0.0.1:7380", "b": "b.example:7380"}},
		"plain, bound for others": {Nodes: map[string]string{"a": "127.0.0.1:7380"}, Listen: "0.0.0.0"},
		"a name with an equals":   {Nodes: map[string]string{"a": "127.0.0.1:7380", "b=c": "127.0.0.1:7381"}},
	} {
		c.Node = "a"
		if err := c.Check(); err == nil || strings.HasPrefix(name, "plain") != errors.Is(err, ErrPlain) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
