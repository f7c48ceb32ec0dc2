package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// process is a node that runs in this process.
type process struct {
	*testing.T
	own   string // the address of its own port
	redis chan net.Addr
	stop  context.CancelFunc
	ended chan error
}

// start starts a node, which ends with the test.
func start(t *testing.T, folder string, c Config) *process {
	t.Helper()
	p := &process{T: t, redis: make(chan net.Addr, 1), ended: make(chan error, 1)}
	p.own, _ = peer.NextPort(c.Nodes[c.Node])
	ctx, stop := context.WithCancel(context.Background())
	d := daemon.Config{Data: folder, Redis: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(t.Output(), nil)).With("on", c.Node),
		Listening: func(_ string, a net.Addr) {
			select {
			case p.redis <- a:
			default:
			}
		}}
	go func() { p.ended <- Run(ctx, d, c) }()
	p.stop = func() {
		stop()
		p.ended <- <-p.ended
	}
	t.Cleanup(p.stop)
	return p
}

// until waits until a node says something.
func (p *process) until(what string, is func(peer.Node) bool) {
	p.Helper()
	var last peer.Node
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if a, err := peer.NewClient(nil).Node(p.Context(), p.own); err == nil {
			if last = a; is(a) {
				return
			}
		}
	}
	p.Fatalf("it does not get to %s: %+v", what, last)
}

func (p *process) untilRole(role string) {
	p.Helper()
	p.until(role, func(a peer.Node) bool { return a.Role == role })
}

// write writes by way of a node, in a batch of its own.
func (p *process) write(value string) {
	p.Helper()
	addr := <-p.redis
	p.redis <- addr
	c := redis.NewClient(&redis.Options{Addr: addr.String()})
	defer c.Close()
	if err := c.Set(p.Context(), "key", value, 0).Err(); err != nil {
		p.Fatal(err)
	}
}

// single makes the folder of a single server, which no log has what is in.
func single(t *testing.T, folder string) {
	t.Helper()
	s, err := storage.Open(folder, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("q")})
	if err := errors.Join(s.Apply(&b), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestANodeJoinsBehindTheCutAndItsOldImageDoesNotStart(t *testing.T) {
	dir, err := os.MkdirTemp("", "cell-") // a socket's name may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a, b, image := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "image")
	nodes := map[string]string{"a": freeAddress(t), "b": freeAddress(t)}
	of := func(node string) Config { return Config{Node: node, Nodes: nodes} }
	single(t, a)
	if err := Found(a, of("a"), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	pa := start(t, a, of("a"))
	pa.untilRole(owning)
	pb := start(t, b, of("b"))
	pb.untilRole(follower)
	pb.stop()
	if err := os.CopyFS(image, os.DirFS(b)); err != nil {
		t.Fatal(err)
	}

	pb = start(t, b, of("b"))
	had := uint64(0)
	pa.until("a turn", func(n peer.Node) bool { had = n.Floors["b"]; return n.Role == owning || n.Role == follower })
	pa.write("behind the image") // whichever of them owns now
	pa.until("more of b", func(n peer.Node) bool { return n.Floors["b"] > had })
	pb.stop()
	if err := errors.Join(os.RemoveAll(b), os.Rename(image, b)); err != nil {
		t.Fatal(err)
	}
	pb = start(t, b, of("b"))
	if err := <-pb.ended; !errors.Is(err, cell.ErrOld) {
		t.Errorf("it ends with %v, want ErrOld", err)
	}
	pb.ended <- nil
}
