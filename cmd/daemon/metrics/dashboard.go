package metrics

import (
	"encoding/json"
	"strings"
)

// panel is a row of the dashboard's table.
type panel struct {
	title, unit string // a unit of Grafana
	width       int    // of 24 columns
	queries     []query
}

// query asks for lines, each of which is called by its labels.
type query struct{ expr, name string }

// at stands in queries for the servers that are chosen.
const at = `job="$job",instance=~"$instance"`

// height is the height of each panel, in rows of Grafana's.
const height = 8

var panels = []panel{
	{"Packets", "short", 12, []query{{`sum by (state) (holdfast_packets{@})`, "{{state}}"}}},
	{"Packets a second", "short", 12, []query{
		{`sum(rate(holdfast_packets_pushed_total{@}[$__rate_interval]))`, "pushed"},
		{`sum(rate(holdfast_packets_popped_total{@}[$__rate_interval]))`, "popped"},
		{`sum(rate(holdfast_packets_acked_total{@}[$__rate_interval]))`, "acknowledged"},
		{`sum(rate(holdfast_packets_nacked_total{@}[$__rate_interval]))`, "returned"},
		{`sum(rate(holdfast_packets_died_total{@}[$__rate_interval]))`, "died"},
	}},
	{"Queues by state", "short", 8, []query{{`sum by (state) (holdfast_queues_in_state{@})`, "{{state}}"}}},
	{"Ready packets: the ten longest queues", "short", 8, []query{{`topk(10, holdfast_queue_packets{@,state="ready"})`, "{{database}}: {{queue}}"}}},
	{"Age of the oldest ready packet: the ten oldest", "s", 8, []query{{`topk(10, holdfast_queue_oldest_ready_age_seconds{@})`, "{{database}}: {{queue}}"}}},
	{"Commits and syncs: 99 of 100 take at most", "s", 8, []query{
		{`histogram_quantile(0.99, sum by (le) (rate(holdfast_commit_seconds_bucket{@}[$__rate_interval])))`, "commit"},
		{`histogram_quantile(0.99, sum by (le) (rate(holdfast_fsync_seconds_bucket{@}[$__rate_interval])))`, "sync"},
	}},
	{"Disk", "bytes", 8, []query{
		{`holdfast_disk_free_bytes{@}`, "free {{instance}}"},
		{`holdfast_storage_table_bytes{@}`, "tables {{instance}}"},
		{`sum by (instance) (holdfast_storage_journal_bytes{@})`, "journal {{instance}}"},
	}},
	{"Memory of the process", "bytes", 8, []query{{`process_resident_memory_bytes{@}`, "{{instance}}"}}},
	{"Connections", "short", 12, []query{{`sum by (door) (holdfast_connections{@})`, "{{door}}"}}},
	{"Refused connections, failed logins, failing work", "short", 12, []query{
		{`sum by (reason) (increase(holdfast_connections_refused_total{@}[$__rate_interval]))`, "connections: {{reason}}"},
		{`sum(increase(holdfast_failed_logins_total{@}[$__rate_interval]))`, "logins"},
		{`sum by (kind) (holdfast_storage_failing{@})`, "{{kind}}"},
	}},
}

// Dashboard returns a dashboard for Grafana, as JSON: it is imported, and asks for its data source.
func Dashboard() []byte {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	choice := func(name, label string, several bool) object {
		return object{
			"name": label, "label": label, "type": "query", "datasource": source, "refresh": 2, "multi": several, "includeAll": several,
			"query": object{"query": name, "refId": label},
		}
	}
	var drawn []object
	x, y := 0, 0
	for i, p := range panels {
		var targets []object
		for n, q := range p.queries {
			targets = append(targets, object{
				"datasource": source, "refId": string(rune('A' + n)), "legendFormat": q.name, "expr": strings.ReplaceAll(q.expr, "@", at),
			})
		}
		if x+p.width > 24 {
			x, y = 0, y+height
		}
		drawn = append(drawn, object{
			"id": i + 1, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
			"gridPos":     object{"x": x, "y": y, "w": p.width, "h": height},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
		})
		x += p.width
	}
	text, err := json.MarshalIndent(object{
		"title": "Holdfast", "uid": "holdfast", "schemaVersion": 39, "refresh": "30s", "time": object{"from": "now-1h", "to": "now"},
		"templating": object{"list": []object{
			{"name": "source", "label": "source", "type": "datasource", "query": "prometheus"},
			choice(`label_values(holdfast_build_info, job)`, "job", false),
			choice(`label_values(holdfast_build_info{job="$job"}, instance)`, "instance", true),
		}},
		"panels": drawn,
	}, "", " ")
	if err != nil {
		panic(err) // it has nothing that is no JSON
	}
	return append(text, '\n')
}
