package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// phase is how far a run is.
type phase int32

const (
	opening    phase = iota // the folder
	recovering              // what is in it
	following               // another machine, which decides
	serving
	draining
)

const (
	pulsePause = time.Second
	// stuckAfter is how long the loop may be busy with one turn.
	stuckAfter = 10 * time.Second
	// hungAfter is how long it may wait for the disk meanwhile. A server that starts anew would wait
	// for that, too.
	hungAfter = 5 * time.Minute
)

// health is how a run goes. Run says what it does, the operator's port and the supervisor ask. Any
// goroutine may call its methods.
type health struct {
	phase    atomic.Int32
	read, of atomic.Int64 // records that recovery has read, and about how many there are
	served   chan struct{}
	up       sync.Once                   // closes served
	follows  atomic.Pointer[Leader]      // of a machine that follows; set before that phase
	held     atomic.Pointer[func() bool] // Term.Held; nil: a machine alone; set before serving
	got      atomic.Int64                // when recovery or the loop got on last, Unix nanoseconds
	onDisk   atomic.Bool                 // the loop waits for it
	pulse    atomic.Pointer[pulse]       // the last one; nil unless a loop runs
	spare    atomic.Int64                // bytes of memory that packets have left to those that come
}

// pulse holds what the loop said at a moment.
type pulse struct {
	at      time.Time
	space   storage.Space
	refuses error // why pushes are refused because of the disk or the memory; nil if they are not
}

func newHealth() *health { return &health{served: make(chan struct{})} }

// recover notes how many records will be read.
func (h *health) recover(c content.Control) {
	h.of.Store(int64(c.Live + c.Keys + c.Deliveries))
	h.getOn()
	h.phase.Store(int32(recovering))
}

// getOn says that recovery or the loop gets on.
func (h *health) getOn() { h.got.Store(time.Now().UnixNano()) }

// Leader names the machine that owns the queues, while this one follows. The error says why clients
// are not served by way of this one.
type Leader func() (name string, err error)

// follow says that the server follows another machine.
func (h *health) follow(leader Leader) {
	h.follows.Store(&leader)
	h.enter(following)
}

// serve says that the server serves, from the loop's first turn on, and feels the pulse of the loop
// until that ends.
func (h *health) serve(loop *netproto.Loop, t Term) {
	_ = loop.Do(h.feel)
	h.pulse.Store(&pulse{at: time.Now()})
	if t.Held != nil {
		h.held.Store(&t.Held)
	}
	h.enter(serving)
	go func() { // ends a pause after the loop at the latest
		for loop.Do(h.feel) == nil {
			time.Sleep(cmp.Or(t.Pulse, pulsePause))
		}
	}()
}

// enter says that the server is of use from here on.
func (h *health) enter(p phase) {
	h.phase.Store(int32(p))
	h.up.Do(func() {
		close(h.served)
		tell(systemd.SdNotifyReady)
	})
}

func (h *health) feel(tx *broker.Tx) error {
	h.getOn()
	h.spare.Store(tx.FreeBytes())
	h.pulse.Store(&pulse{time.Now(), tx.Space(), tx.CanStore()})
	return nil
}

// rest says that the loop has ended, and nothing has a pulse until the next one serves.
func (h *health) rest() {
	h.phase.CompareAndSwap(int32(serving), int32(opening))
	h.pulse.Store(nil)
}

// drain says that the server takes no more connections, and ends within so long.
func (h *health) drain(within time.Duration) {
	h.phase.Store(int32(draining))
	tell("%s\nEXTEND_TIMEOUT_USEC=%d", systemd.SdNotifyStopping, (within + moreTime).Microseconds())
}

// Served implements admin.Health, as those below do.
func (h *health) Served() <-chan struct{} { return h.served }

func (h *health) Live() error {
	if h.onDisk.Load() {
		return h.turns(hungAfter)
	}
	return h.turns(stuckAfter)
}

// turns returns an error if the loop has been busy with one turn for longer than that.
func (h *health) turns(within time.Duration) error {
	p := h.pulse.Load()
	if p == nil || time.Since(p.at) <= within {
		return nil
	}
	silent := time.Since(p.at).Round(time.Second)
	if h.onDisk.Load() {
		return fmt.Errorf("stuck: the disk has not answered for about %v", silent)
	}
	return fmt.Errorf("stuck: the loop has been busy with one turn for %v", silent)
}

func (h *health) Owns() error {
	switch phase(h.phase.Load()) {
	case serving:
		if held := h.held.Load(); held != nil && !(*held)() {
			return netproto.ErrNotHeld
		}
		return nil
	case following:
		name, err := (*h.follows.Load())()
		if err == nil {
			err = fmt.Errorf("following: %s owns the queues", name)
		}
		return err
	}
	return h.Ready()
}

func (h *health) Ready() error {
	switch phase(h.phase.Load()) {
	case opening:
		return errors.New("starting: the data folder is being opened")
	case recovering:
		read := h.read.Load()
		return fmt.Errorf("recovering: %d of about %d records are read", read, max(read, h.of.Load()))
	case following:
		_, err := (*h.follows.Load())()
		return err
	case draining:
		return errors.New("draining: the server takes no more connections, and will end")
	}
	if err := h.turns(stuckAfter); err != nil {
		return err
	}
	if err := h.refusal(); errors.Is(err, broker.ErrStopped) { // who takes makes room: pushes alone are no reason
		return err
	}
	return nil
}

func (h *health) Stores() error { return cmp.Or(h.Ready(), h.refusal()) }

// refusal is why pushes are refused because of the disk or the memory, as of the last pulse.
func (h *health) refusal() error {
	p := h.pulse.Load()
	switch {
	case p == nil || p.refuses == nil:
		return nil
	case errors.Is(p.refuses, broker.ErrNoMemory):
		return fmt.Errorf("%w (%d of %d bytes are needed)", p.refuses, p.space.Memory.Used, p.space.Memory.Limit)
	}
	return fmt.Errorf("%w (%d of %d bytes are free)", p.refuses, p.space.Free, p.space.Total)
}
