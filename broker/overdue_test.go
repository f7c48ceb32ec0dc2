package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// dueWork is a broker where so much is due that what a test asks for has yet to be swept.
type dueWork struct {
	*work
	tx  *broker.Tx
	ids []broker.ID
	sub *broker.Conn // of q and of other
	got inbox
}

const dueIn = 10 * time.Second

func (w *dueWork) push(r broker.PushRequest) {
	w.ids = append(w.ids, w.add(r))
}

// claimed claims the oldest packet of q until a moment that will have come.
func (w *dueWork) claimed() job {
	j := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest}, Lease: dueIn.Milliseconds()})[0]
	return j
}

// told pushes with the id u, and says what became of it.
func (w *dueWork) told(replace bool) string {
	id, told, err := w.tx.PushTold(broker.PushRequest{Queue: []byte("q"), Priority: 5, Unique: []byte("u"), Payload: []byte("again"), Tell: true, Replace: replace})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(told, " ", id == w.ids[0])
}

// plainly pushes with the id u, and says what its id is then.
func (w *dueWork) plainly() string {
	id, err := w.tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 5, Unique: []byte("u")})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("new ", id == w.ids[0])
}

// shown is the state of the first packet.
func (w *dueWork) shown() string {
	f, err := w.tx.Show([]byte("q"), w.ids[0])
	if err != nil || len(f.Details) == 0 {
		return fmt.Sprint("none ", err)
	}
	return f.Details[0].State.String()
}

func counted(n int, err error) string { return fmt.Sprint(n, " ", err) }
func bulked(bk *broker.Bulk, tx *broker.Tx) string {
	_, err := bk.Slice(tx)
	return counted(bk.Done, err)
}

// What is due goes on in slices. Whoever asks before the sweep has come to it is answered by the
// clock, as long after it.
func TestWhatIsDueIsOverForWhoAsksBeforeTheSweep(t *testing.T) {
	q := []byte("q")
	unique := func(r broker.PushRequest) broker.PushRequest { r.Unique = []byte("u"); return r }
	expires := broker.PushRequest{TTL: dueIn, Key: []byte("k")}
	delayed := broker.PushRequest{Delay: dueIn.Milliseconds()}
	settings := func(change func(s *broker.Settings)) func(w *dueWork) {
		return func(w *dueWork) { w.harness.change("q", change) }
	}
	last := func(w *dueWork) {
		settings(func(s *broker.Settings) { s.MaxAttempts = 1 })(w)
		w.push(unique(broker.PushRequest{}))
		w.claimed()
	}
	dead := func(w *dueWork) {
		settings(func(s *broker.Settings) { s.RetainDead = dueIn.Milliseconds() })(w)
		w.push(broker.PushRequest{})
		w.nacked(w.claimed(), broker.Nack{Dead: true}, broker.Dead)
	}
	done := func(w *dueWork) {
		settings(func(s *broker.Settings) { s.Retain = dueIn.Milliseconds() })(w)
		w.push(broker.PushRequest{})
		if err := w.ack(w.claimed()); err != nil {
			t.Fatal(err)
		}
	}
	strayed := func(w *dueWork) {
		w.harness.change("gone", func(s *broker.Settings) { s.DeadLetter = q })
		w.push(broker.PushRequest{Queue: []byte("gone")})
		j := w.claim("gone", broker.ClaimRequest{})[0]
		w.nacked(j, broker.Nack{Dead: true}, broker.Dead)
		w.expireAt("gone", w.now.Load()+dueIn.Milliseconds())
	}
	pause := func(in bool) func(w *dueWork) {
		return func(w *dueWork) {
			w.push(broker.PushRequest{})
			w.do(func(tx *broker.Tx) error { return tx.Pause(q, in, w.now.Load()+dueIn.Milliseconds()) })
		}
	}
	with := func(rs ...broker.PushRequest) func(w *dueWork) {
		return func(w *dueWork) {
			for _, r := range rs {
				w.push(r)
			}
		}
	}
	subscribed := func(w *dueWork) string {
		_ = w.tx.Ready(w.sub, 1)
		w.tx.Settle()
		return fmt.Sprint(w.got.got)
	}
	for name, row := range map[string]struct {
		before func(w *dueWork)
		asks   func(w *dueWork) string
		want   string
	}{
		"TTL, unique push":                {with(unique(expires)), (*dueWork).plainly, "new false"},
		"TTL, unique push that is told":   {with(unique(expires)), func(w *dueWork) string { return w.told(false) }, "new false"},
		"TTL, replace":                    {with(unique(expires)), func(w *dueWork) string { return w.told(true) }, "new false"},
		"window, unique push":             {with(unique(broker.PushRequest{Window: dueIn.Milliseconds()})), (*dueWork).plainly, "new false"},
		"delay, unique push that is told": {with(unique(delayed)), func(w *dueWork) string { return w.told(false) }, "ready true"},
		"delay, replace":                  {with(unique(delayed)), func(w *dueWork) string { return w.told(true) + " " + w.shown() }, "replaced true ready"},
		"lease, unique push": {func(w *dueWork) { with(unique(broker.PushRequest{}))(w); w.claimed() },
			func(w *dueWork) string { return w.told(true) }, "replaced true"},
		"last lease, unique push": {last, (*dueWork).plainly, "new false"},
		"lease behind a TTL, unique push": {func(w *dueWork) { with(unique(expires))(w); w.claimed() },
			(*dueWork).plainly, "new false"},
		"lease of one cancelled, unique push": {func(w *dueWork) {
			with(unique(broker.PushRequest{}))(w)
			w.claimed()
			w.cancelled(w.ids[0], broker.Claimed)
		}, (*dueWork).plainly, "new false"},
		"TTL, show":             {with(expires), (*dueWork).shown, "none <nil>"},
		"delay, show":           {with(delayed), (*dueWork).shown, "ready"},
		"lease, show":           {func(w *dueWork) { with(broker.PushRequest{})(w); w.claimed() }, (*dueWork).shown, "ready"},
		"last lease, show":      {last, (*dueWork).shown, "dead"},
		"retain, show":          {done, (*dueWork).shown, "none <nil>"},
		"retain-dead, show":     {dead, (*dueWork).shown, "none <nil>"},
		"retain-dead, redrive":  {dead, func(w *dueWork) string { ok, err := w.tx.RedrivePacket(q, w.ids[0]); return fmt.Sprint(ok, err) }, "false <nil>"},
		"retain-dead, redrives": {dead, func(w *dueWork) string { return bulked(broker.Redrive(q, 0, nil), w.tx) }, "0 <nil>"},
		"TTL, delete":           {with(expires), func(w *dueWork) string { return counted(w.tx.DeletePackets(q, w.ids)) }, "0 <nil>"},
		"TTL, purge":            {with(expires, broker.PushRequest{}), func(w *dueWork) string { return bulked(broker.Purge(q, broker.Ready), w.tx) }, "1 <nil>"},
		"TTL, move":             {with(expires), func(w *dueWork) string { return counted(w.tx.MovePackets(q, w.ids, []byte("other"))) }, "0 <nil>"},
		"TTL, cancel":           {with(expires), func(w *dueWork) string { s, err := w.tx.Cancel(q, w.ids); return fmt.Sprint(s[0], err) }, "none <nil>"},
		"lease, harvest":        {func(w *dueWork) { with(broker.PushRequest{})(w); w.claimed() }, func(w *dueWork) string { return bulked(broker.Harvest(q, 0, ""), w.tx) }, "0 <nil>"},
		// Nobody else has it yet, so the work need not be done twice.
		"lease, ack": {func(w *dueWork) { with(broker.PushRequest{})(w); w.claimed() }, func(w *dueWork) string {
			return counted(w.tx.Ack(q, w.tx.Receipts(q)))
		}, "1 <nil>"},
		"TTL, priority by key": {with(expires), func(w *dueWork) string {
			err := w.tx.UpdatePriority(broker.UpdatePriorityRequest{Queue: q, Key: []byte("k"), To: func(uint32, bool) uint32 { return 7 }})
			return fmt.Sprint(w.shown(), err)
		}, "none <nil><nil>"},
		"TTL, look at a key": {with(broker.PushRequest{TTL: dueIn, Key: []byte("k"), Priority: 1}, broker.PushRequest{Key: []byte("l")}), func(w *dueWork) string {
			key, ok, err := w.tx.PeekKey(q, broker.Oldest, nil)
			return fmt.Sprintf("%s %v %v", key, ok, err)
		}, "l true <nil>"},
		"pause of pushes": {pause(true), (*dueWork).plainly, "new false"},
		"pause of takes":  {pause(false), func(w *dueWork) string { f, err := w.tx.Pop(q, groups); return counted(len(f.Packets), err) }, "1 <nil>"},
		"time of a name, redrive": {strayed, func(w *dueWork) string {
			ok, err := w.tx.RedrivePacket(q, w.ids[0])
			return fmt.Sprint(ok, err == broker.ErrNoOrigin)
		}, "false true"},
		"time of a name, subscriber": {func(w *dueWork) { with(broker.PushRequest{})(w); w.expireAt("q", w.now.Load()+dueIn.Milliseconds()) }, subscribed, "[]"},
		"TTL, subscriber of two": {with(broker.PushRequest{TTL: dueIn, Key: []byte("k"), Priority: 1}, broker.PushRequest{Payload: []byte("worse"), Priority: 9}, broker.PushRequest{Queue: []byte("other"), Payload: []byte("better"), Priority: 5}),
			subscribed, "[[better]]"},
		"TTL, claim of a batch": {with(expires, broker.PushRequest{}, broker.PushRequest{}), func(w *dueWork) string {
			_, err := w.tx.Claim(q, broker.ClaimRequest{Selection: broker.Selection{Count: 3, Least: 3, MustFind: true}, Lease: 1000})
			return fmt.Sprint(err == broker.ErrFilling)
		}, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &dueWork{work: newWork(t)}
			defer w.close()
			w.sub = w.b.Attach(&w.got, groups)
			w.subscribe(w.sub, 0, "q", "other")
			w.do(func(tx *broker.Tx) error {
				for range 2100 { // some turns come to these first
					if _, err := tx.Push(broker.PushRequest{Queue: []byte("crowd"), Priority: 1, TTL: time.Millisecond}); err != nil {
						return err
					}
				}
				return nil
			})
			row.before(w)
			w.barrier()
			w.pass(dueIn)
			w.do(func(tx *broker.Tx) error {
				w.tx = tx
				if got := row.asks(w); got != row.want {
					t.Errorf("the answer is %q, want %q", got, row.want)
				}
				return nil
			})
			w.restart() // it stays so
		})
	}
}
