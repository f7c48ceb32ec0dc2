package redis

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// cli makes one call with redis-cli and returns what that shows.
func cli(t *testing.T, v *victim, args ...string) string {
	t.Helper()
	line := append([]string{"-p", portOf(t, v.addrs["redis"]), "-3", "--json"}, args...)
	return strings.TrimSpace(output(t, program(t, "redis-cli", "apt install redis-tools", line...)))
}

// shows wants a call with redis-cli to show a text.
func shows(t *testing.T, v *victim, want string, args ...string) {
	t.Helper()
	if got := cli(t, v, args...); got != want {
		t.Fatalf("%q shows %s, want %s", args, got, want)
	}
}

// fields is a packet as a client sees it. Numbers are float64.
type fields map[string]any

func (p fields) number(name string) string { return fmt.Sprintf("%.0f", p[name]) }

// packet makes a call with redis-cli that replies with one packet.
func packet(t *testing.T, v *victim, args ...string) fields {
	t.Helper()
	shown := cli(t, v, args...)
	var list []fields
	if strings.HasPrefix(shown, "{") {
		shown = "[" + shown + "]"
	}
	if err := json.Unmarshal([]byte(shown), &list); err != nil || len(list) != 1 {
		t.Fatalf("%q shows %s, want one packet", args, shown)
	}
	return list[0]
}

// id takes the quotes off what QPUSH shows.
func id(shown string) string { return strings.Trim(shown, `"`) }

// restarted is the server that follows one which was killed.
func (v *victim) restarted(t *testing.T, dir string) *victim {
	t.Helper()
	v.kill()
	return startVictim(t, dir)
}

func TestThePacketOfAKilledWorkerGoesToAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	shows(t, v, `"OK"`, "QSET", "jobs", "lease", "60000") // it outlasts a slow restart
	job := id(cli(t, v, "QPUSH", "jobs", "work"))
	worker := func(name, what string) []string {
		return []string{"testdata/claims.py", portOf(t, v.addrs["redis"]), "jobs", name, what}
	}
	killed := program(t, python(t), "", worker("first", "hang")...)
	out, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	claim, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_ = killed.Process.Kill() // in mid-task
	_ = killed.Wait()
	v = v.restarted(t, dir)
	if why := packet(t, v, "QSHOW", "jobs", job)["why"]; !strings.HasPrefix(why.(string), `claimed by "first" until `) {
		t.Errorf("after a restart the packet is %v", why)
	}
	first := strings.Fields(claim)
	cli(t, v, "QEXTEND", "jobs", job, first[1], "1000")

	second := strings.Fields(output(t, program(t, python(t), "", worker("second", "ack")...)))
	if len(second) != 3 || second[0] != job || first[0] != job || first[2] != "1" || second[2] != "2" || number64(t, second[1]) <= number64(t, first[1]) {
		t.Fatalf("claims of packet %s: id, token and attempt are %q, then %q", job, first, second)
	}
	const stale = `STALE the claim has ended: its lease ended, or it was acknowledged or returned`
	if got := cli(t, v, "QACK", "jobs", job, first[1]); !strings.Contains(got, stale) {
		t.Errorf("the late acknowledgement shows %s", got)
	}
	v = v.restarted(t, dir)
	shows(t, v, "0", "QLEN", "jobs")
}

func TestAWorkerInPythonSeesThatItsPacketIsCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	shows(t, v, `"OK"`, "QSET", "jobs", "max-attempts", "1", "dead-letter", "graveyard", "retain", "3600000")
	job := id(cli(t, v, "QPUSH", "jobs", "work"))
	worker := program(t, python(t), "", "testdata/cancelled.py", portOf(t, v.addrs["redis"]), "jobs")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	says := bufio.NewReader(out)
	if claim, err := says.ReadString('\n'); claim != job+"\n" {
		t.Fatalf("the worker claims %q, %v", claim, err)
	}
	if got := strings.Join(strings.Fields(cli(t, v, "QCANCEL", "jobs", job, "77")), ""); got != `["told",null]` {
		t.Errorf("the cancel shows %s", got)
	}
	rest, _ := io.ReadAll(says)
	if err := worker.Wait(); err != nil || !strings.HasPrefix(string(rest), "CANCELLED the packet was cancelled") || !strings.HasSuffix(string(rest), "\n1\n") {
		t.Errorf("the worker ends with %v, and says %s", err, rest)
	}
	v = v.restarted(t, dir)
	shows(t, v, "null", "QSHOW", "jobs", job)
	shows(t, v, `["jobs"]`, "QUEUES")
}

func number64(t *testing.T, text string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("%q is no number", text)
	}
	return n
}

func TestAPoisonPacketDiesWithItsReasonsAndIsRedriven(t *testing.T) {
	t.Parallel()
	for deadLetter, grave := range map[string]string{"": "jobs", "graveyard": "graveyard"} {
		t.Run("in "+grave, func(t *testing.T) {
			dir := t.TempDir()
			v := startVictim(t, dir)
			shows(t, v, `"OK"`, "QSET", "jobs", "max-attempts", "2", "backoff-min", "1", "backoff-max", "1", "dead-letter", deadLetter)
			job := id(cli(t, v, "QPUSH", "jobs", "poison"))
			for attempt, want := range []string{`"delayed"`, `"dead"`} {
				p := packet(t, v, "QCLAIM", "jobs", "BLOCK", "10000")
				shows(t, v, want, "QNACK", "jobs", job, p.number("token"), "REASON", fmt.Sprint("boom ", attempt+1))
				v = v.restarted(t, dir)
			}
			dead := packet(t, v, "QSHOW", grave, job)
			wantState, wantReason := "dead", "boom 2"
			if deadLetter != "" {
				wantState, wantReason = "ready", "dead at attempt 2: boom 2"
			}
			if dead["state"] != wantState || dead["reason"] != wantReason {
				t.Errorf("the packet is %v", dead)
			}
			shows(t, v, "1", "QREDRIVE", grave)
			v = v.restarted(t, dir)
			again := packet(t, v, "QCLAIM", "jobs")
			if again["id"] != job || again.number("attempt") != "1" || again["reason"] != wantReason {
				t.Errorf("the redriven packet is %v", again)
			}
			shows(t, v, "1", "QACK", "jobs", job, again.number("token"))
		})
	}
}

func TestADelayLastsOverAKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	shows(t, v, `"1"`, "QPUSH", "jobs", "soon", "DELAY", "2000")
	shows(t, v, `"2"`, "QPUSH", "jobs", "late", "DELAY", "3600000")
	v = v.restarted(t, dir)
	p := packet(t, v, "QPOP", "jobs", "BLOCK", "20000")
	if waited := time.Now().UnixMilli() - int64(p["enqueued"].(float64)); p["payload"] != "soon" || waited < 2000 {
		t.Errorf("%d ms after its push came %v", waited, p)
	}
	shows(t, v, "[]", "QPOP", "jobs")
	late := packet(t, v, "QSHOW", "jobs", "2")
	if late["state"] != "delayed" || late["not-before"].(float64)-late["enqueued"].(float64) != 3_600_000 {
		t.Errorf("the late packet is %v", late)
	}
}

func TestQSHOWExplainsWhyAPacketIsNotDelivered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	claim := func() string { return packet(t, v, "QCLAIM", "jobs", "CONSUMER", "ann").number("token") }
	shows(t, v, `"OK"`, "QSET", "jobs", "retain", "3600000")
	done := id(cli(t, v, "QPUSH", "jobs", "done"))
	shows(t, v, "1", "QACK", "jobs", done, claim())
	dead := id(cli(t, v, "QPUSH", "jobs", "dead"))
	shows(t, v, `"dead"`, "QNACK", "jobs", dead, claim(), "DEAD", "REASON", "no such address")
	claimed := id(cli(t, v, "QPUSH", "jobs", "claimed"))
	claim()
	delayed := id(cli(t, v, "QPUSH", "jobs", "delayed", "DELAY", "3600000"))
	next := id(cli(t, v, "QPUSH", "jobs", "next"))
	behind := id(cli(t, v, "QPUSH", "jobs", "behind"))
	hidden := id(cli(t, v, "QPUSH", "jobs", "hidden", "PRIO", "0", "KEY", "k"))
	v = v.restarted(t, dir)
	for packetID, want := range map[string]string{
		done:    `done: "ann" acknowledged it; it stays until `,
		dead:    "dead after 1 attempt, because: no such address",
		claimed: `claimed by "ann" until `,
		delayed: "delayed until ",
		next:    "next in line",
		behind:  "behind 1 other packet",
		hidden:  "of priority 0: it is delivered only together with another packet of its key",
	} {
		if why := packet(t, v, "QSHOW", "jobs", packetID)["why"].(string); !strings.HasPrefix(why, want) {
			t.Errorf("a packet is not delivered because %q, want %q", why, want)
		}
	}
}

// As in rfq, consumers crash with what they took, and somebody brings that back. Here it comes back
// to its own place.
func TestTheHarvestOfRFQDoneByTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startVictim(t, dir)
	var ids []string
	for _, tile := range []string{"T32UNE", "T33UVU", "T34XYZ"} {
		ids = append(ids, id(cli(t, v, "QPUSH", "tiles", tile)))
	}
	for _, worker := range []string{"first", "second"} {
		crashing := program(t, python(t), "", "testdata/claims.py", portOf(t, v.addrs["redis"]), "tiles", worker, "hang")
		out, err := crashing.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := crashing.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		_ = crashing.Process.Kill()
		_ = crashing.Wait()
	}
	v = v.restarted(t, dir)
	shows(t, v, "1", "LLEN", "tiles")
	shows(t, v, "0", "QHARVEST", "tiles", "OLDER", "3600000")
	shows(t, v, "2", "QHARVEST", "tiles")
	v = v.restarted(t, dir)
	shows(t, v, "3", "LLEN", "tiles")
	said := strings.Fields(output(t, program(t, python(t), "", "testdata/claims.py", portOf(t, v.addrs["redis"]), "tiles", "third", "ack")))
	var got []string
	for claim := range slices.Chunk(said, 3) {
		got = append(got, claim[0]+" at attempt "+claim[2])
	}
	if want := []string{ids[0] + " at attempt 2", ids[1] + " at attempt 2", ids[2] + " at attempt 1"}; !slices.Equal(got, want) {
		t.Errorf("the third worker got %q, want %q", got, want)
	}
	v = v.restarted(t, dir)
	shows(t, v, "0", "QLEN", "tiles")
}
