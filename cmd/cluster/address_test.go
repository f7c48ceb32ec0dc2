package cluster

import "testing"

func TestANodeBindsWhatOthersDialUnlessThatIsAName(t *testing.T) {
	for name, row := range map[string]struct{ address, listen, want string }{
		"an IP":            {"10.0.0.1:7380", "", "10.0.0.1:7380"},
		"loopback":         {"localhost:7380", "", "localhost:7380"},
		"a name":           {"a.example:7380", "", "0.0.0.0:7380"},
		"behind a NAT":     {"192.0.2.1:7381", "10.0.0.1", "10.0.0.1:7381"},
		"a name, by an IP": {"a.example:7380", "fd00::1", "[fd00::1]:7380"},
		"all of IPv6":      {"[fd00::2]:7380", "::", "[::]:7380"},
	} {
		if got := (&Config{Listen: row.listen}).bound(row.address); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
