package main

import (
	"io"

	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// metricsCmd is what there is to do about metrics.
type metricsCmd struct {
	Rules rulesCmd `cmd:"" help:"Print rules for alerts."`
}

func (c *metricsCmd) Help() string {
	return `A server shows Prometheus how it does at /metrics of its operator's address (--admin of serve).

Examples:

    holdfast metrics rules > holdfast.rules.yml
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
