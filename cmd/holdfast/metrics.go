package main

import (
	"io"

	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// metricsCmd is what there is to do about metrics.
type metricsCmd struct {
	Rules     rulesCmd     `cmd:"" help:"Print rules for alerts."`
	Dashboard dashboardCmd `cmd:"" help:"Print a dashboard for Grafana."`
}

func (c *metricsCmd) Help() string {
	return `A server shows Prometheus how it does at /metrics of its operator's address (--admin of serve).

Examples:

    holdfast metrics rules > holdfast.rules.yml
    holdfast metrics dashboard > holdfast.json
    curl http://127.0.0.1:7072/metrics`
}

// rulesCmd prints rules for alerts.
type rulesCmd struct{}

func (c *rulesCmd) Help() string {
	return `Prints rules for alerts, a file that Prometheus reads (rule_files). They expect that the server is scraped as the job "holdfast". Change their thresholds to what your queues are for.

Examples:

    holdfast metrics rules > holdfast.rules.yml
    promtool check rules holdfast.rules.yml`
}

// Run prints.
func (c *rulesCmd) Run(p *terminal.Process) error {
	_, err := io.WriteString(p.Stdout, metrics.Rules)
	return err
}

// dashboardCmd prints a dashboard.
type dashboardCmd struct{}

func (c *dashboardCmd) Help() string {
	return `Prints a dashboard for Grafana, as JSON to import. It shows packets by state, rates, states of queues, the longest and the oldest queues, commits, disk, memory and connections of the servers of a job that Prometheus scrapes.

Examples:

    holdfast metrics dashboard > holdfast.json`
}

// Run prints.
func (c *dashboardCmd) Run(p *terminal.Process) error {
	_, err := p.Stdout.Write(metrics.Dashboard())
	return err
}
