package storage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
	"pgregory.net/rapid"
)

func drawDelivery(t *rapid.T, identity uint64) content.Delivery {
	moments := rapid.SampledFrom([]int64{0, 0, 1, -200, 1_800_000_000_123, 1<<63 - 1, -1 << 63})
	d := content.Delivery{
		Identity:   identity,
		State:      content.State(rapid.IntRange(int(content.Ready), int(content.Done)).Draw(t, "state")),
		Until:      moments.Draw(t, "until"),
		Attempts:   rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32()).Draw(t, "attempts"),
		Token:      rapid.SampledFrom([]uint64{0, 1, 1<<63 + 5, 1<<64 - 1}).Draw(t, "token"),
		FirstClaim: moments.Draw(t, "first claim"),
		LastClaim:  moments.Draw(t, "last claim"),
		Consumer:   rapid.SampledFrom([]string{"", "me", string(bytes.Repeat([]byte("é"), 20_000))}).Draw(t, "consumer"),
		Origin:     rapid.SampledFrom([]uint32{0, 1, 1<<32 - 1}).Draw(t, "origin"),
		Expiry:     moments.Draw(t, "expiry"),
	}
	if d.State == content.Ready && d.Until != 0 {
		d.State = content.Delayed
	}
	return d
}

func TestDeliveryStateReadsBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got content.Delivery
		for range 3 { // decoded into again
			want := drawDelivery(t, 7)
			rec := content.AppendDelivery(nil, &want)
			if err := content.DecodeDelivery(rec, 7, &got); err != nil || got != want {
				t.Fatalf("got %+v, %v, want %+v", got, err, want)
			}
			cut := rec[:rapid.IntRange(0, len(rec)-1).Draw(t, "cut")]
			if err := content.DecodeDelivery(cut, 7, &got); !errors.Is(err, content.ErrRecord) {
				t.Fatalf("a cut record gives %v", err)
			}
		}
	})
}

// stateModel is what a store should hold of delivery states, by the kind of the record.
type stateModel map[content.NoteID]string

// stored is what a caller says of an identity: what the store or the open batch has.
func (m stateModel) stored(identity uint64) (s content.Stored) {
	for kind := range content.NoteProgress + 1 {
		if _, has := m[content.NoteID{Identity: identity, Kind: kind}]; has {
			s |= 1 << kind
		}
	}
	return s
}

func (m stateModel) forget(identity uint64) {
	for kind := range content.NoteProgress + 1 {
		delete(m, content.NoteID{Identity: identity, Kind: kind})
	}
}

func TestDeliveryStatesInABatchEndAsTheLastCallsSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "states")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s, err := Open(dir, Options{Window: minWindow, Sync: SyncNever()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		m, packets := stateModel{}, map[uint64]content.PacketID{}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			var b content.Batch
			puts := map[uint64]int{}
			for range rapid.IntRange(1, 40).Draw(t, "calls") {
				drawStateCall(t, &b, m, packets, puts)
			}
			checkTotals(t, &b)
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			checkStates(t, s, m, len(packets))
		}
	})
}

// drawStateCall makes one of the calls that a queue makes for one of a few packets.
func drawStateCall(t *rapid.T, b *content.Batch, m stateModel, packets map[uint64]content.PacketID, puts map[uint64]int) {
	identity := rapid.Uint64Range(1<<63, 1<<63+5).Draw(t, "identity")
	place, there := packets[identity]
	if !there {
		place = content.PacketID{Queue: 1, Priority: 1, Seq: identity + 100*rapid.Uint64Range(0, 1).Draw(t, "seq")}
		puts[identity] = b.Put(place, &content.Packet{Identity: identity})
		packets[identity] = place
		return
	}
	stored := m.stored(identity)
	op, here := puts[identity]
	switch rapid.IntRange(0, 6).Draw(t, "call") {
	case 0, 1:
		d := drawDelivery(t, identity)
		d.Consumer = d.Consumer[:min(100, len(d.Consumer))] // it is drawn 40 times
		b.PutDelivery(&d, stored)
		m[content.NoteID{Identity: identity}] = fmt.Sprint(d)
	case 2, 3:
		id := content.NoteID{Identity: identity, Kind: rapid.SampledFrom([]content.NoteKind{content.NoteReason, content.NoteProgress}).Draw(t, "kind")}
		text := rapid.SampledFrom([]string{"", "a", "some text"}).Draw(t, "text")
		b.PutNote(id, []byte(text), stored)
		if m[id] = text; text == "" {
			delete(m, id)
		}
		if got, ok := b.Note(id); string(got) != text || ok != (text != "") {
			t.Fatalf("note %v is %q, %v", id, got, ok)
		}
	case 4: // it moves
		if here {
			b.Cancel(op)
		} else {
			b.Delete(place, content.Removed{})
		}
		place.Priority++
		packets[identity] = place
		puts[identity] = b.Put(place, &content.Packet{Identity: identity})
	case 5: // it goes
		if here {
			b.Cancel(op)
			b.DeleteDelivery(identity, stored)
		} else {
			b.Delete(place, content.Removed{Stored: stored, Identity: identity})
		}
		m.forget(identity)
		delete(packets, identity)
		delete(puts, identity)
	case 6: // it begins anew
		if !here {
			puts[identity] = b.Replace(place, &content.Packet{Identity: identity}, content.Removed{Stored: stored, Identity: identity})
			m.forget(identity)
			if rapid.Bool().Draw(t, "cancelled") {
				b.Cancel(puts[identity])
				delete(packets, identity)
				delete(puts, identity)
			}
		}
	}
}

// checkStates holds the delivery states of a store against a model.
func checkStates(t *rapid.T, s *Store, m stateModel, packets int) {
	var tally content.Tally
	got := stateModel{}
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	last := uint64(0)
	err = n.Deliveries(func(d *content.Delivery, damage error) error {
		for kind, text := range []string{"", d.Reason, d.Progress} {
			if text != "" {
				got[content.NoteID{Identity: d.Identity, Kind: content.NoteKind(kind)}] = text
			}
		}
		if damage == nil {
			own := *d
			own.Reason, own.Progress = "", ""
			got[content.NoteID{Identity: d.Identity}] = fmt.Sprint(own)
			tally.AddDelivery(d.Identity)
		}
		if d.Identity <= last {
			t.Fatalf("%d after %d", d.Identity, last)
		}
		last = d.Identity
		return nil
	})
	if err != nil || !maps.Equal(got, m) {
		t.Fatalf("a snapshot shows %v, %v, want %v", got, err, m)
	}
	bits := stateModel{}
	err = s.Deliveries(func(d *content.Delivery, stored content.Stored) error {
		if stored != m.stored(d.Identity) {
			return fmt.Errorf("%d has %b", d.Identity, stored)
		}
		bits[content.NoteID{Identity: d.Identity}] = ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	notes := slices.Collect(maps.Keys(m))
	s.ReadNotes(notes, func(i int, text []byte, damage error) {
		if notes[i].Kind != 0 && (damage != nil || string(text) != m[notes[i]]) {
			t.Fatalf("%v reads as %q, %v", notes[i], text, damage)
		}
	})
	err = s.Packets(func(id content.PacketID, m *content.Meta) error { tally.Add(id, m.Expiry); return nil })
	if err = errors.Join(err, s.Verify(tally)); err != nil || int(tally.Live) != packets {
		t.Fatalf("%d packets instead of %d, %v", tally.Live, packets, err)
	}
}

// setRaw writes records as they are, and delivery states that count in the control record.
func setRaw(t *testing.T, s *Store, states []content.Delivery, raw map[string]string) {
	t.Helper()
	var b content.Batch
	for i := range states {
		b.PutDelivery(&states[i], 0)
	}
	applied(t, s, &b)
	behind(t, s, func(e *entries) {
		for key, rec := range raw {
			e.put([]byte(key), []byte(rec), 0, true)
		}
	})
}

func TestDamagedDeliveryStatesAreNamedAndTheOthersShown(t *testing.T) {
	key := func(identity uint64, kind content.NoteKind) string {
		return string(content.AppendStateKey(nil, content.NoteID{Identity: identity, Kind: kind}))
	}
	dir := t.TempDir()
	s := smallStore(t, dir)
	setRaw(t, s, []content.Delivery{{Identity: 1, Consumer: "me"}, {Identity: 3, Consumer: "you"}, {Identity: 4}}, map[string]string{
		key(2, content.NoteProgress):  "\x32half",     // whose state is gone
		key(3, 0):                     "\x81\x0a\x09", // a state that there is not
		key(3, content.NoteReason):    "why",
		key(4, 9):                     "a note of a later version",
		content.StatePrefix + "short": "x",
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	shown := func(v *View) (out []string, err error) {
		err = v.Deliveries(func(d *content.Delivery, damage error) error {
			if damage != nil && !errors.Is(damage, ErrDamaged) {
				t.Errorf("damage is %v", damage)
			}
			out = append(out, fmt.Sprintf("%d %q %q %q %v", d.Identity, d.Consumer, d.Reason, d.Progress, damage != nil))
			return nil
		})
		return out, err
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	defer v.Close()
	got, err := shown(v)
	want := []string{`1 "me" "" "" false`, `2 "" "" "2half" true`, `3 "" "why" "" true`, `4 "" "" "" false`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("a view shows %q, %v", got, err)
	}
	if found := v.Findings(); len(found) != 1 || found[0].Kind != FindingRecord {
		t.Errorf("findings %v", found)
	}
	strict := openView(t, dir, ViewOptions{})
	defer strict.Close()
	if got, err := shown(strict); !errors.Is(err, ErrDamaged) {
		t.Errorf("a strict view shows %q, %v", got, err)
	}
}

func TestDeliveryStatesThatAreMissingAreALoss(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	setRaw(t, s, []content.Delivery{{Identity: 1}, {Identity: 2}}, nil)
	behind(t, s, func(e *entries) { e.delete(content.AppendStateKey(nil, content.NoteID{Identity: 2})) })
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var mismatch *content.MismatchError
	err = n.Deliveries(func(*content.Delivery, error) error { return nil })
	if !errors.As(err, &mismatch) || mismatch.What() != "delivery states" || mismatch.CameBack() {
		t.Errorf("a snapshot gives %v", err)
	}
	_, tally := scanned(t, s)
	err = s.Verify(tally)
	const says = "delivery states are missing: the control record counts 2, the scan found 1"
	if !errors.Is(err, ErrLoss) || err.Error() != says {
		t.Errorf("Verify gives %v", err)
	}
}
