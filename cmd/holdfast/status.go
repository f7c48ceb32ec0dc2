package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// statusCmd shows how a server is.
type statusCmd struct {
	JSON bool `help:"Print a JSON object. The uptime is in seconds, sizes are bytes."`

	workServer
}

// Help is shown below the usage line.
func (c *statusCmd) Help() string {
	return `Prints the version of the server, how long it has run, its connections, its memory and the state of its disk. "holdfast queues" and "holdfast stats" say what is in it.

Examples:

    holdfast status
    holdfast status --json`
}

// serverStatus is what INFO says of a server.
type serverStatus struct {
	version, disk        string
	uptime               time.Duration
	connections, ofRedis int64
	memory, free, total  int64 // bytes
}

// Run asks and prints.
func (c *statusCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		text, err := server.Redis().Info(ctx).Result()
		if err != nil {
			return err
		}
		s := readStatus(text)
		if s.version == "" {
			return fmt.Errorf("the server at %s is no Holdfast server: check --redis", c.Redis)
		}
		if c.JSON {
			_, err = p.stdout.Write(s.json())
			return err
		}
		t := newTable(p.stdout)
		t.row("version", s.version)
		t.row("uptime", span(s.uptime))
		t.row("connections", fmt.Sprintf("%d in all, %d of Redis clients", s.connections, s.ofRedis))
		t.row("memory", approximate(s.memory))
		t.row("disk", fmt.Sprintf("%s of %s free%s", approximate(s.free), approximate(s.total), s.refusals()))
		return t.Flush()
	})
}

// readStatus reads the lines of INFO, of the form name:value.
func readStatus(text string) (s serverStatus) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "holdfast_version":
			s.version = value
		case "uptime_in_seconds":
			s.uptime = time.Duration(n) * time.Second
		case "connections":
			s.connections = n
		case "connected_clients":
			s.ofRedis = n
		case "used_memory_rss":
			s.memory = n
		case "disk_free":
			s.free = n
		case "disk_total":
			s.total = n
		case "disk_level":
			s.disk = value
		}
	}
	return s
}

// refusals says what the disk lets the server refuse.
func (s *serverStatus) refusals() string {
	switch s.disk {
	case "no-push":
		return ": pushes are refused until some is freed"
	case "stop":
		return ": everything is refused until some is freed"
	}
	return ""
}

func (s *serverStatus) json() []byte {
	var o jsonObject
	o.add("version", s.version)
	o.add("uptime", int64(s.uptime/time.Second))
	o.add("connections", s.connections)
	o.add("redis_clients", s.ofRedis)
	o.add("memory", s.memory)
	o.add("disk_free", s.free)
	o.add("disk_total", s.total)
	o.add("disk_level", s.disk)
	return o.line()
}
