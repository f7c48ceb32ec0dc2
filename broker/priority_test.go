package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// updatePriority gives a key a priority that depends on nothing.
func (h *harness) updatePriority(queue, key string, priority uint32) error {
	return h.b.Do(func(tx *broker.Tx) error {
		return tx.UpdatePriority(broker.UpdatePriorityRequest{
			Queue: []byte(queue), Key: []byte(key), To: func(uint32, bool) uint32 { return priority },
		})
	})
}

// popKey takes the best key; "" if there is none.
func (h *harness) popKey(queue string, end broker.End) (key string, err error) {
	err = h.b.Do(func(tx *broker.Tx) error {
		got, ok, err := tx.PopKey([]byte(queue), end, nil, []byte("before "))
		if key = ""; ok {
			key = string(got[len("before "):])
		}
		return err
	})
	return key, err
}

// withKey are the packets of the model's queue with a key, in the order of their arrival.
func (m *model) withKey(key string) []modelPacket {
	var found []modelPacket
	for _, p := range m.packets {
		if p.key == key {
			found = append(found, p)
		}
	}
	return found
}

// first returns the index of the packet that stands first with the given end, or -1.
func (m *model) first(end broker.End) int {
	best := -1
	for i, p := range m.packets {
		if p.priority == 0 {
			continue
		}
		switch {
		case best < 0 || p.priority < m.packets[best].priority:
			best = i
		case p.priority == m.packets[best].priority && (p.seq < m.packets[best].seq) == (end == broker.Oldest):
			best = i
		}
	}
	return best
}

// popKey is what PopKey must answer, with its error.
func (m *model) popKey(end broker.End, take bool) (string, error) {
	i := m.first(end)
	if i < 0 {
		return "", nil
	}
	key := m.packets[i].key
	if take {
		m.packets = slices.DeleteFunc(m.packets, func(p modelPacket) bool { return p.key == key })
	}
	return key, nil
}

// updatePriority is what UpdatePriority must do: add to what is there, and go to the end if that
// changes it.
func (m *model) updatePriority(key string, add uint32) error {
	with := m.withKey(key)
	switch {
	case len(with) == 0:
		m.seq++
		m.packets = append(m.packets, modelPacket{queue: "q", key: key, priority: add, seq: m.seq})
	case len(with) > 1:
		return broker.ErrShared
	case add > 0:
		m.packets = slices.DeleteFunc(m.packets, func(p modelPacket) bool { return p.key == key })
		m.seq++
		p := with[0]
		p.priority, p.seq = p.priority+add, m.seq
		m.packets = append(m.packets, p)
	}
	return nil
}

func TestPacketsThatGoByTheirKeyDoWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		defer func() { _ = h.b.Close() }()
		var m model
		key := rapid.SampledFrom([]string{"1", "2", "3", "4", "5", "a longer key than fits", ""})
		end := rapid.SampledFrom([]broker.End{broker.Newest, broker.Oldest})
		box := &inbox{}
		c := h.b.Attach(box, groups)
		sub := &modelSub{}
		t.Repeat(map[string]func(*rapid.T){
			"update priority": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "n") {
					k, add := key.Draw(t, "key"), rapid.Uint32Range(0, 3).Draw(t, "add")
					err := h.b.Do(func(tx *broker.Tx) error {
						return tx.UpdatePriority(broker.UpdatePriorityRequest{Queue: []byte("q"), Key: []byte(k), To: func(old uint32, known bool) uint32 {
							if with := m.withKey(k); known != (len(with) > 0) || known && old != with[0].priority {
								t.Fatalf("%q had priority %d (%v), want that of one of %v", k, old, known, with)
							}
							return old + add
						}})
					})
					if want := m.updatePriority(k, add); err != want {
						t.Fatalf("UpdatePriority(%q) = %v, want %v", k, err, want)
					}
				}
			},
			"pop key": func(t *rapid.T) {
				e := end.Draw(t, "end")
				got, err := h.popKey("q", e)
				want, wantErr := m.popKey(e, true)
				if got != want || err != wantErr {
					t.Fatalf("PopKey gave %q %v, want %q %v", got, err, want, wantErr)
				}
			},
			"peek, priority, counts": func(t *rapid.T) {
				e, k := end.Draw(t, "end"), key.Draw(t, "key")
				h.do(func(tx *broker.Tx) error {
					m.lookThrough(t, tx, e, k)
					return nil
				})
			},
			"push": func(t *rapid.T) {
				m.seq++
				p := modelPacket{
					queue: "q", key: key.Draw(t, "key"), seq: m.seq, priority: rapid.Uint32Range(0, 4).Draw(t, "priority"),
					payload: rapid.SampledFrom([]string{"", "", "", "payload"}).Draw(t, "payload"),
				}
				var ttl time.Duration
				if rapid.IntRange(0, 4).Draw(t, "expires") == 0 {
					ttl = time.Duration(rapid.IntRange(1, 50).Draw(t, "ttl")) * time.Millisecond
					p.expiry = h.now.Load() + ttl.Milliseconds()
				}
				h.push("q", p.priority, ttl, p.key, p.payload)
				m.packets = append(m.packets, p)
			},
			"pop": func(t *rapid.T) {
				h.pop(c, "q")
				out := []string{}
				if i := m.first(broker.Newest); i >= 0 {
					out = m.take(i)
				}
				sub.want = append(sub.want, out)
			},
			"time passes": func(t *rapid.T) { m.expire(h.now.Add(rapid.Int64Range(1, 40).Draw(t, "ms"))) },
			"restart": func(*rapid.T) {
				h.barrier()
				h.restart()
				box, sub = &inbox{}, &modelSub{}
				c = h.b.Attach(box, groups)
			},
			"": func(t *rapid.T) {
				h.barrier()
				if !slices.EqualFunc(box.got, sub.want, slices.Equal) {
					t.Fatalf("pops gave %q, want %q", box.got, sub.want)
				}
			},
		})
	})
}

// lookThrough compares everything that changes nothing.
func (m *model) lookThrough(t *rapid.T, tx *broker.Tx, end broker.End, key string) {
	got, ok, err := tx.PeekKey([]byte("q"), end, nil)
	want, wantErr := m.popKey(end, false)
	if string(got) != want || err != wantErr || ok != (m.first(end) >= 0 && wantErr == nil) {
		t.Fatalf("PeekKey gave %q %v %v, want %q %v", got, ok, err, want, wantErr)
	}
	with := m.withKey(key)
	priority, ok, err := tx.PriorityOf([]byte("q"), []byte(key))
	switch {
	case len(with) == 0:
		if ok || err != nil {
			t.Fatalf("PriorityOf(%q) = %d %v %v, want none", key, priority, ok, err)
		}
	case len(with) > 1:
		if err != broker.ErrShared {
			t.Fatalf("PriorityOf(%q) of %v gave %v", key, with, err)
		}
	case !ok || err != nil || priority != with[0].priority:
		t.Fatalf("PriorityOf(%q) = %d %v %v, want %d", key, priority, ok, err, with[0].priority)
	}
	counts, wantCounts, seen := broker.QueueCounts{}, broker.QueueCounts{}, map[uint32]bool{}
	for _, p := range m.packets {
		if p.priority > 0 {
			wantCounts.Selectable++
			seen[p.priority] = true
		}
	}
	wantCounts.Priorities = len(seen)
	if counts, err = tx.QueueCounts([]byte("q")); err != nil || counts != wantCounts {
		t.Fatalf("QueueCounts = %+v %v, want %+v", counts, err, wantCounts)
	}
}

func TestAMoveIsOneBatchAndLeavesOnePacket(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	if err := h.updatePriority("q", "k", 5); err != nil {
		t.Fatal(err)
	}
	h.barrier()
	before := h.store.applied
	if err := h.updatePriority("q", "k", 3); err != nil {
		t.Fatal(err)
	}
	h.barrier()
	if h.store.applied != before+1 || len(h.store.packets) != 1 {
		t.Fatalf("%d batches and %d packets after a move, want one of each", h.store.applied-before, len(h.store.packets))
	}
	for id := range h.store.packets {
		if id.Priority != 3 {
			t.Fatalf("the store has the packet at %v, want priority 3", id)
		}
	}
	h.restart()
	if key, err := h.popKey("q", broker.Oldest); key != "k" || err != nil {
		t.Fatalf("after a restart the best is %q (%v), want k", key, err)
	}
	h.barrier()
	if len(h.store.packets) != 0 {
		t.Fatalf("%d packets are left after the pop", len(h.store.packets))
	}
}

func TestAKeptPriorityWritesNothing(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for range 2 {
		if err := h.updatePriority("q", "k", 5); err != nil {
			t.Fatal(err)
		}
		h.barrier()
	}
	if h.store.written != 1 {
		t.Fatalf("%d records were written, want the first one only", h.store.written)
	}
}

func TestMovesInOneBatchWriteTheLastPlaceOnly(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.b.hold(func() { h.push("other", 1, 0, "", "x") }) // what follows goes into one batch
	for i := range uint32(100) {
		if err := h.updatePriority("q", "k", 200-i); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.updatePriority("q", "gone", 1); err != nil {
		t.Fatal(err)
	}
	if key, err := h.popKey("q", broker.Oldest); key != "gone" || err != nil {
		t.Fatalf("PopKey gave %q %v", key, err)
	}
	h.b.release()
	h.barrier()
	if h.store.written != 2 || len(h.store.packets) != 2 {
		t.Fatalf("%d records were written and %d are there, want the push and the last place", h.store.written, len(h.store.packets))
	}
}

func TestOneBatchTakesABoundedNumberOfMoves(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.b.hold(func() { h.push("other", 1, 0, "", "") })
	const bound, many = 1 << 16, 1 << 17
	for i := range uint32(many) {
		if i == bound-1 {
			h.b.release()
		}
		if err := h.updatePriority("q", "k", 1+i%1000); err != nil {
			t.Fatal(err)
		}
	}
	h.barrier()
	record := 0
	for _, r := range h.store.packets {
		record = max(record, len(r))
	}
	if h.store.memory > bound*3*record { // with their keys
		t.Errorf("a batch held %d bytes of records of %d, want at most %d of them", h.store.memory, record, bound)
	}
}

func TestAPacketMovedToASelectablePriorityIsDelivered(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.do(func(tx *broker.Tx) error {
		return errors.Join(tx.Subscribe(c, []byte("q")), tx.Ready(c, 2))
	})
	if err := errors.Join(h.updatePriority("q", "new", 1), h.updatePriority("q", "k", 0), h.updatePriority("q", "k", 1)); err != nil {
		t.Fatal(err)
	}
	h.barrier()
	if len(r.got) != 2 {
		t.Fatalf("%d deliveries, want the new packet and the moved one", len(r.got))
	}
}

func TestARefusedKeyIsNotTaken(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	if err := h.updatePriority("q", "k", 1); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	h.do(func(tx *broker.Tx) error {
		key, ok, err := tx.PopKey([]byte("q"), broker.Oldest, func(key []byte) error {
			if string(key) != "k" {
				t.Errorf("asked about %q, want k", key)
			}
			return no
		}, []byte("kept"))
		if err != no || ok || string(key) != "kept" {
			t.Errorf("PopKey gave %q %v %v, want only the refusal", key, ok, err)
		}
		return nil
	})
	if key, err := h.popKey("q", broker.Oldest); key != "k" || err != nil {
		t.Fatalf("then PopKey gave %q %v, want k", key, err)
	}
}

func TestAPacketWithoutAKeyDoesNotGoByIt(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.do(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
	})
	if key, err := h.popKey("q", broker.Oldest); err != broker.ErrNoKey {
		t.Fatalf("PopKey gave %q %v, want ErrNoKey", key, err)
	}
}

func TestAllPacketsOfAKeyGoWithIt(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for i := range 100 {
		h.push("q", uint32(i%3), 0, "k", "some payload")
	}
	if key, err := h.popKey("q", broker.Oldest); key != "k" || err != nil {
		t.Errorf("PopKey gave %q %v, want k", key, err)
	}
	h.barrier()
	if len(h.store.packets) != 0 {
		t.Errorf("%d packets are left, want that all were taken", len(h.store.packets))
	}
}

func TestAMoveKeepsTheRecordAsItIs(t *testing.T) {
	for name, p := range map[string]content.Packet{
		"tags":          {Tags: []content.Tag{{Name: "a", Value: "b"}}},
		"producer":      {Producer: "somebody"},
		"payload":       {Payload: []byte("small"), Attempts: 2},
		"large payload": {Payload: bytes.Repeat([]byte("large"), 1000)},
		"expiry":        {Payload: []byte("small"), Expiry: 4_000_000_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			p.EnqueuedAt = 77
			h, store := onDisk(t, p)
			if err := h.updatePriority("q", "k", 7); err != nil {
				t.Fatal(err)
			}
			if err := h.b.Close(); err != nil {
				t.Fatal(err)
			}
			got := only(t, store, 7)
			if got.Producer != p.Producer || !slices.Equal(got.Tags, p.Tags) || !bytes.Equal(got.Payload, p.Payload) ||
				got.EnqueuedAt != 77 || got.Expiry != p.Expiry || got.Attempts != p.Attempts {
				t.Errorf("%+v is on disk, want %+v", got, p)
			}
			state, err := recovery.Restore(store, recovery.Options{Now: startTime})
			if err != nil || state.Report.Packets != 1 {
				t.Errorf("a start finds %d packets (%v), want one", state.Report.Packets, err)
			}
		})
	}
}

// only returns the only packet in a store, which has the key k and the priority.
func only(t *testing.T, store *storage.Store, priority uint32) (p content.Packet) {
	t.Helper()
	snapshot, err := store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	packets := 0
	err = snapshot.Walk(storage.Visitor{Whole: true, Packet: func(id content.PacketID, _ *content.Meta, rec []byte, damage error) error {
		packets++
		if err := errors.Join(damage, content.DecodeRecord(bytes.Clone(rec), &p)); err != nil {
			return err
		}
		if string(p.Key) != "k" || id.Priority != priority {
			t.Errorf("%+v is on disk at %v, want k at priority %d", p, id, priority)
		}
		return nil
	}})
	if err != nil || packets != 1 {
		t.Errorf("%d packets are on disk (%v), want one", packets, err)
	}
	return p
}

func TestAClaimIsKeptByAMoveWithoutARecord(t *testing.T) {
	w := newWork(t)
	id := w.add(broker.PushRequest{Key: []byte("k")})
	j := w.claimOne()
	if err := w.updatePriority("q", "k", 7); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if _, err := w.nack(j, broker.Nack{}); err != nil {
		t.Fatal(err)
	}
	if j = w.claimOne(); j.ID != id || j.Attempts != 2 || j.Priority != 7 {
		t.Fatalf("claimed %+v", j)
	}
}

// onDisk is a broker on a folder with one packet of queue q, whose key is k and whose priority is
// 1.
func onDisk(t *testing.T, p content.Packet) (*harness, *storage.Store) {
	t.Helper()
	store, err := storage.Open(t.TempDir(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var batch content.Batch
	p.Key = []byte("k")
	batch.PutQueue(content.Queue{ID: 1, Name: []byte("q")})
	batch.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1 << 63}, &p)
	batch.SetMarks(content.Marks{NextSeq: 1<<63 + 1, LowSeq: 1<<63 - 1, NextQueue: 2})
	if err := store.Apply(&batch); err != nil {
		t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: startTime})
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t}
	h.now.Store(startTime)
	h.b = newDriver(store, state, broker.Options{}, h.clocks)
	return h, store
}

func TestFullDisksRefuseMovesAndLetKeysGo(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	if err := errors.Join(h.updatePriority("q", "a", 2), h.updatePriority("q", "b", 2)); err != nil {
		t.Fatal(err)
	}
	h.barrier()
	setLevel := func(l storage.Level) {
		h.store.level = l
		if err := h.updatePriority("q", "a", 2); err != nil && l == storage.Normal {
			t.Fatal(err)
		}
	}
	setLevel(storage.NoPush)
	if err := h.updatePriority("q", "a", 1); err != broker.ErrNoSpace {
		t.Fatalf("a move gave %v, want ErrNoSpace", err)
	}
	if err := h.updatePriority("q", "new", 1); err != broker.ErrNoSpace {
		t.Fatalf("a new key gave %v, want ErrNoSpace", err)
	}
	if err := h.updatePriority("q", "a", 2); err != nil {
		t.Fatalf("a kept priority gave %v, want that nothing needs to be written", err)
	}
	if key, err := h.popKey("q", broker.Oldest); key != "a" || err != nil {
		t.Fatalf("PopKey gave %q %v, want a", key, err)
	}
	setLevel(storage.Stop)
	if _, err := h.popKey("none", broker.Oldest); err != broker.ErrStopped {
		t.Fatalf("PopKey gave %v, want ErrStopped", err)
	}
	if err := h.updatePriority("q", "b", 2); err != broker.ErrStopped {
		t.Fatalf("an update gave %v, want ErrStopped", err)
	}
	h.do(func(tx *broker.Tx) error {
		if priority, ok, err := tx.PriorityOf([]byte("q"), []byte("b")); priority != 2 || !ok || err != nil {
			t.Errorf("PriorityOf gave %d %v %v: looking needs no disk", priority, ok, err)
		}
		return nil
	})
}

// nullStore takes every batch and keeps nothing.
type nullStore struct{ *memStore }

func (nullStore) Apply(*content.Batch) error { return nil }

// BenchmarkUpdatePriority is the cost of moving a random one of so many keys: check, index and
// record, without a disk.
func BenchmarkUpdatePriority(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000, 5_000_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			store := newMemStore()
			state, err := recovery.Restore(store, recovery.Options{Now: startTime})
			if err != nil {
				b.Fatal(err)
			}
			br := newDriver(nullStore{store}, state, broker.Options{}, startClocks)
			defer br.Close()
			chance := rand.New(rand.NewPCG(1, 2))
			r := broker.UpdatePriorityRequest{Queue: []byte("q")}
			add := uint32(0)
			r.To = func(old uint32, known bool) uint32 {
				if !known {
					return 1<<32 - 1 - add
				}
				return old - add
			}
			update := func(tx *broker.Tx) error {
				for range 16 { // as a pipeline does
					r.Key, add = strconv.AppendUint(r.Key[:0], chance.Uint64N(uint64(n)), 10), 1+chance.Uint32N(100)
					if err := tx.UpdatePriority(r); err != nil {
						return err
					}
				}
				return nil
			}
			for i := 0; i < n; {
				if err := br.Do(func(tx *broker.Tx) error {
					for range min(n-i, 1000) {
						r.Key, add = strconv.AppendUint(r.Key[:0], uint64(i), 10), chance.Uint32N(1_000_000)
						if err := tx.UpdatePriority(r); err != nil {
							return err
						}
						i++
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += 16 {
				if err := br.Do(update); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestPopsOfKeysAreBoundedInATransaction(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for range broker.MaxChanged {
		h.push("q", 1, 0, "many", "")
	}
	h.push("q", 2, 0, "last", "")
	h.together(func(tx *broker.Tx) error {
		for _, want := range []error{nil, broker.ErrTooManyChanged} {
			if key, ok, err := tx.PopKey([]byte("q"), broker.Oldest, nil, nil); !errors.Is(err, want) || ok != (want == nil) {
				t.Errorf("a pop gave %q, %v, want the error %v", key, err, want)
			}
		}
		return nil
	})
	if n := h.b.Stats().Packets; n != 1 {
		t.Errorf("%d packets are left, want 1", n)
	}
}
