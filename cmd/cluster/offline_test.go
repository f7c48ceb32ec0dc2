package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
	"github.com/holdfast-queue/holdfast/storage/content"
)

var quiet = slog.New(slog.DiscardHandler)

func TestNoCellIsFoundedAtAnAddressThatOthersReach(t *testing.T) {
	folder := t.TempDir()
	err := Found(folder, Config{Node: "a", Nodes: map[string]string{"a": "10.0.0.1:7380"}}, quiet)
	if !errors.Is(err, peer.ErrPlain) || !storage.IsEmpty(folder) {
		t.Errorf("it is founded: %v", err)
	}
}

// alter changes something in the etcd of a node that does not run, and has the others.
func (m *machine) alter(t *testing.T, change func(etcd *cell.Member) error) {
	t.Helper()
	etcd, err := cell.Start(t.Context(), memberOf(&m.Config, m.folder, quiet))
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	if err := change(etcd); err != nil {
		t.Fatal(err)
	}
}

// onlyInTheLog has a node alone take packets, and gives it the tables back that it had before. Its
// log is not cut.
func (m *machine) onlyInTheLog(t *testing.T, packets int) {
	t.Helper()
	m.alter(t, func(etcd *cell.Member) error {
		_, err := etcd.Client().Put(t.Context(), "copy/test", "0")
		return err
	})
	old := m.folder + " of before"
	err := os.CopyFS(old, os.DirFS(m.folder))
	if err = errors.Join(err, os.RemoveAll(filepath.Join(old, storage.CellName))); err != nil {
		t.Fatal(err)
	}
	m.launch(t)
	m.await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Nodes[0].Role == owning })
	m.push(t, packets)
	m.halt(t)
	if err := os.Rename(filepath.Join(m.folder, storage.CellName), filepath.Join(old, storage.CellName)); err != nil {
		t.Fatal(err)
	}
	m.folder = old
}

// packets are those of a folder that is of no cell.
func packets(t *testing.T, folder string) uint64 {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, storage.CellName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is of a cell still: %v", err)
	}
	store, err := storage.Open(folder, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	return store.Control().Live
}

func TestWhatIsLeftOfAnEarlierCellIsNoReasonToLeaveOneUnread(t *testing.T) {
	all := trio(t)
	a := all[0]
	if err := os.Mkdir(filepath.Join(a.folder, storage.CellName, goneName), 0o700); err != nil {
		t.Fatal(err)
	}
	a.alter(t, func(etcd *cell.Member) error {
		_, err := etcd.Add(t.Context(), "b", all[1].Nodes["b"])
		return err
	})
	if err := Leave(t.Context(), a.folder, quiet); err == nil || !strings.Contains(err.Error(), "1 other") {
		t.Errorf("it leaves: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(a.folder, storage.CellName, storage.MemberName, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	if err := Leave(t.Context(), a.folder, quiet); !errors.Is(err, cell.ErrDamaged) {
		t.Errorf("without etcd's log it leaves: %v", err)
	}
	single := filepath.Join(t.TempDir(), "single")
	if err := os.MkdirAll(filepath.Join(single, storage.CellName, goneName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Found(single, a.Config, quiet); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(single, storage.CellName, goneName)); err == nil {
		t.Error("what is left of an earlier cell is there still")
	}
}

func TestTheLastNodeLeavesWithWhatOnlyItsLogHas(t *testing.T) {
	a := trio(t)[0]
	a.onlyInTheLog(t, 10)
	part := filepath.Join(copyFolder(a.folder), "restoring") // of a copy that is not whole
	if err := os.MkdirAll(part, 0o700); err != nil {
		t.Fatal(err)
	}
	o, err := ReadOffline(t.Context(), a.folder, quiet)
	if err != nil || o.Tables != 0 || o.Log < 10 || o.Others != 0 || len(o.Cell) < 20 {
		t.Errorf("the folder has %+v, %v", o, err)
	}
	if _, err := os.Stat(part); err != nil {
		t.Errorf("who only asks deletes a copy: %v", err)
	}
	if err := Leave(t.Context(), a.folder, quiet); err != nil {
		t.Fatal(err)
	}
	if got := packets(t, a.folder); got != 10 {
		t.Errorf("%d packets are left, want 10", got)
	}
	if err := Leave(t.Context(), a.folder, quiet); err == nil {
		t.Error("the folder of a single server leaves a cell")
	}
}

func TestTheLastNodeLeavesACellWhoseKeysCannotBeReadThatItDoesNotNeed(t *testing.T) {
	for _, key := range []string{"cell", "owner", "floor/b"} {
		t.Run(key, func(t *testing.T) {
			a := trio(t)[0]
			a.onlyInTheLog(t, 10)
			a.alter(t, func(etcd *cell.Member) error {
				_, err := etcd.Client().Put(t.Context(), key, "none")
				return err
			})
			if err := Leave(t.Context(), a.folder, quiet); err != nil {
				t.Fatal(err)
			}
			if got := packets(t, a.folder); got != 10 {
				t.Errorf("%d packets are left, want 10", got)
			}
		})
	}
}

func TestANodeDoesNotStartInACellWithoutItsId(t *testing.T) {
	a := trio(t)[0]
	a.alter(t, func(etcd *cell.Member) error {
		_, err := etcd.Client().Delete(t.Context(), "cell")
		return err
	})
	if _, err := cell.Start(t.Context(), memberOf(&a.Config, a.folder, quiet)); !errors.Is(err, cell.ErrDamaged) {
		t.Errorf("the node starts: %v", err)
	}
}

func TestANodeDoesNotLeaveOthers(t *testing.T) {
	all := trio(t)
	all[0].alter(t, func(etcd *cell.Member) error {
		_, err := etcd.Add(t.Context(), "b", all[1].Nodes["b"])
		return err
	})
	if err := Leave(t.Context(), all[0].folder, quiet); err == nil || !strings.Contains(err.Error(), "1 other") {
		t.Errorf("it leaves: %v", err)
	}
	all[0].alter(t, func(etcd *cell.Member) error { // which a refusal does not change
		s, err := cell.NewLog(cell.Config{Client: etcd.Client()}).Status(t.Context())
		if len(s.Members) != 2 {
			t.Errorf("members: %v", s.Members)
		}
		return err
	})
}

func TestWhoIsLeftFoundsANewCellOnWhatItHas(t *testing.T) {
	all := trio(t)
	a, b := all[0], all[1]
	a.launch(t)
	a.await(t, func(c *admin.Cluster) bool { return c.Owner == "a" })
	b.launch(t)
	a.await(t, func(c *admin.Cluster) bool {
		return len(c.Nodes) == 2 && c.Nodes[1].Voter && c.Nodes[1].Role == follower
	})
	b.push(t, 15)
	a.halt(t)
	b.halt(t)
	old, err := ReadOffline(t.Context(), a.folder, quiet)
	if err != nil || old.Others != 1 {
		t.Fatalf("the folder has %+v, %v", old, err)
	}
	own, _ := peer.NextPort(b.Nodes["b"])
	there, err := net.Listen("tcp", own)
	if err != nil {
		t.Fatal(err)
	}
	if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err == nil || !strings.Contains(err.Error(), "node b answers") {
		t.Errorf("a new cell beside the old one: %v", err)
	}
	_ = there.Close()
	for want, c := range map[string]Config{
		"name all":         {Node: "a", Nodes: map[string]string{"a": a.Nodes["a"]}},
		"folder of node a": {Node: "b", Nodes: a.Nodes},
		"expected a port":  {Node: "a", Nodes: map[string]string{"a": a.Nodes["a"], "b": "127.0.0.1:65535"}},
	} {
		if err := FoundAnew(t.Context(), a.folder, c, quiet); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a new cell: %v, want %q", err, want)
		}
	}
	if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err != nil {
		t.Fatal(err)
	}
	a.launch(t)
	c := a.await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Nodes[0].Role == owning })
	if c.ID == old.Cell {
		t.Error("the new cell has the id of the old one")
	}
	if n := a.redis.LLen(t.Context(), "q").Val(); n != 15 {
		t.Errorf("%d packets are left, want 15", n)
	}
}

func TestWhoIsLeftBehindTheCutFoundsANewCellOnItsTables(t *testing.T) {
	a := trio(t)[0]
	a.onlyInTheLog(t, 10)
	o, err := ReadOffline(t.Context(), a.folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	a.alter(t, func(etcd *cell.Member) error { // as the others do when their tables have all
		_, err := etcd.Client().Put(t.Context(), "cut", strconv.FormatUint(o.Log, 10))
		return err
	})
	if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err != nil {
		t.Fatal(err)
	}
	a.launch(t)
	a.await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Nodes[0].Role == owning })
	if n := a.redis.LLen(t.Context(), "q").Val(); n != 0 {
		t.Errorf("%d packets are left, want none", n)
	}
}

func TestWhoIsLeftWithAHoleInTheLogFoundsANewCellOnWhatIsBeforeIt(t *testing.T) {
	harms := map[error]func(etcd *cell.Member){
		cell.ErrDamaged: func(etcd *cell.Member) { hole(t, etcd, 6, holes["a key is deleted"]) },
		storage.ErrLoss: func(etcd *cell.Member) { miscount(t, etcd, 6) },
		storage.ErrDamaged: func(etcd *cell.Member) {
			rewrite(t, etcd, 6, func([]byte) []byte { return []byte("short") })
		},
	}
	a := trio(t)[0]
	a.onlyInTheLog(t, 10)
	whole := a.folder
	for want, harm := range harms {
		a.folder = filepath.Join(t.TempDir(), "a")
		if err := os.CopyFS(a.folder, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		a.alter(t, func(etcd *cell.Member) error {
			harm(etcd)
			return nil
		})
		if err := Leave(t.Context(), a.folder, quiet); !errors.Is(err, want) {
			t.Errorf("it leaves: %v, want %v", err, want)
		}
		if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err != nil {
			t.Fatal(err)
		}
		a.launch(t)
		a.await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Nodes[0].Role == owning })
		if n := a.redis.LLen(t.Context(), "q").Val(); n == 0 || n > 7 {
			t.Errorf("%d packets are left, want those before the hole", n)
		}
		a.halt(t)
	}
}

func TestANodeWhoseLogHasNoReadableEndLeavesOnlyWithLoss(t *testing.T) {
	a := trio(t)[0]
	a.launch(t)
	a.await(t, func(c *admin.Cluster) bool { return c.Owner == "a" })
	a.push(t, 10)
	a.halt(t)
	whole := a.folder
	for _, harm := range []map[string]string{{"head": ""}, {"head": "", "cut": ""}, {"head": "none"}, {"cut": "none"}} {
		a.folder = filepath.Join(t.TempDir(), "a")
		if err := os.CopyFS(a.folder, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		a.alter(t, func(etcd *cell.Member) (err error) {
			for key, value := range harm {
				if _, err = etcd.Client().Put(t.Context(), key, value); value == "" && err == nil {
					_, err = etcd.Client().Delete(t.Context(), key)
				}
				if err != nil {
					break
				}
			}
			return err
		})
		if err := Leave(t.Context(), a.folder, quiet); !errors.Is(err, cell.ErrDamaged) {
			t.Errorf("%v: it leaves: %v", harm, err)
		}
		var log lines
		err := FoundAnew(t.Context(), a.folder, a.Config, slog.New(slog.NewTextHandler(&log, nil)))
		if err = errors.Join(err, Leave(t.Context(), a.folder, quiet)); err != nil {
			t.Errorf("%v: no new cell: %v", harm, err)
		} else if got := packets(t, a.folder); got != 10 {
			t.Errorf("%v: %d packets are left, want 10", harm, got)
		}
		if told := log.String(); !strings.Contains(told, "is not in the new cell") {
			t.Errorf("%v: of what may be lost is told %q", harm, told)
		}
	}
}

func TestALogThatWasNeverCutIsNotTakenForEmptyWithoutItsKeys(t *testing.T) {
	a := trio(t)[0]
	a.onlyInTheLog(t, 10)
	for _, key := range []string{"head", "cut"} {
		a.alter(t, func(etcd *cell.Member) error {
			_, err := etcd.Client().Delete(t.Context(), key)
			return err
		})
		if err := Leave(t.Context(), a.folder, quiet); !errors.Is(err, cell.ErrDamaged) {
			t.Errorf("it leaves: %v", err)
		}
	}
	if o, err := ReadOffline(t.Context(), a.folder, quiet); !errors.Is(err, cell.ErrDamaged) || o.Cell == "" {
		t.Errorf("the folder has %+v, %v", o, err)
	}
	var log lines
	if err := FoundAnew(t.Context(), a.folder, a.Config, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Error(err)
	}
	if told := log.String(); !strings.Contains(told, "is not in the new cell") {
		t.Errorf("of what is lost is told %q", told)
	}
}

// What a power cut leaves of a node's journal may have a hole. The log has what was there, unless
// it was cut.
func TestANewCellHasWhatTheLogHasAndADamagedJournalHasNot(t *testing.T) {
	a := trio(t)[0]
	a.alter(t, func(etcd *cell.Member) error { // so that the log is not cut
		_, err := etcd.Client().Put(t.Context(), "copy/test", "0")
		return err
	})
	a.launch(t)
	a.await(t, func(c *admin.Cluster) bool { return c.Owner == "a" })
	a.push(t, 10)
	cut := t.TempDir()
	for _, name := range []string{"anchor", "db", "format", "journal"} {
		if out, err := exec.Command("cp", "-r", filepath.Join(a.folder, name), cut).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	a.halt(t)
	o, err := ReadOffline(t.Context(), a.folder, quiet)
	if err != nil || o.Log < 10 {
		t.Fatalf("the folder has %+v, %v", o, err)
	}
	node := a.folder
	const whole = "as it was appended"
	for what, harm := range map[string]struct {
		at    int // each record here has a page of 4 KiB, as has the head of the file
		magic string
		cut   uint64 // the log
		end   string // what a hand puts in its place; "" deletes it
		want  uint64 // packets
	}{
		"a record":                 {5 * 4096, "HFRC", 0, whole, 10},
		"the head of a file":       {0, "HFSEG", 0, whole, 10},
		"a record, before the cut": {5 * 4096, "HFRC", 8, whole, 9},
		"a record, and the log was cut up to its end":   {5 * 4096, "HFRC", o.Log, whole, 9},
		"a record, and the log has no end":              {5 * 4096, "HFRC", 0, "", 9},
		"a record, and the log's end is none":           {5 * 4096, "HFRC", 0, "{}", 9},
		"a record, and the log's end is before the cut": {5 * 4096, "HFRC", 8, `{"batch":3}`, 9},
		"the head of a file, and the log was cut":       {0, "HFSEG", 8, whole, 0},
	} {
		folder := filepath.Join(t.TempDir(), "a")
		err := errors.Join(os.CopyFS(folder, os.DirFS(cut)), os.CopyFS(filepath.Join(folder, storage.CellName), os.DirFS(filepath.Join(node, storage.CellName))))
		files, _ := filepath.Glob(filepath.Join(folder, "journal", "*"))
		harmed := 0
		for _, name := range files {
			b, read := os.ReadFile(name)
			if err = errors.Join(err, read); bytes.HasPrefix(b, []byte("HFSEG")) && bytes.HasPrefix(b[harm.at:], []byte(harm.magic)) {
				clear(b[harm.at+len(harm.magic):][:100])
				err = errors.Join(err, os.WriteFile(name, b, 0o600))
				harmed++
			}
		}
		if err != nil || harmed != 1 {
			t.Fatalf("%s: %d files of the journal are harmed, %v", what, harmed, err)
		}
		a.folder = folder
		a.alter(t, func(etcd *cell.Member) error {
			_, err := etcd.Client().Put(t.Context(), "cut", strconv.FormatUint(harm.cut, 10))
			if harm.end != whole && err == nil {
				_, err = etcd.Client().Put(t.Context(), "head", harm.end)
			}
			if harm.end == "" && err == nil {
				_, err = etcd.Client().Delete(t.Context(), "head")
			}
			return err
		})
		if err := errors.Join(FoundAnew(t.Context(), folder, a.Config, quiet), Leave(t.Context(), folder, quiet)); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if got := packets(t, folder); got != harm.want {
			t.Errorf("%s: %d packets are left, want %d", what, got, harm.want)
		}
	}
}

func TestAWholeCopyIsPutInItsPlaceBeforeAFolderIsRead(t *testing.T) {
	for _, killed := range []string{"before the folder is replaced", "meanwhile", "and etcd was moved away"} {
		t.Run(killed, func(t *testing.T) {
			a := trio(t)[0]
			store, err := storage.Open(copyFolder(a.folder), storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b content.Batch
			b.PutQueue(content.Queue{ID: 1, Name: []byte("q")})
			for seq := range uint64(5) {
				b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq + 1}, &content.Packet{})
			}
			err = errors.Join(store.Apply(&b), store.Close())
			if killed == "meanwhile" {
				moved := filepath.Join(a.folder, "journal")
				err = errors.Join(err, os.Remove(filepath.Join(a.folder, "format")), os.RemoveAll(moved), os.Rename(filepath.Join(copyFolder(a.folder), "journal"), moved))
			}
			if killed == "and etcd was moved away" {
				at := filepath.Join(a.folder, storage.CellName)
				err = errors.Join(err, os.Rename(filepath.Join(at, storage.MemberName), filepath.Join(t.TempDir(), "etcd")), os.Mkdir(filepath.Join(at, goneName), 0o700))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(FoundAnew(t.Context(), a.folder, a.Config, quiet), Leave(t.Context(), a.folder, quiet)); err != nil {
				t.Fatal(err)
			}
			if got := packets(t, a.folder); got != 5 {
				t.Errorf("%d packets are left, want the 5 of the copy", got)
			}
		})
	}
}

func TestANewCellIsFoundedAnewAfterAKill(t *testing.T) {
	a := trio(t)[0]
	a.onlyInTheLog(t, 10)
	a.alter(t, func(etcd *cell.Member) error {
		miscount(t, etcd, 6)
		return nil
	})
	at := filepath.Join(a.folder, storage.CellName)
	err := alone(t.Context(), a.folder, quiet, func(o Offline, log *cell.Log) error { // and a kill
		return settle(t.Context(), a.folder, storage.Options{Logger: quiet, Release: log.Release, AcceptLoss: true}, o, log)
	})
	if _, gone := os.Stat(filepath.Join(at, goneName)); err != nil || gone != nil {
		t.Fatalf("it is of a cell still: %v, %v", err, gone)
	}
	last := filepath.Join(at, knownName+".tmp") // what is written last fails
	if err := os.Mkdir(last, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err == nil {
		t.Fatal("a cell is founded without its last file: the test proves nothing")
	}
	if _, err := os.Stat(filepath.Join(at, goneName)); err != nil {
		t.Error("behind a kill before that it could not go on")
	}
	if err := os.RemoveAll(last); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(FoundAnew(t.Context(), a.folder, a.Config, quiet), Leave(t.Context(), a.folder, quiet)); err != nil {
		t.Fatal(err)
	}
	if got := packets(t, a.folder); got == 0 || got > 7 {
		t.Errorf("%d packets are left, want those before the batch that does not fit", got)
	}
}

// miscount has a hand change the log's second batch behind one, so that it counts a packet more
// than the nodes have.
func miscount(t *testing.T, etcd *cell.Member, behind uint64) {
	t.Helper()
	rewrite(t, etcd, behind+2, func(old []byte) []byte { // 2 bytes of a length, 4 of another, and so much of the control record: see storage/log.go
		length := 6 + binary.BigEndian.Uint16(old)
		var control content.Control
		if err := content.DecodeControl(old[6:length], &control); err != nil {
			t.Fatal(err)
		}
		control.Live++
		record := content.AppendControl(nil, &control)
		return slices.Concat(binary.BigEndian.AppendUint16(nil, uint16(len(record))), old[2:6], record, old[length:])
	})
}

// rewrite changes the content of a batch of the log, which keeps a right sum.
func rewrite(t *testing.T, etcd *cell.Member, batch uint64, change func(old []byte) []byte) {
	t.Helper()
	key := fmt.Sprintf("j/%016x/0000", batch)
	r, err := etcd.Client().Get(t.Context(), key)
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("the log has nothing at %s, %v", key, err)
	}
	part := r.Kvs[0].Value // 1 byte, 8 of the sum, and the content
	changed := change(part[9:])
	part = slices.Concat(part[:1], binary.BigEndian.AppendUint64(nil, xxhash.Sum64(changed)), changed)
	if _, err := etcd.Client().Put(t.Context(), key, string(part)); err != nil {
		t.Fatal(err)
	}
}

func TestANodeThatIsOlderThanTheLogDoesNotServe(t *testing.T) {
	a := trio(t)[0]
	a.onlyInTheLog(t, 10)
	a.alter(t, func(etcd *cell.Member) error {
		rewrite(t, etcd, 6, func(old []byte) []byte {
			old[8]++ // the format, which the control record begins with
			return old
		})
		_, err := etcd.Client().Delete(t.Context(), "floor/a") // else its tables are too old
		return err
	})
	var log lines
	a.log = &log
	a.launch(t)
	log.await(t, "install the newer version")
	if err := a.redis.RPush(t.Context(), "q", "x").Err(); err == nil {
		t.Error("a push is acknowledged")
	}
	a.halt(t)
	if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err == nil || !strings.Contains(err.Error(), "install the newer version") {
		t.Errorf("a new cell is founded without what a newer version wrote: %v", err)
	}
}
