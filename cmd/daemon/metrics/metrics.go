// Package metrics shows Prometheus how a server does: METRICS.md is the list. The map:
//
//	metrics.go    Metrics: the page, and what it needs of a server
//	figures.go    what the page says
//	node.go       what it says of a node of a cell
//	queues.go     which queues it shows, and what it adds up
//	rules.go      rules for alerts
//	dashboard.go  a dashboard for Grafana
package metrics

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

const (
	// maxScrapes are under way at a time: two servers of Prometheus, and somebody who looks. Others
	// get status 503.
	maxScrapes = 3
	// scrapeTimeout ends a scrape with status 503 where the loop hangs, as on a disk that does. It is
	// how long Prometheus waits by default.
	scrapeTimeout = 10 * time.Second
)

// Config says what a page shows.
type Config struct {
	Version, GoVersion string
	Queues             []string     // globs: queues that it shows besides the largest
	Ready              func() error // why the server does not do now what clients want; nil if it does
	Node               func() Node  // how the node of a cell is; nil: a machine alone
}

// Source is a server that serves, or a node that follows: that has no loop, and nothing of one.
type Source struct {
	Loop     *netproto.Loop
	Store    *storage.Store
	Recovery recovery.Report
	Buffers  *netproto.Buffers
	Doors    map[string]Door // by protocol
	Users    *access.Control // nil if there are none
	// Certificate says when the server's ends; nil without encryption.
	Certificate func() time.Time
	LastBackup  func() time.Time // the zero time if there was none since the start
	Turns       *Turns           // of the loop
}

// Turns counts how long turns of the loop took. Its methods may be called by any goroutine.
type Turns struct {
	mu   sync.Mutex
	took storage.Histogram // microseconds
}

// Add counts a turn.
func (t *Turns) Add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took.AddTime(took)
}

func (t *Turns) read() storage.Histogram {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.took
}

// Door is where connections come in.
type Door interface {
	Connections() (open int, _ netproto.Accepted)
}

// Metrics is the page of a server. Any goroutine may call its methods.
type Metrics struct {
	http.Handler // answers with the page

	config   Config
	globs    []*glob.Pattern
	scraping sync.Mutex // one at a time asks the loop
	source   atomic.Pointer[Source]
}

// New makes the page of a server that does not serve yet. The error says which glob is wrong.
func New(c Config) (*Metrics, error) {
	m := &Metrics{config: c}
	for _, text := range c.Queues {
		pattern, err := glob.Compile([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("glob %.40q of the queues in metrics: %w", text, err)
		}
		m.globs = append(m.globs, pattern)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // a part of the page is better than none
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	})
	return m, nil
}

// Serve notes that the server serves.
func (m *Metrics) Serve(s Source) { m.source.Store(&s) }
