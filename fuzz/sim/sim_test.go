package sim

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

var ops = flag.Int("sim.ops", 300, "how many operations a seed of the simulation has")

// world is a server on a simulated disk, its clients, and the model of what they should see.
type world struct {
	*simulated.Run
	model *model.Server
	r     *rand.Rand
	slow  *rand.Rand // says which syncs of a turn take long
	tools *rand.Rand // says what is done between two processes
	disk  *simulated.Disk

	s       *storage.Store // nil: it did not start
	coated  daemon.Store   // s, or a mutant of it
	options storage.Options
	loop    netproto.Stepped
	server  *netproto.Server
	fate
	stuck              bool // a batch waits for room
	suspect            bool // before the start a sync has failed, and no batch has come since
	turning            bool
	serving            watched // that carries out requests
	nested             int     // transactions of those that waited meanwhile
	doors              []*door // the small protocols
	turnAt, turnSteady int64
	stood, runs        int64   // how long the steady clock has stood still since the start, and until when it does not
	turnBegan          int64   // by that clock
	skew               int64   // of the clock on the wall
	skews              []int64 // the next ones, if they are not drawn

	clients  map[string]*client
	looker   *client // who looks at all
	ports    uint16
	payloads int
	swarm    swarm
	drawn    map[string]bool   // payloads
	defined  map[string]uint32 // queues as the disk has them, by their names
	named    map[uint32]string // their names, by number
	flooded  bool              // once: a look shows a thousand packets at most

	failing int                                 // in turns one read of so many fails; 0: none
	loose   func(words []string, got, want any) // judges replies; nil: they are what the model says

	come    map[uint64]*model.Server // by batch: what a start must show
	acked   uint64                   // the last batch that was answered
	durable uint64                   // the last one that a power cut may not take
	least   uint64                   // the earliest that the next start may show
	onDisk  int                      // of the changes of the model
	told    int64                    // no number below this one may be given again
	waits   int                      // of the store for its background, in this operation
	turns   int                      // since the start
	closed  int                      // the turn in which a connection closed: who waited behind it is served in the next
	op      int                      // the number of the operation
	notes   []note                   // what happened last

	tails map[string]*tail // by queue; nil: none is tailed yet

	f *figures
}

type figures struct {
	seeds, ops, turns, commands, calls, cuts, kills, faults, starts, full, ahead, slow int64
	unread, damaged, rotten, refused, verified, compacted, loaded, restored            int64
	did                                                                                map[string]int
}

// all are the clients, in the order of their addresses.
func (w *world) all() (all []*client) {
	for _, name := range slices.Sorted(maps.Keys(w.clients)) {
		all = append(all, w.clients[name])
	}
	return all
}

// note is something that has happened. It is made to a text for who reads of a failure alone.
type note struct {
	op     int
	format string
	args   []any
}

func (n note) String() string { return fmt.Sprintf("%d: ", n.op) + fmt.Sprintf(n.format, n.args...) }

// lazy is a value that is a text once somebody reads it.
type lazy struct{ v any }

func (l lazy) String() string { return fmt.Sprint(l.v) }

// note says something, and notes it for who reads of a failure.
func (w *world) note(format string, args ...any) {
	n := note{w.op, format, args}
	w.Say("%v", n)
	w.notes = append(w.notes[max(0, len(w.notes)-24):], n)
}

// Fatalf ends the seed, and says what happened before.
func (w *world) Fatalf(format string, args ...any) {
	w.Helper()
	var last []string
	for _, n := range w.notes {
		last = append(last, n.String())
	}
	w.T.Fatalf("operation %d of seed %d: %s\nWhat happened last, by operations:\n%s", w.op, w.Seed, fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

// over says that the process serves nobody any more.
func (w *world) over() bool { return w.dead || w.ended || w.s == nil || w.server == nil }

// turn makes a turn of the loop.
func (w *world) turn() {
	if w.over() {
		return
	}
	w.f.turns++
	w.turns++
	w.turning = true
	begun := time.Now()
	err := w.loop.Turn()
	if took := time.Since(begun).Milliseconds(); took > 250 && w.turnBegan >= w.runs { // the clock stands still for it, but for an eighth of all time
		w.stood += took
		w.runs = w.turnBegan + 8*took
	}
	w.turning = false
	if changes := w.model.Changes(); err == nil && !w.dead && !w.stuck && changes > w.onDisk {
		if why := w.needsBatch(); why != "" {
			w.Fatalf("there is no batch of what has changed: %s", why)
		}
		w.onDisk = changes
	}
	if text := w.model.Neglected(); text != "" && w.closed != w.turns && err == nil && !w.dead && !w.stuck {
		w.Fatalf("after a turn there waits %s\nThe model has\n%s", text, w.model.Dump())
	}
	w.collect()
	if err == nil && !w.dead && !w.stuck && w.model.Changes() == w.onDisk && w.loose == nil {
		w.compareTails()
	}
	if err != nil {
		w.note("the loop ends: %v", err)
		if w.ended = true; !w.within(err) {
			w.Fatalf("the loop ended: %v", err)
		}
	}
}

// needsBatch says why what has changed since the last batch on the disk needs one, empty if it does
// not: it came and went in one turn.
func (w *world) needsBatch() string {
	got, want := w.model.Stored(w.turnAt), w.come[w.acked].Stored(w.turnAt)
	if got == want {
		return ""
	}
	return fmt.Sprintf("there is\n%s\nand batch %d has\n%s", got, w.acked, want)
}

// wait is what the store calls where it waits for its background.
func (w *world) wait() {
	if w.waits++; w.waits > 1000 {
		w.Fatalf("the store waits for ever")
	}
	time.Sleep(100 * time.Millisecond)
	for _, what := range []storage.Step{storage.StepFlush, storage.StepMerge, storage.StepHousekeep, storage.StepLook} {
		if w.step(what) {
			return
		}
	}
}

// step does a piece of the store's background.
func (w *world) step(what storage.Step) (worked bool) {
	upto := w.s.Control().Batch
	worked = w.s.Step(what)
	if worked {
		w.Say("step %d", what)
	}
	if what == storage.StepSync && w.options.Sync.String() != "never" && !w.dead && !w.hurt {
		w.durable = max(w.durable, upto)
	}
	return worked
}

// look compares all that there is.
func (w *world) look() {
	var commands [][]string
	dbs := 1
	if w.swarm.second {
		dbs = 2
	}
	all := queues
	if w.isSmall() {
		all = append(slices.Clone(queues), model.Board)
	}
	for db := range dbs {
		if w.swarm.second {
			commands = append(commands, []string{"SELECT", fmt.Sprint(db)})
		}
		for _, q := range all {
			commands = append(commands, []string{"QLIST", q, "COUNT", "1000"}, []string{"QSTAT", q}, []string{"QGET", q}, []string{"QSHARES", q}, []string{"QLEN", q})
		}
		for _, name := range slices.Concat(strs, hashes, queues) {
			commands = append(commands, []string{"GET", name}, []string{"HGETALL", name}, []string{"PEXPIRETIME", name}, []string{"TYPE", name})
		}
		commands = append(commands, []string{"KEYS", "*"}, []string{"DBSIZE"})
	}
	w.send(w.looker, commands)
	for range 100 {
		if w.turn(); w.over() {
			return
		}
		if n := w.model.Over(); len(w.looker.sent) == 0 && w.turns > 20 && !w.hurt && n > 0 {
			w.Fatalf("%d packets whose time was over at the start are still on the disk", n)
		}
		if len(w.looker.sent) == 0 {
			return
		}
	}
	w.Fatalf("nobody answers %q", w.looker.sent)
}

// traffic has a client send something, or do something else.
func (w *world) traffic() {
	all := w.all()
	all = slices.DeleteFunc(all, func(c *client) bool { return c == w.looker || c.hungUp || c.door != nil })
	if len(all) < 3 {
		all = append(all, w.connect())
	}
	c := pick(w, all...)
	switch n := w.r.IntN(40); {
	case n < 2:
		c.stalls = !c.stalls
		w.note("%s stalls: %v", c.name, c.stalls)
		c.wire.Stall(c.stalls)
		return
	case n < 3:
		w.note("%s hangs up", c.name)
		c.hungUp = true
		c.wire.HangUp()
		return
	}
	var commands [][]string
	for range 1 + w.r.IntN(4) {
		commands = append(commands, w.command(c))
	}
	bulk := slices.ContainsFunc(commands, func(c []string) bool { return c[0] == "QREDRIVE" && len(c) > 3 })
	switch n := w.r.IntN(40); {
	case n == 0 && w.swarm.second:
		commands = append([][]string{{"SELECT", fmt.Sprint(w.r.IntN(2))}}, commands...)
	case n == 1:
		commands = append([][]string{w.byRow(c, "WATCH")}, commands...)
	case n == 2:
		commands = append(commands, []string{pick(w, "UNWATCH", "DISCARD", "EXEC", "MULTI")})
	}
	if len(commands) > 1 && !bulk && w.chance(6) {
		commands = append(append([][]string{{"MULTI"}}, commands...), []string{"EXEC"})
	}
	w.send(c, commands)
}

// ahead has a start under a clock that is ahead find more packets over than a turn sweeps. The
// clock is put right at once, and what comes then lies among them.
func (w *world) ahead() {
	if w.flooded || w.skew != 0 {
		return
	}
	for _, c := range w.all() {
		if slices.ContainsFunc(c.sent, func(words []string) bool { return words[0] == "LRANGE" }) { // its reply would leave in parts
			return
		}
	}
	w.flooded = true
	words := []string{"QMPUSH", queues[0], "600"}
	for i := range 600 {
		words = append(words, fmt.Sprint("f", i))
		w.drawn[words[3+i]] = true
	}
	commands := [][]string{append(words, "PRIO", "1", "TTL", "3000000")}
	for range 4 {
		commands = append(commands, []string{"QPUSH", queues[0], w.payload(), "PRIO", pick(w, "2", "3"), "TTL", "3000000"})
	}
	c := w.connect()
	w.send(c, commands)
	for range 20 {
		w.turn()
	}
	w.skews = []int64{3_600_000, 0}
	if w.restart(); !w.over() && w.chance(2) {
		w.drawFate(60)
	}
	for range 4 {
		if !w.over() {
			w.f.ahead++
			lives := []string{"QPUSH", queues[0], w.payload(), "PRIO", pick(w, "1", "2", "3"), "TTL", "1000000"}
			w.send(w.connect(), [][]string{w.byRow(w.looker, "QPUSH"), lives, w.byRow(w.looker, "QPUSH")})
		}
		w.turn()
		for _, what := range []storage.Step{storage.StepHousekeep, storage.StepFlush} { // a sweep reads tables
			time.Sleep(time.Minute)
			if !w.over() {
				w.step(what)
			}
		}
	}
	if w.chance(2) {
		w.restart()
	}
}

// drop drops a queue of more packets than go at once, and ends amid what deletes them.
func (w *world) drop() {
	words := []string{"QMPUSH", ends, "200"}
	for i := range 200 {
		words = append(words, fmt.Sprint("f", i))
	}
	c := w.connect()
	w.send(c, [][]string{words})
	for range 2 + w.r.IntN(3) {
		w.turn()
	}
	if !w.over() {
		w.drawFate(20)
		w.send(c, [][]string{{"QDROP", ends}})
	}
	for range 6 {
		w.turn()
	}
	w.restart()
}

// once does one operation.
func (w *world) once() {
	w.f.ops++
	w.waits = 0
	if w.over() {
		w.restart()
		return
	}
	if w.isSmall() && w.chance(3) {
		w.small()
		return
	}
	switch n := w.r.IntN(200); {
	case n < 110:
		w.traffic()
		for range w.r.IntN(4) {
			w.turn()
		}
	case n < 140:
		w.step(storage.Step(w.r.IntN(int(storage.Steps))))
	case n < 160 && w.swarm.exact && w.chance(2):
		w.lapse()
		w.turn()
	case n < 160:
		time.Sleep(time.Duration(w.r.Int64N(int64(pick(w, 1500*time.Millisecond, 1500*time.Millisecond, 20*time.Second)))))
		w.turn()
	case n < 166:
		w.look()
	case n < 168:
		w.drawSkew()
		w.turn()
	case n < 169:
		if w.chance(3) {
			w.drop()
		} else {
			w.ahead()
		}
	case n < 180:
		if w.endAt == 0 {
			w.drawFate(40)
		}
	case n < 183:
		w.restart()
	case n < 188:
		if w.failAt == 0 {
			w.drawFault()
		}
	case n < 192:
		w.room()
	default:
		w.turn()
	}
}

// room makes the disk nearly full, or large again.
func (w *world) room() {
	if w.chance(2) {
		w.disk.Room(0)
		return
	}
	w.hurt = true
	w.f.full++
	w.disk.Room(w.disk.Used() + w.r.Int64N(2<<20))
}

// newWorld makes a disk, without a server. What it has ends with leave.
func newWorld(run *simulated.Run, f *figures) *world {
	w := &world{Run: run, model: model.New(), r: rand.New(rand.NewPCG(run.Seed, 3)), slow: rand.New(rand.NewPCG(run.Seed, 5)), tools: rand.New(rand.NewPCG(run.Seed, 9)), f: f, clients: map[string]*client{}, ports: 1000, drawn: map[string]bool{}, defined: map[string]uint32{}, named: map[uint32]string{}}
	f.seeds++
	w.drawSwarm()
	w.options = storage.Options{Stepped: w.wait, Window: pick(w, int64(16<<10), 64<<10, 256<<10), Sync: w.drawSync()}
	w.come = map[uint64]*model.Server{0: w.model.Clone()}
	w.must("a folder", os.MkdirAll(w.at(""), 0o700))
	w.mount(w.r)
	return w
}

// leave gives the world up.
func (w *world) leave() {
	w.disk.Freeze()
	w.giveUp()
	w.disk.Unmount()
}

// simulate plays a seed.
func simulate(run *simulated.Run, f *figures) {
	w := newWorld(run, f)
	defer w.leave()
	if w.chance(3) {
		w.drawFate(25)
	}
	w.start(true)
	for w.op = range *ops {
		w.once()
	}
	if w.unread(); w.chance(2) {
		w.rot()
	}
	w.Say("the end")
}

func TestSimulation(t *testing.T) {
	f := figures{did: map[string]int{}}
	begun := time.Now()
	simulated.Play(t, 100, func(run *simulated.Run) { simulate(run, &f) })
	for _, word := range model.Rules() {
		if f.seeds >= 100 && f.did[word] == 0 {
			t.Errorf("no client has sent %s", word)
		}
	}
	if f.seeds >= 100 && min(f.cuts, f.kills, f.faults, f.full, f.ahead, f.slow, f.unread, f.damaged, f.verified, f.compacted, f.loaded, f.restored) == 0 {
		t.Error("something never happens")
	}
	t.Logf("%+v in %v", f, time.Since(begun).Round(time.Millisecond))
}

// A seed that fails must fail again: the same calls come in the same order, with the same bytes.
func TestASeedDoesTheSameAgain(t *testing.T) {
	for seed := range uint64(3) {
		var traces [2][]string
		for i := range traces {
			traces[i] = simulated.Trace(t, 1000+seed, func(run *simulated.Run) { simulate(run, &figures{did: map[string]int{}}) })
		}
		for i, line := range traces[0] {
			if i >= len(traces[1]) || line != traces[1][i] {
				t.Fatalf("seed %d: line %d is %q, and then %q", 1000+seed, i, line, traces[1][min(i, len(traces[1])-1)])
			}
		}
		if len(traces[0]) < 1000 || len(traces[0]) != len(traces[1]) {
			t.Fatalf("seed %d says %d lines, and then %d", 1000+seed, len(traces[0]), len(traces[1]))
		}
	}
}
