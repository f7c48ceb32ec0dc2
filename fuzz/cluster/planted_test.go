package cluster

import (
	"flag"
	gobuild "go/build"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/planted"
)

var plant = flag.Bool("planted", false, "build tests, and the program, with each bug, and see that it is found")

// bug is one that tests of its package find, and some a cell as well.
type bug struct {
	planted.Bug
	fault string // part of the name of the fault that shows it; "": a cell seldom does
}

func bugs() []bug {
	return []bug{
		{planted.Bug{Name: "no fence", File: "cell/claim.go",
			Old: "If(unchanged(keyOwner, t.fence), unchanged(keyHead, t.head))", New: "If()",
			Tests: "OwnerThatWasWrittenByHand"}, "by hand"},
		{planted.Bug{Name: "held is always true", File: "cell/claim.go",
			Old: "return t.Margin() > 0", New: "return true",
			Tests: "OneNodeOwns"}, "stopped past its lease"},
		{planted.Bug{Name: "the cut is at the highest floor", File: "cell/cut.go",
			Old: "voters[(len(voters)-1)/2]", New: "voters[len(voters)-1]",
			Tests: "CutWhereTheTablesOfAMajority"}, "power"},
		{planted.Bug{Name: "a floor is written before tables are adopted", File: "flusher.go",
			Old: "list := s.tables.List()\n\tif list.Floor", New: "if s.opt.Release != nil {\n\t\ts.opt.Release(w.upto.Batch)\n\t}\n\tlist := s.tables.List()\n\tif list.Floor",
			Tests: "LogIsReleased"}, ""},
		{planted.Bug{Name: "batches are skipped", File: "cell/follow.go",
			Old: "if err := fn(after+1, content); err != nil {", New: "if after+1 < s.end.Batch && (after+1)%64 == 3 {\n\t\t\t\t\tafter, pieces = after+1, nil\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tif err := fn(after+1, content); err != nil {",
			Tests: "DamagedLog"}, ""},
		{planted.Bug{Name: "parts without the last one are taken", File: "cell/claim.go",
			Old: ", clientv3.OpDelete(keyPart(s.end.Batch+1, 0), clientv3.WithRange(endLog))", New: "",
			Tests: "ClaimDropsParts"}, ""},
		{planted.Bug{Name: "the clock of a term is the machine's", File: "../cmd/cluster/turn.go",
			Old: "clock := newClock(n.began(ctx, store))", New: "clock := newClock(time.Now().UnixMilli())"}, "clock is an hour ahead"},
		{planted.Bug{Name: "the time of the last content is ignored", File: "../cmd/cluster/turn.go",
			Old: "if ms, ok := n.arrived.now(); ok {", New: "if ms, ok := n.arrived.now(); ok && ms < 0 {",
			Tests: "TermBegins"}, ""},
		{planted.Bug{Name: "the time of what a node has kept is ignored", File: "../cmd/cluster/turn.go",
			Old: "max(middle(nodes), store.Control().Time)", New: "middle(nodes)",
			Tests: "TermBegins"}, ""},
		{planted.Bug{Name: "a claim is kept without progress", File: "cell/claim.go",
			Old: "} else if t.log.Progress() {", New: "} else {",
			Tests: "NotKeptWithoutProgress"}, ""},
		{planted.Bug{Name: "held by the keepalive alone", File: "cell/claim.go",
			Old: "if err != nil {\n\t\treturn\n\t}\n\tif len(r.Kvs) == 0 || r.Kvs[0].ModRevision != t.fence {", New: "if err == nil && (len(r.Kvs) == 0 || r.Kvs[0].ModRevision != t.fence) {",
			Tests: "NotHeldByItsKeepaliveAlone"}, ""},
		{planted.Bug{Name: "an absent cut is not compared", File: "cell/claim.go",
			Old: "If(unchanged(keyOwner, 0), unchanged(keyCut, s.cut), ", New: "If(unchanged(keyOwner, 0), unchanged(map[bool]string{false: keyOwner, true: keyCut}[s.cut > 0], s.cut), ",
			Tests: "ClaimKnowsTheCut"}, ""},
		{planted.Bug{Name: "head is compared without the sum", File: "cell/claim.go",
			Old: "if found != next {", New: "if found.Sum = next.Sum; found != next {",
			Tests: "FencedByAnotherContent"}, ""},
		{planted.Bug{Name: "a role goes on behind the end of its lease", File: "cell/claim.go",
			Old: "_ = t.fail(errors.New(\"its lease is over\"))", New: "go t.renew(time.Now())",
			Tests: "NotHeldByItsKeepaliveAlone"}, ""},
		{planted.Bug{Name: "a claim goes on behind an append that failed", File: "cell/claim.go",
			Old: "return t.fail(fmt.Errorf(\"batch %d: %w\", batch, err))", New: "return fmt.Errorf(\"%w: batch %d: %w\", ErrFenced, batch, err)",
			Tests: "AppendThatEtcdRefuses"}, ""},
		{planted.Bug{Name: "a node joins under its old id", File: "cell/memberset.go",
			Old:   "if err := errors.Join(m.change(ctx, node, address, m.drop), m.forget(ctx, node)); err != nil {",
			New:   "if all, err := m.client.MemberList(ctx); err == nil {\n\t\tis, known := false, []string{}\n\t\tfor _, p := range all.Members {\n\t\t\tis, known = is || p.Name == node, append(known, p.Name+\"=\"+p.PeerURLs[0])\n\t\t}\n\t\tif is {\n\t\t\treturn strings.Join(known, \",\"), nil\n\t\t}\n\t}\n\tif err := errors.Join(m.change(ctx, node, address, m.drop), m.forget(ctx, node)); err != nil {",
			Tests: "AWipedOneAsAnotherMember"}, ""},
	}
}

// clock has the environment of a process say how far its clock is off, from some time after its
// start on.
func clock() []planted.Bug {
	of := gobuild.Default.GOROOT + "/src/time/"
	return []planted.Bug{
		{Name: "a clock that is off", File: of + "time.go", Old: "\tmono -= startNano\n", New: "\tmono -= startNano\n\tif mono >= offAfter {\n\t\tsec += off\n\t}\n"},
		{Name: "how far it is off", File: of + "zoneinfo_unix.go", Old: "import (\n\t\"syscall\"\n)\n",
			New: "import (\n\t\"syscall\"\n)\n\nfunc told(name string) int64 {\n\ttext, _ := syscall.Getenv(name)\n\td, _ := ParseDuration(text)\n\treturn int64(d)\n}\n\nvar off, offAfter = told(\"CLOCK_OFF\") / int64(Second), told(\"CLOCK_AFTER\")\n"},
	}
}

// door has the etcd of a node listen at a socket in its folder, for the tests.
func door() planted.Bug {
	return planted.Bug{Name: "a listener for clients", File: "cell/member.go",
		Old: "e, err := embed.StartEtcd(cfg)",
		New: "_ = os.MkdirAll(cfg.Dir, 0o700)\n\t\tcfg.AdvertiseClientUrls = []url.URL{{Scheme: \"unix\", Path: filepath.Join(cfg.Dir, \"client.sock\")}}\n\t\tcfg.ListenClientUrls = cfg.AdvertiseClientUrls\n\t\te, err := embed.StartEtcd(cfg)"}
}

func TestPlantedBugsFitTheSource(t *testing.T) {
	all := append(clock(), door())
	for _, b := range bugs() {
		all = append(all, b.Bug)
	}
	for _, b := range all {
		if _, err := b.Source(); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	if !*plant {
		t.Skip("skipped: -planted builds tests and the program with each bug")
	}
	for _, b := range bugs() {
		t.Run(b.Name, func(t *testing.T) {
			begun := time.Now()
			if b.Tests != "" {
				by := b.FoundBy(t)
				if by == "" {
					t.Fatal("its tests do not find the bug")
				}
				t.Logf("found after %v: %s", time.Since(begun).Round(time.Second), by)
			}
			if b.fault == "" {
				return
			}
			begun = time.Now()
			found := onLoopback(t, build(t, append(clock(), b.Bug)...)).run(faults(), b.fault, 20)
			if len(found) == 0 {
				t.Fatalf("a cell does not show the bug in %v", time.Since(begun).Round(time.Second))
			}
			t.Logf("a cell shows it after %v: %.300s", time.Since(begun).Round(time.Second), found[0])
		})
	}
}
