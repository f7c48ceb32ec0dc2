package doctor

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
)

const (
	nodeTime  = 3 * time.Second  // that a node may take to answer
	nodeClock = 30 * time.Second // that the clocks of nodes may differ
	nodeRoom  = 320 << 20        // bytes that etcd's log takes beside the packets
	expiring  = 14 * 24 * time.Hour
)

// ExamineNodes makes the checks of a node's machine and of the way to the other nodes, of which
// none needs to run. It takes some seconds for each node at most.
func ExamineNodes(data string, c *peer.Self) []Finding {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	encryption, err := c.Encryption(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return []Finding{seen("certificate", "%v", err).but(true, Bad, "see --nodes and --cluster-tls, and \"holdfast tls init --help\"")}
	}
	var until time.Time
	if encryption != nil {
		until = encryption().Certificates[0].Leaf.NotAfter
	}
	client, findings := peer.NewClient(encryption), []Finding{certificateUntil(until, time.Now())}
	at, _, _ := existing(data)
	if free, total, err := storage.DiskSpace(at); err == nil {
		findings = append(findings, roomFor(free, total))
	}
	var first peer.Node // that answers: the others must be as it is
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		f, a := lookAtNode(ctx, client, name, c.Nodes[name])
		if first.Name == "" {
			first = a
		}
		if name == c.Node && f.Verdict == Warn && a.Name == "" {
			f = seen("node", "%s is this machine's, and does not run", name)
		}
		findings = append(findings, f.
			but(a.Version != first.Version && a.Name != "", Warn, "run the version of node %s on all", first.Name).
			but(a.Cell != first.Cell && a.Cell != "", Bad, "have it join with an empty folder: it is of another cell than node %s", first.Name))
	}
	return findings
}

// lookAtNode asks a node what it is; the zero Node if it does not answer.
func lookAtNode(ctx context.Context, client *peer.Client, name, address string) (Finding, peer.Node) {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	var a peer.Node
	var begun time.Time
	etcd, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = etcd.Close()
		begun = time.Now()
		own, _ := peer.NextPort(address) // Encryption has looked at it
		a, err = client.Node(ctx, own)
	}
	if err != nil {
		return seen("node", "%s does not answer: %v", name, err).
			but(true, Warn, "start it, or open this port and the next one to this machine").
			but(etcd != nil, Bad, "open this port to this machine, and see the certificates of both").
			but(errors.As(err, new(*net.DNSError)), Bad, "have --nodes name what each machine resolves, or an IP address"), a
	}
	off := time.UnixMilli(a.Clock).Sub(begun.Add(time.Since(begun) / 2)).Round(10 * time.Millisecond)
	return seen("node", "%s: %s of version %s, its clock is off by %v", name, a.Role, a.Version, off).
		but(off.Abs() > nodeClock, Warn, "set its clock, or that of this machine"), a
}

func certificateUntil(until, now time.Time) Finding {
	if until.IsZero() {
		return seen("certificate", "none: all nodes are on this machine")
	}
	left := until.Sub(now)
	return seen("certificate", "that of this node holds for %d days", int(left/(24*time.Hour))).but(left < expiring, Warn, "holdfast tls renew --nodes, and copy it here")
}

func roomFor(free, total int64) Finding {
	left := free - storage.LeastFree(total)
	return seen("room", "%s are free for etcd, which needs %s", size(left), size(nodeRoom)).but(left < nodeRoom, Bad, "free %s more", size(nodeRoom-left))
}
