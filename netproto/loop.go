package netproto

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// LoopConfig says how a Loop works; zero values mean the defaults.
type LoopConfig struct {
	Logger *slog.Logger
	// Goroutines has each connection read and written by goroutines of its own, as where the system
	// has no epoll. Else the loop does that itself.
	Goroutines bool
	Clock      func() int64 // Unix milliseconds; time.Now if nil
	// Steady is like Clock, but never jumps: leases and waits end by it. Clock if it is nil and Clock
	// is not.
	Steady func() int64
	// Held says whether what was read may be told: where it does not, another machine may have decided
	// something since. Then the loop ends as after a commit that fails. nil: always. What leaves with
	// a batch needs no such leave.
	Held func() bool
	// Tell gets events when what they tell is on disk, in the loop's goroutine; nil: nobody.
	Tell func(events []broker.Event)
	// Turned is called at the end of each turn, in the loop's goroutine, with how long it took; nil:
	// nobody.
	Turned func(took time.Duration)
}

// ErrNotHeld: LoopConfig.Held did not let a reply leave. What it would have said is not known to be
// so any more.
var ErrNotHeld = errors.New("another machine may own the queues")

// Loop drives a machine. One goroutine owns that, and all sessions. Each of its turns
//
//	polls    which connections have sent something, until something is due
//	runs     their sessions, in the order of fair
//	commits  what they changed: one batch, one sync
//	writes   what the sessions replied
//
// So replies leave only when what they report is on disk. What comes in during a turn waits in the
// kernel: that is the group commit.
type Loop struct {
	turning
	disk   broker.Disk
	config LoopConfig
	poll   poller
	micros func() int64  // the steady clock, in microseconds
	failed chan struct{} // closed when a commit has failed
	ended  chan struct{} // closed when the goroutine has ended
	// computing has a place for each TLS handshake that computes. They leave processors to the loop.
	computing chan struct{}
	err       error // why it ended; to be read behind ended

	// What others want of the loop.
	mu      sync.Mutex
	posts   []func()
	told    []*fed // links that have something to say
	closing bool
	over    bool // nothing is looked at any more
}

// turning is what the loop's goroutine owns until it ends. Who knows the loop then keeps nothing of
// the queues.
type turning struct {
	machine *broker.Machine
	tx      *broker.Tx // of the present turn
	now     int64      // on the steady clock, in milliseconds
	looked  int64      // the same, when the clock was looked at last
	stood   int64      // how long that clock has stood still, in milliseconds, see stand
	runs    int64      // until when it does not, on itself
	served  int        // requests since then, see Peer.Late
	conns   map[*conn]struct{}
	busy    bool    // the machine has work that nobody waits for
	next    []*conn // have more to do, whatever comes
	ready   []*conn // have come for this turn
	fair    fair    // and those that wait from earlier ones
	late    []*conn // wait until the storage wants data, see Later
	touched []*conn // have got bytes to send since the last commit
	leaving []*conn // of these, in release
	answers []answer
	evicted []*conn // hold too much
	holding []*conn // have bytes that wait for the batch that finds no room
	stuck   *broker.Batch
	retryAt int64 // when that is tried again, on the steady clock
	frames, writes,
	lingering timeline
	arena   []byte // where bytes are read to
	hearers []Hearer
	hears   bool // one of them wants to be called soon
}

// StartLoop drives the machine until Close or a commit that fails.
func StartLoop(m *broker.Machine, disk broker.Disk, c LoopConfig) (*Loop, error) {
	poll, err := newPoller(c.Goroutines)
	if err != nil {
		return nil, fmt.Errorf("begin to wait for connections: %w", err)
	}
	l := makeLoop(m, disk, c, poll)
	go l.run() // ends when Close or a failed commit says so
	return l, nil
}

func makeLoop(m *broker.Machine, disk broker.Disk, c LoopConfig, poll poller) *Loop {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	l := &Loop{
		turning: turning{machine: m, conns: make(map[*conn]struct{}), arena: make([]byte, maxReadBuffer)},
		disk:    disk, config: c, poll: poll,
		failed: make(chan struct{}), ended: make(chan struct{}),
		computing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
	switch {
	case c.Clock == nil:
		begun := time.Now() // from which time.Since never jumps
		l.config.Clock = func() int64 { return time.Now().UnixMilli() }
		l.micros = func() int64 { return begun.UnixMicro() + time.Since(begun).Microseconds() }
	case c.Steady == nil:
		l.micros = func() int64 { return 1000 * c.Clock() }
	default:
		l.micros = func() int64 { return 1000 * c.Steady() }
	}
	return l
}

// Failed is closed when a batch could not be committed. Nothing more is accepted or answered. The
// process should exit: a sync is never tried again, and the next start recovers from the disk.
func (l *Loop) Failed() <-chan struct{} { return l.failed }

// Ended is closed when the loop has ended.
func (l *Loop) Ended() <-chan struct{} { return l.ended }

// Do has the loop run fn in one of its turns, and returns its error when what fn changed is on
// disk. The loop's own goroutine must not call it. ErrClosed when the loop has ended: what fn
// changed may be on disk.
func (l *Loop) Do(fn func(tx *broker.Tx) error) error {
	done := make(chan error, 1)
	l.post(func() {
		if l.isOver() {
			done <- broker.ErrClosed
			return
		}
		made := l.tx.Made()
		err := fn(l.tx)
		l.answers = append(l.answers, answer{done, err, l.tx.Made() > made})
	})
	return <-done
}

// answer holds what Do returns. It leaves with the replies of its turn.
type answer struct {
	to      chan<- error
	err     error
	changes bool // fn made changes
}

// Survey has the loop look at all queues, a slice in each of some turns, in each of which it also
// runs see. take gets the slices, outside of the loop. It returns what Do does. What emptied means,
// Tx.Survey says.
func (l *Loop) Survey(emptied bool, see func(tx *broker.Tx), take func(slice []broker.Surveyed)) error {
	var slice []broker.Surveyed
	for cursor, more := 0, true; more; more = cursor != 0 {
		err := l.Do(func(tx *broker.Tx) error {
			slice, cursor = tx.Survey(cursor, slice[:0], emptied)
			see(tx)
			return nil
		})
		if err != nil {
			return err
		}
		take(slice)
	}
	return nil
}

// post has the loop run fn in one of its turns, or runs it when the loop has ended.
func (l *Loop) post(fn func()) {
	l.mu.Lock()
	over := l.over
	if !over {
		l.posts = append(l.posts, fn)
		l.poll.wake()
	}
	l.mu.Unlock()
	if over {
		fn()
	}
}

func (l *Loop) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// tell notes that a link has something to say. Any goroutine may call it.
func (l *Loop) tell(f *fed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.told = append(l.told, f)
		l.poll.wake()
	}
}

// Close commits what is open and stops. It returns the error that ended the loop before, if any.
func (l *Loop) Close() error {
	l.mu.Lock()
	if l.closing = true; !l.over {
		l.poll.wake()
	}
	l.mu.Unlock()
	<-l.ended
	return l.err
}

// run is the loop's goroutine.
func (l *Loop) run() {
	for closing := false; !closing && l.err == nil; {
		closing = l.round()
	}
	l.end()
}

// round is one turn from its beginning to its end. closing says that it is the last.
func (l *Loop) round() (closing bool) {
	posts, closing := l.wait()
	begun := l.micros()
	l.turn()
	l.busy = l.machine.Work() // before busy clients fill the batch
	for _, fn := range posts {
		fn()
	}
	l.evict()
	l.serve()
	l.expire()
	l.commit()
	took := time.Duration(l.micros()-begun) * time.Microsecond
	if l.config.Turned != nil {
		l.config.Turned(took)
	}
	l.stand(took)
	return closing
}

// stand has the steady clock stand still for a turn that took long. Clients could not say meanwhile
// that they go on: leases and waits end so much later, and the next turn reads what they have said
// before it ends any. Where a disk is always slow, the clock goes slower by an eighth.
func (l *Loop) stand(took time.Duration) {
	if ms := took.Milliseconds(); took > standsAfter && l.now >= l.runs {
		l.stood += ms
		l.machine.Stood(ms)
		l.runs = l.now + runsFor*ms
	}
}

// end commits what is open, and gives everything up.
func (l *Loop) end() {
	defer close(l.ended)
	for more := true; more && l.err == nil; {
		l.turn()
		stuck := l.stuck != nil
		more = l.machine.Close() || stuck
		l.retryAt = l.now // there is no later try
		if l.commit(); l.stuck != nil && l.err == nil {
			l.err = fmt.Errorf("the last batch is not written: %w", broker.ErrDiskFull)
		}
	}
	for c := range l.conns {
		c.close()
	}
	for _, a := range l.answers {
		a.to <- broker.ErrClosed
	}
	l.mu.Lock()
	l.over, l.turning = true, turning{}
	posts := l.posts
	l.poll.close()
	l.mu.Unlock()
	for _, fn := range posts {
		fn()
	}
}

// turn begins a turn.
func (l *Loop) turn() {
	now, steady := l.config.Clock(), l.steady()
	l.now, l.looked, l.served = steady, steady, 0
	l.tx = l.machine.Turn(now, steady, l.disk.Space())
	if err := l.tx.Space().Lost; err != nil && l.err == nil {
		l.config.Logger.Error("data folder is lost: stopping at once", "error", err)
		l.fail(err)
	}
	if l.tx.Space().Wait > 0 {
		return
	}
	for _, c := range l.late {
		c.pause = none
		l.ready = c.enlist(l.ready)
	}
	clear(l.late)
	l.late = l.late[:0]
}

// steady is the steady clock in milliseconds.
func (l *Loop) steady() int64 { return l.micros()/1000 - l.stood }

// wait returns when there is something to do, and leaves in ready the connections that have.
func (l *Loop) wait() (posts []func(), closing bool) {
	l.ready, l.next = append(l.ready[:0], l.next...), l.next[:0]
	l.ready = l.poll.wait(l.sleep(), l.ready)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.told {
		f.ask()
		l.ready = f.c.enlist(l.ready)
	}
	l.told = l.told[:0]
	posts, l.posts = l.posts, nil
	return posts, l.closing
}

// sleep is how long the loop has nothing to do by itself.
func (l *Loop) sleep() time.Duration {
	if l.busy || len(l.ready)+len(l.touched)+len(l.evicted) > 0 || l.fair.waits() || l.tx == nil {
		return 0
	}
	wait := l.machine.Next()
	if len(l.late) > 0 {
		wait = min(wait, max(1, (l.tx.Space().Wait+time.Millisecond-1).Milliseconds()))
	}
	if l.stuck != nil {
		wait = min(wait, l.retryAt-l.now)
	}
	if l.hears {
		wait = min(wait, hearPause.Milliseconds())
	}
	for _, t := range [...]*timeline{&l.frames, &l.writes, &l.lingering} {
		wait = min(wait, t.next()-l.now)
	}
	return time.Duration(max(0, min(wait, longestSleep.Milliseconds()))) * time.Millisecond
}

// serve gives connections that are ready their turn. It ends when all had it, the batch is full, or
// others should be heard. It ends, too, when so many replies were made that they should leave, or
// show who must go.
func (l *Loop) serve() {
	l.fair.begin(l.ready)
	begun := l.micros()
	for at, replies := begun, 0; at-begun < maxTurn.Microseconds() && replies <= maxTurnReplies && !l.tx.Full(); {
		c := l.fair.next()
		if c == nil {
			break
		}
		c.listed = false
		before, from := c.length()-c.sent+c.owed, at
		c.turn()
		made := max(0, c.length()-c.sent+c.owed-before)
		at = l.micros()
		l.fair.charge(c, at-from, int64(made))
		replies += made
	}
	l.fair.end()
}

// evict ends the connections that hold too much.
func (l *Loop) evict() {
	for i := 0; i < len(l.evicted); i++ { // the end of one may show another
		l.evicted[i].evict()
	}
	clear(l.evicted)
	l.evicted = l.evicted[:0]
}

// again gives a connection another turn, whatever comes.
func (l *Loop) again(c *conn) { l.next = c.enlist(l.next) }

// commit brings what this turn changed to disk, and lets the replies leave.
func (l *Loop) commit() {
	batch, retry := l.stuck, l.stuck != nil
	switch {
	case l.err != nil:
		return
	case !retry:
		batch = l.machine.Take()
	case l.now < l.retryAt:
		l.releaseIfHeld()
		return
	}
	if batch == nil {
		l.releaseIfHeld()
		return
	}
	switch err := l.disk.Apply(batch); {
	case err == nil:
		l.machine.Done()
		l.stuck = nil
	case errors.Is(err, broker.ErrDiskFull):
		if !retry {
			l.config.Logger.Error("disk is full: waiting for free space, nothing is accepted meanwhile", "error", err)
			l.machine.Stuck()
			l.stuck = batch
			for _, c := range l.touched {
				c.holding, c.touched = true, false
			}
			l.holding, l.touched = append(l.holding, l.touched...), l.touched[:0]
		}
		l.retryAt = l.now + fullRetry.Milliseconds()
		l.releaseIfHeld() // as in a turn without a batch
		return
	default:
		l.config.Logger.Error("commit failed: stopping, the next start recovers from disk", "error", err)
		l.fail(fmt.Errorf("commit failed: %w", err))
		return
	}
	for _, c := range l.holding {
		c.holding = false
		c.touch()
	}
	l.holding = l.holding[:0]
	l.release()
}

// fail ends the loop with this turn, of which nothing leaves.
func (l *Loop) fail(err error) {
	l.err = err
	close(l.failed)
}

// tellEvents hands out the events of what is on disk. They leave with the replies.
func (l *Loop) tellEvents() {
	events := l.machine.Events()
	if len(events) > 0 && l.config.Tell != nil {
		l.config.Tell(events)
	}
	l.hears = false
	for _, h := range l.hearers {
		l.hears = h.Hear(l.tx.Now(), events) || l.hears
	}
}

// releaseIfHeld is release where no batch of this turn was committed.
func (l *Loop) releaseIfHeld() {
	if l.config.Held == nil || l.config.Held() {
		l.release()
		return
	}
	l.config.Logger.Warn("another machine may own the queues: stopping")
	l.err = ErrNotHeld
	close(l.failed)
}

// release lets leave what was added since the last commit: events, replies, answers. Nothing gets
// out by another way. No call is settled meanwhile, so nothing is added that is not on disk.
func (l *Loop) release() {
	l.tellEvents()
	kept := l.answers[:0]
	for _, a := range l.answers {
		if a.changes && l.stuck != nil {
			kept = append(kept, a)
		} else {
			a.to <- a.err
		}
	}
	l.answers = kept
	l.touched, l.leaving = l.leaving[:0], l.touched
	for _, c := range l.leaving {
		if c.touched = false; !c.holding {
			c.free = c.length()
		}
	}
	for _, c := range l.leaving {
		c.send()
		c.watch()
	}
}

// expire ends the connections whose time is over.
func (l *Loop) expire() {
	for c := l.frames.due(l.now); c != nil; c = l.frames.due(l.now) {
		c.finish(fmt.Errorf("frame is not complete %v after its first byte", c.server.config.FrameTimeout))
	}
	for c := l.writes.due(l.now); c != nil; c = l.writes.due(l.now) {
		c.finish(errNotRead)
	}
	for c := l.lingering.due(l.now); c != nil; c = l.lingering.due(l.now) {
		c.close()
	}
}
