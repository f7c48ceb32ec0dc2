package storage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

const (
	sweepFolder  = "HOLDFAST_SWEEP_FOLDER"
	sweepSync    = "HOLDFAST_SWEEP_SYNC"
	sweepBatches = 150 // that a child applies: some segments, flushes, and a merge
	sweepTimes   = 40  // each call fails the first time that a thread makes it, or up to this one
	sweepWait    = time.Minute
)

// How a child ends.
const (
	childKilled  = -1
	childClosed  = 0
	childStopped = 1 // the store takes nothing more
	childCrashed = 2
	childFailed  = 3 // Close did, and the next start has what it could not write out
	childRefused = 4 // by Open
	childStuck   = 5 // there was never room
)

func sweptEnds() map[int]string {
	return map[int]string{childKilled: "killed", childClosed: "closed", childStopped: "stopped", childCrashed: "crashed",
		childFailed: "not closed", childRefused: "refused", childStuck: "stuck"}
}

// sweepPayload is the payload of a packet of a plan; some have a record of their own.
func sweepPayload(seq uint64) []byte { return bytes.Repeat([]byte{byte(seq)}, int(seq%7)*3000+10) }

// sweepBatch is the next batch of a plan.
func sweepBatch(p *plan, b *content.Batch) {
	b.Reset()
	puts, deletes := p.step()
	for _, seq := range deletes {
		b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, content.Removed{Large: content.IsLarge(len(sweepPayload(seq)))})
	}
	for _, seq := range puts {
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{Payload: sweepPayload(seq)})
	}
}

// TestSweepChild applies batches in a process of its own, and says which are applied.
func TestSweepChild(t *testing.T) {
	dir := os.Getenv(sweepFolder)
	if dir == "" {
		t.Skip("skipped: it is a part of TestSystemAFailingCallLosesNothing")
	}
	say := func(what ...any) {
		for line := fmt.Append(nil, "\n", fmt.Sprintln(what...)); ; { // this call may be the one that fails
			if _, err := os.Stdout.Write(line); err == nil {
				return
			}
		}
	}
	mode, err := ParseSync(os.Getenv(sweepSync))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{Window: minWindow, Sync: mode})
	if err != nil {
		say("refused", err)
		os.Exit(childRefused)
	}
	var p plan
	var b content.Batch
	for p.batch < s.Control().Batch {
		p.step()
	}
	say("applied", p.batch)
	for last := p.batch + sweepBatches; p.batch < last; {
		sweepBatch(&p, &b)
		for tries := 0; ; tries++ {
			if err = s.Apply(&b); !errors.Is(err, ErrFull) {
				break
			}
			if tries == 400 {
				say("stuck", err)
				os.Exit(childStuck)
			}
			time.Sleep(50 * time.Millisecond) // between two attempts
		}
		if err != nil {
			say("stopped", err)
			_ = s.Close()
			os.Exit(childStopped)
		}
		say("applied", p.batch)
		if p.batch%7 == 0 { // brings what there is into tables
			if n, err := s.Snapshot(); err == nil {
				n.Close()
			}
		}
	}
	if err := s.Close(); err != nil {
		say("not closed", err)
		os.Exit(childFailed)
	}
	os.Exit(childClosed)
}

// sweepCalls are the calls that fail, with their errors.
func sweepCalls() map[string][]string {
	return map[string][]string{
		"openat":          {"EIO", "ENOSPC", "ENOMEM", "EMFILE"},
		"write":           {"EIO", "ENOSPC"},
		"pwrite64":        {"EIO", "ENOSPC"},
		"pread64":         {"EIO"},
		"fsync":           {"EIO", "ENOSPC"},
		"fdatasync":       {"EIO", "ENOSPC"},
		"sync_file_range": {"EIO", "ENOSPC"},
		"fallocate":       {"EIO", "ENOSPC"},
		"ftruncate":       {"EIO", "ENOSPC"},
		"renameat":        {"EIO", "ENOSPC", "ENOMEM"},
		"linkat":          {"EIO", "ENOSPC"},
		"symlinkat":       {"EIO", "ENOSPC", "ENOMEM"},
		"unlinkat":        {"EIO", "ENOMEM"},
		"mkdirat":         {"EIO", "ENOSPC"},
		"getdents64":      {"EIO", "ENOMEM"},
		"newfstatat":      {"EIO", "ENOMEM"},
		"fstat":           {"EIO", "ENOMEM"},
		"fstatfs":         {"EIO"},
		"statfs":          {"EIO"},
		"mmap":            {"ENOMEM", "ENOSPC"},
		"munmap":          {"ENOMEM"},
		"close":           {"EIO"},
	}
}

// mayStop says that a store may stop when a call fails: nobody knows what is on the device. After
// any other it goes on.
func (f fault) mayStop() bool {
	switch f.call {
	case "fdatasync", "fsync", "renameat":
		return true
	case "pwrite64":
		return f.err != "ENOSPC"
	case "openat", "getdents64": // of a folder that Badger opens
		return true
	}
	return false
}

// mayCrash says that the runtime may end a process whose own calls fail.
func (f fault) mayCrash(said string) bool {
	const runtime = "failed to reserve|out of memory|runtime: cannot allocate memory|cannot map pages|netpollBreak|pthread_create failed|spanQueue).tryDrain|errno="
	return !f.below && slices.ContainsFunc(strings.Split(runtime, "|"), func(why string) bool { return strings.Contains(said, why) })
}

// fault is a run of a child.
type fault struct {
	call, err string
	when      string // which times, for strace
	below     bool   // only calls for files that have known names: those of the journal have not
	sync      string
}

func (f fault) String() string {
	where := "anywhere"
	if f.below {
		where = "outside the journal"
	}
	return fmt.Sprintf("%s %s %s, time %s, sync %s", f.call, f.err, where, f.when, f.sync)
}

// sweepFaults are all faults, in any order.
func sweepFaults(r *rand.Rand) (all []fault) {
	calls := sweepCalls()
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		for _, err := range calls[call] {
			for when := range sweepTimes {
				for _, below := range []bool{true, false} {
					all = append(all, fault{call, err, fmt.Sprint(when + 1), below, []string{"always", "interval:5ms"}[r.IntN(2)]})
				}
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// sweepPaths are the files of a folder whose names are known before.
func sweepPaths(dir string) (args []string) {
	names := []string{"", anchorName, formatName, lockName, journalName, dbName, buildName,
		dbName + "/MANIFEST", dbName + "/MANIFEST.new", buildName + "/view", buildName + "/view/MANIFEST"}
	for id := range uint64(200) {
		name := tables.Table{ID: id}.Name()
		names = append(names, filepath.Join(dbName, name), filepath.Join(buildName, name), filepath.Join(buildName, "view", name))
	}
	for _, name := range names {
		args = append(args, "-P", filepath.Join(dir, name))
	}
	return args
}

// sweptChild is what a child left.
type sweptChild struct {
	applied uint64 // the last batch that was answered
	code    int
	said    string
	failed  []string // the calls that did not succeed
}

// runSwept runs a child in a folder, and kills it once it applied so many batches; 0 for never.
func runSwept(t *testing.T, strace []string, dir string, f fault, kill int) (c sweptChild) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	args := []string{os.Args[0], "-test.run=^TestSweepChild$"}
	if f.call != "" {
		// The child is to be ours, and not that of strace, so that a kill ends it.
		strace = append(slices.Clone(strace), "-D", "--seccomp-bpf", "-o", log,
			"-e", "trace="+f.call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%s", f.call, f.err, f.when))
		if f.below {
			strace = append(strace, sweepPaths(dir)...)
		}
		args = append(strace, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), sweepFolder+"="+dir, sweepSync+"="+f.sync)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	hangs := time.AfterFunc(sweepWait, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for told := 0; lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "applied "); ok {
			c.applied, _ = strconv.ParseUint(number, 10, 64)
			if told++; told == kill+1 && kill > 0 {
				_ = cmd.Process.Kill()
			}
		} else if text := lines.Text(); text != "" && len(c.said) < 20_000 {
			c.said += text + "\n"
		}
	}
	_ = cmd.Wait()
	c.code = cmd.ProcessState.ExitCode()
	if !hangs.Stop() {
		t.Fatalf("%v: it hangs after batch %d\n%s", f, c.applied, c.said)
	}
	calls, _ := os.ReadFile(log)
	for line := range strings.Lines(string(calls)) {
		if strings.Contains(line, "(INJECTED)") {
			c.failed = append(c.failed, strings.TrimSpace(line))
		}
	}
	return c
}

// sweptHolds opens a folder and compares it with what was answered. Then it goes on with the plan,
// and comes again. It returns the last batch.
func sweptHolds(t *testing.T, dir string, answered uint64, closed bool) uint64 {
	t.Helper()
	var p plan
	for again := range 2 {
		s, err := Open(dir, Options{Window: minWindow})
		if err != nil {
			t.Fatalf("it does not start: %v", err)
		}
		batch := s.Control().Batch
		if batch < answered || batch > answered+1 || (closed || again > 0) && batch != answered {
			t.Fatalf("it ends at batch %d, answered was %d", batch, answered)
		}
		for p.batch < batch {
			p.step()
		}
		ids, tally := scanned(t, s)
		var seqs []uint64
		for _, id := range ids {
			seqs = append(seqs, id.Seq)
		}
		if err := s.Verify(tally); err != nil || !slices.Equal(seqs, p.live) {
			t.Fatalf("batch %d: packets %v, want %v; %v", batch, seqs, p.live, err)
		}
		s.Read(ids, func(i int, rec []byte, damage error) {
			var p content.Packet
			if damage != nil || content.DecodeRecord(rec, &p) != nil || !bytes.Equal(p.Payload, sweepPayload(ids[i].Seq)) {
				t.Fatalf("packet %v has another payload, %v", ids[i], damage)
			}
		})
		var b content.Batch
		for range 5 * (1 - again) {
			sweepBatch(&p, &b)
			applied(t, s, &b)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("it does not close: %v", err)
		}
		answered = p.batch
	}
	list, err := tables.ReadList(filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	want := len(list.Tables) + len([]string{anchorName, formatName, lockName, "MANIFEST"})
	if left := slices.Sorted(maps.Keys(files(t, dir))); len(left) != want+len([]string{dir, journalName, dbName, buildName})-1 {
		t.Fatalf("a stopped folder has %q, %d tables", left, len(list.Tables))
	}
	return answered
}

// Each system call may fail at any time: the store goes on, or it stops where nobody knows what is
// on the device. Whether it is then killed or closed, the next start has all that was answered.
// strace counts the calls of each thread by itself, so sometimes more than one fails.
func TestSystemAFailingCallLosesNothing(t *testing.T) {
	strace, r := inject.Strace(t), inject.Rand(t)
	template := t.TempDir()
	was := runSwept(t, nil, template, fault{sync: "always"}, sweepBatches/2)
	if was.applied < sweepBatches/2 || was.code != childKilled {
		t.Fatalf("%+v", was)
	}
	all := sweepFaults(r)
	if !inject.Every() {
		all = all[:min(inject.Runs(), len(all))]
	}
	hit, ends := map[string]int{}, map[string]int{}
	for _, f := range all {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			dir, kill, before := filepath.Join(t.TempDir(), "data"), 0, uint64(0)
			if r.IntN(4) > 0 { // left by a kill, so that the start has much to do
				copyFolder(t, template, dir)
				before = was.applied
			}
			if r.IntN(2) == 0 {
				kill = 1 + r.IntN(sweepBatches)
			}
			c := runSwept(t, strace, dir, f, kill)
			defer func() {
				if t.Failed() {
					t.Logf("from batch %d, kill after %d: exit code %d after batch %d; failed: %q\nit said: %s",
						before, kill, c.code, c.applied, c.failed, c.said)
				}
			}()
			switch {
			case len(c.failed) == 0 && c.code != childClosed && kill == 0:
				t.Error("nothing failed, and it did not end well")
			case c.code == childStopped && !f.mayStop() && !strings.Contains(c.said, "it cannot begin"):
				t.Error("the store stopped")
			case c.code == childCrashed && !f.mayCrash(c.said):
				t.Error("it crashed")
			case c.code == childStuck:
				t.Error("there was never room")
			}
			if len(c.failed) > 0 {
				hit[f.call+" "+f.err]++
			}
			ends[sweptEnds()[c.code]]++
			sweptHolds(t, dir, max(c.applied, before), c.code == childClosed)
		})
	}
	t.Logf("%d runs; %v; calls failed in: %v", len(all), ends, hit)
}

// A journal without a file for its next batch tries again to make one, although no batch comes.
func TestSystemAJournalThatCouldMakeNoFileMakesOneLater(t *testing.T) {
	f := fault{call: "fallocate", err: "EIO", when: "1..4", sync: "always"}
	if c := runSwept(t, inject.Strace(t), t.TempDir(), f, 0); c.code != childClosed || len(c.failed) < 4 {
		t.Errorf("exit code %d after batch %d; failed: %q\nit said: %s", c.code, c.applied, c.failed, c.said)
	}
}

func TestACloseThatCannotWriteOutKeepsTheJournal(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Window: minWindow})
	if err != nil {
		t.Fatal(err)
	}
	applied(t, s, one(1, content.Packet{}))
	build := filepath.Join(dir, buildName)
	if err := errors.Join(os.RemoveAll(build), os.WriteFile(build, nil, 0o600)); err != nil { // no file can be made in it
		t.Fatal(err)
	}
	if err := s.Close(); err == nil {
		t.Error("Close says nothing of it")
	}
	if ids, tally := scanned(t, smallStore(t, dir)); len(ids) != 1 || tally.Live != 1 {
		t.Errorf("packets %v are there", ids)
	}
}
