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
	"strings"
	"testing"
)

// The files in testdata/v1 are what version 1 of the format wrote. They are
// read for ever and never written again; HOLDFAST_GOLDEN=write makes those
// that are missing, for a new version.

const goldenFolder = "testdata/v1"

// golden packets, one of each shape.
func goldenPackets() []struct {
	name   string
	packet Packet
} {
	long := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	return []struct {
		name   string
		packet Packet
	}{
		{"nothing", Packet{}},
		{"payload", Packet{Payload: []byte("hello")}},
		{"key", Packet{Key: []byte("key"), Payload: []byte("hello")}},
		{"empty-key", Packet{Key: []byte{}, Payload: []byte("hello")}},
		{"times", Packet{Expiry: 4_000_000_000_123, NotBefore: 1_900_000_000_000, EnqueuedAt: 1_800_000_000_000}},
		{"negative-time", Packet{NotBefore: -1_000_000}},
		{"tags", Packet{Payload: []byte("x"), Tags: []Tag{{"color", "red"}, {"size", ""}}}},
		{"attempts", Packet{Attempts: 70_000, Payload: []byte("x")}},
		{"producer", Packet{Producer: "worker-1", Payload: []byte("x")}},
		{"all", Packet{[]byte("key"), []byte("payload"), 4_000_000_000_123, 2, 3, []Tag{{"a", "b"}}, 4, "me", 0}},
		{"payload-255", Packet{Payload: long[:255]}},
		{"payload-256", Packet{Payload: long[:256]}},
		{"payload-1024", Packet{Payload: long[:1024]}},
		{"payload-1025", Packet{Payload: long[:1025]}},
		{"payload-65535", Packet{Payload: long[:65535]}},
		{"payload-65536", Packet{Payload: long[:65536]}},
	}
}

func goldenControl() Control {
	return Control{Epoch: 2, Batch: 1000, Tally: Tally{Live: 70_000, Hash: 0xfedcba9876543210}, Marks: Marks{1<<63 + 5, 1<<63 - 2, 300, 0}}
}

// goldenRecords are lines of name and hex.
func goldenRecords() string {
	var out strings.Builder
	for _, g := range goldenPackets() {
		if len(g.packet.Payload) > 2000 {
			continue // in the folders only
		}
		fmt.Fprintf(&out, "packet %s %x\n", g.name, AppendRecord(nil, &g.packet))
		if IsLarge(len(g.packet.Payload)) {
			fmt.Fprintf(&out, "head %s %x\n", g.name, appendHead(nil, &g.packet))
		}
	}
	control := goldenControl()
	fmt.Fprintf(&out, "control - %x\n", appendControl(nil, &control, nil))
	fmt.Fprintf(&out, "queue jobs %x\n", appendQueue(nil, &Queue{Name: []byte("jobs")}))
	fmt.Fprintf(&out, "queue - %x\n", appendQueue(nil, &Queue{Name: []byte{}}))
	id := PacketID{1, 2, 1 << 63}
	fmt.Fprintf(&out, "key packet %x\nkey payload %x\nkey queue %x\nkey control %x\n",
		appendPacketKey(nil, id), appendPayloadKey(nil, id), appendQueueKey(nil, 7), controlKey)
	fmt.Fprintf(&out, "hash {%d,%d,%d} %016x\n", id.Queue, id.Priority, id.Seq, SetHash(id))
	var slot [anchorSlot]byte
	encodeAnchor(slot[:], anchorMark{epoch: 3, batch: 1000, always: true})
	fmt.Fprintf(&out, "anchor - %x\n", slot[:anchorBody+4])
	return out.String()
}

func goldenSecret() []byte { return []byte("0123456789abcdef") }

// goldenSecrets are what came with the secret.
func goldenSecrets() string {
	control := goldenControl()
	return fmt.Sprintf("control - %x\nsecret - %x\n", appendControl(nil, &control, goldenSecret()), encodeSecret(goldenSecret()))
}

func TestVersion1RecordsAreWrittenAsEver(t *testing.T) {
	for name, text := range map[string]string{"records.txt": goldenRecords(), "secret.txt": goldenSecrets()} {
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

func TestVersion1SecretIsReadForEver(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(goldenFolder, "secret.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var raw [2][]byte // of the control record and of the file
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if raw[i], err = hex.DecodeString(strings.Fields(line)[2]); err != nil {
			t.Fatal(err)
		}
	}
	var c Control
	if err := decodeControl(raw[0], &c); err != nil || c != goldenControl() || !bears(raw[0], goldenSecret()) {
		t.Errorf("the control record reads as %+v, %v", c, err)
	}
	if secret, ok := decodeSecret(raw[1]); !ok || !bytes.Equal(secret, goldenSecret()) {
		t.Errorf("the secret reads as %x", secret)
	}
}

func TestVersion1RecordsAreReadForEver(t *testing.T) {
	file, err := os.Open(filepath.Join(goldenFolder, "records.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packets := map[string]Packet{}
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
			var p Packet
			if err := DecodeRecord(raw, &p); err != nil || !same(p, packets[fields[1]]) {
				t.Errorf("%s reads as %+v, %v", fields[1], p, err)
			}
		case "head":
			var m Meta
			if err := decodeMeta(raw, &m); err != nil || !m.Large || int(m.Size) != len(packets[fields[1]].Payload) {
				t.Errorf("%s reads as %+v, %v", fields[1], m, err)
			}
		case "control":
			var c Control
			if err := decodeControl(raw, &c); err != nil || c != goldenControl() {
				t.Errorf("the control record reads as %+v, %v", c, err)
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
	if lines.Err() != nil || read < len(packets)+1 {
		t.Errorf("%d records read, %v", read, lines.Err())
	}
}

// goldenBatches fill the golden folders.
func goldenBatches(s *Store) error {
	var b Batch
	b.PutQueue(Queue{ID: 1, Name: []byte("jobs"), New: true})
	for i, g := range goldenPackets() {
		b.Put(PacketID{1, uint32(i % 3), 1<<63 + uint64(i)}, &g.packet)
	}
	b.SetMarks(Marks{1<<63 + 16, 1<<63 - 1, 2, 0})
	if err := s.Apply(&b); err != nil {
		return err
	}
	b.Reset()
	b.Delete(PacketID{1, 1, 1<<63 + 1}, Removed{})
	b.Delete(PacketID{1, 1, 1<<63 + 13}, Removed{Large: true})
	return s.Apply(&b)
}

func TestVersion1FoldersAreOpenedForEver(t *testing.T) {
	for _, name := range []string{"closed.tar.gz", "killed.tar.gz", "killed-secret.tar.gz"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(goldenFolder, name)
			writeGolden(t, path, func(w io.Writer) error { return packFolder(t, w, name == "closed.tar.gz") })
			dir := t.TempDir()
			unpackFolder(t, path, dir)
			v := openView(t, dir, ViewOptions{Tolerant: true})
			if ids := viewed(t, v); len(ids) != 14 || len(v.Findings()) > 0 {
				t.Errorf("a view shows %d packets and %v", len(ids), v.Findings())
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			s := openTest(t, dir, Options{MemTable: minMemTable})
			if c := s.Control(); c.Batch != 2 || c.Epoch != 1 || c.NextSeq != 1<<63+16 {
				t.Errorf("control record %+v", c)
			}
			ids, tally := scanned(t, s)
			if err := s.Verify(tally); err != nil || len(ids) != 14 {
				t.Errorf("%d packets, %v", len(ids), err)
			}
			packets := goldenPackets()
			err := s.Read(ids, func(i int, rec []byte) error {
				var p Packet
				g := packets[ids[i].Seq-1<<63]
				if err := DecodeRecord(rec, &p); err != nil || !same(p, g.packet) {
					return fmt.Errorf("%s reads as %+v, %w", g.name, p, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			err = s.Queues(func(q Queue) error {
				if q.ID != 1 || string(q.Name) != "jobs" {
					return fmt.Errorf("queue %+v", q)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
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
	live, dir := t.TempDir(), t.TempDir()
	s := smallStore(t, live)
	if err := goldenBatches(s); err != nil {
		return err
	}
	if closed {
		if err := s.Close(); err != nil {
			return err
		}
	}
	copyFolder(t, live, dir)
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
