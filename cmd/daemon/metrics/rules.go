package metrics

import _ "embed"

// Rules are rules for alerts, a file of Prometheus.
//
//go:embed rules.yml
var Rules string
