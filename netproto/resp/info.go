package resp

import (
	"fmt"
	"net"
	"os"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func infoCommands() []command {
	return []command{
		{name: "info", flags: flagLocal, run: info},
		{name: "role", flags: flagLocal | flagFast, run: role},
		{name: "dbsize", flags: flagRead | flagFast, run: dbSize},
	}
}

// role replies as a Redis does that serves writes, and has written nothing to replicas.
func role(s *session, _ *broker.Tx, _ [][]byte) error {
	s.array(3)
	s.bulkString("master")
	s.int(0)
	return s.array(0)
}

func dbSize(s *session, tx *broker.Tx, _ [][]byte) error {
	names, _ := tx.NameCount(s.consumer.Database())
	return s.int(int64(names))
}

// infoSections are the parts of INFO, in order.
var infoSections = []struct {
	name  string
	lines func(s *session, tx *broker.Tx) string
}{
	{"server", infoServer},
	{"clients", infoClients},
	{"memory", infoMemory},
	{"persistence", infoPersistence},
	{"stats", infoStats},
	{"replication", infoReplication},
	{"cpu", infoCPU},
	{"cluster", infoCluster},
	{"keyspace", infoKeyspace},
}

func info(s *session, tx *broker.Tx, args [][]byte) error {
	wanted := func(section string) bool {
		for _, a := range args[1:] {
			if is(a, section) || is(a, "default") || is(a, "all") || is(a, "everything") {
				return true
			}
		}
		return len(args) == 1
	}
	var text strings.Builder
	for _, section := range infoSections {
		if !wanted(section.name) {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		title := strings.ToUpper(section.name[:1]) + section.name[1:]
		lines := strings.ReplaceAll(section.lines(s, tx), "\n", "\r\n")
		fmt.Fprintf(&text, "# %s\r\n%s", title, lines)
	}
	return s.verbatim(text.String())
}

func infoServer(s *session, tx *broker.Tx) string {
	up := int64(time.Since(s.protocol.config.Since).Seconds())
	_, port, _ := net.SplitHostPort(s.peer.Local().String()) // none inside the process
	return fmt.Sprintf("redis_version:%s\nholdfast_version:%s\nredis_mode:standalone\narch_bits:64\nprocess_id:%d\n"+
		"tcp_port:%s\nserver_time_usec:%d\nuptime_in_seconds:%d\nuptime_in_days:%d\n",
		redisVersion, s.protocol.config.Version, os.Getpid(), port, tx.Now()*1000, up, up/(24*60*60))
}

func infoClients(s *session, tx *broker.Tx) string {
	blocked := 0
	for _, t := range s.protocol.sessions {
		if t.consumer.Parked() {
			blocked++
		}
	}
	return fmt.Sprintf("connected_clients:%d\nblocked_clients:%d\nconnections:%d\n", len(s.protocol.sessions), blocked, tx.Conns())
}

func infoMemory(_ *session, tx *broker.Tx) string {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(samples)
	m := tx.Space().Memory
	return fmt.Sprintf("used_memory:%d\nused_memory_rss:%d\nmaxmemory:0\nmaxmemory_policy:noeviction\nmemory_counted:%d\nmemory_limit:%d\nmemory_level:%v\n",
		samples[0].Value.Uint64(), samples[1].Value.Uint64(), m.Used, m.Limit, m.Level)
}

func infoPersistence(_ *session, tx *broker.Tx) string {
	disk := tx.Space()
	return "loading:0\nasync_loading:0\nrdb_bgsave_in_progress:0\nrdb_changes_since_last_save:0\naof_enabled:1\naof_rewrite_in_progress:0\naof_last_write_status:ok\n" +
		fmt.Sprintf("disk_free:%d\ndisk_total:%d\ndisk_level:%v\nstorage_failures:%d\ndamaged_packets:%d\n", disk.Free, disk.Total, disk.Level, disk.Failures, tx.Damaged())
}

func infoStats(s *session, _ *broker.Tx) string {
	p := s.protocol
	return fmt.Sprintf("total_connections_received:%d\ntotal_commands_processed:%d\npubsub_channels:%d\npubsub_patterns:%d\n",
		p.opened, p.requests, len(p.pubsub.channels.byName), len(p.pubsub.patterns.byName))
}

func infoReplication(*session, *broker.Tx) string {
	return "role:master\nconnected_slaves:0\nmaster_repl_offset:0\n"
}

func infoCPU(*session, *broker.Tx) string {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return ""
	}
	seconds := func(t syscall.Timeval) float64 { return time.Duration(t.Nano()).Seconds() }
	return fmt.Sprintf("used_cpu_sys:%.6f\nused_cpu_user:%.6f\n", seconds(u.Stime), seconds(u.Utime))
}

func infoCluster(*session, *broker.Tx) string { return "cluster_enabled:0\n" }

func infoKeyspace(s *session, tx *broker.Tx) string {
	if !s.pass.Open() && !s.mayAll(access.Look, []byte("*")) { // as DBSIZE
		return ""
	}
	var lines strings.Builder
	for db := range uint8(broker.Databases) {
		if names, expiring := tx.NameCount(db); names > 0 {
			fmt.Fprintf(&lines, "db%d:keys=%d,expires=%d,avg_ttl=0\n", db, names, expiring)
		}
	}
	return lines.String()
}
