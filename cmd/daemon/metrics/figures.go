package metrics

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/words"
	"github.com/holdfast-queue/holdfast/storage"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

var (
	build = desc("build_info", "1, with what the server was built from.", "version", "goversion")
	ready = desc("ready", "1 if the server has recovered, does not drain, and the disk does not refuse all.")

	recoverySeconds = desc("recovery_seconds", "How long the start took to read the folder.")
	recoveryPackets = desc("recovery_packets", "Packets that the start found.")

	queueCount  = desc("queues", "Queues.", "database")
	allPackets  = desc("packets", "Packets of all queues, by state.", "database", "state")
	allBytes    = desc("packet_bytes", "Keys and payloads of all packets.", "database")
	allOldest   = desc("oldest_ready_age_seconds", "Time since the ready packet that was pushed first was pushed; 0 if none is ready.")
	queuePacket = desc("queue_packets", "Packets of a queue, by state.", "database", "queue", "state")
	queueBytes  = desc("queue_packet_bytes", "Keys and payloads of the packets of a queue.", "database", "queue")
	queueOldest = desc("queue_oldest_ready_age_seconds", "Time since the ready packet of a queue that was pushed first was pushed; 0 if none is ready.", "database", "queue")

	allStates  = desc("queues_in_state", "Queues that are in a state, as QSTAT tells it.", "database", "state")
	queueState = desc("queue_in_state", "1 if a queue is in a state, as QSTAT tells it.", "database", "queue", "state")
	queueBound = desc("queue_bound_ratio", "Which part of its bound a queue holds, of packets or of bytes; 0 without a bound.", "database", "queue")

	turnSeconds   = desc("turn_seconds", "Time of a turn of the loop, which runs what clients have sent, commits it and replies.")
	commitSeconds = desc("commit_seconds", "Time until a batch was as durable as --sync says.")
	commitBytes   = desc("commit_bytes", "Size of a batch.")
	commitEntries = desc("commit_entries", "Records that a batch changed.")
	fsyncSeconds  = desc("fsync_seconds", "Time of a sync of the journal.")

	journalBytes    = desc("storage_journal_bytes", "Files of the journal: with records, and ready to be used.", "kind")
	journalSegments = desc("storage_journal_segments", "Files of the journal with records.")
	pendingBytes    = desc("storage_pending_bytes", "What is in the journal and not yet in tables, without what is gone again.")
	frozenWindows   = desc("storage_frozen_windows", "Windows that wait to become tables.")
	lastBatch       = desc("storage_last_batch", "Number of the last batch.")
	floorBatch      = desc("storage_floor_batch", "Number of the last batch that is in tables.")
	tableCount      = desc("storage_tables", "Tables.")
	tableBytes      = desc("storage_table_bytes", "Size of the tables.")
	zeroTables      = desc("storage_level_zero_tables", "Tables that no merge has taken yet.")
	zeroGroups      = desc("storage_level_zero_groups", "Groups of these: each was a window.")
	deadBytes       = desc("storage_dead_bytes", "What the tables hold that nobody needs; an estimate.")
	lastFlush       = desc("storage_last_flush_timestamp_seconds", "When a window became tables last; 0: not since the start.")
	workRuns        = desc("storage_background_runs_total", "Work in the background that was done.", "kind")
	workSeconds     = desc("storage_background_seconds_total", "Time that it took.", "kind")
	workFailures    = desc("storage_failures_total", "Work in the background that failed, and is tried again.", "kind")
	workFailing     = desc("storage_failing", "1 if the last try of work in the background failed.", "kind")

	diskFree    = desc("disk_free_bytes", "Free space of the file system of the folder.")
	diskSize    = desc("disk_size_bytes", "Size of that file system.")
	diskRefuses = desc("disk_refuses", "1 if pushes, or everything, is refused because of the disk.", "what")

	connections   = desc("connections", "Open connections.", "door")
	served        = desc("connections_accepted_total", "Connections that were served.", "door")
	refused       = desc("connections_refused_total", "Connections that were refused.", "door", "reason")
	failedLogins  = desc("failed_logins_total", "Logins with a wrong user or password.")
	certificate   = desc("tls_certificate_expiry_timestamp_seconds", "When the server's certificate ends.")
	lastBackup    = desc("last_backup_timestamp_seconds", "The moment of the last backup of everything that has left as a whole.")
	memoryLimit   = desc("memory_limit_bytes", "Memory that the process may have; 0 if no limit is known.")
	memoryCounted = desc("memory_counted_bytes", "Memory that it needs for what it has, in the worst moment.")
	memoryRefuses = desc("memory_refuses", "1 if pushes, or claims, are refused because of the memory.", "what")
	memory        = desc("memory_bytes", "Memory of some kinds: recent payloads, requests and replies, the open batch.", "kind")
)

// figureDesc is a figure of queues: of all together, and of one.
type figureDesc struct{ all, queue *prometheus.Desc }

// figureDescs are the descriptions of words.QueueFigures.
var figureDescs = func() (all [words.Figures]figureDesc) {
	for i, f := range words.QueueFigures {
		switch says := strings.ToUpper(f.Says[:1]) + f.Says[1:]; f.Kind {
		case words.Gauge:
			all[i] = figureDesc{allPackets, queuePacket}
		case words.Size:
			all[i] = figureDesc{allBytes, queueBytes}
		case words.Flag:
			all[i] = figureDesc{allStates, queueState}
		case words.Number:
			name := strings.ReplaceAll(f.Name, "-", "_")
			all[i] = figureDesc{desc(name, says+", of all queues.", "database"), desc("queue_"+name, says+".", "database", "queue")}
		case words.Total:
			all[i].all = desc("packets_"+f.Name+"_total", says+", of all queues, since the start.")
			all[i].queue = desc("queue_packets_"+f.Name+"_total", says+", since the queue was made.", "database", "queue")
		}
	}
	return all
}()

// Describe implements prometheus.Collector. It names nothing: what a page says depends on the
// server.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	p := page{ch}
	p.gauge(build, 1, m.config.Version, m.config.GoVersion)
	p.gauge(ready, truth(m.config.Ready() == nil))
	if m.config.Node != nil {
		p.node(m.config.Node())
	}
	s := m.source.Load()
	if s == nil {
		return
	}
	p.storage(s)
	p.doors(s)
	if s.Loop == nil {
		return
	}
	turns := s.Turns.read()
	p.histogram(turnSeconds, &turns, 5, 24, 1e-6) // as those of commits
	p.gauge(recoverySeconds, s.Recovery.Took.Seconds())
	p.gauge(recoveryPackets, float64(s.Recovery.Packets))
	m.scraping.Lock()
	defer m.scraping.Unlock()
	queues, f, now, buffers, err := m.survey(s)
	if err != nil { // the loop has ended
		return
	}
	p.gauge(diskRefuses, truth(f.RefusesPushes), "pushes")
	p.gauge(diskRefuses, truth(f.RefusesAll), "everything")
	p.gauge(memoryLimit, float64(f.Memory.Limit))
	p.gauge(memoryCounted, float64(f.Memory.Used))
	p.gauge(memoryRefuses, truth(f.Memory.Level != storage.Normal), "pushes")
	p.gauge(memoryRefuses, truth(f.Memory.Level == storage.Stop), "claims")
	p.gauge(memory, float64(f.Cache), "payload_cache")
	p.gauge(memory, float64(f.Open), "open_batch")
	p.gauge(memory, float64(buffers), "connections")
	for i, n := range netproto.Figures(&broker.QueueFigures{Counters: f.Totals}) {
		if words.QueueFigures[i].Kind == words.Total {
			p.counter(figureDescs[i].all, float64(n))
		}
	}
	p.queues(queues, now)
}

// page takes what a scrape gets.
type page struct{ ch chan<- prometheus.Metric }

func (p page) gauge(d *prometheus.Desc, v float64, labels ...string) {
	p.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (p page) counter(d *prometheus.Desc, v float64, labels ...string) {
	p.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// figure shows a figure of queues. The gauges are one metric, labelled by their names, as the flags
// are.
func (p page) figure(i int, d *prometheus.Desc, n int64, labels ...string) {
	switch f := words.QueueFigures[i]; f.Kind {
	case words.Gauge, words.Flag:
		p.gauge(d, float64(n), append(labels, f.Name)...)
	case words.Size, words.Number:
		p.gauge(d, float64(n), labels...)
	case words.Total:
		p.counter(d, float64(n), labels...)
	}
}

// histogram shows the buckets from 2^from to 2^to, in units of so much.
func (p page) histogram(d *prometheus.Desc, h *storage.Histogram, from, to int, unit float64) {
	buckets, count := make(map[float64]uint64), uint64(0)
	for i, n := range h.Buckets {
		if count += n; i >= from && i <= to {
			buckets[math.Ldexp(unit, i)] = count
		}
	}
	p.ch <- prometheus.MustNewConstHistogram(d, count, float64(h.Sum)*unit, buckets)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// age is how long ago a moment is, both in Unix milliseconds; 0 if there is none.
func age(since, now int64) float64 {
	if since == 0 {
		return 0
	}
	return time.Duration(max(0, now-since) * int64(time.Millisecond)).Seconds()
}

func (p page) queues(q *queues, now int64) {
	p.gauge(allOldest, age(q.since, now))
	for i := range q.databases {
		d, db := &q.databases[i], strconv.Itoa(i)
		if d.queues == 0 && i > 0 {
			continue
		}
		p.gauge(queueCount, float64(d.queues), db)
		for i, n := range d.figures {
			if words.QueueFigures[i].Kind != words.Total { // queues that are gone count, too
				p.figure(i, figureDescs[i].all, n, db)
			}
		}
	}
	for _, s := range q.shown() {
		db, name := strconv.Itoa(int(s.Database)), label(s.Name)
		for i, n := range netproto.Figures(&s.QueueFigures) {
			p.figure(i, figureDescs[i].queue, n, db, name)
		}
		p.gauge(queueOldest, age(s.Since, now), db, name)
		p.gauge(queueBound, s.BoundRatio, db, name)
	}
}

func (p page) storage(s *Source) {
	f, disk := s.Store.Figures(), s.Store.Space()
	const microsecond = 1e-6
	p.histogram(commitSeconds, &f.Commits.Latency, 5, 24, microsecond) // 32 µs to 17 s
	p.histogram(fsyncSeconds, &f.Commits.Sync, 5, 24, microsecond)
	p.histogram(commitBytes, &f.Commits.Bytes, 6, 26, 1) // 64 bytes to 64 MiB
	p.histogram(commitEntries, &f.Commits.Entries, 0, 16, 1)
	p.gauge(journalBytes, float64(f.Journal), "records")
	p.gauge(journalBytes, float64(f.Spare), "spare")
	p.gauge(journalSegments, float64(f.Segments))
	p.gauge(pendingBytes, float64(f.Pending))
	p.gauge(frozenWindows, float64(f.Frozen))
	p.gauge(lastBatch, float64(f.LastBatch))
	p.gauge(floorBatch, float64(f.FlushedBatch))
	p.gauge(tableCount, float64(f.Tables))
	p.gauge(tableBytes, float64(f.TableBytes))
	p.gauge(zeroTables, float64(f.LevelZero))
	p.gauge(zeroGroups, float64(f.Windows))
	p.gauge(deadBytes, float64(f.DeadBytes))
	flushed := 0.0
	if !f.LastFlushed.IsZero() {
		flushed = float64(f.LastFlushed.UnixMilli()) / 1000
	}
	p.gauge(lastFlush, flushed)
	for kind, w := range f.Background {
		if kind == "flush" || kind == "merge" { // the others take no time
			p.counter(workRuns, float64(w.Done), kind)
			p.counter(workSeconds, w.Took.Seconds(), kind)
		}
		p.counter(workFailures, float64(w.Failures), kind)
		p.gauge(workFailing, truth(w.Failing), kind)
	}
	p.gauge(diskFree, float64(disk.Free))
	p.gauge(diskSize, float64(disk.Total))
}

func (p page) doors(s *Source) {
	for door, d := range s.Doors {
		open, a := d.Connections()
		p.gauge(connections, float64(open), door)
		p.counter(served, float64(a.Served), door)
		for reason, n := range a.Refused {
			p.counter(refused, float64(n), door, netproto.Refused(reason).String())
		}
	}
	if s.Users != nil {
		p.counter(failedLogins, float64(s.Users.Failed()))
	}
	if s.Certificate != nil {
		p.gauge(certificate, float64(s.Certificate().Unix()))
	}
	if at := s.LastBackup(); !at.IsZero() {
		p.gauge(lastBackup, float64(at.UnixMilli())/1000)
	}
}
