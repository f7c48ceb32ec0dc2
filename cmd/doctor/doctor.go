// Package doctor looks at a machine, and says what to change there before a server runs in earnest.
// It changes nothing, and may look at the folder of a running server. The map:
//
//	doctor.go   findings, and the list of checks
//	folder.go   the data folder: rights, times, space, syncs
//	nodes.go    the nodes of a cell: certificate, ports, clocks, versions
//	system_linux.go    file system, memory and clock
//	system_other.go    what other systems show of that: nothing
package doctor

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// Verdict says how bad a finding is.
type Verdict string

// The verdicts. Bad is what keeps a server from its work.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Bad  Verdict = "bad"
)

// Finding is what one check found.
type Finding struct {
	Name    string // of the check: one word
	Verdict Verdict
	Seen    string
	Do      string // what helps; empty if nothing needs to be done
}

// seen is a finding that is well.
func seen(name, format string, a ...any) Finding {
	return Finding{Name: name, Verdict: OK, Seen: fmt.Sprintf(format, a...)}
}

// unseen is the finding of a check that cannot be made.
func unseen(name string, why error, do string) Finding {
	return Finding{Name: name, Verdict: Warn, Seen: why.Error(), Do: do}
}

// but is the finding with another verdict, and what helps then, if something is wrong. The last one
// that is wrong counts.
func (f Finding) but(wrong bool, verdict Verdict, format string, a ...any) Finding {
	if wrong {
		f.Verdict, f.Do = verdict, fmt.Sprintf(format, a...)
	}
	return f
}

// Examine makes all checks for a server with a data folder, which need not exist, and so many
// connections of each protocol. It takes some seconds at most. What the system does not show is
// left out.
func Examine(data string, conns int) []Finding {
	return slices.Concat([]Finding{openFiles(conns)}, lookAtFolder(data), lookAtSystem())
}

// doors is how many protocols share the connections, that of Redis Sentinel too.
const doors = 4

func openFiles(conns int) Finding {
	files, err := daemon.OpenFiles()
	if err != nil {
		return unseen("files", err, "see ulimit -n")
	}
	return filesFor(files, conns)
}

func filesFor(files uint64, conns int) Finding {
	most := max(0, daemon.ConnsWithin(files, doors, true))
	f := seen("files", "%d files may be open: %d of %d connections of each protocol", files, min(most, conns), conns)
	needed := 2 * (doors*conns + daemon.OperatorConns)
	if most == 0 {
		f = seen("files", "%d files may be open: the server does not start", files)
	}
	return f.but(most < conns, Warn, "ulimit -n %d (LimitNOFILE of a systemd unit)", needed).
		but(most == 0, Bad, "ulimit -n %d (LimitNOFILE of a systemd unit)", needed)
}

// size is a number of bytes for people.
func size(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }
