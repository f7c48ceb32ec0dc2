package storage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// plan is a fixed sequence of batches, so that the number of the last one
// tells what a store must hold.
type plan struct {
	batch uint64
	next  uint64
	live  []uint64 // oldest first
}

// step is the next batch.
func (p *plan) step() (puts, deletes []uint64) {
	p.batch++
	for range 3 + p.batch%5 {
		p.next++
		puts = append(puts, p.next)
	}
	if p.batch%3 == 0 {
		n := min(len(p.live), int(12+p.batch%9))
		deletes, p.live = p.live[:n:n], p.live[n:]
	}
	p.live = append(p.live, puts...)
	return puts, deletes
}

// TestPowerCutChild is the process whose power is cut. It prints the number
// of each batch after Apply returned.
func TestPowerCutChild(t *testing.T) {
	dir := os.Getenv("HOLDFAST_POWERCUT_CHILD")
	if dir == "" {
		t.Skip("skipped: it is a part of TestSystemPowerCutKeepsEveryAcknowledgedBatch")
	}
	s := openTest(t, dir, Options{})
	var b content.Batch
	var p plan
	for {
		b.Reset()
		puts, deletes := p.step()
		for _, seq := range deletes {
			b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, content.Removed{})
		}
		for _, seq := range puts {
			b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{Payload: bytes.Repeat([]byte{byte(seq)}, 1000)})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Printf("\napplied %d\n", p.batch); err != nil {
			t.Fatal(err)
		}
	}
}

// child is a running TestPowerCutChild.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	out *os.File
	in  *bufio.Reader
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPowerCutChild$")
	cmd.Env = append(os.Environ(), "HOLDFAST_POWERCUT_CHILD="+dir)
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
	})
	return &child{t: t, cmd: cmd, out: out, in: bufio.NewReaderSize(out, 1<<20)}
}

// read returns the batch of the next line that tells one.
func (c *child) read() uint64 {
	c.t.Helper()
	said := ""
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("the child ended: %s%v", said, err)
		}
		said += line
		if digits, ok := strings.CutPrefix(line, "applied "); ok {
			batch, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			return batch
		}
	}
}

// stop stops all threads of the child and returns the last batch it told of.
func (c *child) stop(last uint64) uint64 {
	c.t.Helper()
	pid := c.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		c.t.Fatalf("the child was not stopped: %v, %v", status, err)
	}
	// What is left in the pipe was acknowledged, too.
	raw := int(c.out.Fd())
	if err := syscall.SetNonblock(raw, true); err != nil {
		c.t.Fatal(err)
	}
	rest, _ := io.ReadAll(io.MultiReader(io.LimitReader(c.in, int64(c.in.Buffered())), nonblocking(raw)))
	if err := syscall.SetNonblock(raw, false); err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(rest)) {
		digits, ok := strings.CutPrefix(line, "applied ")
		if batch, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64); ok && err == nil && strings.HasSuffix(line, "\n") {
			last = max(last, batch)
		}
	}
	return last
}

// nonblocking reads a descriptor until it would block.
type nonblocking int

func (fd nonblocking) Read(b []byte) (int, error) {
	n, err := syscall.Read(int(fd), b)
	if n <= 0 || err != nil {
		return 0, io.EOF
	}
	return n, nil
}

// TestSystemPowerCutKeepsEveryAcknowledgedBatch stops a process that applies
// batches, copies the image of the file system that it writes to, which is
// what a device holds when the power goes, and opens the copy. The journal of
// the file system commits by itself only every 1,000 seconds, so nothing is
// there that was not synced.
func TestSystemPowerCutKeepsEveryAcknowledgedBatch(t *testing.T) {
	t.Parallel()
	image, at := mountImage(t, 64, ",commit=1000")
	c := startChild(t, filepath.Join(at, "data"))
	cuts := step(24, 8)
	begun := map[uint64]bool{}
	for cut := range cuts {
		var last uint64
		for range 1 + 37*(cut%4) + 5*(cut%7) { // all moments around new segments, flushes and merges
			last = c.read()
		}
		last = c.stop(last)
		lost := filepath.Join(t.TempDir(), "image")
		if err := copyFile(image, lost); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for _, number := range checkCut(t, lost, last) {
			begun[number] = true
		}
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d segments in %d cuts", len(begun), cuts)
	if len(begun) < step(4, 1) {
		t.Errorf("only %d segments were seen", len(begun))
	}
}

// checkCut opens the store of an image and holds it against the plan. It returns the numbers of the
// segments that the cut left.
func checkCut(t *testing.T, image string, acknowledged uint64) (segments []uint64) {
	t.Helper()
	at := filepath.Join(filepath.Dir(image), "mnt")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v %s", err, out)
	}
	defer func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	}()
	for _, name := range logFiles(t, filepath.Join(at, "data")) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		segments = append(segments, binary.BigEndian.Uint64(b[8:]))
	}
	s, err := Open(filepath.Join(at, "data"), Options{})
	if err != nil {
		t.Fatalf("acknowledged %d: %v", acknowledged, err)
	}
	defer s.Close()
	batch := s.Control().Batch
	if batch < acknowledged || batch > acknowledged+1 {
		t.Errorf("the store ends at batch %d, acknowledged %d", batch, acknowledged)
	}
	var p plan
	for p.batch < batch {
		p.step()
	}
	ids, tally := scanned(t, s)
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
	var seqs []uint64
	for _, id := range ids {
		seqs = append(seqs, id.Seq)
	}
	if !slices.Equal(seqs, p.live) {
		t.Errorf("batch %d: %d packets, want %d", batch, len(seqs), len(p.live))
	}
	return segments
}
