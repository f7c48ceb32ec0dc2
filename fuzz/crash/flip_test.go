package crash

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// flips is how many bytes each variant flips, one in each copy of the folder.
func flips() int { return 5 * inject.Runs() }

// viaBinary is how many of them are tried with the real binary as well.
const viaBinary = 4

func TestFlippedByteIsDetectedOrHarmless(t *testing.T) {
	binary := serve(build(t, "cmd/holdfast"))
	for name, end := range map[string]func(*Server) error{
		"stopped cleanly": (*Server).Terminate,
		"killed":          func(s *Server) error { s.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			folder, want := filledFolder(t, binary, end)
			if got, err := openFolder(copyFolder(t, folder)); err != nil {
				t.Fatalf("the folder as it is: %v", err)
			} else if len(got.packets) != len(want) {
				t.Fatalf("the folder holds %d packets, expected %d", len(got.packets), len(want))
			}
			whole, err := openFolder(copyFolder(t, folder))
			if err != nil {
				t.Fatal(err)
			}
			seed := runSeed()
			t.Logf("seed %d", seed)
			flipAll(t, rand.New(rand.NewPCG(seed, 0)), folder, whole, binary, want)
		})
	}
}

// flipAll flips one byte in each of many copies, and checks what the server makes of it.
func flipAll(t *testing.T, rng *rand.Rand, folder string, whole contents, binary Command, want map[string]bool) {
	places := flipPlaces(t, rng, folder)
	detected := map[string]int{}
	harmless := map[string]int{}
	for i, p := range places {
		dir := copyFolder(t, folder)
		p.flip(t, dir)
		if i < viaBinary {
			checkBinary(t, p, binary, dir, want)
			continue
		}
		got, err := openFolder(dir)
		kind := p.kind()
		switch {
		case err != nil:
			if errors.Is(err, errAtPop) {
				kind += " by a pop"
			}
			detected[kind]++
			if !isOurs(err) {
				t.Errorf("%v: not an error of ours: %v", p, err)
			}
		case !got.equal(whole):
			t.Errorf("%v: silent: %s", p, got.difference(whole))
		default:
			harmless[kind]++
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("detected %v, harmless %v", detected, harmless)
}

// filledFolder runs the real binary and pushes and pops some thousand packets. It returns the
// folder after the end of the server, and the payloads in it.
func filledFolder(t *testing.T, binary Command, end func(*Server) error) (string, map[string]bool) {
	t.Helper()
	dir := t.TempDir()
	s, err := Start(binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	link, err := s.dial(pinpriqListener)
	if err != nil {
		t.Fatal(err)
	}
	defer link.conn.Close()
	want := map[string]bool{}
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		for i := range 64 {
			id := makeID(1, uint64(1+round*64+i))
			p := packet{id: id, key: ownKey(id), prio: uint8(1 + i%3), ttl: int32(60_000 * (i % 8 / 7))}
			if i%5 == 0 {
				p.key = keyOf(round % groupKeys)
			}
			size := payloadHeader + rng.IntN(300)
			if i == 7 {
				size = 3000
			}
			link.addPush(fmt.Sprint("queue ", i%4), &p, size)
			want[string(appendPayload(nil, id, size))] = true
		}
		pops := 8
		for i := range pops {
			link.add(pinpriq.OpPop, fmt.Sprint("queue ", i%3))
		}
		if err := link.send(); err != nil {
			t.Fatal(err)
		}
		for range pops {
			if err := link.receive(func(_, payload []byte) { delete(want, string(payload)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := end(s); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

// contents is all that a folder holds.
type contents struct {
	packets map[content.PacketID]string // full records
	queues  map[uint32]string
}

func (c contents) equal(o contents) bool {
	return maps.Equal(c.packets, o.packets) && maps.Equal(c.queues, o.queues)
}

func (c contents) difference(o contents) string {
	missing, extra, other := 0, 0, 0
	for id, record := range o.packets {
		if got, ok := c.packets[id]; !ok {
			missing++
		} else if got != record {
			other++
		}
	}
	for id := range c.packets {
		if _, ok := o.packets[id]; !ok {
			extra++
		}
	}
	return fmt.Sprintf("%d packets are missing, %d came back, %d are not the same; %d queues instead of %d",
		missing, extra, other, len(c.queues), len(o.queues))
}

// openFolder does what the server does at its start, and then reads everything. Findings and panics
// are errors.
func openFolder(dir string) (c contents, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	state, err := recovery.Restore(s, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		return c, err
	}
	if len(state.Report.Findings) > 0 {
		return c, fmt.Errorf("%w: %s", errFinding, strings.Join(state.Report.Findings, "; "))
	}
	c = contents{packets: map[content.PacketID]string{}, queues: map[uint32]string{}}
	for _, q := range state.Queues {
		c.queues[q.ID] = string(q.Name)
	}
	var ids []content.PacketID
	if err := s.Walk(storage.Visitor{Packet: func(id content.PacketID, _ *content.Meta, _ []byte, damage error) error {
		ids = append(ids, id)
		return damage
	}}); err != nil {
		return c, err
	}
	s.Read(ids, func(i int, record []byte, damage error) {
		if damage != nil {
			err = fmt.Errorf("%w: %w", errAtPop, damage)
		}
		c.packets[ids[i]] = string(record)
	})
	return c, err
}

var (
	errFinding = errors.New("the start report has a finding")
	// errAtPop: a start does not read the payloads of large packets. Damage there is found when the
	// packet is popped, and ends the server before it answers.
	errAtPop = errors.New("found by a pop")
)

func isOurs(err error) bool {
	var mismatch *content.MismatchError
	return errors.Is(err, errFinding) || errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrLoss) ||
		errors.Is(err, storage.ErrFormat) || errors.Is(err, storage.ErrNotFolder) || errors.As(err, &mismatch)
}

// place is one byte of one file.
type place struct {
	file string
	at   int64
	mask byte
}

func (p place) String() string {
	return fmt.Sprintf("%s byte %d ^ %02x", p.file, p.at, p.mask)
}

// kind is the kind of file, for the summary.
func (p place) kind() string {
	if ext := filepath.Ext(p.file); ext != "" {
		return ext
	}
	return filepath.Base(p.file)
}

func (p place) flip(t *testing.T, dir string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, p.file), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, err = file.ReadAt(b, p.at)
	if err == nil {
		b[0] ^= p.mask
		_, err = file.WriteAt(b, p.at)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// flipPlaces spreads the flips over the files of a folder: nine in ten over the bytes of those that
// hold packets, and the rest over all other files.
func flipPlaces(t *testing.T, rng *rand.Rand, folder string) []place {
	t.Helper()
	type used struct {
		name string
		size int64 // up to the last byte that is not zero
	}
	var data, others []used
	sum := int64(0)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		u := used{name, int64(len(bytes.TrimRight(b, "\x00")))}
		switch {
		case u.size == 0 || name == "lock":
		case filepath.Ext(name) == ".log" || filepath.Ext(name) == ".sst":
			data = append(data, u)
			sum += u.size
		default:
			others = append(others, u)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var places []place
	for i := range flips() {
		var u used
		if i%10 == 9 {
			u = others[rng.IntN(len(others))]
		} else {
			at := rng.Int64N(sum)
			n := slices.IndexFunc(data, func(u used) bool {
				at -= u.size
				return at < 0
			})
			u = data[n]
		}
		places = append(places, place{u.name, rng.Int64N(u.size), byte(1 << rng.IntN(8))})
	}
	return places
}

// checkBinary starts the real binary on a damaged folder. It must refuse with an error, report
// findings, or hold exactly what was there.
func checkBinary(t *testing.T, p place, binary Command, dir string, want map[string]bool) {
	t.Helper()
	s, err := Spawn(binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	select {
	case <-s.Exited():
		if s.Log().Panicked || s.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%v: ended with %v; its log:\n%s", p, s.cmd.ProcessState, s.Log())
		}
		t.Logf("%v: refused: %s", p, s.Log())
		return
	case <-s.listeners[pinpriqListener].known:
	case <-time.After(deadline):
		t.Fatalf("%v: neither listens nor ends", p)
	}
	if s.Log().Findings != 0 {
		t.Logf("%v: reported: %s", p, s.Log())
		return
	}
	link, err := s.dial(pinpriqListener)
	if err != nil {
		t.Fatal(err)
	}
	defer link.conn.Close()
	left := maps.Clone(want)
	for i := range 4 {
		for some := true; some; {
			some = false
			link.add(pinpriq.OpPop, fmt.Sprint("queue ", i))
			if err := link.send(); err != nil {
				t.Fatal(err)
			}
			if err := link.receive(func(_, payload []byte) {
				some = true
				if !left[string(payload)] {
					t.Errorf("%v: silent: a packet that was not there came", p)
				}
				delete(left, string(payload))
			}); err != nil {
				<-s.Exited()
				if s.Log().Panicked || s.cmd.ProcessState.ExitCode() != 1 {
					t.Errorf("%v: a pop ended it with %v (%v); its log:\n%s", p, s.cmd.ProcessState, err, s.Log())
				}
				t.Logf("%v: found by a pop: %s", p, s.Log())
				return
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("%v: silent: %d packets are missing", p, len(left))
	}
	t.Logf("%v: harmless", p)
}

// copyFolder copies a data folder without the reserve file. Zeros at the end of a file stay sparse.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case rel == "reserve":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Join(to, rel)
		if err := os.WriteFile(name, bytes.TrimRight(b, "\x00"), 0o600); err != nil {
			return err
		}
		return os.Truncate(name, int64(len(b)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
