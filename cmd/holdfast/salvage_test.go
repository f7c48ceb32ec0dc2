package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// salvaged are the places of the packets that stored puts into a folder.
func salvaged(i uint64) content.PacketID {
	return content.PacketID{Queue: 1, Priority: 5, Seq: 1<<63 + i}
}

const storedPackets = 300

// stored makes a folder with one queue, and gives further batches to it.
func stored(t *testing.T, fns ...func(b *content.Batch)) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	first := func(b *content.Batch) {
		b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs")})
		b.SetMarks(content.Marks{NextSeq: 1<<63 + storedPackets, LowSeq: 1<<63 - 1, NextQueue: 2})
		for i := range uint64(storedPackets) {
			b.Put(salvaged(i), &content.Packet{Payload: fmt.Append(nil, "payload ", i)})
		}
	}
	apply(t, dir, append([]func(b *content.Batch){first}, fns...)...)()
	return dir
}

// apply gives batches to a folder and returns what closes it.
func apply(t *testing.T, dir string, fns ...func(b *content.Batch)) (closed func()) {
	t.Helper()
	store, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range fns {
		var b content.Batch
		fn(&b)
		if err := store.Apply(&b); err != nil {
			t.Fatal(errors.Join(err, store.Close()))
		}
	}
	return func() {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killedAfterPops is the folder of a server that was killed after it had delivered a hundred
// packets.
func killedAfterPops(t *testing.T) (dir string) {
	t.Helper()
	live := stored(t)
	var pops []func(b *content.Batch)
	for i := range uint64(10) {
		pops = append(pops, func(b *content.Batch) {
			for j := range uint64(10) {
				b.Delete(salvaged(10*i+j), content.Removed{})
			}
		})
	}
	defer apply(t, live, pops...)()
	dir = filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	return dir
}

const popped = "popped packets may be among those that were written"

func TestSalvageOfAFolderWithoutItsLastBatchesSaysThatPoppedPacketsMayBeBack(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(file string) error{
		"removed": func(file string) error { return os.Remove(file) },
		"cut":     func(file string) error { return os.Truncate(file, 100) },
		"zeroed":  func(file string) error { return errors.Join(os.Truncate(file, 0), os.Truncate(file, 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := killedAfterPops(t)
			logs, err := filepath.Glob(filepath.Join(dir, "journal", "*.log"))
			if err != nil || len(logs) == 0 {
				t.Fatal("there is no log", err)
			}
			for _, file := range logs {
				if err := harm(file); err != nil {
					t.Fatal(err)
				}
			}
			r := cli(t, "dump", dir, "--salvage")
			if r.code != exitOK || !strings.Contains(r.stderr, "anchor: ") || strings.Count(r.stderr, popped) != 1 {
				t.Errorf("exit code %d, stderr %q, want the lost batches and that popped packets may be back", r.code, r.stderr)
			}
		})
	}
}

func TestSalvageCountsWhatIsLostOrCameBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm   func(b *content.Batch)
		want   string
		popped bool
	}{
		"sound": {func(b *content.Batch) {}, "", false},
		"lost": {
			func(b *content.Batch) { b.Delete(salvaged(7), content.Removed{Expires: true}) },
			"lost: packets: packets are missing: the control record counts 300 without expiry, the scan found 299", false,
		},
		"came back": {
			func(b *content.Batch) {
				b.Delete(salvaged(7), content.Removed{})
				b.Delete(salvaged(7), content.Removed{})
				b.Put(salvaged(7), &content.Packet{})
			},
			"resurrected: packets: packets came back: the control record counts 299 without expiry, the scan found 300", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := cli(t, "dump", stored(t, c.harm), "--salvage")
			if r.code != exitOK || !strings.Contains(r.stderr, c.want) || (r.stderr == "") != (c.want == "") || strings.Contains(r.stderr, popped) != c.popped {
				t.Errorf("exit code %d, stderr %q, want %q", r.code, r.stderr, c.want)
			}
		})
	}
}
