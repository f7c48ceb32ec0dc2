package cluster

import (
	"flag"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/planted"
)

var plant = flag.Bool("planted", false, "have tests, and cells, find each planted bug")

// bug is one that tests of its package find, and some a cell as well.
type bug struct {
	name, file   string
	judge, fault string // which test finds it, and in which fault a cell shows it; "": none
	old, new     string
}

func bugs() []bug {
	return []bug{
		{"no fence", "cell/claim.go", "storage/cell TestAnOwnerThatWasWrittenByHandEndsTheClaim", "by hand",
			"If(unchanged(keyOwner, t.fence), unchanged(keyHead, t.head))", "If()"},
		{"held is always true", "cell/claim.go", "storage/cell TestOneNodeOwns", "",
			"return t.Margin() > 0", "return true"},
		{"the cut is at the highest floor", "cell/cut.go", "storage/cell TestTheLogIsCutWhereTheTablesOfAMajorityHaveIt", "power",
			"voters[needed]", "voters[max(needed, len(voters)-1)]"},
		{"a floor is written before tables are adopted", "flusher.go", "storage TestTheLogIsReleasedUpToWhatTablesHave", "",
			"list := s.tables.List()\n\tif list.Floor", "if s.opt.Release != nil {\n\t\ts.opt.Release(w.upto.Batch)\n\t}\n\tlist := s.tables.List()\n\tif list.Floor"},
		{"batches are skipped", "cell/follow.go", "storage/cell TestADamagedLogIsNotPassedOver", "",
			"if err := fn(after+1, content); err != nil {", "if after+1 < s.end.Batch && (after+1)%64 == 3 {\n\t\t\t\t\tafter, pieces = after+1, nil\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tif err := fn(after+1, content); err != nil {"},
		{"parts without the last one are taken", "cell/claim.go", "storage/cell TestAClaimDropsPartsOfNoBatch", "",
			", clientv3.OpDelete(keyPart(s.end.Batch+1, 0), clientv3.WithRange(endLog))", ""},
		{"the clock of a term is the machine's", "../cmd/cluster/turn.go", "", "clock is an hour ahead",
			"clock := newClock(n.began(ctx, store))", "clock := newClock(time.Now().UnixMilli())"},
		{"the time of the last content is ignored", "../cmd/cluster/clock.go", "cmd/cluster TestATermOfNodesThatDisagreeGoesOnWhereItWas", "",
			"m.Last, m.Away = ms, 0", "m.Away = min(0, time.Duration(ms))"},
		{"the time of what a node has kept is ignored", "../cmd/cluster/clock.go", "cmd/cluster TestATermOfNodesThatDisagreeGoesOnWhereItWas", "",
			"daemon.Moment{Last: store.Control().Time, Away: -1}", "daemon.Moment{Away: -1}"},
		{"a claim is kept without progress", "cell/claim.go", "storage/cell TestAClaimIsNotKeptWithoutProgress", "",
			"} else if t.log.Progress() {", "} else {"},
		{"held by the keepalive alone", "cell/claim.go", "storage/cell TestAClaimIsNotHeldByItsKeepaliveAlone", "",
			"if err != nil {\n\t\treturn\n\t}\n\tif len(r.Kvs) == 0 || r.Kvs[0].ModRevision != t.fence {", "if err == nil && (len(r.Kvs) == 0 || r.Kvs[0].ModRevision != t.fence) {"},
		{"an absent cut is not compared", "cell/claim.go", "storage/cell TestAClaimKnowsTheCut", "",
			"If(unchanged(keyOwner, 0), unchanged(keyCut, s.cut), ", "If(unchanged(keyOwner, 0), unchanged(map[bool]string{false: keyOwner, true: keyCut}[s.cut > 0], s.cut), "},
		{"head is compared without the sum", "cell/claim.go", "storage/cell TestAnAppendIsFencedByAnotherContentOfItsNumber", "",
			"if found != next {", "if found.Sum = next.Sum; found != next {"},
		{"a role goes on behind the end of its lease", "cell/claim.go", "storage/cell TestAClaimIsNotHeldByItsKeepaliveAlone", "",
			"_ = t.fail(errors.New(\"its lease is over\"))", "go t.renew(time.Now())"},
		{"a claim goes on behind an append that failed", "cell/claim.go", "storage/cell TestAnAppendThatEtcdRefusesEndsTheClaim", "",
			"return t.fail(fmt.Errorf(\"batch %d: %w\", batch, err))", "return fmt.Errorf(\"%w: batch %d: %w\", ErrFenced, batch, err)"},
		{"a node joins under its old id", "cell/memberset.go", "storage/cell TestNodesJoinWhileWritesGoOnAndAWipedOneAsAnotherMember", "",
			"if err := m.change(ctx, node, address, m.dropLearner); err != nil {", "if all, err := m.client.MemberList(ctx); err == nil {\n\t\tis, known := false, []string{}\n\t\tfor _, p := range all.Members {\n\t\t\tis, known = is || p.Name == node, append(known, p.Name+\"=\"+p.PeerURLs[0])\n\t\t}\n\t\tif is {\n\t\t\treturn strings.Join(known, \",\"), nil\n\t\t}\n\t}\n\tif err := m.change(ctx, node, address, m.dropLearner); err != nil {"},
	}
}

// plantedBugs is the bugs as they are planted: each is the one of its number.
func plantedBugs() (all []planted.Bug) {
	for _, b := range bugs() {
		all = append(all, planted.Bug{Name: b.name, File: b.file, Old: b.old, New: b.new, Judge: b.judge})
	}
	return all
}

// clock has the environment of a process say how far its clock is off, from some time after its
// start on.
func clock(t *testing.T) []planted.Bug {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	of := strings.TrimSpace(string(root)) + "/src/time/"
	return []planted.Bug{
		{Name: "a clock that is off", Judge: planted.Always, File: of + "time.go", Old: "\tmono -= startNano\n", New: "\tmono -= startNano\n\tif mono >= offAfter {\n\t\tsec += off\n\t}\n"},
		{Name: "how far it is off", Judge: planted.Always, File: of + "zoneinfo_unix.go", Old: "import (\n\t\"syscall\"\n)\n",
			New: "import (\n\t\"syscall\"\n)\n\nfunc told(name string) int64 {\n\ttext, _ := syscall.Getenv(name)\n\td, _ := ParseDuration(text)\n\treturn int64(d)\n}\n\nvar off, offAfter = told(\"CLOCK_OFF\") / int64(Second), told(\"CLOCK_AFTER\")\n"},
	}
}

// door has the etcd of a node listen at a socket in its folder, for the tests, and be full where
// the environment says.
func door() planted.Bug {
	return planted.Bug{Name: "a listener for clients", Judge: planted.Always, File: "cell/member.go",
		Old: "e, err := embed.StartEtcd(cfg)",
		New: "_ = os.MkdirAll(cfg.Dir, 0o700)\n\t\tcfg.AdvertiseClientUrls = []url.URL{{Scheme: \"unix\", Path: filepath.Join(cfg.Dir, \"client.sock\")}}\n\t\t_, _ = fmt.Sscan(os.Getenv(\"QUOTA\"), &cfg.QuotaBackendBytes)\n\t\tcfg.ListenClientUrls = cfg.AdvertiseClientUrls\n\t\te, err := embed.StartEtcd(cfg)"}
}

// keep has a node cut the log as soon as it can, where the environment says so: one that was away
// then copies a folder, as where much is written.
func keep() planted.Bug {
	return planted.Bug{Name: "a log that is not kept", Judge: planted.Always, File: "../cmd/cluster/cluster.go", Old: "Keep: keepLog})",
		New: "Keep: map[bool]int64{true: keepLog}[os.Getenv(\"KEEP\") == \"\"]})"}
}

func TestPlantedBugsAreBuilt(t *testing.T) {
	if _, err := planted.Overlay(t.TempDir(), clock(t)); err != nil { // all would be built for it
		t.Error(err)
	}
	if err := planted.Build(t.TempDir(), append(plantedBugs(), door(), keep())); err != nil {
		t.Error(err)
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	if !*plant {
		t.Skip("skipped: make planted has tests, and cells, find each bug")
	}
	planted.Judge(t, plantedBugs())
	for i, b := range bugs() {
		if b.fault == "" {
			continue
		}
		t.Run(b.name+" in a cell", func(t *testing.T) {
			t.Setenv("PLANTED", strconv.Itoa(i+1))
			begun := time.Now()
			found := onLoopback(t, build(t, append(plantedBugs(), clock(t)...)...)).run(append(faults(), longFaults()...), b.fault, 20)
			if len(found) == 0 {
				t.Fatalf("a cell does not show the bug in %v", time.Since(begun).Round(time.Second))
			}
			t.Logf("a cell shows it after %v: %.300s", time.Since(begun).Round(time.Second), found[0])
		})
	}
}
