package ask

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Status shows how a server is.
type Status struct {
	JSON bool `help:"Print a JSON object. The uptime is in seconds, sizes are bytes."`

	asking
}

func (c *Status) Help() string {
	return `Prints the version of the server, how long it has run, its connections, its memory and the state of its disk. "holdfast queues" and "holdfast stats" say what is in it.

Examples:

    holdfast status
    holdfast status --json`
}

// statusFields are those of the JSON object, and the lines of INFO that they come from.
var statusFields = [][2]string{
	{"version", "holdfast_version"}, {"uptime", "uptime_in_seconds"}, {"connections", "connections"}, {"redis_clients", "connected_clients"},
	{"memory", "used_memory_rss"}, {"disk_free", "disk_free"}, {"disk_total", "disk_total"}, {"disk_level", "disk_level"},
	{"damaged_packets", "damaged_packets"},
}

func (c *Status) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	info, err := server.Info(ctx)
	switch {
	case err != nil:
		return err
	case info["holdfast_version"] == "":
		return fmt.Errorf("the server at %s is no Holdfast server: check --redis", c.Redis)
	case c.JSON:
		_, err = p.Stdout.Write(statusJSON(info))
	default:
		err = printStatus(p.Stdout, info)
	}
	return err
}

func statusJSON(info map[string]string) []byte {
	var o terminal.JSON
	for _, field := range statusFields {
		value := info[field[1]]
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			o.Add(field[0], n)
		} else {
			o.Add(field[0], value)
		}
	}
	return o.Line()
}

func printStatus(w io.Writer, info map[string]string) error {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	refused := map[string]string{"no-push": ": pushes are refused until some is freed", "stop": ": everything is refused until some is freed"}[info["disk_level"]]
	t := terminal.NewTable(w)
	t.Row("version", info["holdfast_version"])
	t.Row("uptime", terminal.Span(time.Duration(number("uptime_in_seconds"))*time.Second))
	t.Row("connections", fmt.Sprintf("%s in all, %s of Redis clients", info["connections"], info["connected_clients"]))
	t.Row("memory", terminal.Approximate(number("used_memory_rss")))
	t.Row("disk", fmt.Sprintf("%s of %s free%s", terminal.Approximate(number("disk_free")), terminal.Approximate(number("disk_total")), refused))
	return t.Flush()
}
