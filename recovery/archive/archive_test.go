package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// madeOf returns an archive of a store with packets in tables and in the journal.
func madeOf(t *testing.T, packets uint64) []byte {
	t.Helper()
	s, err := storage.Open(t.TempDir(), storage.Options{Window: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(from, to uint64) {
		var b content.Batch
		for seq := from; seq <= to; seq++ {
			b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{Identity: seq, Payload: fmt.Append(nil, "payload ", seq)})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	put(1, packets-1)
	n, err := s.Snapshot() // brings them into tables
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	put(packets, packets)
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w bytes.Buffer
	if err := archive.Write(&w, f, "test", time.UnixMilli(1_790_000_000_123)); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// restore makes a folder of an archive, which is not there after an error.
func restore(t *testing.T, b []byte) (dir string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	r, err := archive.NewReader(bytes.NewReader(b))
	if err == nil {
		err = r.Restore(t.Context(), dir, nil)
	}
	if _, serr := os.Stat(dir); err != nil && !errors.Is(serr, fs.ErrNotExist) {
		t.Errorf("after %q the folder is there: %v", err, serr)
	}
	return dir, err
}

// payloads are those of a folder, in order.
func payloads(t *testing.T, dir string) (all []string) {
	t.Helper()
	v, err := storage.OpenView(dir, storage.ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	err = v.Walk(storage.Visitor{Whole: true, Packet: func(_ content.PacketID, _ *content.Meta, rec []byte, damage error) error {
		var p content.Packet
		if damage == nil {
			damage = content.DecodeRecord(rec, &p)
		}
		all = append(all, string(p.Payload))
		return damage
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestARestoredFolderHasEverything(t *testing.T) {
	b := madeOf(t, 1000)
	r, err := archive.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	h, told := r.Header, int64(0)
	if h.Packets != 1000 || h.Program != "test" || h.At != 1_790_000_000_123 || h.Batch != 2 || h.Folder != content.FormatVersion {
		t.Errorf("the header says %+v", h)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	err = r.Restore(t.Context(), dir, func(done, total int64) {
		if told = done; total != h.Bytes() {
			t.Errorf("%d bytes in all, want %d", total, h.Bytes())
		}
	})
	if err != nil || told != h.Bytes() {
		t.Fatalf("%v after %d of %d bytes", err, told, h.Bytes())
	}
	if all := payloads(t, dir); len(all) != 1000 || all[0] != "payload 1" || all[999] != "payload 1000" {
		t.Errorf("%d packets: %.40q", len(all), all)
	}
}

func TestACutArchiveIsRefused(t *testing.T) {
	b := madeOf(t, 100)
	const trailer = 1024 + 512 - 17 // zeros behind the sum, which say nothing
	for at := 0; at < len(b)-trailer; at += 1 + len(b)/80 {
		if _, err := restore(t, b[:at]); err == nil {
			t.Fatalf("restored from %d of %d bytes", at, len(b))
		}
	}
	_, err := restore(t, b[:len(b)/2])
	if err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want that it is cut short", err)
	}
	if _, err := restore(t, append(b[:len(b):len(b)], 'x')); err == nil {
		t.Error("restored from one that goes on behind its end")
	}
}

// What stands between the files of a tar may be changed: nobody reads it.
func TestAnArchiveWithAChangedByteIsRefusedOrTheSame(t *testing.T) {
	b := madeOf(t, 100)
	want := fmt.Sprint(payloads(t, must(restore(t, b))))
	refused := 0
	for at := 0; at < len(b); at += 1 + len(b)/120 {
		changed := bytes.Clone(b)
		changed[at] ^= 0x10
		if dir, err := restore(t, changed); err != nil {
			refused++
		} else if got := fmt.Sprint(payloads(t, dir)); got != want {
			t.Fatalf("byte %d was changed, and the folder has %s", at, got)
		}
	}
	if refused < 60 {
		t.Errorf("%d of 120 were refused", refused)
	}
}

func must(dir string, err error) string {
	if err != nil {
		panic(err)
	}
	return dir
}

// entry is a file of a tar that no store made.
type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Format: tar.FormatUSTAR}, content}
}

// tarOf is a tar of files that a header lists, with a right sum. change may change them after that.
func tarOf(t *testing.T, h archive.Header, change func(all []entry) []entry, files ...entry) []byte {
	t.Helper()
	if h.Archive == 0 {
		h.Archive, h.Folder = 1, content.FormatVersion
	}
	var content strings.Builder
	for _, f := range files {
		h.Files = append(h.Files, archive.File{Name: f.Name, Size: f.Size})
		content.WriteString(f.content)
	}
	list, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	all := append([]entry{file(archive.HeaderName, string(list))}, files...)
	all = append(all, file("holdfast-backup.sum", fmt.Sprintf("%016x\n", xxhash.Sum64String(string(list)+content.String()))))
	if change != nil {
		all = change(all)
	}
	var w bytes.Buffer
	out := tar.NewWriter(&w)
	for _, f := range all {
		if err := out.WriteHeader(&f.Header); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(out, f.content)
	}
	_ = out.Flush()
	_ = out.Close()
	return w.Bytes()
}

func TestAHostileArchiveIsRefused(t *testing.T) {
	format, anchor := file("format", "6\n"), file("anchor", "x")
	kind := func(flag byte, link string) func(all []entry) []entry {
		return func(all []entry) []entry {
			all[1].Typeflag, all[1].Linkname, all[1].Size, all[1].content = flag, link, 0, ""
			return all
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for name, b := range map[string][]byte{
		"above":          tarOf(t, archive.Header{}, nil, file("../outside", "x")),
		"absolute":       tarOf(t, archive.Header{}, nil, file(outside, "x")),
		"by a folder":    tarOf(t, archive.Header{}, nil, file("db/../../outside", "x")),
		"other name":     tarOf(t, archive.Header{}, nil, format, file("lock", "1")),
		"twice":          tarOf(t, archive.Header{}, nil, format, format),
		"symbolic link":  tarOf(t, archive.Header{}, kind(tar.TypeSymlink, outside), file("format", "")),
		"hard link":      tarOf(t, archive.Header{}, kind(tar.TypeLink, "/etc/passwd"), file("format", "")),
		"folder":         tarOf(t, archive.Header{}, kind(tar.TypeDir, ""), file("format", "")),
		"device":         tarOf(t, archive.Header{}, kind(tar.TypeChar, ""), file("format", "")),
		"not listed":     tarOf(t, archive.Header{}, func(all []entry) []entry { return append(all[:2:2], anchor, all[2]) }, format),
		"not there":      tarOf(t, archive.Header{}, func(all []entry) []entry { return append(all[:1], all[2:]...) }, format, anchor),
		"behind the end": tarOf(t, archive.Header{}, func(all []entry) []entry { return append(all, anchor) }, format),
		"without a sum":  tarOf(t, archive.Header{}, func(all []entry) []entry { return all[:2] }, format),
		"other order":    tarOf(t, archive.Header{}, func(all []entry) []entry { all[1], all[2] = all[2], all[1]; return all }, format, anchor),
		"longer than it says": tarOf(t, archive.Header{}, func(all []entry) []entry {
			all[1].Size, all[1].content = 3, "6\n\n"
			return all
		}, format),
		"huge":          tarOf(t, archive.Header{Files: []archive.File{{Name: "anchor", Size: 1 << 62}}}, nil, format),
		"below zero":    tarOf(t, archive.Header{Files: []archive.File{{Name: "anchor", Size: -1}}}, nil, format),
		"huge together": tarOf(t, archive.Header{Files: []archive.File{{Name: "anchor", Size: 1 << 59}, {Name: "db/MANIFEST", Size: 1 << 59}}}, nil, format),
		"of no format":  tarOf(t, archive.Header{}, nil, anchor),
		"nothing":       tarOf(t, archive.Header{}, nil),
		"newer archive": tarOf(t, archive.Header{Archive: 2, Folder: 6}, nil, format),
		"newer folder":  tarOf(t, archive.Header{Archive: 1, Folder: 99}, nil, format),
		"no JSON":       tarOf(t, archive.Header{}, func(all []entry) []entry { all[0] = file(archive.HeaderName, "{"); return all }, format),
		"a long header": tarOf(t, archive.Header{Program: strings.Repeat("x", 5<<20)}, nil, format),
		"holes": tarOf(t, archive.Header{}, func(all []entry) []entry {
			all[1].PAXRecords = map[string]string{"path": "format"}
			all[1].Format = tar.FormatPAX
			all[1].Name = strings.Repeat("x", 200)
			return all
		}, format),
	} {
		t.Run(name, func(t *testing.T) {
			if dir, err := restore(t, b); err == nil {
				t.Errorf("it was restored into %s", dir)
			} else {
				t.Log(err)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was made outside of the folder")
			}
		})
	}
	if _, err := restore(t, tarOf(t, archive.Header{}, nil, format, anchor)); err != nil {
		t.Errorf("a harmless one: %v", err) // what its files hold is for a start to judge
	}
}

func TestAnArchiveOfAnotherFormatNamesTheVersionThatReadsIt(t *testing.T) {
	for _, version := range []int{content.FormatVersion - 1, content.FormatVersion + 1} {
		b := tarOf(t, archive.Header{Archive: 1, Folder: version, Program: "0.4.0"}, nil, file("format", "x"))
		if _, err := restore(t, b); !errors.Is(err, storage.ErrFormat) || !strings.Contains(err.Error(), "version 0.4.0 of the program wrote it") {
			t.Errorf("format %d: got %v", version, err)
		}
	}
}

func TestWhatIsNoArchiveIsToldFromOne(t *testing.T) {
	for name, b := range map[string]string{
		"nothing": "", "a dump": `{"type":"header"}` + "\n", "zeros": string(make([]byte, 2048)),
		"another tar": string(tarOf(t, archive.Header{}, func([]entry) []entry { return []entry{file("x", "y")} })),
	} {
		if _, err := restore(t, []byte(b)); !errors.Is(err, archive.ErrNot) {
			t.Errorf("%s: %v, want ErrNot", name, err)
		}
	}
}

func TestARestoreEndsWithItsContext(t *testing.T) {
	b := madeOf(t, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := archive.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	err = r.Restore(ctx, dir, func(int64, int64) { cancel() })
	if _, serr := os.Stat(dir); !errors.Is(err, context.Canceled) || !errors.Is(serr, fs.ErrNotExist) {
		t.Errorf("got %v, and of the folder %v", err, serr)
	}
}
