package daemon

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

func TestSentinelTellsTheAddressOfRedis(t *testing.T) {
	for name, row := range map[string]struct{ redis, cell, want string }{
		"an address":    {"127.0.0.1:0", "", "main 127.0.0.1"},
		"a name":        {"localhost:0", "jobs", "jobs localhost"},
		"all addresses": {"0.0.0.0:0", "", "main 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, Config{Data: t.TempDir(), Redis: row.redis, Sentinel: "127.0.0.1:0", Cell: row.cell, Insecure: true})
			cell, host, _ := strings.Cut(row.want, " ")
			_, port, err := net.SplitHostPort(r.addrs["redis"])
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n+OK\r\n", len(host), host, len(port), port)
			if got := said(t, r.addrs["sentinel"], "SENTINEL GET-MASTER-ADDR-BY-NAME "+cell+"\r\nQUIT\r\n"); got != want {
				t.Errorf("sentinel tells %q, want %q", got, want)
			}
		})
	}
}

func TestSentinelAnswersUsersAlone(t *testing.T) {
	r := run(t, Config{Data: t.TempDir(), Sentinel: "127.0.0.1:0", RedisPassword: word})
	if got := said(t, r.addrs["sentinel"], "SENTINEL MASTERS\r\nQUIT\r\n"); got != "-NOAUTH Authentication required.\r\n+OK\r\n" {
		t.Errorf("a stranger gets %q", got)
	}
	if got := said(t, r.addrs["sentinel"], "AUTH "+word+"\r\nSENTINEL SLAVES main\r\nQUIT\r\n"); got != "+OK\r\n*0\r\n+OK\r\n" {
		t.Errorf("a user gets %q", got)
	}
}

func TestSentinelAnswersWhileTheQueuesWaitForTheDisk(t *testing.T) {
	store := &faultyStore{hold: make(chan struct{}), entered: make(chan struct{}, 1)}
	r := run(t, Config{Data: t.TempDir(), Sentinel: "127.0.0.1:0", WrapStore: func(s Store) Store { store.Store = s; return store }})
	client := dialClient(t, r.addrs["pinpriq"])
	if err := errors.Join(client.Push("q", nil, pinpriq.PushOptions{Priority: 1}), client.Flush()); err != nil {
		t.Fatal(err)
	}
	<-store.entered
	if got := said(t, r.addrs["sentinel"], "SENTINEL SLAVES main\r\nQUIT\r\n"); got != "*0\r\n+OK\r\n" {
		t.Errorf("sentinel says %q", got)
	}
	close(store.hold)
}
