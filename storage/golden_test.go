package storage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// goldenFolder has what the first program of this version wrote. HOLDFAST_GOLDEN=write makes files
// that are missing, for a new version.
var goldenFolder = fmt.Sprintf("testdata/v%d", content.FormatVersion)

// golden packets, one of each shape.
func goldenPackets() []struct {
	name   string
	packet content.Packet
} {
	long := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	return []struct {
		name   string
		packet content.Packet
	}{
		{"nothing", content.Packet{}},
		{"payload", content.Packet{Payload: []byte("hello")}},
		{"key", content.Packet{Key: []byte("key"), Payload: []byte("hello")}},
		{"empty-key", content.Packet{Key: []byte{}, Payload: []byte("hello")}},
		{"times", content.Packet{Expiry: 4_000_000_000_123, NotBefore: 1_900_000_000_000, EnqueuedAt: 1_800_000_000_000}},
		{"negative-time", content.Packet{NotBefore: -1_000_000}},
		{"tags", content.Packet{Payload: []byte("x"), Tags: []content.Tag{{Name: "color", Value: "red"}, {Name: "size", Value: ""}}}},
		{"attempts", content.Packet{Attempts: 70_000, Payload: []byte("x")}},
		{"producer", content.Packet{Producer: "worker-1", Payload: []byte("x")}},
		{"all", content.Packet{Key: []byte("key"), Payload: []byte("payload"), Expiry: 4_000_000_000_123, NotBefore: 2, EnqueuedAt: 3, Tags: []content.Tag{{Name: "a", Value: "b"}}, Attempts: 4, Producer: "me", Hash: 0, Identity: 0, Unique: nil}},
		{"payload-255", content.Packet{Payload: long[:255]}},
		{"payload-256", content.Packet{Payload: long[:256]}},
		{"payload-1024", content.Packet{Payload: long[:1024]}},
		{"payload-1025", content.Packet{Payload: long[:1025]}},
		{"payload-65535", content.Packet{Payload: long[:65535]}},
		{"payload-65536", content.Packet{Payload: long[:65536]}},
		{"hash", content.Packet{Payload: long[:1025], Hash: 0x0123456789abcdef}},
		{"identity", content.Packet{Payload: []byte("hello"), Identity: 1<<63 + 1}},
		{"kept", content.Packet{Payload: []byte("hello"), Expiry: 4_000_000_000_123, Attempts: 2, Identity: 1 << 63}},
	}
}

func goldenControl() content.Control {
	c := content.Control{Epoch: 2, Batch: 1000, Time: 1_800_000_000_000, Tally: content.Tally{Live: 70_000, Hash: 0xfedcba9876543210}, Marks: content.Marks{NextSeq: 1<<63 + 5, LowSeq: 1<<63 - 2, NextQueue: 300, LastKey: 70_000}}
	c.Keys, c.KeyHash = 300, 0xffffffff00000000
	c.Deliveries, c.DeliveryHash = 200, 0x00ff00ff00ff00ff
	return c
}

// golden items, one of each shape.
func goldenItems() map[content.ValueID]content.Item {
	long := bytes.Repeat([]byte("0123456789abcdef"), 100)
	return map[content.ValueID]content.Item{
		{ID: 1}:                           {Kind: content.String, Name: []byte("string"), Version: 1, Value: []byte("text")},
		{ID: 2}:                           {Kind: content.String, Name: []byte{}, Version: 70_000, Value: []byte{}, Expiry: 4_000_000_000_123},
		{ID: 3}:                           {Kind: content.String, Name: []byte("large"), Version: 3, Value: long},
		{ID: 4}:                           {Kind: content.Hash, Name: []byte("hash"), Version: 4, Value: []byte{}},
		{ID: 4, Field: 5, IsField: true}:  {Name: []byte("small"), Version: 6, Value: long[:1024]},
		{ID: 4, Field: 7, IsField: true}:  {Name: []byte("large"), Version: 8, Value: long[:1025]},
		{ID: 99, Field: 1, IsField: true}: {Name: []byte("left over"), Version: 9, Value: []byte("x")},
		{ID: 5}:                           {Kind: content.String, Database: 9, Name: []byte("string"), Version: 5, Value: []byte("in database 9")},
	}
}

func goldenFlush() content.Flush {
	return content.Flush{{Keys: 1 << 40, Queues: 300}, 15: {Keys: 7, Queues: 1}}
}

// golden delivery states, one of each shape, with their notes.
func goldenDeliveries() []content.Delivery {
	return []content.Delivery{
		{Identity: 1<<63 + 2, State: content.Ready},
		{Identity: 1<<63 + 3, State: content.Claimed, Until: 1_900_000_000_000, Attempts: 1, Token: 1<<63 + 30,
			FirstClaim: 1_800_000_000_000, LastClaim: 1_800_000_000_000, Consumer: "worker-1", Progress: "\x32half"},
		{Identity: 1<<63 + 4, State: content.Delayed, Until: 1_900_000_000_000, Attempts: 70_000, Token: 1<<63 + 31,
			FirstClaim: 1, LastClaim: -2, Consumer: strings.Repeat("w", 40), Origin: 2, Expiry: 4_000_000_000_123, Reason: "no route"},
		{Identity: 1<<63 + 5, State: content.Dead, Attempts: 5, Reason: "poison", Progress: "\x00"},
		{Identity: 1<<63 + 18, State: content.Done, Expiry: 4_000_000_000_123},
	}
}

// golden settings and counters of a queue.
func goldenSettings() (*content.Settings, content.Counters) {
	return &content.Settings{MaxAttempts: 5, Lease: 30_000, BackoffMin: 1000, BackoffMax: 600_000, DeadLetter: []byte("dead"), Retain: 86_400_000},
		content.Counters{Pushed: 70_000, Popped: 6, Acked: 5, Nacked: 4, Expired: 3, Dead: 2}
}

// goldenSettingsAndCounters are those of the golden records of their names.
func goldenSettingsAndCounters() map[string]content.Queue {
	settings, counters := goldenSettings()
	bounded := &content.Settings{
		MaxAttempts: 5, DeadLetter: []byte{}, Bound: 1000, BoundBytes: 1 << 40, Full: content.FullDrop,
		ExclusiveProducer: true, ExclusiveConsumer: true, PauseIn: true, PauseOut: true, Closed: true,
		Orders: []content.Order{{Tag: "class", Values: []string{"low", "high"}}, {Tag: "size\xff", Values: []string{""}}},
	}
	return map[string]content.Queue{
		"1":       {Settings: settings, Counters: counters},
		"0":       {Settings: &content.Settings{DeadLetter: []byte{}}},
		"bounded": {Settings: bounded, Counters: content.Counters{Dropped: 70_000}},
		"closed":  {Settings: &content.Settings{DeadLetter: []byte{}, Closed: true}, Counters: content.Counters{Dead: 1, Dropped: 1}},
	}
}

// goldenRecords are lines of name and hex.
func goldenRecords() string {
	var out strings.Builder
	for _, g := range goldenPackets() {
		if len(g.packet.Payload) > 2000 {
			continue // in the folders only
		}
		fmt.Fprintf(&out, "packet %s %x\n", g.name, content.AppendRecord(nil, &g.packet))
		if content.IsLarge(len(g.packet.Payload)) {
			fmt.Fprintf(&out, "head %s %x\n", g.name, appendHead(nil, &g.packet))
		}
	}
	control := goldenControl()
	fmt.Fprintf(&out, "control - %x\n", content.AppendControl(nil, &control))
	fmt.Fprintf(&out, "queue jobs %x\n", content.AppendQueue(nil, &content.Queue{Name: []byte("jobs")}))
	fmt.Fprintf(&out, "queue gone %x\n", content.AppendQueue(nil, &content.Queue{Name: []byte("gone"), Expiry: 4_000_000_000_123, Dropped: true}))
	for _, name := range []string{"1", "0", "bounded", "closed"} {
		q := goldenSettingsAndCounters()[name]
		q.Name = []byte("work")
		fmt.Fprintf(&out, "settings %s %x\n", name, content.AppendQueue(nil, &q))
	}
	for i, d := range goldenDeliveries() {
		fmt.Fprintf(&out, "delivery %d %x\n", i, content.AppendDelivery(nil, &d))
	}
	fmt.Fprintf(&out, "state-key - %x %x\n", content.AppendStateKey(nil, content.NoteID{Identity: 1 << 63, Kind: 0}), content.AppendStateKey(nil, content.NoteID{Identity: 1 << 63, Kind: content.NoteProgress}))
	_, counters := goldenSettings()
	fmt.Fprintf(&out, "counters - %x\n", content.AppendCounters(nil, &counters))
	fmt.Fprintf(&out, "flush - %x\n", content.AppendFlush(nil, goldenFlush()))
	for _, v := range []content.ValueID{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}, {ID: 4, Field: 5, IsField: true}, {ID: 4, Field: 7, IsField: true}, {ID: 5}} {
		i := goldenItems()[v]
		if i.Large = content.IsLarge(len(i.Value)); i.Large {
			i.Size, i.Value = uint64(len(i.Value)), nil
		}
		fmt.Fprintf(&out, "item %d,%d %x\n", v.ID, v.Field, content.AppendItem(nil, &i))
		fmt.Fprintf(&out, "item-key %d,%d %x %x %016x\n", v.ID, v.Field, content.AppendItemKey(nil, v), content.AppendValueKey(nil, v), content.ItemHash(v, i.Version))
	}
	fmt.Fprintf(&out, "queue - %x\n", content.AppendQueue(nil, &content.Queue{Name: []byte{}}))
	id := content.PacketID{Queue: 1, Priority: 2, Seq: 1 << 63}
	fmt.Fprintf(&out, "key packet %x\nkey payload %x\nkey queue %x\nkey control %x\n",
		content.AppendPacketKey(nil, id), content.AppendPayloadKey(nil, id), content.AppendQueueKey(nil, 7), content.ControlKey)
	fmt.Fprintf(&out, "hash {%d,%d,%d} %016x\n", id.Queue, id.Priority, id.Seq, content.SetHash(id))
	var slot [anchorSlot]byte
	encodeAnchor(slot[:], anchorMark{epoch: 3, batch: 1000, always: true})
	fmt.Fprintf(&out, "anchor - %x\n", slot[:anchorBody+4])
	return out.String()
}

// goldenUnique are what came with unique pushes, and with shares.
func goldenUnique() string {
	u := content.Unique{UniqueID: content.UniqueID{Queue: 7, Identity: 1<<63 + 1}, ID: []byte("order-17"), Until: 0}
	window := u
	window.Until = 4_000_000_000_123
	claim := u
	claim.UntilClaim = true
	share := content.Share{ShareID: content.ShareID{Queue: 7, Number: 300}, Name: []byte("acme"), Weight: 10}
	return fmt.Sprintf("unique-key - %x %016x\nunique packet %x\nunique window %x\nunique claim %x\nshare-key - %x\nshare weight %x\n",
		content.AppendUniqueKey(nil, u.UniqueID), content.UniqueHash(u.UniqueID), content.AppendUnique(nil, &u), content.AppendUnique(nil, &window), content.AppendUnique(nil, &claim),
		content.AppendShareKey(nil, share.ShareID), content.AppendShare(nil, &share))
}

func TestRecordsOfThisVersionAreWrittenAsEver(t *testing.T) {
	for name, text := range map[string]string{"records.txt": goldenRecords(), "unique.txt": goldenUnique()} {
		name := filepath.Join(goldenFolder, name)
		writeGolden(t, name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(text, "\n")
		for i, line := range strings.Split(string(want), "\n") {
			if i >= len(got) || got[i] != line {
				t.Errorf("line %d of %s is no longer %.120s", i+1, name, line)
			}
		}
	}
}

func TestRecordsAreReadForEver(t *testing.T) {
	file, err := os.Open(filepath.Join(goldenFolder, "records.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packets := map[string]content.Packet{}
	for _, g := range goldenPackets() {
		packets[g.name] = g.packet
	}
	lines, read := bufio.NewScanner(file), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		raw, err := hex.DecodeString(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		switch fields[0] {
		case "packet":
			var p content.Packet
			if err := content.DecodeRecord(raw, &p); err != nil || !same(p, packets[fields[1]]) {
				t.Errorf("%s reads as %+v, %v", fields[1], p, err)
			}
		case "head":
			var m content.Meta
			if err := content.DecodeMeta(raw, &m); err != nil || !m.Large || int(m.Size) != len(packets[fields[1]].Payload) {
				t.Errorf("%s reads as %+v, %v", fields[1], m, err)
			}
		case "control":
			var c content.Control
			if err := content.DecodeControl(raw, &c); err != nil || c != goldenControl() {
				t.Errorf("the control record reads as %+v, %v", c, err)
			}
		case "item":
			var v content.ValueID
			var got content.Item
			_, err := fmt.Sscanf(fields[1], "%d,%d", &v.ID, &v.Field)
			v.IsField = v.Field > 0
			want := goldenItems()[v]
			if err = errors.Join(err, content.DecodeItem(raw, &got)); got.Large && int(got.Size) == len(want.Value) {
				got.Value = want.Value
			}
			if err != nil || !sameItem(got, want) {
				t.Errorf("%v reads as %+v, %v", v, got, err)
			}
		case "flush":
			if f, err := content.DecodeFlush(raw); err != nil || f != goldenFlush() {
				t.Errorf("the flush record reads as %+v, %v", f, err)
			}
		case "delivery":
			var i int
			_, err := fmt.Sscan(fields[1], &i)
			want := goldenDeliveries()[i]
			want.Reason, want.Progress = "", "" // records of their own
			got := want
			if err = errors.Join(err, content.DecodeDelivery(raw, want.Identity, &got)); err != nil || got != want {
				t.Errorf("delivery state %d reads as %+v, %v", i, got, err)
			}
		case "settings":
			want := goldenSettingsAndCounters()[fields[1]]
			var q content.Queue
			want.Counters = content.Counters{} // they have a record of their own
			if err := content.DecodeQueue(raw, &q); err != nil || !reflect.DeepEqual(q.Settings, want.Settings) || q.Counters != want.Counters {
				t.Errorf("the settings read as %+v, %v", q, err)
			}
		case "counters":
			var c content.Counters
			_, want := goldenSettings()
			if err := content.DecodeCounters(raw, &c); err != nil || c != want {
				t.Errorf("the counters read as %+v, %v", c, err)
			}
		case "anchor":
			if m, ok := decodeAnchor(raw); !ok || m != (anchorMark{3, 1000, true}) {
				t.Errorf("the anchor reads as %+v", m)
			}
		default:
			continue
		}
		read++
	}
	if lines.Err() != nil || read < 17 {
		t.Errorf("%d records read, %v", read, lines.Err())
	}
}

// goldenBatches fill the golden folders.
func goldenBatches(s *Store) error {
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true})
	for i, g := range goldenPackets() {
		b.Put(content.PacketID{Queue: 1, Priority: uint32(i % 3), Seq: 1<<63 + uint64(i)}, &g.packet)
	}
	for v, i := range goldenItems() {
		put(&b, v, i, 0, false, content.Mark{})
	}
	b.PutQueue(content.Queue{ID: 2, Name: []byte("gone"), New: true, Dropped: true})
	settings, counters := goldenSettings()
	b.PutQueue(content.Queue{ID: 3, Name: []byte("work"), New: true, Settings: settings, Counters: counters})
	bounded := goldenSettingsAndCounters()["bounded"]
	bounded.ID, bounded.Name, bounded.New = 4, []byte("bounded"), true
	b.PutQueue(bounded)
	b.PutQueue(content.Queue{ID: 5, Database: 9, Name: []byte("jobs"), New: true})
	for _, d := range goldenDeliveries() {
		b.PutDelivery(&d, 0)
	}
	b.SetFlush(content.Flush{{Keys: 1, Queues: 1}, 3: {Keys: 1, Queues: 1}})
	b.SetMarks(content.Marks{NextSeq: 1<<63 + 16, LowSeq: 1<<63 - 1, NextQueue: 3, LastKey: 100})
	if err := s.Apply(&b); err != nil {
		return err
	}
	b.Reset()
	b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + 1}, content.Removed{})
	b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + 13}, content.Removed{Large: true})
	b.DeleteHead(1, content.Mark{Version: 1})
	return s.Apply(&b)
}

func TestFoldersAreOpenedForEver(t *testing.T) {
	for _, name := range []string{"closed.tar.gz", "killed.tar.gz"} {
		t.Run(name, func(t *testing.T) { openGolden(t, name) })
	}
}

func TestAFolderOfTheFormatBeforeIsOnlyLookedAt(t *testing.T) {
	for _, name := range []string{"closed.tar.gz", "killed.tar.gz"} {
		dir := t.TempDir()
		unpackFolder(t, filepath.Join(fmt.Sprintf("testdata/v%d", content.FormatBefore), name), dir)
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "can only dump") {
			t.Errorf("%s: a start says %v, want that it can be dumped", name, err)
		}
		v := openView(t, dir, ViewOptions{}) // also what only the journal has
		if ids, c := viewed(t, v), v.Control(); len(ids) != len(goldenPackets())-2 || c.Batch != 2 || c.Time != 0 {
			t.Errorf("%s: a view shows %d packets, and the control record %+v", name, len(ids), c)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// openGolden looks into a golden folder, and opens it twice.
func openGolden(t *testing.T, name string) {
	path := filepath.Join(goldenFolder, name)
	writeGolden(t, path, func(w io.Writer) error { return packFolder(t, w, name == "closed.tar.gz") })
	dir := t.TempDir()
	unpackFolder(t, path, dir)
	want := len(goldenPackets()) - 2 // the batches delete two
	v := openView(t, dir, ViewOptions{Tolerant: true})
	if ids := viewed(t, v); len(ids) != want || len(v.Findings()) > 0 {
		t.Errorf("a view shows %d packets and %v", len(ids), v.Findings())
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for epoch := range uint64(2) {
		s := smallStore(t, dir)
		if c := s.Control(); c.Batch != 2+epoch || c.Epoch != 1+epoch || c.NextSeq != 1<<63+16 {
			t.Errorf("control record %+v", c)
		}
		goldenContents(t, s, want)
		if text, err := os.ReadFile(filepath.Join(dir, formatName)); err != nil || string(text) != strconv.Itoa(content.FormatVersion)+"\n" {
			t.Errorf("the folder is of version %q, %v", text, err)
		}
		if err := errors.Join(s.write(&content.Batch{}), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	goldenDatabase(t, dir, want)
}

// goldenDatabase opens what lies in a stopped folder as any program opens a database of Badger.
func goldenDatabase(t *testing.T, dir string, want int) {
	t.Helper()
	db := filepath.Join(t.TempDir(), dbName)
	copyFolder(t, filepath.Join(dir, dbName), db)
	b, err := badger.Open(badger.DefaultOptions(db).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	packets := goldenPackets()
	found := 0
	err = b.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(content.PacketPrefix)})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			found++
			id, err := content.DecodePacketKey(it.Item().Key())
			if err != nil {
				return err
			}
			p := packets[id.Seq-1<<63].packet
			rec, expires := content.AppendRecord(nil, &p), content.NativeExpiry(p.Expiry)
			if content.IsLarge(len(p.Payload)) {
				rec = appendHead(nil, &p)
				payload, err := txn.Get(content.AppendPayloadKey(nil, id))
				if err != nil {
					return err
				}
				if b, err := payload.ValueCopy(nil); err != nil || !bytes.Equal(b, p.Payload) || payload.ExpiresAt() != expires {
					t.Errorf("the payload of packet %v has %d bytes until %d, %v", id, len(b), payload.ExpiresAt(), err)
				}
			}
			if b, err := it.Item().ValueCopy(nil); err != nil || !bytes.Equal(b, rec) || it.Item().ExpiresAt() != expires {
				t.Errorf("packet %v is %x until %d, %v", id, b, it.Item().ExpiresAt(), err)
			}
		}
		_, err := txn.Get([]byte(content.ControlKey))
		return err
	})
	if err != nil || found != want {
		t.Errorf("it shows %d packets, %v", found, err)
	}
}

// goldenContents checks what a golden folder holds.
func goldenContents(t *testing.T, s *Store, want int) {
	t.Helper()
	ids, tally := scanned(t, s)
	if len(ids) != want {
		t.Errorf("%d packets", len(ids))
	}
	packets := goldenPackets()
	s.Read(ids, func(i int, rec []byte, _ error) {
		var p content.Packet
		g := packets[ids[i].Seq-1<<63]
		if err := content.DecodeRecord(rec, &p); err != nil || !same(p, g.packet) {
			t.Errorf("%s reads as %+v, %v", g.name, p, err)
		}
	})
	queues := ""
	err := s.Queues(func(q content.Queue) error {
		queues += fmt.Sprintf("%d %d:%s %v;", q.ID, q.Database, q.Name, q.Dropped)
		if settings, counters := goldenSettings(); q.ID == 3 && (!reflect.DeepEqual(q.Settings, settings) || q.Counters != counters) {
			t.Errorf("queue %+v", q)
		}
		if bounded := goldenSettingsAndCounters()["bounded"]; q.ID == 4 && (!reflect.DeepEqual(q.Settings, bounded.Settings) || q.Counters != bounded.Counters) {
			t.Errorf("queue %+v", q)
		}
		return nil
	})
	const wantQueues = "1 0:jobs false;2 0:gone true;3 0:work false;4 0:bounded false;5 9:jobs false;"
	if err != nil || queues != wantQueues || s.Flush() != (content.Flush{{Keys: 1, Queues: 1}, 3: {Keys: 1, Queues: 1}}) {
		t.Errorf("queues %s, flush record %+v, %v", queues, s.Flush(), err)
	}
	items, got, large := goldenItems(), 0, 0
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	err = n.Items(func(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
		got++
		var i content.Item
		if h != nil {
			i = content.Item{Kind: h.Kind, Database: h.Database, Name: h.Name, Version: h.Version, Expiry: h.Expiry, Value: h.Value}
		} else {
			i = content.Item{Name: f.Name, Version: f.Version, Value: f.Value}
		}
		if content.IsLarge(len(i.Value)) {
			large++
		}
		if want, ok := items[v]; !ok || !sameItem(i, want) || damage != nil {
			return fmt.Errorf("%v is %+v, %w", v, i, damage)
		}
		return nil
	})
	if err != nil || got != len(items)-1 || large != 2 { // the batches delete one
		t.Errorf("%d items, %d of them large, %v", got, large, err)
	}
	states := goldenDeliveries()
	err = n.Deliveries(func(d *content.Delivery, damage error) error {
		if len(states) == 0 || damage != nil || states[0] != *d {
			return fmt.Errorf("delivery state %+v, %w", d, damage)
		}
		states = states[1:]
		return nil
	})
	if err != nil || len(states) != 0 {
		t.Errorf("delivery states that are not there: %v; %v", states, err)
	}
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
}

// writeGolden makes a golden file that is missing, when asked to.
func writeGolden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	if _, err := os.Stat(name); err == nil || os.Getenv("HOLDFAST_GOLDEN") != "write" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func packFolder(t *testing.T, w io.Writer, closed bool) error {
	dir := t.TempDir()
	s := smallStore(t, dir)
	if err := goldenBatches(s); err != nil {
		return err
	}
	if !closed {
		dir = killed(t, s)
	} else if err := s.Close(); err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	pack := tar.NewWriter(zip)
	err := pack.AddFS(os.DirFS(dir))
	return errors.Join(err, pack.Close(), zip.Close())
}

func unpackFolder(t *testing.T, name, dir string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	pack := tar.NewReader(zip)
	for {
		header, err := pack.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.FileInfo().IsDir() {
			err = os.MkdirAll(to, 0o700)
		} else {
			var body []byte
			if body, err = io.ReadAll(pack); err == nil {
				err = os.WriteFile(to, body, fs.FileMode(0o600))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
