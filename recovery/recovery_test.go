package recovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// source is a Source of what a test wrote down.
type source struct {
	recoverytest.Keys
	recoverytest.Tries
	queues  []content.Queue
	packets []packet
	control content.Control
	broken  error        // given by Walk after the last packet
	begins  func() error // called by Verify when all agrees, if not nil
}

type packet struct {
	id   content.PacketID
	meta content.Meta
}

func (s *source) Control() content.Control { return s.control }

func (s *source) Walk(v storage.Visitor) error {
	return recoverytest.Scans{Queues: s.eachQueue, Shares: s.Shares, Uniques: s.Uniques, States: s.eachState, Packets: s.eachPacket, Items: s.Items}.Walk(v, s.control)
}

func (s *source) eachQueue(fn func(content.Queue) error) error {
	for _, q := range s.queues {
		if err := fn(q); err != nil {
			return err
		}
	}
	return nil
}

// eachPacket hands out one Meta again and again, as the store does.
func (s *source) eachPacket(fn func(content.PacketID, *content.Meta, []byte, error) error) error {
	var m content.Meta
	var tags []content.Tag
	for _, p := range s.packets {
		m = p.meta
		m.Key, m.Tags = slices.Clone(p.meta.Key), append(tags[:0], p.meta.Tags...)
		if err := fn(p.id, &m, nil, nil); err != nil {
			return err
		}
		for i := range m.Key {
			m.Key[i] = 0xee // the bytes are valid during the call only
		}
		tags = m.Tags
	}
	return s.broken
}

func (s *source) Verify(scan content.Tally) error {
	err := errors.Join(s.control.Check(scan, 0), s.control.CheckKeys(scan, 0), s.control.CheckDeliveries(scan, 0))
	if err == nil && s.begins != nil {
		err = s.begins()
	}
	return err
}

// put adds a packet and, if it has no expiry, counts it.
func (s *source) put(id content.PacketID, m content.Meta) {
	s.packets = append(s.packets, packet{id, m})
	s.control.Add(id, m.Expiry)
}

const now = 1000

func sound(n int) *source {
	s := &source{queues: []content.Queue{{ID: 7, Name: []byte("jobs")}}}
	s.control.Marks = content.Marks{NextSeq: 1<<63 + uint64(n), LowSeq: 1<<63 - 1, NextQueue: 8}
	for i := range n {
		s.put(content.PacketID{Queue: 7, Priority: 1 + uint32(i%2), Seq: 1<<63 + uint64(i)}, content.Meta{
			Key: fmt.Append(nil, "key", i), Size: 10,
		})
	}
	return s
}

func TestRestoredIndexKnowsTheIDsOfUniquePushes(t *testing.T) {
	const n = 2 * scanBatch
	s := sound(n)
	dead := content.Delivery{Identity: 1<<63 + n - 1, State: content.Dead}
	s.Try(dead)
	s.control.AddDelivery(dead.Identity)
	var b content.Batch
	unique := func(queue uint32, identity int, id string, until int64) {
		b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: queue, Identity: 1<<63 + uint64(identity)}, ID: []byte(id), Until: until})
	}
	for i := range s.packets {
		unique(7, i, fmt.Sprint("id", i/2), 0)
	}
	unique(7, n, "window", now+1)
	unique(7, n+1, "over", now)
	unique(7, n+2, "of no packet", 0)
	unique(8, n+3, "of no queue", now+1)
	s.Keys.Apply(&b)
	s.Keys.Tally(&s.control.Tally)
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n / 2 {
		want := 1<<63 + uint64(2*i) + 1 // the younger one of two
		if i == n/2-1 {
			want-- // that is dead
		}
		if got, ok := state.Index.Holder(state.Queues[0].Index, fmt.Append(nil, "id", i)); !ok || got != want {
			t.Fatalf("id%d is that of %d, want %d", i, got, want)
		}
	}
	for id, want := range map[string]bool{"window": true, "over": false, "of no packet": false} {
		if got, ok := state.Index.Holder(state.Queues[0].Index, []byte(id)); ok != want || ok && got != 1<<63+n {
			t.Errorf("%s is held by %d, %v", id, got, ok)
		}
	}
	if len(state.EndedUniques) != 3 {
		t.Errorf("%v are to be deleted, want 3", state.EndedUniques)
	}
}

// eager is a source that refuses to show ids before the packets that they belong to.
type eager struct {
	*source
	packets bool // were shown
}

func (s *eager) Walk(v storage.Visitor) error {
	if v.Unique != nil && !s.packets {
		return errors.New("ids were asked for before the packets: they would wait in memory")
	}
	s.packets = s.packets || v.Packet != nil
	return s.source.Walk(v)
}

func TestIDsOfUniquePushesWaitForNoPacketInMemory(t *testing.T) {
	s := sound(1)
	s.queues = append(s.queues, content.Queue{ID: 9, Name: []byte("others")})
	s.put(content.PacketID{Queue: 9, Priority: 1, Seq: 1<<63 + 1}, content.Meta{})
	var b content.Batch
	for i, queue := range []uint32{7, 9} {
		b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: queue, Identity: 1<<63 + uint64(i)}, ID: fmt.Append(nil, "id", queue), UntilClaim: queue == 9})
	}
	s.Keys.Apply(&b)
	s.Keys.Tally(&s.control.Tally)
	state, err := Restore(&eager{source: s}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"id7", "id9"} {
		q := state.Queues[i].Index
		all := state.Index.List(q, index.Ready, index.Place{}, 2, nil)
		if unique, _ := state.Index.Unique(all[0].ID, nil); string(unique) != id || all[0].UntilClaim != (id == "id9") || all[0].TagBytes < 9 {
			t.Errorf("the packet of queue %d is %+v with the id %q, want %s", i, all[0], unique, id)
		}
	}
	if len(state.EndedUniques) > 0 {
		t.Errorf("%v are to be deleted", state.EndedUniques)
	}
}

func TestRestoredIndexHasTheOrderAndTheGroupsOfTheStore(t *testing.T) {
	const n = 3 * scanBatch / 2 // more than one run
	s := sound(n)
	s.put(content.PacketID{Queue: 7, Priority: 0, Seq: 1<<63 + n}, content.Meta{Key: []byte("key2"), Size: 1})
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if state.Marks != s.control.Marks || state.Report.Packets != n+1 || len(state.Report.Findings) != 0 {
		t.Fatalf("marks %+v, report %+v", state.Marks, state.Report)
	}
	q := state.Queues[0]
	if string(q.Name) != "jobs" || q.ID != 7 {
		t.Fatalf("queue %+v", q)
	}
	got := taken(state.Index, q.Index, index.Selection{End: index.Newest, Group: true})
	if len(got) != 1 || got[0].Seq != 1<<63+n-2 {
		t.Fatalf("selected %+v, want the newest of priority 1", got)
	}
	got = taken(state.Index, q.Index, index.Selection{End: index.Oldest, Group: true})
	if len(got) != 1 || got[0].Seq != 1<<63 {
		t.Fatalf("selected %+v, want the oldest of priority 1", got)
	}
	got = taken(state.Index, q.Index, index.Selection{End: index.Oldest, Group: true})
	if len(got) != 2 || got[0].Seq != 1<<63+2 || got[1].Priority != 0 {
		t.Fatalf("selected %+v, want a packet and its companion of priority 0", got)
	}
}

// taken takes what is selected, with its group.
func taken(x *index.Index, q index.QueueID, s index.Selection) []index.Packet {
	best, _ := x.Best(q, s)
	packets := x.Group(best.ID, s, nil)
	for _, p := range packets {
		x.Remove(p.ID)
	}
	return packets
}

func TestPacketsWithEqualTagsShareALane(t *testing.T) {
	const n = scanBatch + 10 // more than one run
	s := sound(n)
	for i := range s.packets {
		s.packets[i].meta.Tags = []content.Tag{{Name: "a", Value: fmt.Sprint(i % 3)}, {Name: "b"}}
	}
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	lanes := make(map[string]index.LaneID)
	for _, p := range state.Index.Next(state.Queues[0].Index, index.Selection{}, 0, n, nil) {
		i := int(p.Seq - 1<<63)
		tags, _ := state.Index.Tags(p.Lane)
		if want := string(content.AppendTags(nil, s.packets[i].meta.Tags)); tags != want {
			t.Fatalf("packet %d has tags %q, want %q", i, tags, want)
		}
		if lane, known := lanes[tags]; known && lane != p.Lane {
			t.Fatalf("packet %d is in lane %d, and others with its tags in lane %d", i, p.Lane, lane)
		}
		lanes[tags] = p.Lane
	}
	if len(lanes) != 3 {
		t.Errorf("the packets have %d lanes, want 3", len(lanes))
	}
}

func TestExpiredPacketsAreLeftOutAndCounted(t *testing.T) {
	s := sound(2)
	for i, expiry := range []int64{now - 1, now, now + 1} {
		s.put(content.PacketID{Queue: 7, Priority: 1, Seq: 1<<63 + 10 + uint64(i)}, content.Meta{Expiry: expiry})
	}
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if r := state.Report; r.Expired != 2 || r.Packets != 3 {
		t.Fatalf("report %+v, want 2 expired and 3 packets", r)
	}
	if wait, ok := state.Index.Wait(now, now); !ok || wait != 1 {
		t.Fatalf("nothing is due for %d %v, want the expiry of the packet still alive", wait, ok)
	}
}

func TestScanThatDiffersFromTheControlRecordIsRefusedUnlessAccepted(t *testing.T) {
	for name, damage := range map[string]func(*source){
		"packet lost":        func(s *source) { s.packets = s.packets[1:] },
		"packet resurrected": func(s *source) { s.control.Live--; s.control.Hash -= content.SetHash(s.packets[0].id) },
		"one for another": func(s *source) {
			s.packets[0].id.Seq += 100
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sound(5)
			damage(s)
			if _, err := Restore(s, Options{Now: now}); !errors.Is(err, storage.ErrLoss) {
				t.Fatalf("got %v, want ErrLoss", err)
			}
			state, err := Restore(s, Options{Now: now, AcceptLoss: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Report.Findings) != 1 {
				t.Fatalf("findings %q, want the one that was accepted", state.Report.Findings)
			}
		})
	}
}

func TestWhatOpeningAcceptedIsAFinding(t *testing.T) {
	lost := storage.Finding{Kind: storage.FindingLog, Key: "db/00001.mem", What: "the end is gone"}
	state, err := Restore(sound(3), Options{Now: now, AcceptLoss: true, Accepted: []storage.Finding{lost}})
	if err != nil {
		t.Fatal(err)
	}
	if f := state.Report.Findings; len(f) != 1 || f[0] != "log: db/00001.mem: the end is gone (accepted)" {
		t.Errorf("findings %q, want what was accepted", f)
	}
}

func TestPacketOfAnUndefinedQueueIsALoss(t *testing.T) {
	s := sound(1)
	s.put(content.PacketID{Queue: 9, Priority: 1, Seq: 5}, content.Meta{})
	s.begins = func() error { t.Error("the store begins, and the start is refused"); return nil }
	if _, err := Restore(s, Options{Now: now}); !errors.Is(err, storage.ErrLoss) {
		t.Fatalf("got %v, want ErrLoss: nobody could pop that packet", err)
	}
	s.begins = nil
	state, err := Restore(s, Options{Now: now, AcceptLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	if f := state.Report.Findings; len(f) != 2 || !strings.Contains(f[0], "9/1/5") {
		t.Fatalf("findings %q, want the packet's place and the loss that was accepted", f)
	}
}

func TestAnErrorThatIsNoLossIsNeverAccepted(t *testing.T) {
	s := sound(1)
	s.begins = func() error { return errors.New("disk is gone") }
	if state, err := Restore(s, Options{Now: now, AcceptLoss: true}); err == nil || state != nil {
		t.Fatalf("got %v, want that the store cannot begin", err)
	}
}

func TestErrorOfTheScanIsReturned(t *testing.T) {
	s := sound(2 * scanBatch)
	s.broken = errors.New("disk is gone")
	if _, err := Restore(s, Options{Now: now}); !errors.Is(err, s.broken) {
		t.Fatalf("got %v, want the error of the scan", err)
	}
}

func TestProgressIsReported(t *testing.T) {
	var seen []int
	if _, err := Restore(sound(1<<17), Options{Now: now, Progress: func(n int) { seen = append(seen, n) }}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []int{1 << 16, 1 << 17}) {
		t.Fatalf("progress at %v", seen)
	}
}

func TestAPacketThatTheIndexRefusesEndsTheRecovery(t *testing.T) {
	s := sound(3)
	s.put(content.PacketID{Queue: 7, Priority: 1, Seq: 1<<63 + 3}, content.Meta{Key: make([]byte, index.MaxKey+1)})
	for _, none := range []bool{false, true} {
		_, err := Restore(s, Options{Now: now, AcceptLoss: true, NoIndex: none})
		if err == nil || !strings.Contains(err.Error(), "packet 7/1/9223372036854775811 does not fit") {
			t.Errorf("without an index %v: got %v, want that the packet does not fit it", none, err)
		}
	}
}

func TestWithoutAnIndexTheReportIsTheSame(t *testing.T) {
	for _, s := range []*source{
		withKeys(),
		triedSource(9, func(i int, d *content.Delivery) { d.State, d.Until = content.Claimed, now+int64(i)-4 }),
	} {
		s.put(content.PacketID{Queue: 7, Priority: 1, Seq: 1<<63 + 20}, content.Meta{Expiry: now})
		s.put(content.PacketID{Queue: 9, Priority: 1, Seq: 1<<63 + 21}, content.Meta{}) // its queue is gone
		s.put(content.PacketID{Queue: 9, Priority: 1, Seq: 1<<63 + 22}, content.Meta{Identity: 1 << 63})
		whole, err := Restore(s, Options{Now: now, AcceptLoss: true})
		if err != nil {
			t.Fatal(err)
		}
		state, err := Restore(s, Options{Now: now, AcceptLoss: true, NoIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		got, want := state.Report, whole.Report
		got.Took, want.Took = 0, 0
		indexed := state.Index.Counts(state.Queues[0].Index)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || indexed != (index.Counts{}) {
			t.Errorf("report %+v with %+v in the index, want %+v with nothing", got, indexed, want)
		}
	}
}
