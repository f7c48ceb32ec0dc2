package crash

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// smallDisk mounts a file system of so many MiB and returns its folder. It skips the test if that
// is not possible.
func smallDisk(t *testing.T, mib int64) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	file, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(mib<<20), file.Close(), os.Mkdir(mount, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, mount}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v is not possible here: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return mount
}

// disk is a server on a small file system, with clients that go on after a refusal.
type disk struct {
	t       *testing.T
	r       *run
	mount   string
	size    int // bytes of each payload, 0 for random ones
	stopped atomic.Bool
	refused atomic.Int64 // connections that the server closed
	popMu   sync.Mutex   // guards lost
	lost    int          // pops without a reply
}

func newDisk(t *testing.T, mib int64) *disk {
	return startDisk(t, smallDisk(t, mib), serve(build(t, "cmd/holdfast")))
}

func startDisk(t *testing.T, mount string, command Command) *disk {
	d := &disk{t: t, mount: mount}
	d.r = newRun(Options{
		Command: command,
		Data:    filepath.Join(d.mount, "data"),
		Seed:    runSeed(),
		Logf:    t.Logf,
	})
	t.Logf("seed %d", d.r.Seed)
	d.r.plain = true
	d.start()
	t.Cleanup(func() {
		d.r.server.Kill()
		for _, f := range d.r.list() {
			t.Error(f)
		}
	})
	return d
}

// start starts the server, which must have no finding.
func (d *disk) start() {
	d.t.Helper()
	s, err := Start(d.r.Command, d.r.Data)
	if err != nil {
		d.t.Fatalf("start with the disk as it is: %v", err)
	}
	d.r.server = s
	if n := d.r.server.Log().Findings; n != 0 {
		d.t.Errorf("the start report has %d findings; its log ends with:\n%s", n, d.r.server.Log())
	}
}

// alive fails the test if the server has ended.
func (d *disk) alive() {
	d.t.Helper()
	select {
	case <-d.r.server.Exited():
		d.t.Fatalf("the server has ended; its log ends with:\n%s", d.r.server.Log())
	default:
	}
}

// dial connects to the server, which must run.
func (d *disk) dial() *link {
	d.t.Helper()
	link, err := d.r.server.dial(pinpriqListener)
	if err != nil {
		<-time.After(100 * time.Millisecond) // so that the log of a server that has ended is read
		d.t.Fatalf("connect: %v; the server's log ends with:\n%s", err, d.r.server.Log())
	}
	return link
}

// push pushes some packets as client n, and returns whether they were acknowledged.
func (d *disk) push(n int, link *link, rng *rand.Rand, q, count int) error {
	err := d.r.pushAcked(link, rng, n, q, count, d.size)
	if err == nil {
		d.r.pushed.Add(int64(count))
	}
	return err
}

// fill pushes until the server refuses.
func (d *disk) fill(q int) { d.fillUntil(q, time.Now().Add(time.Hour)) }

// fillUntil is fill, until some time.
func (d *disk) fillUntil(q int, end time.Time) {
	d.t.Helper()
	rng := rand.New(rand.NewPCG(d.r.Seed, 1))
	link := d.dial()
	defer link.conn.Close()
	before := d.r.pushed.Load()
	for time.Now().Before(end) {
		if err := d.push(0, link, rng, q, 32); err != nil {
			d.alive()
			d.t.Logf("pushes are refused after %d packets: %v", d.r.pushed.Load()-before, err)
			return
		}
		if d.r.pushed.Load() > 10_000_000 {
			d.t.Fatal("pushes are never refused")
		}
	}
}

// pops sends count pops and returns how many packets came. With 0 it goes on until nothing is left.
func (d *disk) pops(q, count int) (took int) {
	d.t.Helper()
	link := d.dial()
	defer link.conn.Close()
	for done := 0; done < count || count == 0; done += drainDepth {
		for range drainDepth {
			link.add(pinpriq.OpPop, d.r.queues.all[q].name)
		}
		asked, got := d.r.ledger.now(), 0
		err := link.send()
		for i := 0; i < drainDepth && err == nil; i++ {
			err = link.receive(func(key, payload []byte) {
				got++
				d.r.take(q, key, payload, asked)
			})
		}
		if err != nil {
			d.alive()
			d.t.Fatalf("pop %d on the full disk: %v; the server's log ends with:\n%s", done, err, d.r.server.Log())
		}
		if took += got; got < drainDepth {
			break
		}
	}
	return took
}

// pushWorks waits until a push is acknowledged again.
func (d *disk) pushWorks(q int) { d.pushWorksWithin(q, deadline) }

func (d *disk) pushWorksWithin(q int, limit time.Duration) {
	d.t.Helper()
	rng := rand.New(rand.NewPCG(d.r.Seed, 2))
	for end := time.Now().Add(limit); ; {
		link := d.dial()
		err := d.push(1, link, rng, q, 1)
		link.conn.Close()
		d.alive()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("pushes are still refused: %v; the server's log ends with:\n%s", err, d.r.server.Log())
		}
		time.Sleep(50 * time.Millisecond) // between two attempts, not for one to succeed
	}
}

// check empties the queues and compares.
func (d *disk) check() {
	d.t.Helper()
	d.r.ledger.settle(d.r.ledger.now())
	for _, kind := range []queueKind{shared, standing} {
		d.r.slack[d.r.queues.byKind[kind][0]] += d.lost
	}
	if err := d.r.check(true); err != nil {
		d.t.Fatalf("drain: %v; the server's log ends with:\n%s", err, d.r.server.Log())
	}
}

func (d *disk) restart(end func() error) {
	d.t.Helper()
	if err := end(); err != nil {
		d.t.Error(err)
	}
	d.start()
}

func (d *disk) kill() error {
	d.r.server.Kill()
	return nil
}

func TestDiskFull(t *testing.T) { fillDisk(t, 64) }

// A larger disk has more packets, more windows and merges before it is full.
func TestLargerDiskFull(t *testing.T) {
	if inject.Runs() < 100 {
		t.Skip("skipped: left to make sweep")
	}
	fillDisk(t, 256)
}

func fillDisk(t *testing.T, mib int64) {
	t.Run("by pushes", func(t *testing.T) {
		d := newDisk(t, mib)
		q := d.r.queues.byKind[standing][0]
		d.fill(q)
		t.Logf("popped %d on the full disk", d.pops(q, 500))
		d.fill(q)
		d.restart(d.kill)
		d.fill(q)
		d.restart(d.r.server.Terminate)
		d.alive()
		t.Logf("popped %d on the full disk after two restarts", d.pops(q, 0))
		d.pushWorks(q) // the space of the popped packets is free again
		d.check()
		d.restart(d.kill)
		d.check()
	})
	t.Run("by the longest packets", func(t *testing.T) {
		d := newDisk(t, mib)
		d.size = pinpriq.MaxPayload
		q := d.r.queues.byKind[standing][0]
		d.fill(q)
		d.restart(d.kill)
		t.Logf("popped %d on the full disk", d.pops(q, 0))
		d.pushWorks(q)
		d.check()
	})
	t.Run("by somebody else under load", func(t *testing.T) {
		d := newDisk(t, mib)
		var load sync.WaitGroup
		for n := range 4 {
			load.Go(func() { d.pushAlong(n) })
			load.Go(d.popAlong)
		}
		d.waitForPushes(2000)
		foreign := d.occupy()
		d.wantRefusal()
		d.stopped.Store(true)
		d.alive()
		d.r.server.Kill() // some connections may still wait for a batch that finds no room
		load.Wait()
		t.Logf("%d packets acknowledged, %d popped, %d connections refused, %d pops without a reply",
			d.r.pushed.Load(), d.r.ops[ofPinpriq].Load(), d.refused.Load(), d.lost)
		d.startOrRefuse()
		if err := os.Remove(foreign); err != nil {
			t.Fatal(err)
		}
		select {
		case <-d.r.server.Exited():
			d.start()
		default:
		}
		d.pushWorks(d.r.queues.byKind[standing][0])
		d.check()
	})
}

// startOrRefuse starts the server on a full disk. It may refuse with an error, but it must not
// crash.
func (d *disk) startOrRefuse() {
	d.t.Helper()
	s, err := Spawn(d.r.Command, d.r.Data)
	if err != nil {
		d.t.Fatal(err)
	}
	d.r.server = s
	select {
	case <-s.listeners[pinpriqListener].known:
		d.t.Log("it starts without any room")
	case <-s.Exited():
		d.t.Logf("it does not start without any room; its log ends with:\n%s", s.Log())
	case <-time.After(deadline):
		d.t.Error("it neither starts nor ends without any room")
	}
	if s.Log().Panicked {
		d.t.Errorf("a fault at the start; the log holds:\n%s", s.Log())
	}
}

// pushAlong pushes until the test stops it, with a new connection when one is closed.
func (d *disk) pushAlong(n int) {
	rng := rand.New(rand.NewPCG(d.r.Seed, uint64(10+n)))
	queues := []int{d.r.queues.byKind[standing][0], d.r.queues.byKind[shared][0]}
	d.along(func(link *link) error { return d.push(n, link, rng, pick(rng, queues), 8) })
}

// popAlong pops in the same way.
func (d *disk) popAlong() {
	q := d.r.queues.byKind[shared][0]
	d.along(func(link *link) error {
		link.add(pinpriq.OpPop, d.r.queues.all[q].name)
		asked := d.r.ledger.now()
		err := link.send()
		if err == nil {
			err = link.receive(func(key, payload []byte) {
				d.r.take(q, key, payload, asked)
				d.r.ops[ofPinpriq].Add(1)
			})
		}
		if err != nil {
			d.popMu.Lock()
			d.lost++
			d.popMu.Unlock()
		}
		return err
	})
}

func (d *disk) along(do func(*link) error) {
	for !d.stopped.Load() {
		link, err := d.r.server.dial(pinpriqListener)
		for err == nil && !d.stopped.Load() {
			err = do(link)
		}
		if link != nil {
			link.conn.Close()
		}
		if err != nil {
			d.refused.Add(1)
			time.Sleep(time.Millisecond) // so that refusals do not keep the machine busy
		}
	}
}

// waitForPushes returns when so many were acknowledged.
func (d *disk) waitForPushes(n int64) {
	d.t.Helper()
	for end := time.Now().Add(deadline); d.r.pushed.Load() < n; time.Sleep(time.Millisecond) {
		d.alive()
		if time.Now().After(end) {
			d.t.Fatalf("only %d pushes were acknowledged, waited for %d", d.r.pushed.Load(), n)
		}
	}
}

// wantRefusal pushes on a connection of its own until a push is not acknowledged: the server closes
// the connection, or lets it wait behind a batch that finds no room.
func (d *disk) wantRefusal() {
	d.t.Helper()
	rng := rand.New(rand.NewPCG(d.r.Seed, 3))
	link := d.dial()
	defer link.conn.Close()
	for began := time.Now(); ; {
		if err := link.conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
			d.t.Fatal(err)
		}
		if err := d.push(5, link, rng, d.r.queues.byKind[standing][1], 1); err != nil {
			d.t.Logf("a push on the full disk: %v", err)
			return
		}
		if time.Since(began) > deadline {
			d.t.Fatal("pushes on the full disk are acknowledged for ever")
		}
	}
}

// occupy fills the disk to the last block with a file of its own, and returns its name.
func (d *disk) occupy() string {
	d.t.Helper()
	file, err := os.Create(filepath.Join(d.mount, "foreign"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	for piece := make([]byte, 256<<10); len(piece) > 0; {
		_, err := file.Write(piece)
		if err == nil {
			err = file.Sync() // as fast as the disk, not as fast as memory
		}
		if err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	return file.Name()
}
